//! The gRPC service: what was asked. Each handler checks the caller, converts the request, and asks the store.

pub mod methods;
mod streams;

use std::sync::Arc;

use gatehouse_platform::{
    auth::{Caller, require, require_service},
    error::to_status,
};
use gatehouse_proto::interaction::v1::{
    self,
    interaction_service_server::{InteractionService, InteractionServiceServer},
};
use tonic::{Request, Response, Status};

use self::methods::{Access, Method};
use crate::{
    card::{Card, NewCard},
    convert::{self, AnswerCard, ListCards},
    error,
    state::{Answering, Word},
    store::{self, Pool, cards},
    watch::Watcher,
};

/// Largest request in bytes: a card's 20 KB of arguments, and what is around them.
const REQUEST_BYTES: usize = 256 << 10;
/// Largest answer in bytes: a page of 500 cards.
const ANSWER_BYTES: usize = 64 << 20;

/// What the handlers share. One for a process.
#[derive(Debug)]
pub struct State {
    /// Connections to Postgres.
    pub pool: Pool,
    /// Tells those who wait what has changed.
    pub watcher: Arc<Watcher>,
}

/// The service. A layer outside must put the [`Caller`] into each request: handlers refuse one without.
pub fn service(state: Arc<State>) -> InteractionServiceServer<Interactions> {
    InteractionServiceServer::new(Interactions(state))
        .max_decoding_message_size(REQUEST_BYTES)
        .max_encoding_message_size(ANSWER_BYTES)
}

/// Counts a card that was closed with this word.
pub(crate) fn closed_as(word: Word) {
    metrics::counter!("gatehouse_interactions_closed_total", "state" => word.as_str()).increment(1);
}

/// The handlers.
#[derive(Debug)]
pub struct Interactions(Arc<State>);

impl Interactions {
    async fn create(
        &self,
        request: v1::CreateInteractionRequest,
    ) -> Result<v1::CreateInteractionResponse, error::Error> {
        let new = NewCard::try_from(request)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let card = cards::create(&mut connection, &new).await?;
        // Those who follow at this replica see it at once; at the others, by their timers.
        self.0.watcher.wake();
        tracing::info!(interaction.id = %card.id, session.id = %card.session_id, call.id = %card.call_id, "card made");
        Ok(v1::CreateInteractionResponse { interaction: Some((&card).into()) })
    }

    async fn get(&self, request: v1::GetInteractionRequest) -> Result<v1::GetInteractionResponse, error::Error> {
        let id = convert::key(&request.id)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        let card = cards::get(&mut connection, id).await?;
        Ok(v1::GetInteractionResponse { interaction: Some((&card).into()) })
    }

    async fn list(&self, request: v1::ListInteractionsRequest) -> Result<v1::ListInteractionsResponse, error::Error> {
        let wanted = ListCards::try_from(request)?;
        let mut connection = store::acquire(&self.0.pool).await?;
        // One more than the page shows whether another follows.
        let mut found = cards::list(&mut connection, wanted.filter, wanted.after, wanted.size + 1).await?;
        let more = found.len() > wanted.size;
        found.truncate(wanted.size);
        let last = found.last().filter(|_| more);
        Ok(v1::ListInteractionsResponse {
            next_page_token: last.map(|last| wanted.filter.token(last.id)).unwrap_or_default(),
            interactions: found.iter().map(v1::Interaction::from).collect(),
        })
    }

    async fn answer(
        &self,
        request: v1::AnswerInteractionRequest,
        caller: Caller,
    ) -> Result<v1::AnswerInteractionResponse, error::Error> {
        let AnswerCard { id, reply } = AnswerCard::new(&request, caller.name())?;
        let decision = reply.decision;
        let mut transaction = store::begin(&self.0.pool).await?;
        let before = cards::lock(&mut transaction, id).await?;
        let now = store::now(&mut transaction).await?;
        let answered = before.state.clone().answered(reply, before.approval.may_remember, before.expires_at, now);
        let (state, counted) = match answered {
            Answering::Counts(state) => (state, true),
            Answering::Late(state) => (state, false),
            Answering::Closed(_) => return Ok(answer_to(&before, false)),
            Answering::MayNotRemember => return Err(convert::may_not_remember()),
        };
        let card = cards::save(&mut transaction, &before, state).await?;
        store::notify(&mut transaction).await?;
        store::commit(transaction).await?;
        self.0.watcher.wake();
        closed_as(card.state.word());
        if counted {
            metrics::counter!("gatehouse_interactions_answers_total", "answer" => decision.as_str()).increment(1);
            tracing::info!(interaction.id = %id, interaction.answer = decision.as_str(), "card answered");
        }
        Ok(answer_to(&card, counted))
    }

