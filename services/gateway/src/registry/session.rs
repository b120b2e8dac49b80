//! Pure. Sessions, their tokens and runs.

use gatehouse_types::{RunId, SessionId, TokenId};

pub use gatehouse_types::PermissionMode;
use time::OffsetDateTime;

use super::digest::Digest;

/// Most bytes of a workspace's path.
pub const WORKSPACE_BYTES: usize = 1_024;
/// Most tokens of a session that are not revoked.
pub const MOST_TOKENS: i64 = 500;
/// Most tokens that a list shows.
pub const TOKENS_SHOWN: i64 = 500;
/// Locale when the request names none.
pub const DEFAULT_LOCALE: &str = "en";

/// Kind of engine that uses a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineKind {
    /// Claude Code and the Claude Agent SDK.
    ClaudeCode,
    /// `OpenAI` Codex.
    Codex,
    /// Any other MCP client.
    #[default]
    Other,
}

impl EngineKind {
    /// The word that is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude_code",
            Self::Codex => "codex",
            Self::Other => "other",
        }
    }

    /// The kind that is stored under this word.
    pub fn from_stored(word: &str) -> Option<Self> {
        [Self::ClaudeCode, Self::Codex, Self::Other].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Id in the caller's own system.
    pub external_id: Option<String>,
    /// Name of its profile.
    pub profile: String,
    /// Kind of engine.
    pub engine: EngineKind,
    /// Permission mode.
    pub permission_mode: PermissionMode,
    /// Folder under the configured root; empty for none.
    pub workspace: String,
    /// Language of text for people.
    pub locale: String,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it last changed.
    pub updated_at: OffsetDateTime,
}

/// A session to make. Every field is checked, except that the profile exists and what is in the file system.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Makes the request idempotent.
    pub request_id: Option<String>,
    /// Id or name of the profile.
    pub profile: String,
    /// Kind of engine.
    pub engine: EngineKind,
    /// Permission mode.
    pub permission_mode: PermissionMode,
    /// See [`workspace`].
    pub workspace: String,
    /// Language of text for people.
    pub locale: String,
    /// Id in the caller's own system.
    pub external_id: Option<String>,
}

impl NewSession {
    /// What the request asks for.
    pub fn digest(&self) -> [u8; 32] {
        let digest = Digest::new("session").text(&self.profile).text(self.engine.as_str());
        let digest = digest.text(self.permission_mode.as_str()).text(&self.workspace).text(&self.locale);
        digest.text(self.external_id.as_deref().unwrap_or_default()).finish()
    }
}

/// A change to a session. `None` leaves what is there.
#[derive(Debug, Clone, Default)]
pub struct SessionChange {
    /// Id or name of the profile.
    pub profile: Option<String>,
    /// Permission mode.
    pub permission_mode: Option<PermissionMode>,
    /// Language of text for people.
    pub locale: Option<String>,
    /// Kind of engine.
    pub engine: Option<EngineKind>,
}

impl SessionChange {
    /// Whether nothing is to be changed.
    pub const fn is_empty(&self) -> bool {
        self.profile.is_none() && self.permission_mode.is_none() && self.locale.is_none() && self.engine.is_none()
    }
}

/// A bearer token of a session, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// The actor; empty is the default one.
    pub actor: String,
    /// First characters of the secret.
    pub prefix: String,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it was revoked.
    pub revoked_at: Option<OffsetDateTime>,
}

/// A turn of a session and actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The session.
    pub session_id: SessionId,
    /// The actor; empty is the default one.
    pub actor: String,
    /// When it began.
    pub began_at: OffsetDateTime,
    /// When it ended.
    pub ended_at: Option<OffsetDateTime>,
    /// Whether a call of it waits for a person.
    pub waiting_input: bool,
}

/// Which tokens to revoke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revoke {
    /// One token.
    One(TokenId),
    /// All tokens of an actor.
    Actor(String),
}

/// A workspace's path: relative, of plain segments, so that it stays under the root whatever the root is. Empty is
/// none.
pub fn workspace(path: &str) -> Result<String, String> {
    if path.is_empty() {
        return Ok(String::new());
    }
    if path.len() > WORKSPACE_BYTES {
        return Err(format!("takes at most {WORKSPACE_BYTES} bytes"));
    }
    if path.chars().any(|letter| letter.is_control() || letter == '\\') {
        return Err("takes no control characters and no `\\`".to_owned());
    }
    if path.starts_with('/') {
        return Err("takes a path relative to the configured root, without a leading `/`".to_owned());
    }
    // `c:` is a drive where Windows reads the path.
    let plain = |segment: &str| !matches!(segment, "" | "." | "..") && segment.len() <= 255 && !segment.contains(':');
    let path_without_end = path.strip_suffix('/').unwrap_or(path);
    if !path_without_end.split('/').all(plain) {
        return Err("takes a path of plain names, without `.`, `..`, `:` and empty ones".to_owned());
    }
    Ok(path_without_end.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_workspace_is_a_relative_path_of_plain_names() {
        for good in ["", "a", "a/b", "a/b/", "team one/订单", "...", "a..b"] {
            assert!(workspace(good).is_ok(), "{good}");
        }
        for bad in ["/", "/a", "..", "a/..", "../a", "a/../b", ".", "./a", "a//b", "a\\b", "a\n", "a\0", "c:/a", "//"] {
            assert!(workspace(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_workspace_that_passes_never_leaves_its_root(path in "[a./\\\\:\0]{0,12}|\\PC{0,20}") {
            if let Ok(passed) = workspace(&path) {
                let normal = Path::new(&passed).components().all(|part| matches!(part, Component::Normal(_)));
                prop_assert!(normal);
                prop_assert!(Path::new("/root").join(&passed).starts_with("/root"));
            }
        }
    }

    #[test]
    fn stored_words_come_back() {
        for kind in [EngineKind::ClaudeCode, EngineKind::Codex, EngineKind::Other] {
            assert_eq!(EngineKind::from_stored(kind.as_str()), Some(kind));
        }
        for mode in [PermissionMode::ReadOnly, PermissionMode::Ask, PermissionMode::Auto] {
            assert_eq!(PermissionMode::parse(mode.as_str()), Some(mode));
        }
        assert_eq!(PermissionMode::parse("all"), None);
    }
}
