//! What a connection, its requests and its background work have in common.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use gatehouse_outbound::{HttpClient, Target};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HOST, USER_AGENT},
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::client::{
    inbound::Inbound,
    legacy::Legacy,
    options::{Endpoint, Options},
    pending::Pending,
    pipe::Pipe,
};

pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

pub(crate) struct Shared {
    pub(crate) wire: Wire,
    pub(crate) options: Options,
    pub(crate) inbound: Arc<dyn Inbound>,
    pub(crate) pending: Pending,
    /// Ends all background work.
    pub(crate) stop: CancellationToken,
    /// One permit for each request of the server that is being answered.
    pub(crate) server_requests: Arc<Semaphore>,
    /// Those requests by their ids, so that the server can take them back.
    pub(crate) open_server_requests: Mutex<HashMap<String, CancellationToken>>,
    next_id: AtomicU64,
    unknown_answers: AtomicU64,
    session_gone: AtomicBool,
}

/// What messages travel on.
pub(crate) enum Wire {
    /// Streamable HTTP: one exchange for each message.
    Http(Http),
    /// One stream for what the server says, one POST for each message to it.
    Legacy(Legacy),
    /// The input and output of a process: one line for each message.
    Pipe(Pipe),
}

impl Wire {
    /// What both transports over HTTP share.
    pub(crate) fn http(&self) -> Option<&Http> {
        match self {
            Self::Http(http) => Some(http),
            Self::Legacy(legacy) => Some(&legacy.http),
            Self::Pipe(_) => None,
        }
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(http) => fmt::Debug::fmt(&http.target, f),
            Self::Legacy(legacy) => fmt::Debug::fmt(&legacy.http.target, f),
            Self::Pipe(_) => f.write_str("a process"),
        }
    }
}

/// An endpoint, and how requests present themselves to it.
pub(crate) struct Http {
    pub(crate) client: HttpClient,
    pub(crate) target: Target,
    headers: RwLock<Arc<Headers>>,
}

/// The headers of a request, ready to be copied.
pub(crate) struct Headers {
    /// The caller's headers, to build the others from.
    given: HeaderMap,
    session: Option<(Option<HeaderValue>, HeaderValue)>,
    /// For POST and DELETE.
    pub(crate) post: HeaderMap,
    /// For GET.
    pub(crate) get: HeaderMap,
    /// Whether they name an MCP session.
    pub(crate) has_session: bool,
}

impl Headers {
    fn new(target: &Target, given: HeaderMap, session: Option<(Option<HeaderValue>, HeaderValue)>) -> Self {
        let mut common = given.clone();
        common.remove(HOST);
        if !target.is_https() {
            // Set here, the client only overwrites it: no request has to make room for it.
            common.insert(HOST, target.host_header().clone());
        }
        // Nothing is unpacked here, so that no small body can become a large one.
        common.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        common.entry(USER_AGENT).or_insert(HeaderValue::from_static(concat!("gatehouse/", env!("CARGO_PKG_VERSION"))));
        if let Some((id, version)) = &session {
            common.insert(VERSION, version.clone());
            if let Some(id) = id {
                common.insert(SESSION_ID, id.clone());
            }
        }
        let mut get = common.clone();
        get.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let mut post = common;
        post.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        post.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let has_session = session.as_ref().is_some_and(|(id, _)| id.is_some());
        Self { given, session, post, get, has_session }
    }
}

impl Http {
    /// Without a session: only `initialize` may be sent.
    pub(crate) fn new(client: HttpClient, endpoint: Endpoint) -> Self {
        let headers = RwLock::new(Arc::new(Headers::new(&endpoint.target, endpoint.headers, None)));
        Self { client, target: endpoint.target, headers }
    }

    /// From now on every request names the session and the revision.
    pub(crate) fn set_session(&self, id: Option<HeaderValue>, version: HeaderValue) {
        let id = id.map(|mut id| {
            id.set_sensitive(true);
            id
        });
        self.rebuild_headers(|old| Headers::new(&self.target, old.given.clone(), Some((id, version))));
    }

    /// Replaces the caller's headers, for instance when a token was renewed.
    pub(crate) fn set_given_headers(&self, given: HeaderMap) {
        self.rebuild_headers(|old| Headers::new(&self.target, given, old.session.clone()));
    }

    fn rebuild_headers(&self, build: impl FnOnce(&Headers) -> Headers) {
        let mut headers = self.headers.write().unwrap_or_else(PoisonError::into_inner);
        *headers = Arc::new(build(&headers));
    }

    pub(crate) fn headers(&self) -> Arc<Headers> {
        self.headers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The session's id, as text.
    pub(crate) fn session_id(&self) -> Option<String> {
        let headers = self.headers();
        let (id, _) = headers.session.as_ref()?;
        id.as_ref().and_then(|id| id.to_str().ok()).map(str::to_owned)
    }
}

impl Shared {
    /// `stop` ends all background work.
    pub(crate) fn new(wire: Wire, stop: CancellationToken, options: Options, inbound: Arc<dyn Inbound>) -> Self {
        let most = options.most_server_requests;
        Self {
            wire,
            inbound,
            pending: Pending::default(),
            stop,
            server_requests: Arc::new(Semaphore::new(most)),
            open_server_requests: Mutex::default(),
            next_id: AtomicU64::new((options.id_base & ((1 << 52) - 1)).max(1)),
            unknown_answers: AtomicU64::new(0),
            session_gone: AtomicBool::new(false),
            options,
        }
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn count_unknown_answer(&self) {
        self.unknown_answers.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(upstream = ?self.wire, "an answer to no open request was ignored");
    }

    pub(crate) fn unknown_answers(&self) -> u64 {
        self.unknown_answers.load(Ordering::Relaxed)
    }

    pub(crate) fn set_session_gone(&self) {
        self.session_gone.store(true, Ordering::Relaxed);
    }

    pub(crate) fn session_gone(&self) -> bool {
        self.session_gone.load(Ordering::Relaxed)
    }

    /// Runs something beside the requests, until it ends or the connection does.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        tokio::spawn(async move {
            // `None` means that the connection ended first, which is what the token is for.
            let _ = stop.run_until_cancelled(work).await;
        });
    }
}

/// A lock that outlives a panic of its holder: what these locks guard is never left half changed.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
