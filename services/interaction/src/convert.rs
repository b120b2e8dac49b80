//! Between the types of the proto files and those of the core. The core never sees a generated type.

use gatehouse_proto::interaction::v1::{self, create_interaction_request, interaction};
use gatehouse_types::{Hints, InteractionId, Policy, SessionId};
use time::OffsetDateTime;

use crate::{
    card::{Approval, Card, NewCard},
    check::{self, Fields},
    error::Error,
    page::{self, Filter},
    state::{Answer, Decision, End, Reply, Word},
};

/// The card that a request is about.
pub fn key(id: &str) -> Result<InteractionId, Error> {
    check::id(id).map_err(|words| Error::field("id", words))
}

/// The session that a request is about; `None` is all.
pub fn session(id: &str) -> Result<Option<SessionId>, Error> {
    check::some_id(id).map_err(|words| Error::field("session_id", words))
}

impl TryFrom<v1::CreateInteractionRequest> for NewCard {
    type Error = Error;

    fn try_from(request: v1::CreateInteractionRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let id = fields.take("id", check::id(&request.id));
        let session_id = fields.take("session_id", check::id(&request.session_id));
        let actor = fields.take("actor", check::actor(&request.actor));
        let run_id = fields.take("run_id", check::some_id(&request.run_id));
        let call_id = fields.take("call_id", check::id(&request.call_id));
        let replica_id = fields.take("replica_id", check::id(&request.replica_id));
        let server = fields.take("server", check::server(&request.server));
        let tool = fields.take("tool", check::tool(&request.tool));
        let approval = match request.card {
            Some(create_interaction_request::Card::Approval(card)) => approval(&mut fields, &card, tool.as_deref()),
            None => {
                fields.wrong("approval", "is missing");
                None
            }
        };
        let arguments_sha256 = fields.take("arguments_sha256", check::hash(&request.arguments_sha256));
        let terms_sha256 = fields.take("terms_sha256", check::hash(&request.terms_sha256));
        let timeout = fields.take("timeout_sec", check::timeout(request.timeout_sec));
        let new = || {
            Some(Self {
                id: id?,
                session_id: session_id?,
                actor: actor?,
                run_id: run_id?,
                call_id: call_id?,
                replica_id: replica_id?,
                server: server?,
                tool: tool?,
                approval: approval?,
                arguments_sha256: arguments_sha256?,
                terms_sha256: terms_sha256?,
                timeout: timeout?,
            })
        };
        fields.finish(new())
    }
}

fn approval(fields: &mut Fields, card: &v1::ApprovalCard, tool: Option<&str>) -> Option<Approval> {
    let title = fields.take("approval.title", check::title(&card.title));
    let arguments = fields.take("approval.arguments_json", check::arguments(&card.arguments_json));
    let arguments_bytes = fields.take("approval.arguments_bytes", check::bytes(card.arguments_bytes));
    let policy = Policy::parse(&card.policy).filter(|policy| matches!(policy, Policy::Ask | Policy::Confirm));
    let policy = fields.take("approval.policy", policy.ok_or_else(|| "takes `ask` or `confirm`".to_owned()));
    if policy == Some(Policy::Confirm) && card.may_remember {
        fields.wrong("approval.may_remember", "cannot be true with the policy `confirm`, which asks each time");
    }
    let title = title.map(|title| if title.is_empty() { tool.unwrap_or_default().to_owned() } else { title });
    Some(Approval {
        title: title?,
        arguments: arguments?,
        arguments_bytes: arguments_bytes?,
        hints: Hints {
            read_only: card.read_only,
            destructive: card.destructive,
            idempotent: card.idempotent,
            open_world: card.open_world,
        },
        policy: policy?,
        may_remember: card.may_remember,
    })
}

/// A checked `AnswerInteractionRequest`.
#[derive(Debug)]
pub struct AnswerCard {
    /// The card.
    pub id: InteractionId,
    /// The answer.
    pub reply: Reply,
}

impl AnswerCard {
    /// Checks a request of a caller with this name.
    pub fn new(request: &v1::AnswerInteractionRequest, caller: &str) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let id = fields.take("id", check::id(&request.id));
        let by = fields.take("answered_by", check::person(&request.answered_by, caller));
        let (decision, reason) = match &request.answer {
            Some(v1::answer_interaction_request::Answer::Approval(reply)) => (
                fields.take("approval.decision", decision(reply.decision)),
                fields.take("approval.reason", check::reason(&reply.reason)),
            ),
            None => {
                fields.wrong("approval", "is missing");
                (None, None)
            }
        };
        let new = || Some(Self { id: id?, reply: Reply { decision: decision?, reason: reason?, by: by? } });
        fields.finish(new())
    }
}

/// That a card does not allow to decide for the rest of the session.
pub fn may_not_remember() -> Error {
    Error::field(
        "approval.decision",
        "cannot be DECISION_APPROVE_FOR_SESSION: this tool asks each time; the card stays open for another answer",
    )
}

