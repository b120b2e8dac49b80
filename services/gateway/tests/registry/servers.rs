//! `ServerService`.

use gatehouse_proto::gateway::v1;
use tonic::Code;

use crate::harness::{Gateway, refused, url, wrong_fields};

fn new(name: &str) -> v1::CreateServerRequest {
    v1::CreateServerRequest { name: name.to_owned(), url: url(name), ..Default::default() }
}

fn headers(pairs: &[(&str, &str)]) -> std::collections::HashMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

const fn seconds(seconds: i64) -> prost_types::Duration {
    prost_types::Duration { seconds, nanos: 0 }
}

fn transport(server: &v1::Server) -> v1::StreamableHttp {
    let Some(v1::server::Transport::StreamableHttp(http)) = server.transport.clone() else { panic!("{server:?}") };
    http
}

async fn get(gateway: &Gateway, server: &str) -> Result<tonic::Response<v1::GetServerResponse>, tonic::Status> {
    gateway.servers().get_server(v1::GetServerRequest { server: server.to_owned() }).await
}

#[tokio::test]
async fn a_new_server_has_its_defaults_and_an_unknown_state() {
    let gateway = Gateway::start().await;
    let before = gateway.epoch().await;
    let server = gateway.server("orders").await;
    assert_eq!(server.name, "orders");
    assert!(server.enabled);
    assert_eq!(transport(&server), v1::StreamableHttp { url: url("orders"), header_names: Vec::new() });
    assert_eq!((server.connect_timeout, server.request_timeout), (Some(seconds(20)), Some(seconds(600))));
    assert_eq!((server.max_concurrency, server.tool_count), (256, 0));
    assert_eq!(server.status.as_ref().unwrap().state(), v1::ServerState::Unknown);
    assert_eq!(server.tools_updated_at, None);
    assert_eq!(server.created_at, server.updated_at);
    assert!(server.created_at.is_some());
    assert_eq!(get(&gateway, &server.id).await.unwrap().into_inner().server.unwrap(), server);
    assert_eq!(gateway.epoch().await.catalog, before.catalog + 1);
    assert_eq!(gateway.epoch().await.sessions, before.sessions);
}

#[tokio::test]
async fn every_wrong_field_of_a_new_server_is_named_at_once() {
    let gateway = Gateway::start().await;
    let request = v1::CreateServerRequest {
        request_id: "x".repeat(129),
        name: "Bad__Name".to_owned(),
        description: "x".repeat(1_001),
        url: "ftp://user:pass@example.com".to_owned(),
        headers: headers(&[("Host", "x"), ("X-Ok", "bad\nvalue")]),
        connect_timeout: Some(seconds(121)),
        request_timeout: Some(prost_types::Duration { seconds: -1, nanos: 0 }),
        max_concurrency: Some(0),
        disabled: false,
        mask_rules: vec!["card".to_owned()],
        stdio: None,
    };
    let mut named = wrong_fields(gateway.servers().create_server(request).await);
    named.sort();
    let expected = [
        "connect_timeout",
        "description",
        "headers[\"Host\"]",
        "headers[\"X-Ok\"]",
        "mask_rules[0]",
        "max_concurrency",
        "name",
        "request_id",
        "request_timeout",
        "url",
    ];
    assert_eq!(named, expected);
    assert!(gateway.dump("servers").await.is_empty());
}

#[tokio::test]
async fn a_server_is_found_by_id_and_by_name() {
    let gateway = Gateway::start().await;
    let server = gateway.server("orders").await;
    for key in [server.id.as_str(), "orders"] {
        assert_eq!(get(&gateway, key).await.unwrap().into_inner().server.unwrap().id, server.id);
    }
    assert_eq!(refused(get(&gateway, "other").await), Code::NotFound);
    assert_eq!(refused(get(&gateway, "00000000-0000-7000-8000-000000000000").await), Code::NotFound);
    assert_eq!(wrong_fields(get(&gateway, "").await), ["server"]);
    assert_eq!(wrong_fields(get(&gateway, "a\0b").await), ["server"]);
}

