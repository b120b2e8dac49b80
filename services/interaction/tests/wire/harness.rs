//! A service for one test.

use std::sync::Arc;

use gatehouse_interaction::{Config, Error, serve};
use gatehouse_platform::{Context, auth::Scope, grpc};
use gatehouse_proto::interaction::v1::{
    self, AnswerInteractionRequest, ApprovalCard, ApprovalReply, CloseInteractionRequest, CreateInteractionRequest,
    Decision, GetInteractionRequest, Interaction, InteractionState, answer_interaction_request::Answer,
    create_interaction_request, interaction_service_client::InteractionServiceClient,
};
use gatehouse_store::{Keyring, api_keys};
use gatehouse_testkit::Database;
use gatehouse_types::{ApiKeyId, CallId, InteractionId, ReplicaId, SessionId, SystemClock};
use secrecy::SecretString;
use tokio::task::JoinHandle;
use tonic::{
    Code, Request, Response, Status,
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt as _;

const SERVICE_TOKEN: &str = "a-service-token-of-more-than-32-characters";

/// Who calls.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Role {
    Nobody,
    Sessions,
    Admin,
    Service,
}

impl Interceptor for Role {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let token = match self {
            Self::Nobody => return Ok(request),
            Self::Sessions => "ghk_console",
            Self::Admin => "ghk_admin",
            Self::Service => SERVICE_TOKEN,
        };
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        Ok(request)
    }
}

pub(crate) type Client = InteractionServiceClient<InterceptedService<Channel, Role>>;

/// A database with a session, a live replica, and API keys that are called `console` and `admin`.
pub(crate) struct World {
    pub(crate) session: SessionId,
    pub(crate) replica: ReplicaId,
    pub(crate) database: Database,
}

impl World {
    pub(crate) async fn new() -> Self {
        let database = Database::new().await;
        let world = Self { session: SessionId::new(), replica: ReplicaId::new(), database };
        world.add_session(world.session).await;
        world.sql("INSERT INTO replicas VALUES ($1, '', now(), now() + interval '1 day')", world.replica.uuid()).await;
        for (name, scope) in [("console", Scope::Sessions), ("admin", Scope::Admin)] {
            sqlx::query(
                "INSERT INTO api_keys (id, name, scope, hash, prefix, created_at) VALUES ($1, $2, $3, $4, '', now())",
            )
            .bind(ApiKeyId::new().uuid())
            .bind(name)
            .bind(if scope == Scope::Admin { "admin" } else { "sessions" })
            .bind(api_keys::hash(&format!("ghk_{name}")).as_slice())
            .execute(&world.database.pool())
            .await
            .unwrap();
        }
        world
    }

    /// A session, with a profile of its own.
    pub(crate) async fn add_session(&self, id: SessionId) {
        self.sql("INSERT INTO profiles VALUES ($1, 'p-' || $1::text, '', NULL, now(), now())", id.uuid()).await;
        self.sql(
            "INSERT INTO sessions (id, profile_id, engine, permission_mode, locale, epoch, created_at, updated_at)
             VALUES ($1, $1, 'other', 'ask', 'en', 1, now(), now())",
            id.uuid(),
        )
        .await;
    }

    /// Runs a statement about the thing with this id, and returns how many rows it touched.
    pub(crate) async fn sql(&self, statement: &'static str, id: uuid::Uuid) -> u64 {
        sqlx::query(statement).bind(id).execute(&self.database.pool()).await.unwrap().rows_affected()
    }

    pub(crate) async fn serve(&self) -> Service {
        Service::start(self, "127.0.0.1:0", None).await
    }

    /// A request for a card of the session, with nothing special.
    pub(crate) fn card(&self) -> CreateInteractionRequest {
        CreateInteractionRequest {
            id: InteractionId::new().to_string(),
            session_id: self.session.to_string(),
            call_id: CallId::new().to_string(),
            replica_id: self.replica.to_string(),
            server: "orders".to_owned(),
            tool: "refund_order".to_owned(),
            card: Some(create_interaction_request::Card::Approval(ApprovalCard {
                title: "Refund an order".to_owned(),
                arguments_json: r#"{"order":"A-1"}"#.to_owned(),
                arguments_bytes: 15,
                policy: "ask".to_owned(),
                may_remember: true,
                ..ApprovalCard::default()
            })),
            arguments_sha256: vec![1; 32],
            terms_sha256: vec![2; 32],
            timeout_sec: 600,
            ..CreateInteractionRequest::default()
        }
    }
}

