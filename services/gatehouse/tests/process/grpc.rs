//! Each service as a process of its own, over the wire.

use std::{
    process::Command,
    sync::{Arc, Mutex},
};

use axum::Router;
use bytes::Bytes;
use gatehouse_store::Keyring;
use gatehouse_testkit::{Database, eventually};
use http::Uri;
use secrecy::ExposeSecret as _;
use tonic::{Code, Request, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};

use crate::support::{Folder, Running, Up, command, get, output};

const SERVICE_TOKEN: &str = "planted-service-token-0123456789abcdef";
const ADMIN_KEY: &str = "ghk_planted-admin-key-0123456789abcdef-0123456";

async fn connect(address: &str) -> Channel {
    Channel::from_shared(format!("http://{}", address.trim_start_matches("http://"))).unwrap().connect().await.unwrap()
}

fn asking<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    request
}

async fn services(channel: Channel, token: &str) -> Result<Vec<String>, tonic::Status> {
    let message_request = Some(MessageRequest::ListServices(String::new()));
    let ask = tokio_stream::iter([ServerReflectionRequest { message_request, ..Default::default() }]);
    let answers = ServerReflectionClient::new(channel).server_reflection_info(asking(token, ask)).await?;
    let answer = answers.into_inner().message().await?.unwrap().message_response;
    let Some(MessageResponse::ListServicesResponse(list)) = answer else { panic!("{answer:?}") };
    let mut names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    names.sort();
    Ok(names)
}

fn service(name: &str, database: &Database, keyring: &str) -> Command {
    let mut command = command(&[name]);
    command.envs([("DATABASE_URL", database.url().as_str()), ("GATEHOUSE_KEYRING", keyring)]);
    command.envs([("GATEHOUSE_SERVICE_TOKEN", SERVICE_TOKEN), ("GATEHOUSE_ADMIN_KEY", ADMIN_KEY)]);
    command
}

#[tokio::test]
async fn each_leaf_is_healthy_reflects_only_itself_and_drains() {
    let (folder, database) = (Folder::new(), Database::new().await);
    let keyring = Keyring::generate().unwrap();
    for name in ["interaction", "oauth", "task-poller"] {
        let command = service(name, &database, keyring.expose_secret());
        let mut running = Running::start(command, folder.path().join(name));
        let channel = connect(&running.address(name).await).await;
        let ops = running.address("ops").await;
        HealthClient::new(channel.clone()).check(HealthCheckRequest::default()).await.unwrap();
        assert!(get(&ops, "/readyz").starts_with("HTTP/1.0 200"));
        let own = (name == "interaction").then_some("gatehouse.interaction.v1.InteractionService");
        let built_in = ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"];
        let expected: Vec<&str> = own.into_iter().chain(built_in).collect();
        assert_eq!(services(channel.clone(), SERVICE_TOKEN).await.unwrap(), expected);
        assert_eq!(services(channel.clone(), ADMIN_KEY).await.unwrap(), expected);
        assert_eq!(services(channel, "ghk_another").await.unwrap_err().code(), Code::Unauthenticated);
        let metrics = get(&ops, "/metrics");
        assert!(
            metrics.contains(r#"gatehouse_rpc_total{method="/grpc.health.v1.Health/Check",code="Ok"} 1"#),
            "{metrics}"
        );
        running.signal("TERM");
        assert_eq!(running.ended().await.code(), Some(0), "{}", running.printed());
    }
}

/// What a load balancer does: it asks until the process says that it is ready, and sends an engine at once.
#[tokio::test]
async fn a_lone_gateway_is_ready_only_when_engines_can_connect() {
    let (folder, database) = (Folder::new(), Database::new().await);
    let keyring = Keyring::generate().unwrap();
    let mut command = service("gateway", &database, keyring.expose_secret());
    command.env("GATEHOUSE_INTERACTION_URL", "http://127.0.0.1:1");
    let mut running = Running::start(command, folder.path().join("output"));
    let ops = running.address("ops").await;
    eventually("it is ready", async || get(&ops, "/readyz").starts_with("HTTP/1.0 200").then_some(())).await;
    let edge = running.listens("gateway.edge").unwrap_or_else(|| panic!("{}", running.printed()));
    let answer = get(&edge, "/mcp");
    assert!(answer.contains("the request names no host"), "{answer}");
    running.signal("TERM");
    assert_eq!(running.ended().await.code(), Some(0), "{}", running.printed());
}

#[tokio::test]
async fn up_tells_where_interaction_is_and_serves_it_on_loopback_without_tls() {
    let (folder, database) = (Folder::new(), Database::new().await);
    let signed = rcgen::generate_simple_self_signed(vec!["gatehouse.example".to_owned()]).unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (certificate, key) = (file("cert.pem", signed.cert.pem()), file("key.pem", signed.signing_key.serialize_pem()));
    let url = database.url();
    let variables = [
        ("DATABASE_URL", url.as_str()),
        ("GATEHOUSE_SERVICE_TOKEN", SERVICE_TOKEN),
        ("GATEHOUSE_GRPC_TLS_CERT", &certificate),
        ("GATEHOUSE_GRPC_TLS_KEY", &key),
    ];
    let up = Up::start(&folder, &variables).await;
    assert!(up.endpoint("grpc").starts_with("https://"));
    let served = services(connect(&up.endpoint("interaction")).await, SERVICE_TOKEN).await.unwrap();
    assert!(served.contains(&"gatehouse.interaction.v1.InteractionService".to_owned()), "{served:?}");

    // Beyond loopback only the operator knows the name that the certificate is for.
    let data = folder.path().join("other");
    let mut wrong = command(&["--data", data.to_str().unwrap(), "up"]);
    wrong.envs(variables).env("GATEHOUSE_INTERACTION_LISTEN", "0.0.0.0:0");
    let refused = output(wrong);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("GATEHOUSE_INTERACTION_URL: is not set"));
}