#[tokio::test]
async fn names_are_unique_also_when_a_dash_is_read_as_an_underscore() {
    let gateway = Gateway::start().await;
    gateway.server("order-system").await;
    for name in ["order-system", "order_system"] {
        assert_eq!(refused(gateway.servers().create_server(new(name)).await), Code::AlreadyExists);
    }
    let other = gateway.server("other").await;
    let rename = v1::UpdateServerRequest {
        server: other.id.clone(),
        name: Some("order_system".to_owned()),
        ..Default::default()
    };
    assert_eq!(refused(gateway.servers().update_server(rename).await), Code::AlreadyExists);
    assert_eq!(get(&gateway, &other.id).await.unwrap().into_inner().server.unwrap(), other);
}

#[tokio::test]
async fn the_same_request_registers_one_server_and_another_content_is_refused() {
    let gateway = Gateway::start().await;
    let request = v1::CreateServerRequest { request_id: "r1".to_owned(), ..new("orders") };
    let create = async |request: v1::CreateServerRequest| gateway.servers().create_server(request).await;
    let first = create(request.clone()).await.unwrap().into_inner().server.unwrap();
    assert_eq!(create(request.clone()).await.unwrap().into_inner().server.unwrap(), first);
    // Also when the server has changed since.
    let change =
        v1::UpdateServerRequest { server: first.id.clone(), name: Some("renamed".to_owned()), ..Default::default() };
    gateway.servers().update_server(change).await.unwrap();
    let again = create(request.clone()).await.unwrap().into_inner().server.unwrap();
    assert_eq!((again.id, again.name.as_str()), (first.id, "renamed"));
    let other = v1::CreateServerRequest { url: url("other"), ..request };
    let refusal = create(other).await.unwrap_err();
    assert_eq!(refusal.code(), Code::AlreadyExists);
    assert!(refusal.message().contains("request_id"));
}