/// A running service.
pub(crate) struct Service {
    pub(crate) context: Context,
    pub(crate) channel: Channel,
    pub(crate) address: String,
    serving: JoinHandle<Result<(), Error>>,
}

impl Service {
    /// One at this address that hears notices at `listen_url`.
    pub(crate) async fn start(world: &World, listen: &str, listen_url: Option<&str>) -> Self {
        let keyring = Arc::new(Keyring::parse(&Keyring::generate().unwrap()).unwrap());
        let token = Some(SecretString::from(SERVICE_TOKEN));
        let mut context = Context::new(world.database.pool(), Arc::new(SystemClock), keyring, token);
        context.listen_url = listen_url.map(SecretString::from);
        let config = Config { grpc: grpc::Config { listen: listen.parse().unwrap(), tls: None } };
        let serving = tokio::spawn(serve(context.clone(), config));
        let address = context.endpoints.get("interaction.grpc").await.to_string();
        let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
        Self { context, channel, address, serving }
    }

    pub(crate) fn client(&self, role: Role) -> Client {
        InteractionServiceClient::with_interceptor(self.channel.clone(), role)
    }

    /// Ends it and waits until it has ended.
    pub(crate) async fn stop(mut self) {
        self.context.shutdown.cancel();
        (&mut self.serving).await.unwrap().unwrap();
    }

    pub(crate) async fn create(&self, request: CreateInteractionRequest) -> Interaction {
        let made = self.client(Role::Service).create_interaction(request).await.unwrap().into_inner();
        made.interaction.unwrap()
    }

    pub(crate) async fn get(&self, id: &str) -> Interaction {
        let request = GetInteractionRequest { id: id.to_owned() };
        self.client(Role::Sessions).get_interaction(request).await.unwrap().into_inner().interaction.unwrap()
    }

    pub(crate) async fn answer(&self, id: &str, decision: Decision) -> v1::AnswerInteractionResponse {
        self.client(Role::Sessions).answer_interaction(reply(id, decision)).await.unwrap().into_inner()
    }

    pub(crate) async fn close(&self, id: &str, state: InteractionState) -> Interaction {
        let request = CloseInteractionRequest { id: id.to_owned(), state: state.into() };
        self.client(Role::Service).close_interaction(request).await.unwrap().into_inner().interaction.unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

pub(crate) fn reply(id: &str, decision: Decision) -> AnswerInteractionRequest {
    let reply = ApprovalReply { decision: decision.into(), reason: String::new() };
    AnswerInteractionRequest { id: id.to_owned(), answer: Some(Answer::Approval(reply)), answered_by: String::new() }
}

/// The approval card of a request.
pub(crate) fn approval(request: &mut CreateInteractionRequest) -> &mut ApprovalCard {
    match &mut request.card {
        Some(create_interaction_request::Card::Approval(card)) => card,
        None => panic!("the request has no card"),
    }
}

/// The fields that a refusal names, in order. Fails when it is not `INVALID_ARGUMENT`.
pub(crate) fn wrong_fields<T: std::fmt::Debug>(answer: Result<Response<T>, Status>) -> Vec<String> {
    let status = answer.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let violations = status.get_error_details().bad_request().unwrap().field_violations.clone();
    for violation in &violations {
        assert!(status.message().contains(&violation.field), "{status:?}");
        assert!(!violation.description.is_empty());
    }
    violations.into_iter().map(|violation| violation.field).collect()
}

/// The code of a refusal, which must say something and carry its reason.
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<Response<T>, Status>) -> Code {
    let status = answer.unwrap_err();
    assert!(!status.message().is_empty());
    assert_eq!(status.get_error_details().error_info().unwrap().domain, "gatehouse");
    status.code()
}
