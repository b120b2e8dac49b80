//! Cards, as the interaction service takes and gives them.

use gatehouse_proto::interaction::v1::{
    self, ApprovalCard, CreateInteractionRequest, Decision, InteractionState, WaitInteractionResponse,
};

use super::time;
use crate::{
    call::{
        card::{Answer, Answered, Binding, Closed, End, NewCard},
        terms::Hash,
    },
    peers::CardError,
};

/// The request that opens a card.
pub(crate) fn create(card: &NewCard) -> CreateInteractionRequest {
    let shown = ApprovalCard {
        title: card.title.clone(),
        arguments_json: card.arguments.clone(),
        arguments_bytes: card.arguments_bytes,
        read_only: card.hints.read_only,
        destructive: card.hints.destructive,
        idempotent: card.hints.idempotent,
        open_world: card.hints.open_world,
        policy: card.policy.as_str().to_owned(),
        may_remember: card.may_remember,
    };
    CreateInteractionRequest {
        id: card.id.to_string(),
        session_id: card.session.to_string(),
        actor: card.actor.clone(),
        run_id: card.run.map(|run| run.to_string()).unwrap_or_default(),
        call_id: card.call.to_string(),
        replica_id: card.replica.to_string(),
        server: card.server.clone(),
        tool: card.tool.clone(),
        card: Some(v1::create_interaction_request::Card::Approval(shown)),
        arguments_sha256: card.binding.arguments.to_vec(),
        terms_sha256: card.binding.terms.to_vec(),
        timeout_sec: i32::try_from(card.timeout_sec).unwrap_or(i32::MAX),
    }
}

/// The word of a card that is closed.
pub(crate) const fn state(closed: Closed) -> InteractionState {
    match closed {
        Closed::TimedOut => InteractionState::TimedOut,
        Closed::Cancelled => InteractionState::Cancelled,
        Closed::SessionDeleted => InteractionState::SessionDeleted,
        Closed::Interrupted => InteractionState::Interrupted,
        Closed::Superseded => InteractionState::Superseded,
    }
}

/// How a card ended; `None` while it is open.
pub(crate) fn end(now: WaitInteractionResponse) -> Result<Option<End>, CardError> {
    let binding = Binding { arguments: hash(&now.arguments_sha256)?, terms: hash(&now.terms_sha256)? };
    let card = now.interaction.ok_or(CardError::Incomplete("interaction"))?;
    let closed = match card.state() {
        InteractionState::Open => return Ok(None),
        InteractionState::Answered => {
            let answer = card.approval_answer.ok_or(CardError::Incomplete("approval_answer"))?;
            let at = answer.answered_at.and_then(|at| time(at).ok());
            return Ok(Some(End::Answered(Answered {
                answer: match answer.decision() {
                    Decision::Approve => Answer::Approve,
                    Decision::ApproveForSession => Answer::ApproveForSession,
                    Decision::Deny => Answer::Deny(answer.reason),
                    Decision::Unspecified => return Err(CardError::Incomplete("decision")),
                },
                by: answer.answered_by,
                at: at.ok_or(CardError::Incomplete("answered_at"))?,
                binding,
            })));
        }
        InteractionState::TimedOut => Closed::TimedOut,
        InteractionState::Cancelled => Closed::Cancelled,
        InteractionState::SessionDeleted => Closed::SessionDeleted,
        InteractionState::Interrupted => Closed::Interrupted,
        InteractionState::Superseded => Closed::Superseded,
        InteractionState::Unspecified => return Err(CardError::Incomplete("state")),
    };
    Ok(Some(End::Closed(closed)))
}

fn hash(bytes: &[u8]) -> Result<Hash, CardError> {
    bytes.try_into().map_err(|_| CardError::Incomplete("hashes"))
}

#[cfg(test)]
mod tests {
    use gatehouse_proto::interaction::v1::{ApprovalAnswer, Interaction};

    use super::*;

    fn response(state: InteractionState, decision: Option<Decision>) -> WaitInteractionResponse {
        let answer = decision.map(|decision| ApprovalAnswer {
            decision: decision.into(),
            reason: "why".to_owned(),
            answered_by: "ann".to_owned(),
            answered_at: Some(prost_types::Timestamp { seconds: 1, nanos: 0 }),
        });
        let interaction = Interaction { state: state.into(), approval_answer: answer, ..Interaction::default() };
        WaitInteractionResponse {
            interaction: Some(interaction),
            arguments_sha256: vec![1; 32],
            terms_sha256: vec![2; 32],
        }
    }

    #[test]
    fn every_closed_card_comes_back_with_its_word() {
        for closed in Closed::ALL {
            assert_eq!(end(response(state(closed), None)).unwrap(), Some(End::Closed(closed)));
        }
        assert_eq!(end(response(InteractionState::Open, None)).unwrap(), None);
    }

    #[test]
    fn an_answer_without_a_decision_approves_nothing() {
        for decision in [None, Some(Decision::Unspecified)] {
            assert!(end(response(InteractionState::Answered, decision)).is_err());
        }
        let mut without_hash = response(InteractionState::Answered, Some(Decision::Approve));
        without_hash.terms_sha256.pop();
        assert!(end(without_hash).is_err());
        let denied = end(response(InteractionState::Answered, Some(Decision::Deny))).unwrap();
        let Some(End::Answered(denied)) = denied else { panic!("{denied:?}") };
        assert_eq!(denied.answer, Answer::Deny("why".to_owned()));
        assert_eq!((denied.binding.arguments, denied.binding.terms), ([1; 32], [2; 32]));
    }
}
