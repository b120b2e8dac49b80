//! What the gRPC services ask of the side that speaks MCP.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _};
use gatehouse_mcp::client::Progress;
use gatehouse_types::{CallId, ServerId, SessionId};
use secrecy::SecretString;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Upstreams, probe, processes::Seen, refresh::Refresher};
use crate::{
    call::{Calls, Listener, Request},
    catalog::{Offer, Server},
    error::Error,
    raw::RawObject,
    registry::upstream::{CallEvent, CallRequest, Offered, OfferedTool, TestReport, TestTarget, ToolsVersion},
    results::Known,
    snapshot::Snapshot,
};

/// Progress reports that wait for a slow reader; more are left out, for the next one says more.
const PROGRESS_QUEUE: usize = 64;

/// The side that speaks MCP, for the gRPC services. Cheap to clone.
#[derive(Clone)]
pub struct Upstream {
    snapshot: Arc<Snapshot>,
    upstreams: Arc<Upstreams>,
    refresher: Arc<Refresher>,
    calls: Arc<Calls>,
    tasks: TaskTracker,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").finish_non_exhaustive()
    }
}

impl Upstream {
    /// `tasks` are waited for when the process ends.
    pub fn new(calls: Arc<Calls>, refresher: Arc<Refresher>, tasks: TaskTracker) -> Self {
        let (snapshot, upstreams) = (Arc::clone(&calls.snapshot), Arc::clone(&calls.upstreams));
        Self { snapshot, upstreams, refresher, calls, tasks }
    }

    /// Connects and reports step by step. A server that does not answer is a report.
    pub async fn test(&self, target: TestTarget) -> Result<TestReport, Error> {
        self.refresh_snapshot().await?;
        let catalog = self.snapshot.catalog();
        let server = match target {
            TestTarget::Registered(id) => {
                let server = catalog.servers.get(&id).ok_or_else(|| Error::not_found("server", id.to_string()))?;
                Server::clone(server)
            }
            TestTarget::Url { url, headers } => {
                let headers =
                    headers.to_stored().into_iter().map(|(name, value)| (name.to_owned(), SecretString::from(value)));
                Server::unregistered(url, None, headers.collect())
            }
            TestTarget::Program { stdio, env } => {
                let env = env.to_stored().into_iter().map(|(name, value)| (name.to_owned(), SecretString::from(value)));
                Server::unregistered(String::new(), Some(stdio), env.collect())
            }
        };
        if server.stdio.is_some() {
            return Ok(probe::test_program(&server, &self.refresher.processes(), &catalog.settings).await);
        }
        Ok(probe::test(&server, self.refresher.pools().separate(), &catalog.settings).await)
    }

    /// The process of a server that is a program, at this replica.
    pub fn process(&self, server: ServerId) -> Option<Seen> {
        self.refresher.processes().seen(server)
    }

    /// Lists a server's tools now and stores them. Gives whether anything changed.
    pub async fn refresh(&self, server: ServerId) -> Result<bool, Error> {
        let changed = self
            .refresher
            .now(server)
            .await
            .map_err(|why| Error::Precondition(format!("the server cannot be listed: {why}")))?;
        self.refresh_snapshot().await?;
        Ok(changed.any())
    }

    /// A server was registered or changed: its tools are listed in the background. Connections of the old configuration
    /// end with their last request.
    pub fn server_changed(&self, server: ServerId) {
        let this = self.clone();
        self.tasks.spawn(async move {
            if let Err(why) = this.refresher.now(server).await {
                tracing::info!(server.id = %server, why, "tools were not listed after the server was registered or changed");
            }
        });
    }

    /// A session was deleted: its calls are cancelled, its connections closed.
    pub fn session_ended(&self, session: SessionId) {
        let this = self.clone();
        self.tasks.spawn(async move {
            if let Err(error) = this.snapshot.refresh().await {
                tracing::warn!(error.message = %error, "the end of a session will be seen a little later");
            }
            this.upstreams.session_ended(session);
        });
    }

    /// What a session would be offered, in short.
    pub async fn tools_version(&self, session: SessionId) -> Result<ToolsVersion, Error> {
        let offer = self.offer(session).await?;
        let tool_count = u32::try_from(offer.tools.len()).unwrap_or(u32::MAX);
        Ok(ToolsVersion { version: offer.version.clone(), tool_count })
    }

