//! Calls in the audit.

use gatehouse_proto::gateway::v1;
use gatehouse_types::CallId;

use super::{duration, filter, page, time, timestamp};
use crate::{
    catalog::hex,
    error::Error,
    registry::{
        call::{Call, CallFilter, Outcome},
        check::Fields,
        page::List,
        text,
    },
};

/// A checked `ListCallsRequest`.
#[derive(Debug)]
pub struct ListCalls {
    /// Which calls.
    pub filter: CallFilter,
    /// Size of the page.
    pub size: usize,
    /// Last call of the page before.
    pub after: Option<CallId>,
}

impl ListCalls {
    /// The token of the page after this call.
    pub fn token(&self, last: &Call) -> String {
        with_list(&self.filter, |list| list.token(&[&last.id.to_string()]))
    }
}

/// The list is bound to its filter.
fn with_list<T>(filter: &CallFilter, then: impl FnOnce(&List<'_>) -> T) -> T {
    let parts = filter.parts();
    let mut names = vec!["calls"];
    names.extend(parts.iter().map(String::as_str));
    then(&List(&names))
}

impl TryFrom<v1::ListCallsRequest> for ListCalls {
    type Error = Error;

    fn try_from(request: v1::ListCallsRequest) -> Result<Self, Error> {
        let mut fields = Fields::new();
        let checked = CallFilter {
            session: filter(&mut fields, "session", &request.session),
            server: filter(&mut fields, "server", &request.server),
            tool: if request.tool.is_empty() {
                None
            } else {
                fields.take("tool", text::tool_name(&request.tool).map(Some))
            },
            outcome: fields.take("outcome", outcome(request.outcome)),
            from: fields.take("from", request.from.map(time).transpose()),
            to: fields.take("to", request.to.map(time).transpose()),
        };
        if matches!((checked.from, checked.to), (Some(from), Some(to)) if from > to) {
            fields.wrong("to", "is before `from`");
        }
        let (size, key) =
            with_list(&checked, |list| page::<1>(&mut fields, request.page_size, &request.page_token, list));
        let after = key.and_then(|[id]| fields.take("page_token", text::id(&id).map(Some)));
        fields.finish(Self { filter: checked, size, after })
    }
}

fn outcome(number: i32) -> Result<Option<Outcome>, String> {
    let known = v1::CallOutcome::try_from(number).map_err(|_| "takes an outcome that this version knows".to_owned())?;
    Ok(Outcome::ALL.into_iter().find(|outcome| v1::CallOutcome::from(*outcome) == known))
}

impl From<Outcome> for v1::CallOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Running => Self::Running,
            Outcome::Ok => Self::Ok,
            Outcome::ToolError => Self::ToolError,
            Outcome::Denied => Self::Denied,
            Outcome::TimedOut => Self::TimedOut,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::Interrupted => Self::Interrupted,
            Outcome::Unknown => Self::Unknown,
            Outcome::Background => Self::Background,
            Outcome::NotSent => Self::NotSent,
        }
    }
}

/// The call of a request.
pub fn call_key(request: &v1::GetCallRequest) -> Result<CallId, Error> {
    text::id(&request.call_id).map_err(|words| Error::field("call_id", words))
}

impl From<Call> for v1::Call {
    fn from(call: Call) -> Self {
        let hints = call.hints;
        let named = [
            ("readOnly", hints.read_only),
            ("destructive", hints.destructive),
            ("idempotent", hints.idempotent),
            ("openWorld", hints.open_world),
        ];
        let (arguments_json, structured, notes) = call
            .payload
            .map(|payload| (payload.arguments, payload.structured_result, payload.notes))
            .unwrap_or_default();
        Self {
            id: call.id.to_string(),
            session_id: call.session_id.to_string(),
            actor: call.actor,
            run_id: call.run_id.map(|run| run.to_string()).unwrap_or_default(),
            server: call.server,
            tool: call.tool,
            outcome: v1::CallOutcome::from(call.outcome).into(),
            read_only: hints.read_only,
            started_at: Some(timestamp(call.started_at)),
            duration: call.duration.map(duration),
            retries: i32::try_from(call.retries).unwrap_or(i32::MAX),
            arguments_bytes: call.arguments_bytes,
            result_bytes: call.result_bytes,
            error: call.error,
            trace_id: call.trace_id,
            arguments_json,
            arguments_sha256: hex(&call.arguments_sha256),
            structured_result_json: structured.unwrap_or_default(),
            hints: named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            policy: call.policy,
            permission_mode: call.permission_mode,
            decision: call.decision,
            decided_by: call.decided_by,
            decided_at: call.decided_at.map(timestamp),
            interaction_id: call.interaction.map(|card| card.to_string()).unwrap_or_default(),
            files: call.files,
            notes,
        }
    }
}
