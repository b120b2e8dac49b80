//! A gRPC server over the wire: credentials, deadlines, panics, drain, TLS.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod grpc_support;

use std::time::Duration;

use gatehouse_platform::{
    auth::Scope,
    grpc::{self, Server, peer},
};
use gatehouse_proto::gateway::v1::{
    ListSettingsRequest, UpdateSettingsRequest, settings_service_client::SettingsServiceClient,
};
use gatehouse_testkit::{Database, eventually};
use grpc_support::{Authority, SERVICE_TOKEN, add_key, asking, config, context, start};
use tokio::time::Instant;
use tonic::{
    Code, Request,
    transport::{Channel, ClientTlsConfig, Endpoint},
};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};
use tonic_types::StatusExt as _;

type Settings = SettingsServiceClient<Channel>;

async fn code_with(client: &mut Settings, authorization: Option<&str>) -> Code {
    let mut request = Request::new(ListSettingsRequest {});
    if let Some(value) = authorization {
        request.metadata_mut().insert("authorization", value.parse().unwrap());
    }
    client.list_settings(request).await.map_or_else(|status| status.code(), |_| Code::Ok)
}

#[tokio::test]
async fn without_a_known_credential_nothing_but_health_answers() {
    let database = Database::new().await;
    let served = start(&context(&database)).await;
    let mut client = Settings::new(served.channel.clone());
    for wrong in [None, Some(""), Some("Bearer"), Some("Bearer x"), Some("Bearer ghk_unknown"), Some("Basic Z2hrX3g6")]
    {
        assert_eq!(code_with(&mut client, wrong).await, Code::Unauthenticated, "{wrong:?}");
    }
    let almost = format!("Bearer {SERVICE_TOKEN}x");
    assert_eq!(code_with(&mut client, Some(&almost)).await, Code::Unauthenticated);

    let status = client.list_settings(ListSettingsRequest {}).await.unwrap_err();
    assert_eq!(status.get_error_details().error_info().unwrap().reason, "UNAUTHENTICATED");
    assert!(status.message().contains("gatehouse keys create"));
    let mut reflection = ServerReflectionClient::new(served.channel.clone());
    let asked = reflection.server_reflection_info(tokio_stream::iter([]));
    assert_eq!(asked.await.unwrap_err().code(), Code::Unauthenticated);
    HealthClient::new(served.channel.clone()).check(HealthCheckRequest::default()).await.unwrap();
}

#[tokio::test]
async fn an_api_key_and_the_service_token_are_known_and_the_scope_decides() {
    let database = Database::new().await;
    let served = start(&context(&database)).await;
    let mut client = Settings::new(served.channel.clone());
    add_key(&database, "ghk_admin", Scope::Admin).await;
    add_key(&database, "ghk_sessions", Scope::Sessions).await;
    for (token, name, update) in [
        ("ghk_admin", "ghk_admin", Code::Ok),
        ("ghk_sessions", "ghk_sessions", Code::PermissionDenied),
        (SERVICE_TOKEN, "service", Code::Ok),
    ] {
        let listed = client.list_settings(asking(token, ListSettingsRequest {})).await.unwrap().into_inner();
        assert_eq!(listed.settings[0].key, name);
        let updated = client.update_settings(asking(token, UpdateSettingsRequest::default())).await;
        assert_eq!(updated.map_or_else(|status| status.code(), |_| Code::Ok), update, "{token}");
    }
}

#[tokio::test]
async fn a_revoked_key_stops_working_within_a_second_and_its_last_use_is_recorded() {
    let database = Database::new().await;
    let served = start(&context(&database)).await;
    let mut client = Settings::new(served.channel.clone());
    add_key(&database, "ghk_admin", Scope::Admin).await;
    assert_eq!(code_with(&mut client, Some("Bearer ghk_admin")).await, Code::Ok);
    let used: bool =
        sqlx::query_scalar("SELECT last_used_at IS NOT NULL FROM api_keys").fetch_one(&database.pool()).await.unwrap();
    assert!(used);
    sqlx::query("UPDATE api_keys SET revoked_at = now()").execute(&database.pool()).await.unwrap();
    let revoked = Instant::now();
    eventually("the key is refused", async || {
        (code_with(&mut client, Some("Bearer ghk_admin")).await == Code::Unauthenticated).then_some(())
    })
    .await;
    assert!(revoked.elapsed() < Duration::from_millis(1_500), "{:?}", revoked.elapsed());
}

