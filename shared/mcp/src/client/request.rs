//! One request from sending to its end.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{Arc, Mutex, OnceLock},
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{
        answer::{Answer, Progress},
        error::RequestError,
        exchange::Opened,
        inbound::Origin,
        options::RequestOptions,
        pending::{Item, Slot},
        pipe::Pipe,
        shared::{SESSION_ID, Shared, Wire, locked},
    },
    encode::{self, Params, Piece},
    message::{self, Message},
};

/// A request that has waited this long can be reached from other streams. Most are answered before, and spare the bookkeeping.
const REACHABLE_AFTER: Duration = Duration::from_millis(200);
/// Time for telling the server that a request was taken back.
const TELL_TIMEOUT: Duration = Duration::from_secs(5);

/// A request that waits for its answer.
pub(crate) struct Wait<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) id: u64,
    pub(crate) options: &'a RequestOptions<'a>,
    timeout: Duration,
    deadline: Mutex<Instant>,
    slot: OnceLock<Arc<Slot>>,
}

enum Ended {
    Answered(Result<Answer, RequestError>),
    Cancelled,
    Late,
    Left(Item),
}

impl Shared {
    pub(crate) async fn request(
        self: &Arc<Self>,
        method: &str,
        params: &Params<'_>,
        options: &RequestOptions<'_>,
    ) -> Result<Answer, RequestError> {
        if options.cancel.is_some_and(CancellationToken::is_cancelled) {
            return Err(RequestError::Cancelled);
        }
        let wait = Wait::new(self, options);
        let body = encode::request(wait.id, method, params, options.on_progress.is_some().then_some(wait.id));
        wait.run(body).await
    }

    /// Sends `initialize`, which must not be cancelled; the caller sets the deadline. Gives the session id with the answer.
    pub(crate) async fn request_initialize(
        self: &Arc<Self>,
        params: &Params<'_>,
    ) -> Result<(Answer, Option<HeaderValue>), RequestError> {
        let options = RequestOptions { timeout: Some(self.options.connect_timeout * 2), ..RequestOptions::default() };
        let wait = Wait::new(self, &options);
        let body = encode::request(wait.id, "initialize", params, None);
        if let Wire::Legacy(_) | Wire::Pipe(_) = &self.wire {
            return Ok((wait.run(body).await?, None));
        }
        let mut session = None;
        let answer = wait.answered(body, |headers| session = headers.get(SESSION_ID).cloned()).await?;
        Ok((answer, session))
    }

    /// Tells the server that the answer to a request is not waited for any longer.
    fn tell_cancelled(self: &Arc<Self>, id: u64, reason: &'static str) {
        let members = [("requestId", Piece::Number(id)), ("reason", Piece::Text(reason))];
        let body = encode::notification("notifications/cancelled", Some(&Params::new(&members)));
        let shared = self.clone();
        self.spawn(async move {
            match timeout(TELL_TIMEOUT, shared.post_one_way(body)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(upstream = ?shared.wire, %error, "a cancellation was not taken"),
                Err(_) => tracing::debug!(upstream = ?shared.wire, "a cancellation was not taken in time"),
            }
        });
    }
}

impl<'a> Wait<'a> {
    fn new(shared: &'a Arc<Shared>, options: &'a RequestOptions<'a>) -> Self {
        let timeout = options.timeout.unwrap_or(shared.options.request_timeout);
        let deadline = Mutex::new(Instant::now() + timeout);
        Self { shared, id: shared.next_id(), options, timeout, deadline, slot: OnceLock::new() }
    }
}

impl Wait<'_> {
    async fn run(&self, body: Bytes) -> Result<Answer, RequestError> {
        let mut answered = pin!(self.answered(body, |_| ()));
        let mut cancelled = pin!(cancelled(self.options.cancel));
        let mut clock = pin!(sleep_until(self.deadline().min(Instant::now() + REACHABLE_AFTER)));
        loop {
            let ended = tokio::select! {
                biased;
                // What was left comes first: a process may have answered and then ended.
                item = poll_fn(|context| self.slot.get().map_or(Poll::Pending, |slot| slot.poll(context))) => Ended::Left(item),
                outcome = &mut answered => Ended::Answered(outcome),
                // And once more: the request may just have been made reachable.
                item = poll_fn(|context| self.slot.get().map_or(Poll::Pending, |slot| slot.poll(context))) => Ended::Left(item),
                () = &mut cancelled => Ended::Cancelled,
                () = &mut clock => Ended::Late,
            };
            match ended {
                Ended::Answered(outcome) => return outcome,
                Ended::Left(Item::Answer(message)) => return self.shared.read_answer(self.id, &message),
                Ended::Left(Item::TooLarge) => {
                    return Err(RequestError::TooLarge { most: self.shared.options.most_message_bytes as u64 });
                }
                Ended::Left(Item::Progress(message)) => self.left_progress(&message),
                Ended::Cancelled => {
                    self.shared.tell_cancelled(self.id, "the caller took the request back");
                    return Err(RequestError::Cancelled);
                }
                Ended::Late if Instant::now() < self.deadline() => {
                    self.make_reachable();
                    clock.as_mut().reset(self.deadline());
                }
                Ended::Late => {
                    self.shared.tell_cancelled(self.id, "no answer within the time allowed");
                    return Err(RequestError::TimedOut);
                }
            }
        }
    }

    async fn answered(&self, body: Bytes, head: impl FnOnce(&HeaderMap)) -> Result<Answer, RequestError> {
        let http = match &self.shared.wire {
            Wire::Http(http) => http,
            Wire::Legacy(legacy) => {
                self.make_reachable();
                return Err(self.shared.ask_legacy(legacy, body).await);
            }
            Wire::Pipe(pipe) => return Err(self.ended(pipe, body).await),
        };
        match self.shared.open_exchange(http, self.id, body, head).await? {
            Opened::Json(body) => self.shared.read_answer(self.id, &body),
            Opened::Stream(response) => {
                self.make_reachable();
                self.follow(http, response.into_body()).await
            }
        }
    }

    /// Writes the request and waits for the process to end. The answer is left by whoever reads its output.
    async fn ended(&self, pipe: &Pipe, body: Bytes) -> RequestError {
        self.make_reachable();
        if let Err(error) = pipe.write(body).await {
            return error;
        }
        pipe.ended().await;
        // The answer may have come just before the end: `run` looks for it once more.
        tokio::task::yield_now().await;
        RequestError::Lost("the process ended".to_owned())
    }

    fn make_reachable(&self) {
        self.slot.get_or_init(|| self.shared.pending.register(self.id));
    }

    fn deadline(&self) -> Instant {
        *locked(&self.deadline)
    }

    pub(crate) fn origin(&self) -> Origin {
        Origin { request_id: Some(self.id), call: self.options.call }
    }

    /// Takes a progress notification if it is this request's.
    pub(crate) fn progress(&self, params: Option<&RawValue>) -> bool {
        match params.and_then(Progress::read) {
            Some((token, progress)) if token == self.id => {
                *locked(&self.deadline) = Instant::now() + self.timeout;
                if let Some(on_progress) = self.options.on_progress {
                    on_progress(progress);
                }
                true
            }
            _ => false,
        }
    }

    fn left_progress(&self, message: &Bytes) {
        if let Ok(parsed) = message::parse(message, self.shared.options.most_depth)
            && let Message::Notification { params, .. } = parsed.message
        {
            self.progress(params);
        }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if self.slot.get().is_some() {
            self.shared.pending.remove(self.id);
        }
    }
}

async fn cancelled(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}
