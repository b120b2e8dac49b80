//! Listing the tools of servers into the cache.
//!
//! Once per server at a time, on all replicas together (a lease in the table). A list that still grows after `initialized`
//! is stored when it has been still for [`STILL`]. Nobody who calls or lists tools waits for any of this.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gatehouse_mcp::{
    client::{Connection, Inbound, OpenError, Reply, RequestError, ServerNotification, ServerRequest},
    lists::{ListError, ListLimits},
};
use gatehouse_types::{Clock, ServerId, Settings};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use super::{
    pools::{Pools, connection_options, endpoint},
    processes::Processes,
};
use crate::{
    catalog::{Server, hex},
    raw::RawObject,
    registry::tool::{Changed, ListedTool, ServerFacts},
    snapshot::Snapshot,
    store::{self, Pool, listing},
};
use sha2::{Digest as _, Sha256};

/// How long a list must have been still before it is stored.
pub const STILL: Duration = Duration::from_secs(2);
/// A list that grows for longer is stored as it is.
const GROWS_FOR: Duration = Duration::from_secs(20);
/// A new connection does not list again what was listed so recently.
const FRESH: Duration = Duration::from_secs(10);
/// An engine that lists tools does not cause another attempt sooner.
const ATTEMPT_EVERY: Duration = Duration::from_secs(30);
/// How long a replica that dies while listing keeps others from it.
const LEASE: Duration = Duration::from_secs(90);
/// Longest a listing may take in all.
const WHOLE: Duration = Duration::from_secs(80);

/// Lists tools into the cache.
pub struct Refresher {
    pool: Pool,
    clock: Arc<dyn Clock>,
    snapshot: Arc<Snapshot>,
    pools: Pools,
    processes: Arc<Processes>,
    shutdown: CancellationToken,
    works: Mutex<HashMap<ServerId, Arc<Work>>>,
    tasks: TaskTracker,
}

#[derive(Default)]
struct Work {
    /// Held while this replica lists the server.
    listing: tokio::sync::Mutex<()>,
    /// A change was announced and will be listed soon.
    announced: AtomicBool,
    /// When the last attempt began.
    attempted: Mutex<Option<Instant>>,
    /// The last listing.
    done: Mutex<Option<Done>>,
}

/// A listing that has ended.
#[derive(Clone)]
struct Done {
    /// When it read the list for the last time.
    read_at: Instant,
    /// The configuration that it went by; `None` when the server was gone.
    config_hash: Option<[u8; 32]>,
    result: Result<Changed, String>,
}

/// What a listing found.
struct Listed {
    tools: Vec<ListedTool>,
    facts: ServerFacts,
    /// When the list was read for the last time.
    read_at: Instant,
}

