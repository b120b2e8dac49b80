//! API keys.

use gatehouse_platform::auth::Scope;
use gatehouse_proto::gateway::v1;
use gatehouse_types::ApiKeyId;

use super::{lookup, page, timestamp};
use crate::{
    error::Error,
    registry::{
        check::Fields,
        key::ApiKey,
        page::{List, TimeKey},
        text,
    },
};

/// A checked `CreateApiKeyRequest`.
#[derive(Debug)]
pub struct CreateKey {
    /// For people.
    pub name: String,
    /// What it may do.
    pub scope: Scope,
}

impl TryFrom<v1::CreateApiKeyRequest> for CreateKey {
    type Error = Error;

    fn try_from(request: v1::CreateApiKeyRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let name = fields.take("name", text::key_name(&request.name));
        let scope = match v1::ApiKeyScope::try_from(request.scope) {
            Ok(v1::ApiKeyScope::Admin) => Scope::Admin,
            Ok(v1::ApiKeyScope::Sessions) => Scope::Sessions,
            Ok(v1::ApiKeyScope::Unspecified) | Err(_) => {
                fields.wrong("scope", "takes `API_KEY_SCOPE_ADMIN` or `API_KEY_SCOPE_SESSIONS`");
                Scope::Sessions
            }
        };
        fields.finish(Self { name, scope })
    }
}

/// A checked `ListApiKeysRequest`.
#[derive(Debug)]
pub struct ListKeys {
    /// Size of the page.
    pub size: usize,
    /// Last key of the page before.
    pub after: Option<TimeKey<ApiKeyId>>,
}

impl ListKeys {
    const LIST: List<'static> = List(&["api_keys"]);

    /// The token of the page after this key.
    pub fn token(last: &ApiKey) -> String {
        let [at, id] = TimeKey { at: last.created_at, id: last.id }.parts();
        Self::LIST.token(&[&at, &id])
    }
}

impl TryFrom<v1::ListApiKeysRequest> for ListKeys {
    type Error = Error;

    fn try_from(request: v1::ListApiKeysRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let (size, key) = page::<2>(&mut fields, request.page_size, &request.page_token, &Self::LIST);
        let after = key.and_then(|parts| time_key(&mut fields, &parts));
        fields.finish(Self { size, after })
    }
}

/// The key in a token of a list that is sorted by time.
pub(super) fn time_key<I: std::str::FromStr + ToString>(
    fields: &mut Fields,
    parts: &[String; 2],
) -> Option<TimeKey<I>> {
    let key = TimeKey::from_parts(parts);
    if let Err(words) = &key {
        fields.wrong("page_token", words.clone());
    }
    key.ok()
}

/// Id or name of the key to revoke.
pub fn key_to_revoke(request: &v1::RevokeApiKeyRequest) -> Result<String, Error> {
    lookup("api_key", &request.api_key)
}

impl From<ApiKey> for v1::ApiKey {
    fn from(key: ApiKey) -> Self {
        let scope = match key.scope {
            Scope::Admin => v1::ApiKeyScope::Admin,
            Scope::Sessions => v1::ApiKeyScope::Sessions,
        };
        Self {
            id: key.id.to_string(),
            name: key.name,
            scope: scope.into(),
            prefix: key.prefix,
            created_at: Some(timestamp(key.created_at)),
            last_used_at: key.last_used_at.map(timestamp),
            revoked_at: key.revoked_at.map(timestamp),
        }
    }
}