fn decision(number: i32) -> Result<Decision, String> {
    match v1::Decision::try_from(number) {
        Ok(v1::Decision::Approve) => Ok(Decision::Approve),
        Ok(v1::Decision::ApproveForSession) => Ok(Decision::ApproveForSession),
        Ok(v1::Decision::Deny) => Ok(Decision::Deny),
        Ok(v1::Decision::Unspecified) | Err(_) => {
            Err("takes DECISION_APPROVE, DECISION_APPROVE_FOR_SESSION or DECISION_DENY".to_owned())
        }
    }
}

/// The card and the word of a `CloseInteractionRequest`.
pub fn close(request: &v1::CloseInteractionRequest) -> Result<(InteractionId, End), Error> {
    let mut fields = Fields::new();
    let id = fields.take("id", check::id(&request.id));
    let word = v1::InteractionState::try_from(request.state).ok().and_then(word);
    let end = match word {
        Some(Word::Ended(end)) => Ok(end),
        _ => Err("takes a state that closes a card without an answer".to_owned()),
    };
    let end = fields.take("state", end);
    fields.finish(id.zip(end))
}

/// A checked `ListInteractionsRequest`.
#[derive(Debug)]
pub struct ListCards {
    /// Which cards.
    pub filter: Filter,
    /// Size of the page.
    pub size: usize,
    /// Last card of the page before.
    pub after: Option<InteractionId>,
}

impl TryFrom<v1::ListInteractionsRequest> for ListCards {
    type Error = Error;

    fn try_from(request: v1::ListInteractionsRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let session = fields.take("session_id", check::some_id(&request.session_id));
        let state = v1::InteractionState::try_from(request.state);
        let state = fields.take("state", state.map_err(|_| "takes a state that this version knows".to_owned()));
        let size = fields.take("page_size", page::size(request.page_size));
        let filter = session.zip(state).map(|(session, state)| Filter { session, word: word(state) });
        // A token belongs to its filter: without that there is nothing to check it against.
        let after = filter.and_then(|filter| fields.take("page_token", filter.after(&request.page_token)));
        let list = || Some(Self { filter: filter?, size: size?, after: after? });
        fields.finish(list())
    }
}

/// The word of a state; none for "unspecified".
fn word(state: v1::InteractionState) -> Option<Word> {
    Word::ALL.into_iter().find(|word| v1::InteractionState::from(*word) == state)
}

impl From<Word> for v1::InteractionState {
    fn from(word: Word) -> Self {
        match word {
            Word::Open => Self::Open,
            Word::Answered => Self::Answered,
            Word::Ended(End::TimedOut) => Self::TimedOut,
            Word::Ended(End::Cancelled) => Self::Cancelled,
            Word::Ended(End::SessionDeleted) => Self::SessionDeleted,
            Word::Ended(End::Interrupted) => Self::Interrupted,
            Word::Ended(End::Superseded) => Self::Superseded,
        }
    }
}

impl From<Decision> for v1::Decision {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Approve => Self::Approve,
            Decision::ApproveForSession => Self::ApproveForSession,
            Decision::Deny => Self::Deny,
        }
    }
}

impl From<&Answer> for v1::ApprovalAnswer {
    fn from(answer: &Answer) -> Self {
        Self {
            decision: v1::Decision::from(answer.decision).into(),
            reason: answer.reason.clone(),
            answered_by: answer.by.clone(),
            answered_at: Some(timestamp(answer.at)),
        }
    }
}

impl From<&Approval> for v1::ApprovalCard {
    fn from(card: &Approval) -> Self {
        Self {
            title: card.title.clone(),
            arguments_json: card.arguments.clone(),
            arguments_bytes: i64::try_from(card.arguments_bytes).unwrap_or(i64::MAX),
            read_only: card.hints.read_only,
            destructive: card.hints.destructive,
            idempotent: card.hints.idempotent,
            open_world: card.hints.open_world,
            policy: card.policy.as_str().to_owned(),
            may_remember: card.may_remember,
        }
    }
}

impl From<&Card> for v1::Interaction {
    fn from(card: &Card) -> Self {
        Self {
            id: card.id.to_string(),
            state: v1::InteractionState::from(card.state.word()).into(),
            session_id: card.session_id.to_string(),
            actor: card.actor.clone(),
            run_id: card.run_id.map(|run| run.to_string()).unwrap_or_default(),
            call_id: card.call_id.to_string(),
            server: card.server.clone(),
            tool: card.tool.clone(),
            card: Some(interaction::Card::Approval((&card.approval).into())),
            created_at: Some(timestamp(card.created_at)),
            expires_at: Some(timestamp(card.expires_at)),
            closed_at: card.state.closed_at().map(timestamp),
            approval_answer: card.state.answer().map(v1::ApprovalAnswer::from),
            version: card.version,
        }
    }
}

impl From<&Card> for v1::WaitInteractionResponse {
    fn from(card: &Card) -> Self {
        Self {
            interaction: Some(card.into()),
            arguments_sha256: card.arguments_sha256.clone(),
            terms_sha256: card.terms_sha256.clone(),
        }
    }
}

/// A time on the wire.
fn timestamp(at: OffsetDateTime) -> prost_types::Timestamp {
    // A nanosecond of a second is below 10⁹.
    prost_types::Timestamp { seconds: at.unix_timestamp(), nanos: i32::try_from(at.nanosecond()).unwrap_or_default() }
}
