//! Sessions, tokens and runs.

use gatehouse_proto::gateway::v1;
use gatehouse_types::{RunId, SessionId};
use secrecy::{ExposeSecret as _, SecretString};

use super::{Change, filter, keys::time_key, page, timestamp};
use crate::{
    error::Error,
    registry::{
        check::Fields,
        page::{List, TimeKey},
        session::{
            self, DEFAULT_LOCALE, EngineKind, NewSession, PermissionMode, Revoke, Run, Session, SessionChange, Token,
        },
        text,
    },
};

fn engine(number: i32) -> Result<EngineKind, String> {
    match v1::EngineKind::try_from(number) {
        Ok(v1::EngineKind::ClaudeCode) => Ok(EngineKind::ClaudeCode),
        Ok(v1::EngineKind::Codex) => Ok(EngineKind::Codex),
        Ok(v1::EngineKind::Other | v1::EngineKind::Unspecified) => Ok(EngineKind::Other),
        Err(_) => Err("takes a kind that this version knows".to_owned()),
    }
}

fn mode(number: i32) -> Result<PermissionMode, String> {
    match v1::PermissionMode::try_from(number) {
        Ok(v1::PermissionMode::ReadOnly) => Ok(PermissionMode::ReadOnly),
        Ok(v1::PermissionMode::Ask | v1::PermissionMode::Unspecified) => Ok(PermissionMode::Ask),
        Ok(v1::PermissionMode::Auto) => Ok(PermissionMode::Auto),
        Err(_) => Err("takes a mode that this version knows".to_owned()),
    }
}

impl TryFrom<v1::CreateSessionRequest> for NewSession {
    type Error = Error;

    fn try_from(request: v1::CreateSessionRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let locale = if request.locale.is_empty() { DEFAULT_LOCALE } else { &request.locale };
        let new = Self {
            request_id: fields.take("request_id", text::request_id(&request.request_id)),
            profile: fields.take("profile", text::lookup(&request.profile)),
            engine: fields.take("engine", engine(request.engine)),
            permission_mode: fields.take("permission_mode", mode(request.permission_mode)),
            workspace: fields.take("workspace", session::workspace(&request.workspace)),
            locale: fields.take("locale", text::locale(locale)),
            external_id: fields.take("external_id", text::external_id(&request.external_id)),
        };
        fields.finish(new)
    }
}

impl TryFrom<v1::UpdateSessionRequest> for Change<SessionChange> {
    type Error = Error;

    fn try_from(request: v1::UpdateSessionRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let key = fields.take("session", text::lookup(&request.session));
        let change = SessionChange {
            profile: fields.take_some("profile", request.profile, |profile| text::lookup(&profile)),
            permission_mode: fields.take_some("permission_mode", request.permission_mode, mode),
            locale: fields.take_some("locale", request.locale, |locale| text::locale(&locale)),
            engine: fields.take_some("engine", request.engine, engine),
        };
        fields.finish(Self { key, change })
    }
}

/// A checked `ListSessionsRequest`.
#[derive(Debug)]
pub struct ListSessions {
    /// Id or name of a profile; `None` for all.
    pub profile: Option<String>,
    /// Size of the page.
    pub size: usize,
    /// Last session of the page before.
    pub after: Option<TimeKey<SessionId>>,
}

impl ListSessions {
    /// The token of the page after this session.
    pub fn token(&self, last: &Session) -> String {
        let [at, id] = TimeKey { at: last.created_at, id: last.id }.parts();
        List(&["sessions", self.profile.as_deref().unwrap_or_default()]).token(&[&at, &id])
    }
}

impl TryFrom<v1::ListSessionsRequest> for ListSessions {
    type Error = Error;

    fn try_from(request: v1::ListSessionsRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let list = List(&["sessions", &request.profile]);
        let (size, key) = page::<2>(&mut fields, request.page_size, &request.page_token, &list);
        let after = key.and_then(|parts| time_key(&mut fields, &parts));
        let profile = filter(&mut fields, "profile", &request.profile);
        fields.finish(Self { profile, size, after })
    }
}

/// A session and an actor of it.
#[derive(Debug)]
pub struct TokenOf {
    /// Id or external id of the session.
    pub session: String,
    /// The actor; empty is the default one.
    pub actor: String,
}

