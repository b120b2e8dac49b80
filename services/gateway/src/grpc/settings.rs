//! `SettingsService`.

use std::sync::Arc;

use gatehouse_platform::auth::Caller;
use gatehouse_proto::gateway::v1::{self, settings_service_server::SettingsService};
use gatehouse_types::settings::FIELDS;
use tonic::{Request, Response, Status};

use super::{answer, methods};
use crate::{
    convert::settings,
    error::Error,
    registry::{State, setting::SettingsChange},
    store,
};

/// The settings.
#[derive(Debug)]
pub(super) struct Settings(pub(super) Arc<State>);

impl Settings {
    async fn list(&self) -> Result<v1::ListSettingsResponse, Error> {
        let mut connection = store::acquire(&self.0.pool).await?;
        let stored = gatehouse_store::settings::load(&mut connection).await?;
        Ok(v1::ListSettingsResponse { settings: settings(&stored) })
    }

    async fn update(
        &self,
        request: v1::UpdateSettingsRequest,
        caller: Caller,
    ) -> Result<v1::UpdateSettingsResponse, Error> {
        let change = SettingsChange::try_from(request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let (before, after) = store::settings::update(&mut transaction, &change, caller.name(), self.0.now()).await?;
        store::commit(transaction).await?;
        for field in FIELDS {
            let (old, new) = (field.get(&before.settings), field.get(&after.settings));
            if old != new {
                tracing::info!(
                    setting.key = field.key,
                    setting.old = %old,
                    setting.new = %new,
                    caller.name = caller.name(),
                    "setting changed"
                );
            }
        }
        Ok(v1::UpdateSettingsResponse { settings: settings(&after) })
    }
}

#[tonic::async_trait]
impl SettingsService for Settings {
    async fn list_settings(
        &self,
        request: Request<v1::ListSettingsRequest>,
    ) -> Result<Response<v1::ListSettingsResponse>, Status> {
        answer(&methods::LIST_SETTINGS, request, |_, _| self.list()).await
    }

    async fn update_settings(
        &self,
        request: Request<v1::UpdateSettingsRequest>,
    ) -> Result<Response<v1::UpdateSettingsResponse>, Status> {
        answer(&methods::UPDATE_SETTINGS, request, |request, caller| self.update(request, caller)).await
    }
}
