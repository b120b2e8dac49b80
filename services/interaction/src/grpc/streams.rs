//! Waiting for one card, and following many.

use std::sync::Arc;

use futures_util::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use gatehouse_platform::error::to_status;
use gatehouse_proto::interaction::v1;
use gatehouse_types::{InteractionId, SessionId};
use tokio_stream::wrappers::{BroadcastStream, errors::BroadcastStreamRecvError};
use tonic::Status;

use super::State;
use crate::{
    card::Card,
    convert,
    error::Error,
    store::{self, Pool, cards},
};

/// Open cards that are read at once when following begins.
const AT_ONCE: usize = 100;

pub(super) type WaitStream = BoxStream<'static, Result<v1::WaitInteractionResponse, Status>>;
pub(super) type FollowStream = BoxStream<'static, Result<v1::FollowInteractionsResponse, Status>>;

/// The card now, and once it is closed.
pub(super) async fn wait(state: &State, request: v1::WaitInteractionRequest) -> Result<WaitStream, Error> {
    let id = convert::key(&request.id)?;
    // First the place among those who wait, then the card: no change can come between.
    let waiter = state.watcher.wait(id);
    let mut connection = store::acquire(&state.pool).await?;
    let card = cards::get(&mut connection, id).await?;
    drop(connection);
    let open = card.state.is_open();
    let now = stream::iter([Ok(v1::WaitInteractionResponse::from(&card))]);
    if !open {
        return Ok(now.boxed());
    }
    let closed = async move { waiter.closed().await.map(|card| (&*card).into()).map_err(to_status) };
    Ok(now.chain(stream::once(closed)).boxed())
}

/// The open cards, then each change.
pub(super) fn follow(state: &Arc<State>, request: &v1::FollowInteractionsRequest) -> Result<FollowStream, Error> {
    let session = convert::session(&request.session_id)?;
    let state = Arc::clone(state);
    let begun = async move {
        // First the changes, then what is open: no change can come between.
        let changes = BroadcastStream::new(state.watcher.follow().await);
        open(state.pool.clone(), session)
            .chain(changes.map(|change| change.map_err(|BroadcastStreamRecvError::Lagged(_)| Error::TooSlow)))
    };
    let cards = stream::once(begun).flatten();
    let wanted = move |card: &Arc<Card>| session.is_none_or(|session| card.session_id == session);
    let cards = cards.try_filter(move |card| std::future::ready(wanted(card)));
    let message = |card: Arc<Card>| v1::FollowInteractionsResponse { interaction: Some((&*card).into()) };
    Ok(cards.map(move |card| card.map(message).map_err(to_status)).boxed())
}

fn open(pool: Pool, session: Option<SessionId>) -> BoxStream<'static, Result<Arc<Card>, Error>> {
    let pages = stream::try_unfold(Some(None::<InteractionId>), move |after| {
        let pool = pool.clone();
        async move {
            let Some(after) = after else { return Ok(None) };
            let mut connection = store::acquire(&pool).await?;
            let page = cards::open(&mut connection, session, after, AT_ONCE).await?;
            let next = if page.len() < AT_ONCE { None } else { page.last().map(|card| Some(card.id)) };
            Ok::<_, Error>(Some((stream::iter(page.into_iter().map(|card| Ok(Arc::new(card)))), next)))
        }
    });
    pages.try_flatten().boxed()
}
