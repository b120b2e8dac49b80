//! Every RPC of the gateway with what it needs and how long it may take: handlers take scope and deadline from here.

use std::time::Duration;

use gatehouse_platform::auth::Scope;

/// Time for what asks the database only.
const QUICK: Duration = Duration::from_secs(15);
/// Time for what asks servers, each with timeouts of its own.
const SLOW: Duration = Duration::from_mins(5);

/// An RPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// `/package.Service/Method`.
    pub path: &'static str,
    /// Scope that a caller needs.
    pub scope: Scope,
    /// Whether it answers with a stream.
    pub streaming: bool,
    /// Longest time until the answer; `None` where settings bound it.
    pub deadline: Option<Duration>,
}

const fn quick(path: &'static str, scope: Scope) -> Method {
    Method { path, scope, streaming: false, deadline: Some(QUICK) }
}

const fn slow(path: &'static str, scope: Scope) -> Method {
    Method { path, scope, streaming: false, deadline: Some(SLOW) }
}

/// `ServerService/CreateServer`.
pub const CREATE_SERVER: Method = quick("/gatehouse.gateway.v1.ServerService/CreateServer", Scope::Admin);
/// `ServerService/GetServer`.
pub const GET_SERVER: Method = quick("/gatehouse.gateway.v1.ServerService/GetServer", Scope::Admin);
/// `ServerService/ListServers`.
pub const LIST_SERVERS: Method = quick("/gatehouse.gateway.v1.ServerService/ListServers", Scope::Admin);
/// `ServerService/UpdateServer`.
pub const UPDATE_SERVER: Method = quick("/gatehouse.gateway.v1.ServerService/UpdateServer", Scope::Admin);
/// `ServerService/DeleteServer`.
pub const DELETE_SERVER: Method = quick("/gatehouse.gateway.v1.ServerService/DeleteServer", Scope::Admin);
/// `ServerService/TestServer`.
pub const TEST_SERVER: Method = slow("/gatehouse.gateway.v1.ServerService/TestServer", Scope::Admin);
/// `ServerService/RefreshServer`.
pub const REFRESH_SERVER: Method = slow("/gatehouse.gateway.v1.ServerService/RefreshServer", Scope::Admin);
/// `ToolService/ListTools`.
pub const LIST_TOOLS: Method = quick("/gatehouse.gateway.v1.ToolService/ListTools", Scope::Admin);
/// `ToolService/UpdateTool`.
pub const UPDATE_TOOL: Method = quick("/gatehouse.gateway.v1.ToolService/UpdateTool", Scope::Admin);
/// `ToolService/AcknowledgeTools`.
pub const ACKNOWLEDGE_TOOLS: Method = quick("/gatehouse.gateway.v1.ToolService/AcknowledgeTools", Scope::Admin);
/// `ProfileService/CreateProfile`.
pub const CREATE_PROFILE: Method = quick("/gatehouse.gateway.v1.ProfileService/CreateProfile", Scope::Admin);
/// `ProfileService/GetProfile`.
pub const GET_PROFILE: Method = quick("/gatehouse.gateway.v1.ProfileService/GetProfile", Scope::Admin);
/// `ProfileService/ListProfiles`.
pub const LIST_PROFILES: Method = quick("/gatehouse.gateway.v1.ProfileService/ListProfiles", Scope::Admin);
/// `ProfileService/UpdateProfile`.
pub const UPDATE_PROFILE: Method = quick("/gatehouse.gateway.v1.ProfileService/UpdateProfile", Scope::Admin);
/// `ProfileService/DeleteProfile`.
pub const DELETE_PROFILE: Method = quick("/gatehouse.gateway.v1.ProfileService/DeleteProfile", Scope::Admin);
/// `SettingsService/ListSettings`.
pub const LIST_SETTINGS: Method = quick("/gatehouse.gateway.v1.SettingsService/ListSettings", Scope::Admin);
/// `SettingsService/UpdateSettings`.
pub const UPDATE_SETTINGS: Method = quick("/gatehouse.gateway.v1.SettingsService/UpdateSettings", Scope::Admin);
/// `ApiKeyService/CreateApiKey`.
pub const CREATE_API_KEY: Method = quick("/gatehouse.gateway.v1.ApiKeyService/CreateApiKey", Scope::Admin);
/// `ApiKeyService/ListApiKeys`.
pub const LIST_API_KEYS: Method = quick("/gatehouse.gateway.v1.ApiKeyService/ListApiKeys", Scope::Admin);
/// `ApiKeyService/RevokeApiKey`.
pub const REVOKE_API_KEY: Method = quick("/gatehouse.gateway.v1.ApiKeyService/RevokeApiKey", Scope::Admin);
/// `SessionService/CreateSession`.
pub const CREATE_SESSION: Method = quick("/gatehouse.gateway.v1.SessionService/CreateSession", Scope::Sessions);
/// `SessionService/GetSession`.
pub const GET_SESSION: Method = quick("/gatehouse.gateway.v1.SessionService/GetSession", Scope::Sessions);
/// `SessionService/ListSessions`.
pub const LIST_SESSIONS: Method = quick("/gatehouse.gateway.v1.SessionService/ListSessions", Scope::Sessions);
/// `SessionService/UpdateSession`.
pub const UPDATE_SESSION: Method = quick("/gatehouse.gateway.v1.SessionService/UpdateSession", Scope::Sessions);
/// `SessionService/DeleteSession`.
pub const DELETE_SESSION: Method = quick("/gatehouse.gateway.v1.SessionService/DeleteSession", Scope::Sessions);
/// `SessionService/IssueToken`.
pub const ISSUE_TOKEN: Method = quick("/gatehouse.gateway.v1.SessionService/IssueToken", Scope::Sessions);
/// `SessionService/RotateToken`.
pub const ROTATE_TOKEN: Method = quick("/gatehouse.gateway.v1.SessionService/RotateToken", Scope::Sessions);
/// `SessionService/RevokeToken`.
pub const REVOKE_TOKEN: Method = quick("/gatehouse.gateway.v1.SessionService/RevokeToken", Scope::Sessions);
/// `SessionService/ListTokens`.
pub const LIST_TOKENS: Method = quick("/gatehouse.gateway.v1.SessionService/ListTokens", Scope::Sessions);
/// `SessionService/BeginRun`.
pub const BEGIN_RUN: Method = quick("/gatehouse.gateway.v1.SessionService/BeginRun", Scope::Sessions);
/// `SessionService/EndRun`.
pub const END_RUN: Method = quick("/gatehouse.gateway.v1.SessionService/EndRun", Scope::Sessions);
/// `SessionService/ListGrants`.
pub const LIST_GRANTS: Method = quick("/gatehouse.gateway.v1.SessionService/ListGrants", Scope::Sessions);
/// `SessionService/RevokeGrants`.
pub const REVOKE_GRANTS: Method = quick("/gatehouse.gateway.v1.SessionService/RevokeGrants", Scope::Sessions);
/// `SessionService/GetToolsVersion`.
pub const GET_TOOLS_VERSION: Method = quick("/gatehouse.gateway.v1.SessionService/GetToolsVersion", Scope::Sessions);
/// `CallService/ListOfferedTools`.
pub const LIST_OFFERED_TOOLS: Method = quick("/gatehouse.gateway.v1.CallService/ListOfferedTools", Scope::Sessions);
/// `CallService/CallTool`.
pub const CALL_TOOL: Method = Method {
    path: "/gatehouse.gateway.v1.CallService/CallTool",
    scope: Scope::Sessions,
    streaming: true,
    deadline: None,
};
/// `FileService/ListFiles`.
pub const LIST_FILES: Method = quick("/gatehouse.gateway.v1.FileService/ListFiles", Scope::Sessions);
/// `FileService/GetFile`. The deadline is that of the first message; the bytes take as long as the caller takes them.
pub const GET_FILE: Method = Method {
    path: "/gatehouse.gateway.v1.FileService/GetFile",
    scope: Scope::Sessions,
    streaming: true,
    deadline: Some(QUICK),
};
/// `AuditService/ListCalls`.
pub const LIST_CALLS: Method = quick("/gatehouse.gateway.v1.AuditService/ListCalls", Scope::Sessions);
/// `AuditService/GetCall`.
pub const GET_CALL: Method = quick("/gatehouse.gateway.v1.AuditService/GetCall", Scope::Sessions);

