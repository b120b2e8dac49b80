//! Every RPC of the service with who may call it and how long it may take: handlers take both from here.

use std::time::Duration;

use gatehouse_platform::auth::Scope;

/// Time for what asks the database.
const QUICK: Duration = Duration::from_secs(15);

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Gatehouse's own services.
    Service,
    /// They, and API keys with this scope.
    Scope(Scope),
}

/// An RPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// `/package.Service/Method`.
    pub path: &'static str,
    /// Who may call it.
    pub access: Access,
    /// Whether it answers with a stream.
    pub streaming: bool,
    /// Longest time until the answer; `None` for what waits for people.
    pub deadline: Option<Duration>,
}

const fn quick(path: &'static str, access: Access) -> Method {
    Method { path, access, streaming: false, deadline: Some(QUICK) }
}

const fn endless(path: &'static str, access: Access) -> Method {
    Method { path, access, streaming: true, deadline: None }
}

const SESSIONS: Access = Access::Scope(Scope::Sessions);

/// `InteractionService/CreateInteraction`.
pub const CREATE: Method = quick("/gatehouse.interaction.v1.InteractionService/CreateInteraction", Access::Service);
/// `InteractionService/GetInteraction`.
pub const GET: Method = quick("/gatehouse.interaction.v1.InteractionService/GetInteraction", SESSIONS);
/// `InteractionService/ListInteractions`.
pub const LIST: Method = quick("/gatehouse.interaction.v1.InteractionService/ListInteractions", SESSIONS);
/// `InteractionService/WaitInteraction`.
pub const WAIT: Method = endless("/gatehouse.interaction.v1.InteractionService/WaitInteraction", SESSIONS);
/// `InteractionService/FollowInteractions`.
pub const FOLLOW: Method = endless("/gatehouse.interaction.v1.InteractionService/FollowInteractions", SESSIONS);
/// `InteractionService/AnswerInteraction`.
pub const ANSWER: Method = quick("/gatehouse.interaction.v1.InteractionService/AnswerInteraction", SESSIONS);
/// `InteractionService/CloseInteraction`.
pub const CLOSE: Method = quick("/gatehouse.interaction.v1.InteractionService/CloseInteraction", Access::Service);

/// All of them.
pub const METHODS: &[Method] = &[CREATE, GET, LIST, WAIT, FOLLOW, ANSWER, CLOSE];