#[tokio::test]
async fn a_database_that_is_gone_is_unavailable_and_not_a_wrong_credential() {
    let database = Database::new().await;
    let context = context(&database);
    let served = start(&context).await;
    context.pool.close().await;
    let mut client = Settings::new(served.channel.clone());
    assert_eq!(code_with(&mut client, Some("Bearer ghk_admin")).await, Code::Unavailable);
    assert_eq!(code_with(&mut client, Some(&format!("Bearer {SERVICE_TOKEN}"))).await, Code::Ok);
}

#[tokio::test]
async fn a_callers_deadline_ends_a_handler_that_hangs_and_the_bound_is_free_again() {
    let database = Database::new().await;
    let served = start(&context(&database)).await;
    let mut client = Settings::new(served.channel.clone());
    let mut request = asking(SERVICE_TOKEN, ListSettingsRequest {});
    request.metadata_mut().insert("probe", "hang".parse().unwrap());
    request.set_timeout(Duration::from_millis(300));
    let status = client.list_settings(request).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(status.get_error_details().error_info().unwrap().reason, "DEADLINE_EXCEEDED");
    eventually("the handler was dropped", async || (served.probe.hanging() == 0).then_some(())).await;
}

#[tokio::test]
async fn a_panic_is_an_internal_error_without_its_words_and_the_process_goes_on() {
    let database = Database::new().await;
    let served = start(&context(&database)).await;
    let mut client = Settings::new(served.channel.clone());
    let mut request = asking(SERVICE_TOKEN, ListSettingsRequest {});
    request.metadata_mut().insert("probe", "panic".parse().unwrap());
    let status = client.list_settings(request).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    assert!(!format!("{status:?}").contains("inner words"), "{status:?}");
    assert_eq!(code_with(&mut client, Some(&format!("Bearer {SERVICE_TOKEN}"))).await, Code::Ok);
}

#[tokio::test]
async fn a_message_above_the_bound_is_refused_and_one_below_is_taken() {
    let database = Database::new().await;
    let served = start(&context(&database)).await;
    let mut client = Settings::new(served.channel.clone());
    let with = |bytes: usize| {
        asking(SERVICE_TOKEN, UpdateSettingsRequest { reset: vec!["x".repeat(bytes)], ..Default::default() })
    };
    client.update_settings(with(grpc::MAX_DECODING_BYTES - 100)).await.unwrap();
    assert_eq!(client.update_settings(with(grpc::MAX_DECODING_BYTES)).await.unwrap_err().code(), Code::OutOfRange);
}

