//! Pure: whether a call runs, whether a person is asked first, and whether it is sent again.

use std::sync::Arc;

use bytes::Bytes;
use gatehouse_mcp::client::RequestError;
use gatehouse_types::{Hints, PermissionMode, Policy};

use super::words;
use crate::catalog::{Offer, Tool};

/// What becomes of a call.
#[derive(Debug)]
pub enum Decision<'a> {
    /// It goes to this tool.
    Run(&'a Arc<Tool>, Permit),
    /// A person must say yes first.
    Ask {
        /// The tool.
        tool: &'a Arc<Tool>,
        /// Whether the person may say yes for the rest of the session.
        may_remember: bool,
    },
    /// It does not go out.
    Refuse(Refusal),
}

/// Why a call may go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    /// Policy and mode ask nobody.
    Allowed,
    /// A person said yes for the rest of the session.
    Granted,
    /// A person said yes to this call.
    Approved,
}

/// What policy and mode say about a tool's call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is not offered in this mode, or not at all.
    NotOffered,
    /// It may go out.
    Run(Permit),
    /// A person must say yes first.
    Ask {
        /// Whether for the rest of the session is an answer.
        may_remember: bool,
    },
}

/// Words of people that a call can stand on. Each is bound to what the person saw; whether it still holds is decided before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// A yes for the rest of the session, for the definition that the tool has now.
    pub granted: bool,
    /// A yes to exactly this call, under the terms of now.
    pub approved: bool,
}

/// The whole rule: policy, mode, whether the tool is effectively read-only, and what people have said.
pub const fn judge(policy: Policy, mode: PermissionMode, read_only: bool, standing: Standing) -> Verdict {
    match (policy, mode) {
        (Policy::Deny, _) => Verdict::NotOffered,
        (_, PermissionMode::ReadOnly) if !read_only => Verdict::NotOffered,
        (Policy::Allow, _) | (Policy::Ask, PermissionMode::Auto) => Verdict::Run(Permit::Allowed),
        _ if standing.approved => Verdict::Run(Permit::Approved),
        (Policy::Ask, _) if standing.granted => Verdict::Run(Permit::Granted),
        (Policy::Ask, _) => Verdict::Ask { may_remember: true },
        (Policy::Confirm, _) => Verdict::Ask { may_remember: false },
    }
}

/// Why a call does not go out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The offer has no tool of this name.
    NoSuchTool(String),
    /// The arguments are not a JSON object.
    ArgumentsNotAnObject,
    /// The arguments are too large.
    ArgumentsTooLarge {
        /// Their size in bytes.
        size: usize,
        /// The bound in bytes.
        most: u32,
    },
}

/// A call, as far as it is decided on.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The name that the engine used.
    pub name: &'a str,
    /// JSON text, or empty for none.
    pub arguments: &'a Bytes,
    /// Most bytes of arguments.
    pub most: u32,
}

/// Decides about a call. Without an offer (the profile is gone) nothing runs. `standing` is asked what people have said once the
/// tool is known.
pub fn decide<'a>(
    offer: Option<&'a Offer>,
    mode: PermissionMode,
    call: Call<'_>,
    standing: impl FnOnce(&Tool) -> Standing,
) -> Decision<'a> {
    let no_such_tool = || Decision::Refuse(Refusal::NoSuchTool(words::bounded(call.name, 128)));
    let Some(tool) = offer.and_then(|offer| offer.find(call.name)) else { return no_such_tool() };
    if call.arguments.len() > call.most as usize {
        return Decision::Refuse(Refusal::ArgumentsTooLarge { size: call.arguments.len(), most: call.most });
    }
    if !call.arguments.is_empty() && call.arguments.first() != Some(&b'{') {
        return Decision::Refuse(Refusal::ArgumentsNotAnObject);
    }
    match judge(tool.policy, mode, tool.hints.read_only, standing(tool)) {
        Verdict::NotOffered => no_such_tool(),
        Verdict::Run(permit) => Decision::Run(tool, permit),
        Verdict::Ask { may_remember } => Decision::Ask { tool, may_remember },
    }
}

/// What follows a failed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Send it once more, on a fresh connection.
    Again,
    /// Do not.
    Stop,
}

