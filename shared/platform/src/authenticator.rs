//! Who a credential belongs to.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gatehouse_store::api_keys;
use gatehouse_types::{Clock, secret::API_KEY_PREFIX};
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::PgPool;
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

use crate::auth::{Caller, Refusal, Scope};

/// How long a known key counts without asking the database; so long may a revoked key still work.
const CACHED_FOR: Duration = Duration::from_secs(1);
/// Most keys that are remembered.
const MOST_CACHED: usize = 1_024;
/// Longest bearer token that is looked at, in bytes.
const MAX_TOKEN_BYTES: usize = 256;

type Hash = [u8; 32];

/// Finds the caller that a bearer token belongs to.
pub struct Authenticator {
    pool: PgPool,
    clock: Arc<dyn Clock>,
    service_token: Option<Hash>,
    known: Mutex<HashMap<Hash, (Instant, Caller)>>,
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator").finish_non_exhaustive()
    }
}

impl Authenticator {
    /// Knows the API keys of this database and, when there is one, the services' token.
    pub fn new(pool: PgPool, clock: Arc<dyn Clock>, service_token: Option<&SecretString>) -> Self {
        let service_token = service_token.map(|token| api_keys::hash(token.expose_secret()));
        Self { pool, clock, service_token, known: Mutex::default() }
    }

    /// The caller of a request, by the value of its `authorization` header.
    pub async fn by_header(&self, authorization: Option<&str>) -> Result<Caller, Refusal> {
        let (scheme, token) = authorization.and_then(|value| value.split_once(' ')).ok_or(Refusal::Unauthenticated)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Refusal::Unauthenticated);
        }
        self.by_token(token.trim()).await
    }

    /// The caller that a token belongs to: an API key that is not revoked, or the services' token.
    pub async fn by_token(&self, token: &str) -> Result<Caller, Refusal> {
        if token.is_empty() || token.len() > MAX_TOKEN_BYTES {
            return Err(Refusal::Unauthenticated);
        }
        let hash = api_keys::hash(token);
        // Hashes of one length, compared in constant time: neither the token nor its length shows in the time it takes.
        if self.service_token.is_some_and(|own| bool::from(own.ct_eq(&hash))) {
            return Ok(Caller::Service);
        }
        if !token.starts_with(API_KEY_PREFIX) {
            return Err(Refusal::Unauthenticated);
        }
        if let Some(caller) = self.remembered(&hash) {
            return Ok(caller);
        }
        let asked = Instant::now();
        let caller = self.look_up(&hash).await?;
        self.remember(hash, asked, caller.clone());
        Ok(caller)
    }

    async fn look_up(&self, hash: &Hash) -> Result<Caller, Refusal> {
        let now = self.clock.now();
        let mut connection = self.pool.acquire().await.map_err(Refusal::Unavailable)?;
        let key = api_keys::find(&mut connection, hash, now).await.map_err(Refusal::Unavailable)?;
        let key = key.filter(|key| !key.revoked).ok_or(Refusal::Unauthenticated)?;
        if key.touch_due
            && let Err(error) = api_keys::touch(&mut connection, key.id, now).await
        {
            // Better a stale `last used` than a refused caller.
            tracing::warn!(api_key.id = %key.id, error.message = %error, "last use of an API key was not recorded");
        }
        let scope = if key.scope == "admin" { Scope::Admin } else { Scope::Sessions };
        Ok(Caller::ApiKey { id: key.id, name: key.name, scope })
    }

    fn remembered(&self, hash: &Hash) -> Option<Caller> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(hash).filter(|(asked, _)| asked.elapsed() < CACHED_FOR).map(|(_, caller)| caller.clone())
    }

    fn remember(&self, hash: Hash, asked: Instant, caller: Caller) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_CACHED {
            known.retain(|_, (asked, _)| asked.elapsed() < CACHED_FOR);
        }
        if known.len() < MOST_CACHED {
            known.insert(hash, (asked, caller));
        }
    }
}
