//! Pure. API keys, without their secrets.

use gatehouse_platform::auth::Scope;
use gatehouse_types::ApiKeyId;
use time::OffsetDateTime;

/// An API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Its id.
    pub id: ApiKeyId,
    /// For people; unique among keys that are not revoked.
    pub name: String,
    /// What it may do.
    pub scope: Scope,
    /// First characters of the secret.
    pub prefix: String,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it was last used, to the minute.
    pub last_used_at: Option<OffsetDateTime>,
    /// When it was revoked.
    pub revoked_at: Option<OffsetDateTime>,
}

/// The word that is stored for a scope.
pub const fn scope_word(scope: Scope) -> &'static str {
    match scope {
        Scope::Admin => "admin",
        Scope::Sessions => "sessions",
    }
}

/// The scope that is stored under this word.
pub fn scope_from_stored(word: &str) -> Option<Scope> {
    [Scope::Admin, Scope::Sessions].into_iter().find(|scope| scope_word(*scope) == word)
}