#[tokio::test]
async fn reflection_lists_what_is_served_and_nothing_else() {
    let database = Database::new().await;
    let served = start(&context(&database)).await;
    let ask = ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices(String::new())),
        ..Default::default()
    };
    let mut client = ServerReflectionClient::new(served.channel.clone());
    let answers = client.server_reflection_info(asking(SERVICE_TOKEN, tokio_stream::iter([ask]))).await.unwrap();
    let answer = answers.into_inner().message().await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(list) = answer else { panic!("{answer:?}") };
    let mut names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    names.sort();
    let expected =
        ["gatehouse.gateway.v1.SettingsService", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn shutdown_ends_streams_with_a_status_lets_requests_finish_and_takes_no_new_ones() {
    let database = Database::new().await;
    let context = context(&database);
    let served = start(&context).await;
    let mut watch =
        HealthClient::new(served.channel.clone()).watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    watch.message().await.unwrap();

    let mut client = Settings::new(served.channel.clone());
    let mut request = asking(SERVICE_TOKEN, ListSettingsRequest {});
    request.metadata_mut().insert("probe", "hang".parse().unwrap());
    let pending = tokio::spawn(async move { client.list_settings(request).await });
    eventually("the request runs", async || (served.probe.hanging() == 1).then_some(())).await;

    context.shutdown.cancel();
    let ended = loop {
        match watch.message().await {
            Ok(Some(_)) => {}
            other => break other,
        }
    };
    assert_eq!(ended.unwrap_err().code(), Code::Unavailable);
    let address = served.running.address();
    eventually("no new connection is taken", async || tokio::net::TcpStream::connect(address).await.err()).await;
    served.probe.release();
    pending.await.unwrap().unwrap();
    served.running.wait().await.unwrap();
}

#[tokio::test]
async fn plain_grpc_beyond_loopback_is_refused_in_words_on_both_sides() {
    let database = Database::new().await;
    let config = grpc::Config { listen: "0.0.0.0:0".parse().unwrap(), tls: None };
    let error = Server::new("test", config).start(&context(&database)).await.unwrap_err();
    assert!(matches!(error, grpc::Error::PlainBeyondLoopback(_)));
    assert!(error.to_string().contains("GATEHOUSE_GRPC_TLS_CERT"), "{error}");

    let config = peer::Config { url: "http://10.1.2.3:7301".parse().unwrap(), tls: None, service_token: None };
    assert!(matches!(peer::channel(&config), Err(peer::Error::PlainBeyondLoopback(_))));
    let config = peer::Config { url: "https://10.1.2.3:7301".parse().unwrap(), tls: None, service_token: None };
    assert!(matches!(peer::channel(&config), Err(peer::Error::NoAuthority(_))));
}

#[tokio::test]
async fn with_tls_a_certificate_of_the_authority_is_the_service_and_any_other_is_nothing() {
    let database = Database::new().await;
    let (authority, stranger) = (Authority::new(), Authority::new());
    let served = grpc_support::start_with(&context(&database), config(Some(authority.server_tls()))).await;
    let url = format!("https://localhost:{}", served.running.address().port());

    let with = async |own, service_token: Option<&str>| {
        let tls = grpc::tls::ClientTls { ca: authority.pem(), own };
        let config =
            peer::Config { url: url.parse().unwrap(), tls: Some(tls), service_token: service_token.map(Into::into) };
        let mut client = SettingsServiceClient::new(peer::channel(&config).unwrap());
        client.list_settings(ListSettingsRequest {}).await
    };
    let listed = with(Some(authority.key_pair("gateway")), None).await.unwrap().into_inner();
    assert_eq!(listed.settings[0].key, "service");
    assert_eq!(with(None, None).await.unwrap_err().code(), Code::Unauthenticated);
    with(None, Some(SERVICE_TOKEN)).await.unwrap();
    // The handshake fails; how the client's transport words that is its own affair.
    with(Some(stranger.key_pair("gateway")), None).await.unwrap_err();

    let tls = ClientTlsConfig::new().ca_certificate(tonic::transport::Certificate::from_pem(stranger.pem()));
    let endpoint = Endpoint::from_shared(url).unwrap().tls_config(tls).unwrap();
    endpoint.connect().await.unwrap_err();
}

#[tokio::test]
async fn a_peer_channel_shows_the_token_names_a_deadline_and_finds_a_restarted_server_again() {
    let database = Database::new().await;
    let context_one = context(&database);
    let served = start(&context_one).await;
    let address = served.running.address();
    let config = peer::Config {
        url: format!("http://{address}").parse().unwrap(),
        tls: None,
        service_token: Some(SERVICE_TOKEN.into()),
    };
    assert!(!format!("{config:?}").contains(SERVICE_TOKEN));
    let mut client = SettingsServiceClient::new(peer::channel(&config).unwrap());
    let listed = client.list_settings(ListSettingsRequest {}).await.unwrap().into_inner();
    assert_eq!((listed.settings[0].key.as_str(), listed.settings[0].value_json.as_str()), ("service", "30000000u"));

    context_one.shutdown.cancel();
    served.running.wait().await.unwrap();
    let config = grpc::Config { listen: address, tls: None };
    let _again = grpc_support::start_with(&context(&database), config).await;
    eventually("the channel is connected again", async || client.list_settings(ListSettingsRequest {}).await.ok())
        .await;
}
