//! The cards of the fake.

use std::pin::Pin;

use futures_util::{Stream, StreamExt as _, stream};
use gatehouse_platform::error::Reason;
use gatehouse_proto::interaction::v1::{
    AnswerInteractionRequest, AnswerInteractionResponse, ApprovalAnswer, ApprovalCard, CloseInteractionRequest,
    CloseInteractionResponse, CreateInteractionRequest, CreateInteractionResponse, Decision, FollowInteractionsRequest,
    FollowInteractionsResponse, GetInteractionRequest, GetInteractionResponse, Interaction, InteractionState,
    ListInteractionsRequest, ListInteractionsResponse, WaitInteractionRequest, WaitInteractionResponse, interaction,
    interaction_service_server::InteractionService,
};
use tonic::{Request, Status};

use super::grpc_fake::{Answer, Fake, HOSTILE, at, refuse, reply};

type Sent<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A card that is called like its state.
fn card(state: InteractionState) -> Interaction {
    let is_open = state == InteractionState::Open;
    let title = format!("Refund an order {HOSTILE}");
    let shown = ApprovalCard {
        title,
        arguments_json: format!(r#"{{"order":"A-1 {HOSTILE}","amount":12.500,"lines":[1,2]}}"#),
        arguments_bytes: 52,
        destructive: true,
        open_world: true,
        policy: "ask".to_owned(),
        may_remember: true,
        ..ApprovalCard::default()
    };
    let answer = ApprovalAnswer {
        decision: Decision::Deny.into(),
        reason: format!("not this one {HOSTILE}"),
        answered_by: format!("Ada {HOSTILE}"),
        answered_at: at(20),
    };
    Interaction {
        id: if is_open { "open" } else { "answered" }.to_owned(),
        state: state.into(),
        session_id: "s-1".to_owned(),
        call_id: "c-1".to_owned(),
        server: "orders".to_owned(),
        tool: format!("refund {HOSTILE}"),
        card: Some(interaction::Card::Approval(shown)),
        created_at: at(0),
        expires_at: at(600),
        closed_at: if is_open { None } else { at(20) },
        approval_answer: (!is_open).then_some(answer),
        version: if is_open { 1 } else { 2 },
        ..Interaction::default()
    }
}

fn named<T>(id: &str, then: impl FnOnce(Interaction) -> T) -> Answer<T> {
    match id {
        "open" => reply(then(card(InteractionState::Open))),
        "answered" => reply(then(card(InteractionState::Answered))),
        "long" => {
            let mut long = card(InteractionState::Open);
            if let Some(interaction::Card::Approval(shown)) = &mut long.card {
                shown.arguments_json.truncate(10);
                shown.arguments_bytes = 30_000;
            }
            reply(then(long))
        }
        _ => refuse(Reason::NotFound, "there is no such card"),
    }
}

#[tonic::async_trait]
impl InteractionService for Fake {
    type WaitInteractionStream = Sent<WaitInteractionResponse>;
    type FollowInteractionsStream = Sent<FollowInteractionsResponse>;

    async fn create_interaction(&self, _: Request<CreateInteractionRequest>) -> Answer<CreateInteractionResponse> {
        refuse(Reason::PermissionDenied, "the command makes no cards")
    }

    async fn close_interaction(&self, _: Request<CloseInteractionRequest>) -> Answer<CloseInteractionResponse> {
        refuse(Reason::PermissionDenied, "the command closes no cards")
    }

    async fn wait_interaction(&self, _: Request<WaitInteractionRequest>) -> Answer<Self::WaitInteractionStream> {
        refuse(Reason::PermissionDenied, "the command does not wait")
    }

    async fn get_interaction(&self, request: Request<GetInteractionRequest>) -> Answer<GetInteractionResponse> {
        let id = self.note(request).id;
        if self.seen("FollowInteractionsRequest").is_empty() {
            return named(&id, |card| GetInteractionResponse { interaction: Some(card) });
        }
        // Whatever was open was answered while the stream was broken.
        reply(GetInteractionResponse { interaction: Some(Interaction { id, ..card(InteractionState::Answered) }) })
    }

    async fn list_interactions(&self, request: Request<ListInteractionsRequest>) -> Answer<ListInteractionsResponse> {
        // Two pages, so that paging is walked.
        match self.note(request).page_token.as_str() {
            "" => reply(ListInteractionsResponse {
                interactions: vec![card(InteractionState::Open)],
                next_page_token: "2".to_owned(),
            }),
            _ => reply(ListInteractionsResponse {
                interactions: vec![card(InteractionState::Answered)],
                next_page_token: String::new(),
            }),
        }
    }

    async fn follow_interactions(
        &self,
        request: Request<FollowInteractionsRequest>,
    ) -> Answer<Self::FollowInteractionsStream> {
        self.note(request);
        let message = |card: Interaction| Ok(FollowInteractionsResponse { interaction: Some(card) });
        if self.seen("FollowInteractionsRequest").len() > 1 {
            // The server is back: the second card only, twice.
            let other = || Interaction { id: "other".to_owned(), ..card(InteractionState::Open) };
            return reply(stream::iter([message(other()), message(other())]).chain(stream::pending()).boxed());
        }
        let gone = refuse(Reason::Unavailable, "this server is going away");
        reply(stream::iter([message(card(InteractionState::Open)), gone]).boxed())
    }

    async fn answer_interaction(
        &self,
        request: Request<AnswerInteractionRequest>,
    ) -> Answer<AnswerInteractionResponse> {
        let id = self.note(request).id;
        let counted = id == "open";
        named(&id, |card| AnswerInteractionResponse { interaction: Some(card), counted })
    }
}