/// All of them.
pub const METHODS: &[Method] = &[
    CREATE_SERVER,
    GET_SERVER,
    LIST_SERVERS,
    UPDATE_SERVER,
    DELETE_SERVER,
    TEST_SERVER,
    REFRESH_SERVER,
    LIST_TOOLS,
    UPDATE_TOOL,
    ACKNOWLEDGE_TOOLS,
    CREATE_PROFILE,
    GET_PROFILE,
    LIST_PROFILES,
    UPDATE_PROFILE,
    DELETE_PROFILE,
    LIST_SETTINGS,
    UPDATE_SETTINGS,
    CREATE_API_KEY,
    LIST_API_KEYS,
    REVOKE_API_KEY,
    CREATE_SESSION,
    GET_SESSION,
    LIST_SESSIONS,
    UPDATE_SESSION,
    DELETE_SESSION,
    ISSUE_TOKEN,
    ROTATE_TOKEN,
    REVOKE_TOKEN,
    LIST_TOKENS,
    BEGIN_RUN,
    END_RUN,
    LIST_GRANTS,
    REVOKE_GRANTS,
    GET_TOOLS_VERSION,
    LIST_OFFERED_TOOLS,
    CALL_TOOL,
    LIST_FILES,
    GET_FILE,
    LIST_CALLS,
    GET_CALL,
];