impl TokenOf {
    fn checked(session: &str, actor: &str) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let checked = Self {
            session: fields.take("session", text::lookup(session)),
            actor: fields.take("actor", text::actor(actor)),
        };
        fields.finish(checked)
    }
}

impl TryFrom<v1::IssueTokenRequest> for TokenOf {
    type Error = Error;

    fn try_from(request: v1::IssueTokenRequest) -> Result<Self, Error> {
        Self::checked(&request.session, &request.actor)
    }
}

impl TryFrom<v1::RotateTokenRequest> for TokenOf {
    type Error = Error;

    fn try_from(request: v1::RotateTokenRequest) -> Result<Self, Error> {
        Self::checked(&request.session, &request.actor)
    }
}

/// The session of a request, and which of its tokens to revoke.
pub fn token_to_revoke(request: &v1::RevokeTokenRequest) -> Result<(String, Revoke), Error> {
    let mut fields = Fields::new();
    let session = fields.take("session", text::lookup(&request.session));
    let which = if request.token_id.is_empty() {
        Revoke::Actor(fields.take("actor", text::actor(&request.actor)))
    } else {
        let id = text::id(&request.token_id).map(Some);
        fields.take("token_id", id).map_or(Revoke::Actor(String::new()), Revoke::One)
    };
    fields.finish((session, which))
}

/// A checked `BeginRunRequest`.
#[derive(Debug)]
pub struct BeginRun {
    /// Makes the request idempotent.
    pub request_id: Option<String>,
    /// Id or external id of the session.
    pub session: String,
    /// The actor; empty is the default one.
    pub actor: String,
}

impl TryFrom<v1::BeginRunRequest> for BeginRun {
    type Error = Error;

    fn try_from(request: v1::BeginRunRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let begin = Self {
            request_id: fields.take("request_id", text::request_id(&request.request_id)),
            session: fields.take("session", text::lookup(&request.session)),
            actor: fields.take("actor", text::actor(&request.actor)),
        };
        fields.finish(begin)
    }
}

/// The run of a request.
pub fn run_to_end(request: &v1::EndRunRequest) -> Result<RunId, Error> {
    text::id(&request.run_id).map_err(|words| Error::field("run_id", words))
}

/// The answer to `CreateSession`. This is where a token leaves; it is shown once.
pub fn mcp_session(session: Session, token: &SecretString, mcp_url: &str) -> v1::CreateSessionResponse {
    v1::CreateSessionResponse {
        session: Some(session.into()),
        token: token.expose_secret().to_owned(),
        mcp_url: mcp_url.to_owned(),
    }
}

impl From<Session> for v1::Session {
    fn from(session: Session) -> Self {
        let engine = match session.engine {
            EngineKind::ClaudeCode => v1::EngineKind::ClaudeCode,
            EngineKind::Codex => v1::EngineKind::Codex,
            EngineKind::Other => v1::EngineKind::Other,
        };
        let mode = match session.permission_mode {
            PermissionMode::ReadOnly => v1::PermissionMode::ReadOnly,
            PermissionMode::Ask => v1::PermissionMode::Ask,
            PermissionMode::Auto => v1::PermissionMode::Auto,
        };
        Self {
            id: session.id.to_string(),
            external_id: session.external_id.unwrap_or_default(),
            profile: session.profile,
            engine: engine.into(),
            permission_mode: mode.into(),
            workspace: session.workspace,
            locale: session.locale,
            created_at: Some(timestamp(session.created_at)),
            updated_at: Some(timestamp(session.updated_at)),
        }
    }
}

impl From<Token> for v1::SessionToken {
    fn from(token: Token) -> Self {
        Self {
            id: token.id.to_string(),
            actor: token.actor,
            prefix: token.prefix,
            created_at: Some(timestamp(token.created_at)),
            revoked_at: token.revoked_at.map(timestamp),
        }
    }
}

impl From<Run> for v1::Run {
    fn from(run: Run) -> Self {
        let state = match (run.ended_at, run.waiting_input) {
            (Some(_), _) => v1::RunState::Ended,
            (None, true) => v1::RunState::WaitingInput,
            (None, false) => v1::RunState::Running,
        };
        Self {
            id: run.id.to_string(),
            session_id: run.session_id.to_string(),
            actor: run.actor,
            began_at: Some(timestamp(run.began_at)),
            ended_at: run.ended_at.map(timestamp),
            state: state.into(),
        }
    }
}
