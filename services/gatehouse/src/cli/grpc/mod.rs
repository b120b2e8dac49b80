//! The connection to the gateway or to interaction. The only place of the command, with [`super::convert`], that knows gRPC.

mod status;

use std::{future::Future, time::Duration};

use gatehouse_proto::gateway::v1::{
    api_key_service_client::ApiKeyServiceClient, audit_service_client::AuditServiceClient,
    call_service_client::CallServiceClient, file_service_client::FileServiceClient,
    profile_service_client::ProfileServiceClient, server_service_client::ServerServiceClient,
    session_service_client::SessionServiceClient, settings_service_client::SettingsServiceClient,
    tool_service_client::ToolServiceClient,
};
use gatehouse_proto::interaction::v1::interaction_service_client::InteractionServiceClient;
use secrecy::ExposeSecret as _;
use tonic::{
    Request, Response, Status, Streaming,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint},
};

use super::{
    discover::{self, Target},
    failure::{Code, Failure},
    globals::Globals,
};

/// Longest wait for the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a silent connection is asked whether it still lives, and how long for an answer: a call may take hours.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Longest wait for an answer, where none was given.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest wait for what makes the gateway ask a server: its own bound is 120 s for connecting and as much for lists.
const SLOW_TIMEOUT: Duration = Duration::from_mins(5);
/// Largest answer taken: the largest result that the settings allow, with room.
const MAX_ANSWER_BYTES: usize = 320 << 20;

pub(crate) type Service = InterceptedService<Channel, Credentials>;

/// A connection to the gateway.
#[derive(Clone)]
pub(crate) struct Client {
    channel: Channel,
    credentials: Credentials,
    /// Where the key was looked for, for the words of a refusal.
    looked: String,
    given: Option<Duration>,
}

/// What goes with each request: the key and the deadline.
#[derive(Clone)]
pub(crate) struct Credentials {
    bearer: Option<MetadataValue<Ascii>>,
    timeout: Option<Duration>,
}

impl Interceptor for Credentials {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(bearer) = &self.bearer {
            request.metadata_mut().insert("authorization", bearer.clone());
        }
        if let Some(timeout) = self.timeout {
            request.set_timeout(timeout);
        }
        Ok(request)
    }
}

impl Client {
    /// Connects, so that a server that is not there is told from one that refuses.
    pub(crate) async fn connect(target: &Target, globals: &Globals) -> Result<Self, Failure> {
        let endpoint = endpoint(target, globals)?;
        let bearer = target.key.as_ref().map(|key| {
            let mut value = MetadataValue::try_from(format!("Bearer {}", key.expose_secret()))?;
            value.set_sensitive(true);
            Ok::<_, tonic::metadata::errors::InvalidMetadataValue>(value)
        });
        let bearer = bearer.transpose().map_err(|_| Failure::usage("the API key has characters that no key has"))?;
        let channel = endpoint.connect().await.map_err(|error| status::unreachable(target, &error))?;
        let credentials = Credentials { bearer, timeout: Some(globals.timeout.unwrap_or(TIMEOUT)) };
        Ok(Self { channel, credentials, looked: target.looked.clone(), given: globals.timeout })
    }

    /// The same connection for requests that make the gateway ask a server.
    #[must_use]
    pub(crate) fn slow(&self) -> Self {
        self.with_timeout(Some(self.given.unwrap_or(SLOW_TIMEOUT)))
    }

    /// The same connection for calls, which have no deadline of their own.
    #[must_use]
    pub(crate) fn endless(&self) -> Self {
        self.with_timeout(self.given)
    }

    fn with_timeout(&self, timeout: Option<Duration>) -> Self {
        Self { credentials: Credentials { timeout, ..self.credentials.clone() }, ..self.clone() }
    }