    async fn close(&self, request: v1::CloseInteractionRequest) -> Result<v1::CloseInteractionResponse, error::Error> {
        let (id, end) = convert::close(&request)?;
        let mut transaction = store::begin(&self.0.pool).await?;
        let before = cards::lock(&mut transaction, id).await?;
        let now = store::now(&mut transaction).await?;
        let Ok(state) = before.state.clone().closed(end, now) else {
            return Ok(v1::CloseInteractionResponse { interaction: Some((&before).into()) });
        };
        let card = cards::save(&mut transaction, &before, state).await?;
        store::notify(&mut transaction).await?;
        store::commit(transaction).await?;
        self.0.watcher.wake();
        closed_as(card.state.word());
        tracing::info!(interaction.id = %id, interaction.state = card.state.word().as_str(), "card closed");
        Ok(v1::CloseInteractionResponse { interaction: Some((&card).into()) })
    }
}

fn answer_to(card: &Card, counted: bool) -> v1::AnswerInteractionResponse {
    v1::AnswerInteractionResponse { interaction: Some(card.into()), counted }
}

/// Checks the caller, lets `work` answer within the method's deadline, and maps its error.
async fn answer<Q, A, F>(
    method: &Method,
    request: Request<Q>,
    work: impl FnOnce(Q, Caller) -> F,
) -> Result<Response<A>, Status>
where
    F: Future<Output = Result<A, error::Error>>,
{
    let caller = match method.access {
        Access::Service => require_service(request.extensions()),
        Access::Scope(scope) => require(request.extensions(), scope),
    };
    let caller = caller?.clone();
    let work = work(request.into_inner(), caller);
    let answer = match method.deadline {
        Some(deadline) => tokio::time::timeout(deadline, work).await.unwrap_or(Err(error::Error::DeadlineExceeded)),
        None => work.await,
    };
    answer.map(Response::new).map_err(to_status)
}

#[tonic::async_trait]
impl InteractionService for Interactions {
    type WaitInteractionStream = streams::WaitStream;
    type FollowInteractionsStream = streams::FollowStream;

    async fn create_interaction(
        &self,
        request: Request<v1::CreateInteractionRequest>,
    ) -> Result<Response<v1::CreateInteractionResponse>, Status> {
        answer(&methods::CREATE, request, |request, _| self.create(request)).await
    }

    async fn get_interaction(
        &self,
        request: Request<v1::GetInteractionRequest>,
    ) -> Result<Response<v1::GetInteractionResponse>, Status> {
        answer(&methods::GET, request, |request, _| self.get(request)).await
    }

    async fn list_interactions(
        &self,
        request: Request<v1::ListInteractionsRequest>,
    ) -> Result<Response<v1::ListInteractionsResponse>, Status> {
        answer(&methods::LIST, request, |request, _| self.list(request)).await
    }

    async fn wait_interaction(
        &self,
        request: Request<v1::WaitInteractionRequest>,
    ) -> Result<Response<Self::WaitInteractionStream>, Status> {
        answer(&methods::WAIT, request, |request, _| streams::wait(&self.0, request)).await
    }

    async fn follow_interactions(
        &self,
        request: Request<v1::FollowInteractionsRequest>,
    ) -> Result<Response<Self::FollowInteractionsStream>, Status> {
        answer(&methods::FOLLOW, request, async |request, _| streams::follow(&self.0, &request)).await
    }

    async fn answer_interaction(
        &self,
        request: Request<v1::AnswerInteractionRequest>,
    ) -> Result<Response<v1::AnswerInteractionResponse>, Status> {
        answer(&methods::ANSWER, request, |request, caller| self.answer(request, caller)).await
    }

    async fn close_interaction(
        &self,
        request: Request<v1::CloseInteractionRequest>,
    ) -> Result<Response<v1::CloseInteractionResponse>, Status> {
        answer(&methods::CLOSE, request, |request, _| self.close(request)).await
    }
}
