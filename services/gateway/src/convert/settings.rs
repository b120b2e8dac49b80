//! Settings.

use std::collections::BTreeMap;

use gatehouse_proto::gateway::v1;
use gatehouse_store::settings::Stored;

use super::timestamp;
use crate::{
    error::Error,
    registry::{
        check::Fields,
        setting::{self, Setting, SettingsChange},
    },
};

impl TryFrom<v1::UpdateSettingsRequest> for SettingsChange {
    type Error = Error;

    fn try_from(request: v1::UpdateSettingsRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let set: BTreeMap<String, String> = request.set.into_iter().collect();
        let change = Self::checked(&mut fields, set, &request.reset);
        fields.finish(change)
    }
}

/// Every setting on the wire.
pub fn settings(stored: &Stored) -> Vec<v1::Setting> {
    setting::all(stored).into_iter().map(v1::Setting::from).collect()
}

impl From<Setting> for v1::Setting {
    fn from(setting: Setting) -> Self {
        let (updated_at, updated_by) = setting.changed.unzip();
        Self {
            key: setting.key.to_owned(),
            value_json: setting.value.to_string(),
            default_json: setting.default.to_string(),
            description: setting.description,
            updated_at: updated_at.map(timestamp),
            updated_by: updated_by.unwrap_or_default(),
        }
    }
}