    /// Waits for the answer of one RPC and puts a refusal into words.
    pub(crate) async fn answer<T>(&self, rpc: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, Failure> {
        rpc.await.map(Response::into_inner).map_err(|status| self.failure(&status))
    }

    /// The next message of a stream; none at its end.
    pub(crate) async fn next<T>(&self, stream: &mut Streaming<T>) -> Result<Option<T>, Failure> {
        stream.message().await.map_err(|status| self.failure(&status))
    }

    fn failure(&self, status: &Status) -> Failure {
        status::failure(status, &self.looked, self.credentials.bearer.is_some())
    }

    /// The registry of servers.
    pub(crate) fn servers(&self) -> ServerServiceClient<Service> {
        ServerServiceClient::new(self.service()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// The cached tools.
    pub(crate) fn tools(&self) -> ToolServiceClient<Service> {
        ToolServiceClient::new(self.service()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// The profiles.
    pub(crate) fn profiles(&self) -> ProfileServiceClient<Service> {
        ProfileServiceClient::new(self.service()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// The sessions.
    pub(crate) fn sessions(&self) -> SessionServiceClient<Service> {
        SessionServiceClient::new(self.service()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// Calls of tools.
    pub(crate) fn calls(&self) -> CallServiceClient<Service> {
        CallServiceClient::new(self.service()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// The record of calls.
    pub(crate) fn audit(&self) -> AuditServiceClient<Service> {
        AuditServiceClient::new(self.service()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// Files of results.
    pub(crate) fn files(&self) -> FileServiceClient<Service> {
        FileServiceClient::new(self.service()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// The settings.
    pub(crate) fn settings(&self) -> SettingsServiceClient<Service> {
        SettingsServiceClient::new(self.service()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// Cards; at interaction.
    pub(crate) fn interactions(&self) -> InteractionServiceClient<Service> {
        InteractionServiceClient::new(self.service()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    /// The API keys.
    pub(crate) fn keys(&self) -> ApiKeyServiceClient<Service> {
        ApiKeyServiceClient::new(self.service()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }

    fn service(&self) -> Service {
        InterceptedService::new(self.channel.clone(), self.credentials.clone())
    }
}

fn endpoint(target: &Target, globals: &Globals) -> Result<Endpoint, Failure> {
    let wrong = |_| discover::no_url(target.service);
    let endpoint = Endpoint::from_shared(target.endpoint.clone()).map_err(wrong)?;
    let endpoint = endpoint.connect_timeout(CONNECT_TIMEOUT).user_agent("gatehouse-cli").map_err(wrong)?;
    let endpoint = endpoint.http2_keep_alive_interval(KEEP_ALIVE).keep_alive_timeout(KEEP_ALIVE);
    if !target.endpoint.starts_with("https://") {
        return match &globals.ca {
            Some(_) => Err(Failure::usage("--ca is for https endpoints, and this one is http")),
            None => Ok(endpoint),
        };
    }
    let tls = match &globals.ca {
        Some(file) => {
            let pem = std::fs::read(file).map_err(|error| Failure::file("read", file, &error))?;
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem))
        }
        None => ClientTlsConfig::new().with_native_roots(),
    };
    endpoint.tls_config(tls).map_err(|error| {
        Failure::new(Code::FailedPrecondition, format!("TLS cannot be set up: {}", status::chain(&error)))
            .next("give --ca with the PEM file of the certificate authority that signed the server's certificate")
    })
}

/// All pages of a list. `page` gets a page token and returns the items and the next token; an empty one ends it.
pub(crate) async fn pages<T, F>(
    limit: Option<usize>,
    mut page: impl FnMut(String) -> F,
) -> Result<(Vec<T>, String), Failure>
where
    F: Future<Output = Result<(Vec<T>, String), Failure>>,
{
    let mut all = Vec::new();
    let mut token = String::new();
    loop {
        let (items, next) = page(token.clone()).await?;
        all.extend(items);
        let is_enough = limit.is_some_and(|limit| all.len() >= limit);
        // The same token again would go on for ever.
        if next.is_empty() || next == token || is_enough {
            return Ok((all, next));
        }
        token = next;
    }
}
