//! The answer to a call whose messages are not kept here any more: its engine still waits, and must not wait for ever.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use gatehouse_types::{CallId, SessionId};
use tokio::time::sleep;

use super::{body, exchange::LastEvent, notices};
use crate::{
    call::{
        Calls,
        card::Closed,
        words::{self, Words},
    },
    results,
    snapshot::Principal,
    store::{ANSWER_WITHIN, audit, audit::Fate, within},
};

/// How often it is looked whether a call that waited for a person has been closed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// One event, with what the audit knows of the call. A call that waited for a person when its gateway died is certain not to have gone
/// out once its row says so; until then there are comments.
pub(super) fn told(
    calls: Arc<Calls>,
    principal: &Principal,
    last: &LastEvent,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let (call, session) = (CallId::from_uuid(last.stream), principal.session.id);
    let (locale, rpc_id) = (principal.session.facts().locale, last.rpc_id.clone());
    let looks = stream::unfold(Some((calls, 0_u64)), move |state| async move {
        let (calls, turn) = state?;
        if turn > 0 {
            sleep(LOOK_EVERY).await;
        }
        match look(&calls, call, session).await {
            Some(words) => Some((Some(words), None)),
            None => Some((None, Some((calls, turn + 1)))),
        }
    });
    looks.flat_map(move |words| match words {
        Some(words) => {
            let refusal = results::refusal(words.of(locale), locale);
            notices::one(&body::result(&rpc_id, refusal.pieces)).left_stream()
        }
        None => stream::iter([Bytes::from_static(b": keep-alive\n\n")]).right_stream(),
    })
}

/// What to say; `None` while it is not known yet.
async fn look(calls: &Calls, call: CallId, session: SessionId) -> Option<Words> {
    let found = async {
        let mut connection = calls.pool.acquire().await?;
        audit::fate(&mut connection, call, session).await
    };
    match within(ANSWER_WITHIN, found).await {
        Ok(Some(Fate::Waiting)) => None,
        Ok(Some(Fate::NeverSent)) => Some(words::card_closed(Closed::Interrupted, 0).1),
        Ok(Some(Fate::Unknown) | None) => Some(words::ANSWER_LOST),
        Err(error) => {
            tracing::warn!(error.message = %error, "the fate of a call that an engine asks for cannot be read");
            Some(words::ANSWER_LOST)
        }
    }
}
