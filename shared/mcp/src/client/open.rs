//! Opening, taking up again and closing a connection.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use gatehouse_outbound::HttpClient;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    ACCEPTED_VERSIONS, PROTOCOL_VERSION,
    client::{
        answer::{Answer, InitializeView},
        error::{OpenError, RequestError},
        inbound::Inbound,
        legacy,
        listen::listen,
        options::{Endpoint, Options, RequestOptions, StoredSession, Transport},
        pipe::{self, Pipe},
        shared::{Http, Shared, Wire},
    },
    encode::{self, Params, Piece},
};

/// Time for telling the server that the session ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// An initialised MCP session with a server. There is no other kind: whoever holds one has had `initialize` answered and
/// `notifications/initialized` taken. Dropping it ends all its background work, without a word to the server.
pub struct Connection {
    shared: Arc<Shared>,
    initialize_result: Answer,
    protocol_version: &'static str,
    _stop: DropGuard,
}

impl Connection {
    /// Opens a session. `options.connect_timeout` bounds the whole of it.
    pub async fn open(
        http: HttpClient,
        endpoint: Endpoint,
        options: Options,
        inbound: Arc<dyn Inbound>,
    ) -> Result<Self, OpenError> {
        let allowed = options.connect_timeout;
        let until = Instant::now() + allowed;
        let transport = options.transport;
        if transport == Transport::Sse {
            return Self::open_legacy(http, endpoint, options, inbound, until).await;
        }
        let wire = Wire::Http(Http::new(http.clone(), endpoint.clone()));
        let shared = Shared::new(wire, CancellationToken::new(), options.clone(), Arc::clone(&inbound));
        match Self::initialized(Arc::new(shared), until).await {
            Err(OpenError::Request(refusal)) if transport == Transport::Auto && legacy::is_hint(&refusal) => {
                let found = legacy::connect(http, endpoint, options, inbound);
                match timeout_at(until, found).await {
                    Ok(Ok(shared)) => Self::initialized(shared, until).await,
                    // An endpoint that this client must not use says more than the refusal before it.
                    Ok(Err(error @ RequestError::Protocol(_))) => Err(error.into()),
                    // No server of that kind either: what it said first counts.
                    Ok(Err(error)) => {
                        tracing::debug!(%error, "no server of the transport HTTP+SSE answers there");
                        Err(refusal.into())
                    }
                    Err(_) => Err(refusal.into()),
                }
            }
            outcome => outcome,
        }
    }

    async fn open_legacy(
        http: HttpClient,
        endpoint: Endpoint,
        options: Options,
        inbound: Arc<dyn Inbound>,
        until: Instant,
    ) -> Result<Self, OpenError> {
        let connecting = timeout_at(until, legacy::connect(http, endpoint, options, inbound));
        Self::initialized(connecting.await.map_err(|_| RequestError::TimedOut)??, until).await
    }

    /// Opens a session with a process, over its output (`reader`) and its input (`writer`): the stdio transport (MCP 2025-11-25,
    /// basic/transports). `options.connect_timeout` bounds the whole of it. The connection ends with either pipe; dropping it
    /// closes the process's input.
    pub async fn open_pipes(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        options: Options,
        inbound: Arc<dyn Inbound>,
    ) -> Result<Self, OpenError> {
        let stop = CancellationToken::new();
        let pipe = Pipe::new(writer, stop.clone());
        let shared = Arc::new(Shared::new(Wire::Pipe(pipe), stop, options, inbound));
        let reading = Arc::clone(&shared);
        shared.spawn(async move { pipe::read(&reading, reader).await });
        let until = Instant::now() + shared.options.connect_timeout;
        Self::initialized(shared, until).await
    }

    async fn initialized(shared: Arc<Shared>, until: Instant) -> Result<Self, OpenError> {
        let stop = shared.stop.clone().drop_guard();
        let opening = timeout_at(until, initialize(&shared));
        let (initialize_result, protocol_version) = opening.await.map_err(|_| RequestError::TimedOut)??;
        let connection = Self { shared, initialize_result, protocol_version, _stop: stop };
        connection.start_listening();
        Ok(connection)
    }

    /// Takes up a session that was opened before, here or elsewhere. Asks the server nothing: whether it still knows the session
    /// shows with the first request.
    pub fn resume(
        http: HttpClient,
        endpoint: Endpoint,
        options: Options,
        inbound: Arc<dyn Inbound>,
        stored: StoredSession,
    ) -> Result<Self, OpenError> {
        let protocol_version = accepted(&stored.protocol_version)
            .ok_or_else(|| OpenError::UnsupportedVersion { version: stored.protocol_version.clone() })?;
        let id = stored.mcp_session_id.as_deref().map(HeaderValue::from_str).transpose();
        let id = id.map_err(|_| OpenError::BadHeader("the stored session id cannot be sent over HTTP"))?;
        let http = Http::new(http, endpoint);
        http.set_session(id, HeaderValue::from_static(protocol_version));
        let shared = Arc::new(Shared::new(Wire::Http(http), CancellationToken::new(), options, inbound));
        let stop = shared.stop.clone().drop_guard();
        let initialize_result = Answer::new(stored.initialize_result);
        let connection = Self { shared, initialize_result, protocol_version, _stop: stop };
        connection.start_listening();
        Ok(connection)
    }

    /// Sends a request and waits for its answer.
    ///
    /// Dropping the future ends the wait without telling the server: to take a request back, use `options.cancel`.
    pub async fn request(
        &self,
        method: &str,
        params: &Params<'_>,
        options: RequestOptions<'_>,
    ) -> Result<Answer, RequestError> {
        self.shared.request(method, params, &options).await
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Option<&Params<'_>>) -> Result<(), RequestError> {
        let body = encode::notification(method, params);
        let sent = timeout(self.shared.options.request_timeout, self.shared.post_one_way(body)).await;
        sent.unwrap_or(Err(RequestError::TimedOut))
    }