#[tokio::test]
async fn equal_requests_that_race_register_one_server() {
    let gateway = Gateway::start().await;
    let request = v1::CreateServerRequest { request_id: "r1".to_owned(), ..new("orders") };
    let racing = (0..8).map(|_| {
        let mut client = gateway.servers();
        let request = request.clone();
        tokio::spawn(async move { client.create_server(request).await.unwrap().into_inner().server.unwrap().id })
    });
    let racing: Vec<_> = racing.collect();
    let mut ids = Vec::new();
    for racer in racing {
        ids.push(racer.await.unwrap());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(gateway.epoch().await.catalog, 2, "one change");
}

#[tokio::test]
async fn servers_are_listed_by_name_and_pages_stay_stable_under_inserts() {
    let gateway = Gateway::start().await;
    for name in ["b", "d", "a", "c"] {
        gateway.server(name).await;
    }
    let list = async |page_token: &str| {
        let request = v1::ListServersRequest { page_size: 2, page_token: page_token.to_owned() };
        gateway.servers().list_servers(request).await
    };
    let names = |page: &v1::ListServersResponse| -> Vec<String> {
        page.servers.iter().map(|server| server.name.clone()).collect()
    };
    let first = list("").await.unwrap().into_inner();
    assert_eq!(names(&first), ["a", "b"]);
    gateway.server("aa").await;
    gateway.server("bb").await;
    let second = list(&first.next_page_token).await.unwrap().into_inner();
    assert_eq!(names(&second), ["bb", "c"]);
    let third = list(&second.next_page_token).await.unwrap().into_inner();
    assert_eq!((names(&third), third.next_page_token.as_str()), (vec!["d".to_owned()], ""));
    assert_eq!(wrong_fields(list("bm90IGEgdG9rZW4").await), ["page_token"]);
    let wrong = v1::ListServersRequest { page_size: 501, page_token: "?".to_owned() };
    assert_eq!(wrong_fields(gateway.servers().list_servers(wrong).await), ["page_size", "page_token"]);
}

#[tokio::test]
async fn a_change_of_a_server_touches_only_what_is_set() {
    let gateway = Gateway::start().await;
    let request = v1::CreateServerRequest {
        headers: headers(&[("Authorization", "Bearer one"), ("X-Old", "old")]),
        description: "words".to_owned(),
        ..new("orders")
    };
    let server = gateway.servers().create_server(request).await.unwrap().into_inner().server.unwrap();
    let epoch = gateway.epoch().await.catalog;
    let update = async |request: v1::UpdateServerRequest| {
        let request = v1::UpdateServerRequest { server: "orders".to_owned(), ..request };
        gateway.servers().update_server(request).await.unwrap().into_inner().server.unwrap()
    };
    let same = update(v1::UpdateServerRequest::default()).await;
    assert_eq!((same, gateway.epoch().await.catalog), (server.clone(), epoch), "nothing set changes nothing");
    let changed = update(v1::UpdateServerRequest { enabled: Some(false), ..Default::default() }).await;
    let expected = v1::Server { enabled: false, updated_at: changed.updated_at, ..server };
    assert_eq!(changed, expected);
    assert!(changed.updated_at.unwrap().nanos > changed.created_at.unwrap().nanos);
    let changed = update(v1::UpdateServerRequest {
        set_headers: headers(&[("authorization", "Bearer two"), ("X-New", "new")]),
        remove_headers: vec!["x-old".to_owned(), "x-never".to_owned()],
        connect_timeout: Some(seconds(3)),
        max_concurrency: Some(7),
        description: Some(String::new()),
        ..Default::default()
    })
    .await;
    assert_eq!(transport(&changed).header_names, ["X-New", "authorization"]);
    assert_eq!((changed.connect_timeout, changed.request_timeout), (Some(seconds(3)), Some(seconds(600))));
    assert_eq!((changed.max_concurrency, changed.description.as_str()), (7, ""));
    assert_eq!(gateway.epoch().await.catalog, epoch + 2);
}

#[tokio::test]
async fn every_wrong_field_of_a_change_is_named_and_nothing_changes() {
    let gateway = Gateway::start().await;
    let server = gateway.server("orders").await;
    let request = v1::UpdateServerRequest {
        server: "orders".to_owned(),
        name: Some(String::new()),
        url: Some("nope".to_owned()),
        set_headers: headers(&[("mcp-session-id", "x"), ("X-A", "y")]),
        remove_headers: vec!["x-a".to_owned()],
        connect_timeout: Some(seconds(0)),
        max_concurrency: Some(10_001),
        ..Default::default()
    };
    let named = wrong_fields(gateway.servers().update_server(request).await);
    let expected =
        ["set_headers[\"mcp-session-id\"]", "remove_headers[0]", "name", "url", "connect_timeout", "max_concurrency"];
    assert_eq!(named, expected);
    let many: Vec<(String, String)> = (0..33).map(|place| (format!("x-{place}"), "v".to_owned())).collect();
    let half = |range: std::ops::Range<usize>| v1::UpdateServerRequest {
        server: "orders".to_owned(),
        set_headers: many[range].iter().cloned().collect(),
        ..Default::default()
    };
    gateway.servers().update_server(half(0..30)).await.unwrap();
    assert_eq!(wrong_fields(gateway.servers().update_server(half(30..33)).await), ["set_headers"]);
    let now = get(&gateway, "orders").await.unwrap().into_inner().server.unwrap();
    assert_eq!((transport(&now).header_names.len(), now.name), (30, server.name));
    let unknown = v1::UpdateServerRequest { server: "other".to_owned(), ..Default::default() };
    assert_eq!(refused(gateway.servers().update_server(unknown).await), Code::NotFound);
}

#[tokio::test]
async fn a_removed_server_leaves_its_profiles_and_frees_its_name() {
    let gateway = Gateway::start().await;
    gateway.server("orders").await;
    gateway.server("other").await;
    gateway.profile("all", &["orders", "other"]).await;
    let remove = || v1::DeleteServerRequest { server: "orders".to_owned() };
    gateway.servers().delete_server(remove()).await.unwrap();
    assert_eq!(refused(get(&gateway, "orders").await), Code::NotFound);
    assert_eq!(refused(gateway.servers().delete_server(remove()).await), Code::NotFound);
    let request = v1::GetProfileRequest { profile: "all".to_owned() };
    let profile = gateway.profiles().get_profile(request).await.unwrap().into_inner().profile.unwrap();
    assert_eq!(profile.servers.iter().map(|member| member.server.as_str()).collect::<Vec<_>>(), ["other"]);
    gateway.server("orders").await;
}
