//! People: they see cards and answer them.

use gatehouse_proto::interaction::v1::{
    AnswerInteractionRequest, AnswerInteractionResponse, ApprovalReply, Decision, GetInteractionRequest, Interaction,
    InteractionState, ListInteractionsRequest, answer_interaction_request::Answer,
    interaction_service_client::InteractionServiceClient,
};
use gatehouse_testkit::eventually;
use tonic::{Status, service::interceptor::InterceptedService, transport::Channel};

use super::{
    Gate,
    admin_grpc::{Bearer, Wire},
};

/// Everybody who can answer cards. Made anew after a restart.
#[derive(Clone)]
pub(crate) struct People(InteractionServiceClient<Wire>);

impl Gate {
    /// With the admin key of the data folder.
    pub(crate) fn people(&self) -> People {
        let channel = Channel::from_shared(self.interaction_url()).unwrap().connect_lazy();
        let bearer = Bearer::of(&self.admin_key());
        People(InteractionServiceClient::new(InterceptedService::new(channel, bearer)))
    }
}

impl People {
    pub(crate) async fn list(&self, session: &str, state: InteractionState) -> Vec<Interaction> {
        let request = ListInteractionsRequest {
            session_id: session.to_owned(),
            state: state.into(),
            page_size: 500,
            ..Default::default()
        };
        self.0.clone().list_interactions(request).await.unwrap().into_inner().interactions
    }

    /// The open cards, once there are so many.
    pub(crate) async fn open(&self, session: &str, count: usize) -> Vec<Interaction> {
        eventually("the cards are open", async || {
            let cards = self.list(session, InteractionState::Open).await;
            (cards.len() == count).then_some(cards)
        })
        .await
    }

    /// The card of a session that is open, or becomes so.
    pub(crate) async fn card(&self, session: &str) -> Interaction {
        self.open(session, 1).await.remove(0)
    }

    pub(crate) async fn get(&self, id: &str) -> Interaction {
        let request = GetInteractionRequest { id: id.to_owned() };
        self.0.clone().get_interaction(request).await.unwrap().into_inner().interaction.unwrap()
    }

    /// Waits until a card is in a state.
    pub(crate) async fn becomes(&self, id: &str, state: InteractionState) -> Interaction {
        super::within(std::time::Duration::from_secs(60), "the card has this state", async || {
            let card = self.get(id).await;
            (card.state() == state).then_some(card)
        })
        .await
    }

    pub(crate) async fn say(
        &self,
        id: &str,
        decision: Decision,
        reason: &str,
    ) -> Result<AnswerInteractionResponse, Status> {
        let reply = ApprovalReply { decision: decision.into(), reason: reason.to_owned() };
        let request = AnswerInteractionRequest {
            id: id.to_owned(),
            answer: Some(Answer::Approval(reply)),
            answered_by: "ann@example.com".to_owned(),
        };
        Ok(self.0.clone().answer_interaction(request).await?.into_inner())
    }

    pub(crate) async fn approve(&self, id: &str) {
        assert!(self.say(id, Decision::Approve, "").await.unwrap().counted);
    }
}