#[tokio::test]
async fn a_draining_process_is_not_ready_and_ends_its_streams() {
    let (folder, database) = (Folder::new(), Database::new().await);
    let keyring = Keyring::generate().unwrap();
    let command = service("oauth", &database, keyring.expose_secret());
    let mut running = Running::start(command, folder.path().join("oauth"));
    let channel = connect(&running.address("oauth").await).await;
    let mut watch = HealthClient::new(channel).watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    watch.message().await.unwrap();
    running.signal("TERM");
    let ended = eventually("the stream ended", async || watch.message().await.map_or_else(Some, |_| None)).await;
    assert_eq!(ended.code(), Code::Unavailable);
    assert_eq!(running.ended().await.code(), Some(0), "{}", running.printed());
}

#[tokio::test]
async fn a_service_that_starts_before_its_schema_waits_for_migrate() {
    let (folder, database) = (Folder::new(), Database::empty().await);
    let keyring = Keyring::generate().unwrap();
    let mut running =
        Running::start(service("interaction", &database, keyring.expose_secret()), folder.path().join("output"));
    eventually("it waits", async || running.printed().contains("waiting for the schema").then_some(())).await;
    let mut migrate = command(&["migrate"]);
    migrate.env("DATABASE_URL", database.url());
    let migrated = output(migrate);
    assert!(migrated.status.success(), "{migrated:?}");
    running.address("interaction").await;
    running.signal("INT");
    assert_eq!(running.ended().await.code(), Some(0));
}

#[tokio::test]
async fn no_secret_is_in_any_line_that_a_process_prints_however_much_it_logs() {
    let folder = Folder::new();
    let keyring = Keyring::generate().unwrap();
    let planted = [
        ("GATEHOUSE_KEYRING", keyring.expose_secret()),
        ("GATEHOUSE_SERVICE_TOKEN", SERVICE_TOKEN),
        ("GATEHOUSE_ADMIN_KEY", ADMIN_KEY),
        ("GATEHOUSE_LOG", "trace"),
    ];
    let mut up = Up::start(&folder, &planted).await;
    let channel = connect(&up.endpoint("grpc")).await;
    services(channel.clone(), SERVICE_TOKEN).await.unwrap();
    services(channel.clone(), ADMIN_KEY).await.unwrap();
    services(channel, "ghk_planted-unknown-key").await.unwrap_err();
    get(&up.endpoint("ops"), "/metrics");
    up.running.signal("INT");
    assert_eq!(up.running.ended().await.code(), Some(0));
    let printed = up.running.printed();
    assert!(printed.lines().count() > 100, "it logs at trace: {printed}");
    let key = keyring.expose_secret().split_once(':').unwrap().1;
    for secret in [key, SERVICE_TOKEN, ADMIN_KEY, "ghk_planted-unknown-key"] {
        let line = printed.lines().find(|line| line.contains(secret));
        assert_eq!(line, None);
    }
}

#[tokio::test]
async fn spans_reach_the_collector_under_the_trace_of_the_caller() {
    let received = Arc::new(Mutex::new(Vec::<u8>::new()));
    let into = received.clone();
    let export = async move |path: Uri, body: Bytes| {
        assert_eq!(path.path(), "/opentelemetry.proto.collector.trace.v1.TraceService/Export");
        into.lock().unwrap().extend_from_slice(&body);
        [("content-type", "application/grpc"), ("grpc-status", "0")]
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let collector = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, Router::new().fallback(export)).into_future());

    let (folder, database) = (Folder::new(), Database::new().await);
    let keyring = Keyring::generate().unwrap();
    let mut command = service("oauth", &database, keyring.expose_secret());
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    let mut running = Running::start(command, folder.path().join("output"));
    let channel = connect(&running.address("oauth").await).await;
    let mut request = Request::new(HealthCheckRequest::default());
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    request.metadata_mut().insert("traceparent", traceparent.parse().unwrap());
    HealthClient::new(channel).check(request).await.unwrap();
    running.signal("TERM");
    assert_eq!(running.ended().await.code(), Some(0), "{}", running.printed());
    let trace = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes();
    let received = received.lock().unwrap();
    assert!(received.windows(16).any(|window| window == trace), "{} bytes", received.len());
    assert!(received.windows(15).any(|window| window == b"gatehouse-oauth"));
}
