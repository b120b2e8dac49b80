//! One engine request that takes its time: its messages, kept until the engine has had them.
//!
//! The call writes here and never waits for the engine's connection; any stream of that engine reads from here, also a later
//! one that resumes with `Last-Event-ID` (MCP 2025-11-25, basic/transports, resumability).

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use gatehouse_mcp::client::Progress;
use gatehouse_types::{CallId, Locale, SessionId};
use tokio::{sync::Notify, time::Instant};
use uuid::Uuid;

use super::progress::Ticker;
use crate::call::{Listener, words};

/// How long a finished exchange can still be resumed.
pub(super) const KEPT: Duration = Duration::from_mins(5);
/// Longest request id that an event id carries.
const LONGEST_ID: usize = 128;

/// Bytes of progress after which a call's reports are passed on without their texts, one each [`REPORT_EVERY`]: they are kept
/// until the call is over, and a server may report without end.
const MOST_REPORTED: usize = 1 << 20;
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// A message as pieces of JSON.
pub(super) type Message = Vec<Bytes>;

/// The messages of one request, in order; the last one answers it.
#[derive(Debug)]
pub(super) struct Exchange {
    /// Names the stream in event ids: the call's id.
    pub(super) stream: Uuid,
    /// The session whose engine may read it.
    pub(super) session: SessionId,
    /// The actor, as in the engine's session id.
    pub(super) actor: [u8; 8],
    /// The engine's request id as JSON text.
    pub(super) rpc_id: String,
    locale: Locale,
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Debug)]
struct Inner {
    messages: Vec<Message>,
    done: Option<Instant>,
    ticker: Ticker,
    /// What the call waits for besides the tool, in words for people.
    waits_for: Option<String>,
    /// Bytes of the server's reports of progress.
    reported: usize,
    /// When the last one came.
    reported_at: Instant,
}

/// What a reader finds.
#[derive(Debug)]
pub(super) enum Next {
    /// The message of this index.
    Message(Message),
    /// The exchange is over and all was read.
    End,
    /// Nothing new yet.
    Nothing,
}

impl Exchange {
    /// A new exchange. `ticker` turns progress into notifications for this engine.
    pub(super) fn new(
        call: CallId,
        session: SessionId,
        actor: [u8; 8],
        rpc_id: String,
        ticker: Ticker,
        locale: Locale,
    ) -> Arc<Self> {
        let inner = Inner {
            messages: Vec::new(),
            done: None,
            ticker,
            waits_for: None,
            reported: 0,
            reported_at: Instant::now(),
        };
        Arc::new(Self {
            stream: call.uuid(),
            session,
            actor,
            rpc_id,
            locale,
            inner: Mutex::new(inner),
            changed: Notify::new(),
        })
    }

    /// Adds a progress notification, when the engine asked for progress.
    pub(super) fn progress(&self, progress: &str, total: Option<&str>, message: Option<&str>) {
        let mut inner = self.lock();
        let message = if inner.reported < MOST_REPORTED {
            message
        } else if inner.reported_at.elapsed() < REPORT_EVERY {
            return;
        } else {
            None
        };
        if inner.done.is_none()
            && let Some(notification) = inner.ticker.report(progress, total, message)
        {
            inner.reported += notification.len();
            inner.reported_at = Instant::now();
            inner.messages.push(vec![notification]);
            drop(inner);
            self.changed.notify_waiters();
        }
    }

    /// Adds a progress notification that says what the call still waits for, when the engine asked for progress.
    pub(super) fn tick(&self, seconds: u64) {
        let mut inner = self.lock();
        let message = format!("{} ({seconds} s)", inner.waits_for.as_deref().unwrap_or(words::STILL.of(self.locale)));
        self.say(&mut inner, &message);
    }

    fn say(&self, inner: &mut Inner, message: &str) {
        if inner.done.is_none()
            && let Some(notification) = inner.ticker.tick(message)
        {
            inner.messages.push(vec![notification]);
            self.changed.notify_waiters();
        }
    }