impl Refresher {
    /// Lists nothing yet.
    pub fn new(
        snapshot: Arc<Snapshot>,
        http: gatehouse_outbound::HttpClient,
        pool: Pool,
        clock: Arc<dyn Clock>,
        processes: Arc<Processes>,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            processes,
            pool,
            clock,
            snapshot,
            pools: Pools::new(http),
            shutdown,
            works: Mutex::default(),
            tasks: TaskTracker::new(),
        }
    }

    pub(super) fn processes(&self) -> Arc<Processes> {
        Arc::clone(&self.processes)
    }

    pub(super) fn pools(&self) -> Pools {
        self.pools.clone()
    }

    /// A connection was opened: lists in the background unless that was done just now.
    pub fn connected(self: &Arc<Self>, server: ServerId) {
        self.in_background(server, FRESH);
    }

    /// An engine asked for tools: lists in the background when the list is old, or there is none.
    pub fn asked(self: &Arc<Self>, server: &Server, stale_after: Duration) {
        let age = server.listed_at.map(|listed_at| self.clock.now() - listed_at);
        if age.is_none_or(|age| age >= stale_after) {
            self.in_background(server.id, ATTEMPT_EVERY.min(stale_after));
        }
    }

    /// A server announced a change: lists in the background, once for all announcements of `tools.listChangedMergeSec`.
    pub fn list_changed(self: &Arc<Self>, server: ServerId) {
        let work = self.work(server);
        if work.announced.swap(true, Ordering::AcqRel) {
            return;
        }
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            let merge = Duration::from_secs(this.snapshot.catalog().settings.tools_list_changed_merge_sec.into());
            if this.shutdown.run_until_cancelled(sleep(merge)).await.is_none() {
                return;
            }
            work.announced.store(false, Ordering::Release);
            if let Err(why) = this.now(server).await {
                tracing::info!(server.id = %server, why, "tools were not listed after a change was announced");
            }
        });
    }

    /// Lists a server now and stores the list. The error says what is wrong and what to do about it.
    pub async fn now(&self, server: ServerId) -> Result<Changed, String> {
        let asked = Instant::now();
        let work = self.work(server);
        let _turn = work.listing.lock().await;
        // A listing that was under way, went by the configuration of now and read the list after this was asked is what was
        // asked for.
        let done = work.done.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(done) = done.filter(|done| done.read_at >= asked)
            && self.snapshot.refresh().await.is_ok()
            && done.config_hash == self.config_hash(server)
        {
            return done.result;
        }
        self.list_and_store(server, &work, true).await
    }

    /// Forgets servers that are gone; ends with the process.
    pub async fn finished(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn in_background(self: &Arc<Self>, server: ServerId, unless_within: Duration) {
        let work = self.work(server);
        if work.attempted.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| at.elapsed() < unless_within)
        {
            return;
        }
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            // Someone lists already: that is good enough.
            let Ok(_turn) = work.listing.try_lock() else { return };
            let listing = this.list_and_store(server, &work, false);
            if let Some(Err(why)) = this.shutdown.run_until_cancelled(listing).await {
                tracing::info!(server.id = %server, why, "tools were not listed");
            }
        });
    }

    async fn list_and_store(&self, server: ServerId, work: &Work, wait: bool) -> Result<Changed, String> {
        *work.attempted.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let lease = gatehouse_types::CallId::new().uuid();
        if !self.claim(server, lease, wait).await? {
            return Ok(Changed::default());
        }
        let done = self.list_claimed(server).await;
        *work.done.lock().unwrap_or_else(PoisonError::into_inner) = Some(done.clone());
        let released = async {
            let mut connection = self.pool.acquire().await.map_err(crate::error::Error::from)?;
            listing::release_refresh(&mut connection, server, lease).await
        };
        if let Err(error) = released.await {
            tracing::warn!(server.id = %server, error.message = %error, "the right to list was not given back; it lapses by itself");
        }
        done.result
    }

    fn config_hash(&self, server: ServerId) -> Option<[u8; 32]> {
        self.snapshot.catalog().servers.get(&server).map(|server| server.config_hash())
    }

    /// Takes the lease; with `wait`, waits for another replica that holds it.
    async fn claim(&self, server: ServerId, lease: Uuid, wait: bool) -> Result<bool, String> {
        let until = Instant::now() + LEASE;
        loop {
            let now = self.clock.now();
            let claimed = async {
                let mut connection = self.pool.acquire().await.map_err(crate::error::Error::from)?;
                listing::claim_refresh(&mut connection, server, lease, now, now + LEASE).await
            };
            match claimed.await {
                Ok(true) => return Ok(true),
                Ok(false) if !wait => return Ok(false),
                Ok(false) if Instant::now() >= until => {
                    return Err("another replica lists this server; try again".to_owned());
                }
                Ok(false) => sleep(Duration::from_millis(250)).await,
                Err(error) => {
                    tracing::warn!(server.id = %server, error.message = %error, "the right to list a server cannot be had");
                    return Err("the database does not answer; try again".to_owned());
                }
            }
        }
    }

    async fn list_claimed(&self, id: ServerId) -> Done {
        let mut done = Done { read_at: Instant::now(), config_hash: None, result: Ok(Changed::default()) };
        // Registered or changed a moment ago, most often: the address, headers and bounds of now count.
        if self.snapshot.refresh().await.is_err() {
            done.result = Err("the database does not answer; try again".to_owned());
            return done;
        }
        let catalog = self.snapshot.catalog();
        let Some(server) = catalog.servers.get(&id) else {
            done.result = Err("the server is not registered any more".to_owned());
            return done;
        };
        done.config_hash = Some(server.config_hash());
        let listed = timeout(WHOLE, self.list(server, &catalog.settings)).await;
        let listed = listed.unwrap_or_else(|_| Err("its tools could not be listed in time".to_owned()));
        done.read_at = listed.as_ref().map_or(done.read_at, |listed| listed.read_at);
        done.result = self.store(id, listed).await.unwrap_or_else(|error| {
            tracing::warn!(server.id = %id, error.message = %error, "a listing could not be stored");
            Err("the database did not take the listing; try again".to_owned())
        });
        done
    }

    async fn store(
        &self,
        id: ServerId,
        listed: Result<Listed, String>,
    ) -> Result<Result<Changed, String>, crate::error::Error> {
        let mut transaction = store::begin(&self.pool).await?;
        let now = self.clock.now();
        let result = match listed {
            Ok(listed) => {
                let changed = listing::replace_listing(&mut transaction, id, &listed.tools, &listed.facts, now).await?;
                Ok(changed.unwrap_or_default())
            }
            Err(why) => {
                listing::mark_failing(&mut transaction, id, &why, now).await?;
                Err(why)
            }
        };
        store::commit(transaction).await?;
        Ok(result)
    }

    /// Lists a server over a connection of its own, or through its process, of which there is only one.
    async fn list(&self, server: &Server, settings: &Settings) -> Result<Listed, String> {
        if server.stdio.is_none() {
            return list_over_http(server, &self.pools, settings).await;
        }
        let (live, _) = self.processes.live(server, settings).await.map_err(|why| why.en.into_owned())?;
        list_with(&live.connection, settings, &Changes::default()).await
    }

    fn work(&self, server: ServerId) -> Arc<Work> {
        let mut works = self.works.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(works.entry(server).or_default())
    }
}