    /// What a session is offered.
    pub async fn offered_tools(&self, session: SessionId) -> Result<Offered, Error> {
        let offer = self.offer(session).await?;
        let tools = offer.tools.iter().filter_map(|tool| {
            let definition = tool.definition.as_ref().ok()?.clone();
            Some(OfferedTool { name: tool.exposed.clone(), server: tool.server.name.clone(), definition })
        });
        Ok(Offered { tools: tools.collect(), unavailable: offer.unavailable.clone() })
    }

    /// Calls a tool. Dropping the stream cancels the call.
    pub async fn call(
        &self,
        session: SessionId,
        request: CallRequest,
    ) -> Result<BoxStream<'static, Result<CallEvent, Error>>, Error> {
        // What an admin changed a moment ago counts.
        self.refresh_snapshot().await?;
        let found = self.snapshot.sessions.by_id(session).await?;
        let session = found.ok_or_else(|| Error::not_found("session", session.to_string()))?;
        let cancel = CancellationToken::new();
        let call = Request {
            id: CallId::new(),
            session,
            principal: None,
            actor: request.actor,
            name: request.tool,
            arguments: Bytes::from(request.arguments),
            known: Known::ALL,
            cancel: cancel.clone(),
            trace_id: gatehouse_platform::telemetry::trace_id(),
        };
        let (events, stream) = mpsc::channel(PROGRESS_QUEUE);
        let calls = Arc::clone(&self.calls);
        self.tasks.spawn(async move {
            let reply = calls.run(&call, &Reports(events.clone())).await;
            let whole = reply.output.pieces.concat();
            let content =
                std::str::from_utf8(&whole).ok().and_then(RawObject::parse).and_then(|result| result.get("content"));
            let content = content.unwrap_or("[]").to_owned();
            let result = CallEvent::Result { call_id: reply.call, content, is_error: reply.output.is_error };
            // Nobody reads any more: the audit has the result.
            let _ = events.send(Ok(result)).await;
        });
        let guard = cancel.drop_guard();
        Ok(ReceiverStream::new(stream)
            .map(move |event| {
                // Dropping the stream drops the guard, which cancels the call.
                let _held = &guard;
                event
            })
            .boxed())
    }

    async fn offer(&self, session: SessionId) -> Result<Arc<Offer>, Error> {
        self.refresh_snapshot().await?;
        let found = self.snapshot.sessions.by_id(session).await?;
        let facts = found.ok_or_else(|| Error::not_found("session", session.to_string()))?.facts();
        let catalog = self.snapshot.catalog();
        let offer = catalog.offer(facts.profile, facts.mode);
        offer.cloned().ok_or_else(|| Error::Broken(format!("session {session} has no profile")))
    }

    async fn refresh_snapshot(&self) -> Result<(), Error> {
        self.snapshot.refresh().await.map_err(unavailable)
    }
}

/// Progress for the reader of a stream.
struct Reports(mpsc::Sender<Result<CallEvent, Error>>);

impl Reports {
    fn send(&self, progress: f64, total: Option<f64>, message: String) {
        // A full queue: the reader is slow, and the next report says more.
        let _ = self.0.try_send(Ok(CallEvent::Progress { progress, total, message }));
    }
}

impl Listener for Reports {
    fn progress(&self, report: Progress<'_>) {
        let number = |raw: &serde_json::value::RawValue| raw.get().parse::<f64>().ok();
        let Some(value) = number(report.progress) else { return };
        let message = report.message.map(std::borrow::Cow::into_owned).unwrap_or_default();
        self.send(value, report.total.and_then(number), message);
    }

    fn waits(&self, what_for: Option<&str>) {
        if let Some(words) = what_for {
            self.send(0.0, None, words.to_owned());
        }
    }
}

fn unavailable(error: crate::snapshot::Error) -> Error {
    match error {
        crate::snapshot::Error::Database(error) => Error::Database(error),
        error @ crate::snapshot::Error::JustFailed => Error::Unavailable(error.to_string()),
    }
}