    /// Ends the session at the server, within five seconds. A server that does not end sessions this way is left alone. The input of
    /// a process is closed, which is how it is asked to end.
    pub async fn close(&self) {
        if timeout(CLOSE_TIMEOUT, delete(&self.shared)).await.is_err() {
            tracing::debug!(upstream = ?self.shared.wire, "the session was not ended in time");
        }
        self.shared.stop.cancel();
    }

    /// Returns when a process has closed its output or its input, or a server its stream of HTTP+SSE. Never for Streamable HTTP,
    /// which nothing ends.
    pub async fn ended(&self) {
        match &self.shared.wire {
            Wire::Http(_) => std::future::pending().await,
            Wire::Legacy(legacy) => legacy.ended().await,
            Wire::Pipe(pipe) => pipe.ended().await,
        }
    }

    /// Whether [`Self::ended`] would return at once.
    pub fn has_ended(&self) -> bool {
        match &self.shared.wire {
            Wire::Http(_) => false,
            Wire::Legacy(legacy) => legacy.has_ended(),
            Wire::Pipe(pipe) => pipe.has_ended(),
        }
    }

    /// The result of `initialize` as the server wrote it.
    pub fn initialize_result(&self) -> &Answer {
        &self.initialize_result
    }

    /// The result of `initialize`, read leniently.
    pub fn view(&self) -> InitializeView<'_> {
        self.initialize_result.parse().unwrap_or_default()
    }

    /// How messages travel over HTTP, as it was set or found out; `None` for a process.
    pub fn transport(&self) -> Option<Transport> {
        match &self.shared.wire {
            Wire::Http(_) => Some(Transport::StreamableHttp),
            Wire::Legacy(_) => Some(Transport::Sse),
            Wire::Pipe(_) => None,
        }
    }

    /// The revision that was agreed on.
    pub fn protocol_version(&self) -> &'static str {
        self.protocol_version
    }

    /// What is needed to take this session up again.
    pub fn stored_session(&self) -> StoredSession {
        StoredSession {
            mcp_session_id: match &self.shared.wire {
                Wire::Http(http) => http.session_id(),
                // It lasts no longer than its stream, or its process.
                Wire::Legacy(_) | Wire::Pipe(_) => None,
            },
            protocol_version: self.protocol_version.to_owned(),
            initialize_result: self.initialize_result.result_bytes(),
        }
    }

    /// Replaces the headers of the endpoint from the next request on, for instance when a token was renewed.
    pub fn set_headers(&self, headers: HeaderMap) {
        if let Some(http) = self.shared.wire.http() {
            http.set_given_headers(headers);
        }
    }

    /// Whether the server has said that it does not know the session.
    pub fn session_gone(&self) -> bool {
        self.shared.session_gone()
    }

    /// How many answers came that belong to no open request: late ones, or a server that makes ids up.
    pub fn unknown_answers(&self) -> u64 {
        self.shared.unknown_answers()
    }

    fn start_listening(&self) {
        if self.shared.options.listen {
            self.shared.spawn(listen(self.shared.clone()));
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("wire", &self.shared.wire)
            .field("protocol_version", &self.protocol_version)
            .finish_non_exhaustive()
    }
}

async fn initialize(shared: &Arc<Shared>) -> Result<(Answer, &'static str), OpenError> {
    let client_info = client_info(shared.options.client_version);
    let members = [
        ("protocolVersion", Piece::Text(PROTOCOL_VERSION)),
        ("capabilities", Piece::Json("{}")),
        ("clientInfo", Piece::Json(&client_info)),
    ];
    let (answer, session_id) = shared.request_initialize(&Params::new(&members)).await?;
    let view: InitializeView<'_> = answer.parse().unwrap_or_default();
    let offered = view
        .protocol_version
        .ok_or_else(|| RequestError::NotMcp("its answer to initialize names no protocol version".to_owned()))?;
    let version = accepted(&offered);
    if let Some(http) = shared.wire.http() {
        http.set_session(session_id, HeaderValue::from_static(version.unwrap_or(PROTOCOL_VERSION)));
    }
    let Some(version) = version else {
        delete(shared).await;
        return Err(OpenError::UnsupportedVersion { version: offered.into_owned() });
    };
    shared.post_one_way(encode::notification("notifications/initialized", None)).await?;
    Ok((answer, version))
}

fn client_info(version: &str) -> String {
    let mut text = b"{\"name\":\"gatehouse\",\"version\":".to_vec();
    encode::string(&mut text, version);
    text.push(b'}');
    String::from_utf8(text).unwrap_or_default()
}

fn accepted(version: &str) -> Option<&'static str> {
    ACCEPTED_VERSIONS.into_iter().find(|accepted| *accepted == version)
}

async fn delete(shared: &Shared) {
    let Wire::Http(http) = &shared.wire else { return };
    let headers = http.headers();
    if !headers.has_session {
        return;
    }
    match shared.send(http, Method::DELETE, &headers.post, Bytes::new()).await {
        Ok(response) if response.status().is_success() => {}
        // Not offered, or gone already.
        Ok(response) if matches!(response.status(), StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND) => {}
        Ok(response) => {
            tracing::debug!(upstream = ?shared.wire, status = %response.status(), "the session was not ended");
        }
        Err(error) => tracing::debug!(upstream = ?shared.wire, %error, "the session was not ended"),
    }
}