/// Lists a server over a connection of its own.
async fn list_over_http(server: &Server, pools: &Pools, settings: &Settings) -> Result<Listed, String> {
    let changes = Arc::new(Changes::default());
    let mut options = connection_options(server, settings);
    options.most_message_bytes = settings.max_list_bytes as usize;
    let place = endpoint(server).map_err(|error| open_error_words(&error))?;
    let inbound: Arc<dyn Inbound> = Arc::clone(&changes) as Arc<dyn Inbound>;
    let connection = Connection::open(pools.client(server), place, options, inbound).await;
    let connection = connection.map_err(|error| open_error_words(&error))?;
    let listed = list_with(&connection, settings, &changes).await;
    connection.close().await;
    listed
}

async fn list_with(connection: &Connection, settings: &Settings, changes: &Changes) -> Result<Listed, String> {
    let view = connection.view();
    let (name, version) = view.server();
    let facts = ServerFacts {
        protocol_version: connection.protocol_version().to_owned(),
        server_name: name.unwrap_or_default().into_owned(),
        server_version: version.unwrap_or_default().into_owned(),
        capabilities: view.capabilities.map_or("{}", |raw| raw.get()).to_owned(),
    };
    // A server with only resources or prompts is healthy and has no tools.
    let mut read_at = Instant::now();
    let Some(capability) = view.capability("tools") else { return Ok(Listed { tools: Vec::new(), facts, read_at }) };
    let grows = RawObject::parse(capability.get()).and_then(|tools| tools.boolean("listChanged")) == Some(true);
    let mut tools = tools(connection, settings).await?;
    let began = Instant::now();
    while grows && began.elapsed() < GROWS_FOR {
        changes.still_for(STILL).await;
        read_at = Instant::now();
        let again = self::tools(connection, settings).await?;
        let still = again == tools;
        tools = again;
        if still {
            break;
        }
    }
    Ok(Listed { tools, facts, read_at })
}

async fn tools(connection: &Connection, settings: &Settings) -> Result<Vec<ListedTool>, String> {
    let limits = ListLimits {
        items: settings.max_tools_per_server as usize,
        bytes: settings.max_list_bytes as usize,
        ..ListLimits::default()
    };
    let list = connection.list_all("tools/list", "tools", limits).await;
    let list = list.map_err(|error| list_error_words(&error))?;
    let listed = list.iter().filter_map(|definition| {
        let name = RawObject::parse(definition)?.string("name")?.into_owned();
        let fingerprint = hex(&Sha256::digest(definition.as_bytes()));
        Some(ListedTool { name, definition: definition.to_owned(), fingerprint })
    });
    Ok(listed.collect())
}

/// Hears that a list has changed while it is read.
#[derive(Default)]
struct Changes(Notify);

impl Changes {
    /// Returns when no change was announced for so long.
    async fn still_for(&self, pause: Duration) {
        let until = Instant::now() + GROWS_FOR;
        while timeout(pause, self.0.notified()).await.is_ok() && Instant::now() < until {}
    }
}

impl Inbound for Changes {
    fn notification(&self, notification: ServerNotification<'_>) {
        if notification.method == "notifications/tools/list_changed" {
            self.0.notify_one();
        }
    }

    fn request(&self, _: ServerRequest) -> Option<futures_util::future::BoxFuture<'static, Reply>> {
        None
    }
}

/// A connection that could not be opened, in words for an admin and the model.
pub(crate) fn open_error_words(error: &OpenError) -> String {
    match error {
        OpenError::Request(error) => request_error_words(error),
        other => other.to_string(),
    }
}

/// A list that could not be read, in words for an admin.
pub(crate) fn list_error_words(error: &ListError) -> String {
    match error {
        ListError::Request(error) => request_error_words(error),
        other => format!("its list cannot be used: {other}"),
    }
}

/// A request that failed, in words for an admin.
pub(crate) fn request_error_words(error: &RequestError) -> String {
    match error {
        RequestError::Unauthorized { .. } => {
            "it does not accept the credentials (401): check the server's headers".to_owned()
        }
        RequestError::Forbidden { .. } => "it refuses access (403): check what the credentials allow".to_owned(),
        RequestError::Http { status: 404, .. } => "there is nothing at this path (404): check the URL".to_owned(),
        other => gatehouse_types::shown::line(&other.to_string(), 500),
    }
}