/// Whether a failed request is sent again: once, when it is certain that nothing was carried out, or when the tool is
/// read-only or idempotent and the connection was lost.
pub fn retry(error: &RequestError, hints: Hints, retries: i32) -> Retry {
    let certain = match error {
        RequestError::SessionGone => true,
        RequestError::NotSent(error) => error.certainly_not_carried_out(),
        _ => false,
    };
    let lost = matches!(error, RequestError::Lost(_) | RequestError::NotSent(_));
    let harmless = hints.read_only || hints.idempotent;
    if retries == 0 && (certain || (lost && harmless)) { Retry::Again } else { Retry::Stop }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(read_only: bool, idempotent: bool) -> Hints {
        Hints { read_only, destructive: false, idempotent, open_world: true }
    }

    #[test]
    fn a_call_is_sent_again_once_when_nothing_was_carried_out_or_repeating_does_no_harm() {
        let (plain, reading, idempotent) = (hints(false, false), hints(true, false), hints(false, true));
        for (error, hints, expected) in [
            (RequestError::SessionGone, plain, Retry::Again),
            (RequestError::SessionGone, reading, Retry::Again),
            (RequestError::Lost(String::new()), plain, Retry::Stop),
            (RequestError::Lost(String::new()), reading, Retry::Again),
            (RequestError::Lost(String::new()), idempotent, Retry::Again),
            (RequestError::TimedOut, reading, Retry::Stop),
            (RequestError::Cancelled, reading, Retry::Stop),
            (RequestError::Protocol(String::new()), idempotent, Retry::Stop),
            (RequestError::Http { status: 503, retry_after: None }, reading, Retry::Stop),
        ] {
            assert_eq!(retry(&error, hints, 0), expected, "{error:?}");
            assert_eq!(retry(&error, hints, 1), Retry::Stop, "{error:?}");
        }
    }

    /// Every case of the rule, one row each: policy, mode, read-only, granted, approved.
    #[test]
    fn the_table_of_all_cases() {
        use PermissionMode::{Ask as AskMode, Auto, ReadOnly};
        use Permit::{Allowed, Approved, Granted};
        const REMEMBER: Verdict = Verdict::Ask { may_remember: true };
        const ONCE: Verdict = Verdict::Ask { may_remember: false };
        const HIDDEN: Verdict = Verdict::NotOffered;
        let run = Verdict::Run;
        // (policy, mode, read-only): nobody said anything, granted, approved, both.
        let table = [
            (Policy::Allow, ReadOnly, true, [run(Allowed); 4]),
            (Policy::Allow, ReadOnly, false, [HIDDEN; 4]),
            (Policy::Allow, AskMode, true, [run(Allowed); 4]),
            (Policy::Allow, AskMode, false, [run(Allowed); 4]),
            (Policy::Allow, Auto, true, [run(Allowed); 4]),
            (Policy::Allow, Auto, false, [run(Allowed); 4]),
            (Policy::Ask, ReadOnly, true, [REMEMBER, run(Granted), run(Approved), run(Approved)]),
            (Policy::Ask, ReadOnly, false, [HIDDEN; 4]),
            (Policy::Ask, AskMode, true, [REMEMBER, run(Granted), run(Approved), run(Approved)]),
            (Policy::Ask, AskMode, false, [REMEMBER, run(Granted), run(Approved), run(Approved)]),
            (Policy::Ask, Auto, true, [run(Allowed); 4]),
            (Policy::Ask, Auto, false, [run(Allowed); 4]),
            (Policy::Confirm, ReadOnly, true, [ONCE, ONCE, run(Approved), run(Approved)]),
            (Policy::Confirm, ReadOnly, false, [HIDDEN; 4]),
            (Policy::Confirm, AskMode, true, [ONCE, ONCE, run(Approved), run(Approved)]),
            (Policy::Confirm, AskMode, false, [ONCE, ONCE, run(Approved), run(Approved)]),
            (Policy::Confirm, Auto, true, [ONCE, ONCE, run(Approved), run(Approved)]),
            (Policy::Confirm, Auto, false, [ONCE, ONCE, run(Approved), run(Approved)]),
            (Policy::Deny, ReadOnly, true, [HIDDEN; 4]),
            (Policy::Deny, ReadOnly, false, [HIDDEN; 4]),
            (Policy::Deny, AskMode, true, [HIDDEN; 4]),
            (Policy::Deny, AskMode, false, [HIDDEN; 4]),
            (Policy::Deny, Auto, true, [HIDDEN; 4]),
            (Policy::Deny, Auto, false, [HIDDEN; 4]),
        ];
        let mut rows = std::collections::HashSet::new();
        for (policy, mode, read_only, expected) in table {
            rows.insert((policy, mode, read_only));
            let said = [(false, false), (true, false), (false, true), (true, true)];
            for ((granted, approved), expected) in said.into_iter().zip(expected) {
                let verdict = judge(policy, mode, read_only, Standing { granted, approved });
                assert_eq!(verdict, expected, "{policy} {} {read_only} {granted} {approved}", mode.as_str());
            }
        }
        assert_eq!(rows.len(), Policy::ALL.len() * PermissionMode::ALL.len() * 2, "no case is missing");
    }

    #[test]
    fn without_an_offer_nothing_runs() {
        let call = Call { name: "a__b", arguments: &Bytes::new(), most: 10 };
        let decision = decide(None, PermissionMode::Auto, call, |_| Standing { granted: true, approved: true });
        assert!(matches!(decision, Decision::Refuse(Refusal::NoSuchTool(name)) if name == "a__b"));
    }
}