    /// Adds the answer and ends the exchange.
    pub(super) fn finish(&self, answer: Message) {
        let mut inner = self.lock();
        inner.messages.push(answer);
        inner.done = Some(Instant::now());
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Takes the answer out when it is all there is: nobody will resume what was answered as plain JSON.
    pub(super) fn take_only_answer(&self) -> Option<Message> {
        let mut inner = self.lock();
        if inner.done.is_some() && inner.messages.len() == 1 { inner.messages.pop() } else { None }
    }

    /// The message of this index.
    pub(super) fn read(&self, index: usize) -> Next {
        let inner = self.lock();
        match inner.messages.get(index) {
            Some(message) => Next::Message(message.clone()),
            None if inner.done.is_some() => Next::End,
            None => Next::Nothing,
        }
    }

    /// How many messages there are by now.
    pub(super) fn count(&self) -> usize {
        self.lock().messages.len()
    }

    /// Waits until there is something at this index, or the end.
    pub(super) async fn wait(&self, index: usize) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before looking, so that no change between the two is missed.
            changed.as_mut().enable();
            if !matches!(self.read(index), Next::Nothing) {
                return;
            }
            changed.await;
        }
    }

    /// Whether it has been over for longer than [`KEPT`].
    pub(super) fn is_old(&self) -> bool {
        self.lock().done.is_some_and(|done| done.elapsed() > KEPT)
    }

    /// Bytes that its messages hold when it is over; 0 while it runs.
    pub(super) fn finished_bytes(&self) -> usize {
        let inner = self.lock();
        if inner.done.is_none() {
            return 0;
        }
        inner.messages.iter().flatten().map(Bytes::len).sum()
    }

    /// The event id of the message of this index.
    pub(super) fn event_id(&self, index: usize) -> String {
        let rpc_id = if self.rpc_id.len() <= LONGEST_ID { URL_SAFE_NO_PAD.encode(&self.rpc_id) } else { String::new() };
        format!("{}.{index}.{rpc_id}", self.stream.simple())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Each change is whole before the lock is let go.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Exchange {
    fn progress(&self, report: Progress<'_>) {
        let total = report.total.map(serde_json::value::RawValue::get);
        self.progress(report.progress.get(), total, report.message.as_deref());
    }

    fn waits(&self, what_for: Option<&str>) {
        let mut inner = self.lock();
        inner.waits_for = what_for.map(str::to_owned);
        if let Some(words) = what_for {
            self.say(&mut inner, words);
        }
    }
}

/// What a `Last-Event-ID` of ours says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LastEvent {
    /// The stream.
    pub(super) stream: Uuid,
    /// Index of the last message that arrived; `None` when only the priming event did.
    pub(super) index: Option<usize>,
    /// The engine's request id as JSON text; empty when it was too long.
    pub(super) rpc_id: String,
}

impl LastEvent {
    /// Reads an event id; `None` for one that is not ours.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let stream = Uuid::try_parse(parts.next()?).ok()?;
        let index = match parts.next()? {
            "p" => None,
            number => Some(number.parse().ok()?),
        };
        let rpc_id = String::from_utf8(URL_SAFE_NO_PAD.decode(parts.next()?).ok()?).ok()?;
        let one_value = serde_json::from_str::<serde_json::Value>(&rpc_id);
        let good = rpc_id.is_empty() || one_value.is_ok_and(|value| value.is_string() || value.is_number());
        good.then_some(Self { stream, index, rpc_id })
    }
}

/// The event id of a stream's priming event.
pub(super) fn priming_id(exchange: &Exchange) -> String {
    exchange.event_id(0).replacen(".0.", ".p.", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(rpc_id: &str) -> Arc<Exchange> {
        Exchange::new(
            CallId::new(),
            SessionId::new(),
            [0; 8],
            rpc_id.to_owned(),
            Ticker::new(Some("\"t\"".to_owned())),
            Locale::En,
        )
    }

    #[test]
    fn an_event_id_tells_stream_place_and_request() {
        for rpc_id in ["7", "\"a.b\"", "-1"] {
            let exchange = exchange(rpc_id);
            let expected = LastEvent { stream: exchange.stream, index: Some(3), rpc_id: rpc_id.to_owned() };
            assert_eq!(LastEvent::parse(&exchange.event_id(3)), Some(expected));
            assert_eq!(LastEvent::parse(&priming_id(&exchange)).unwrap().index, None);
        }
    }

    #[test]
    fn an_event_id_that_is_not_ours_or_would_inject_json_is_refused() {
        let stream = Uuid::nil().simple().to_string();
        let injected = URL_SAFE_NO_PAD.encode("1,\"x\":2");
        for text in
            ["", "x", "a.b.c", &format!("{stream}.1"), &format!("{stream}.x.MQ"), &format!("{stream}.1.{injected}")]
        {
            assert_eq!(LastEvent::parse(text), None, "{text}");
        }
    }

    #[tokio::test]
    async fn readers_get_every_message_in_order_and_then_the_end() {
        let exchange = exchange("1");
        exchange.progress("1", Some("3"), None);
        exchange.tick(1);
        exchange.finish(vec![Bytes::from_static(b"{}")]);
        exchange.progress("2", None, None);
        exchange.wait(2).await;
        let texts: Vec<String> = (0..3)
            .map(|index| match exchange.read(index) {
                Next::Message(message) => String::from_utf8(message.concat()).unwrap(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(texts[0].contains("\"progress\":1,\"total\":3"), "{}", texts[0]);
        assert_eq!(texts[2], "{}");
        assert!(matches!(exchange.read(3), Next::End));
    }

    #[tokio::test]
    async fn a_server_that_reports_without_end_does_not_fill_the_memory() {
        let exchange = exchange("1");
        let message = "m".repeat(10_000);
        for report in 0..1_000 {
            exchange.progress(&report.to_string(), None, Some(&message));
        }
        let kept = exchange.count();
        assert!((100..110).contains(&kept), "{kept}");
        exchange.finish(vec![Bytes::from_static(b"{}")]);
        assert!(matches!(exchange.read(kept), Next::Message(answer) if answer.concat() == b"{}"));
    }

    #[tokio::test]
    async fn a_waiting_reader_wakes_when_the_answer_comes() {
        let exchange = exchange("1");
        let reader = {
            let exchange = Arc::clone(&exchange);
            tokio::spawn(async move { exchange.wait(0).await })
        };
        exchange.finish(Message::new());
        tokio::time::timeout(Duration::from_secs(5), reader).await.unwrap().unwrap();
    }
}
