//! Values of headers go in and never come out.

use gatehouse_gateway::store;
use gatehouse_proto::gateway::v1;
use gatehouse_store::Keyring;
use secrecy::ExposeSecret as _;
use tonic::Code;

use crate::harness::{Gateway, url};

const SECRET: &str = "Bearer hidden-value";

fn with_header(name: &str, value: &str) -> v1::CreateServerRequest {
    let headers = [(name.to_owned(), value.to_owned())].into();
    v1::CreateServerRequest { name: "orders".to_owned(), url: url("orders"), headers, ..Default::default() }
}

#[tokio::test]
async fn a_headers_value_is_in_no_answer_and_in_no_column() {
    let gateway = Gateway::start().await;
    let created = gateway.servers().create_server(with_header("Authorization", SECRET)).await.unwrap().into_inner();
    let key = || "orders".to_owned();
    let got = gateway.servers().get_server(v1::GetServerRequest { server: key() }).await.unwrap().into_inner();
    let listed = gateway.servers().list_servers(v1::ListServersRequest::default()).await.unwrap().into_inner();
    let update = v1::UpdateServerRequest {
        server: key(),
        set_headers: [("X-Second".to_owned(), "hidden-value-2".to_owned())].into(),
        ..Default::default()
    };
    let updated = gateway.servers().update_server(update).await.unwrap().into_inner();
    let answers = format!("{created:?} {got:?} {listed:?} {updated:?}");
    assert!(answers.contains("Authorization") && !answers.contains("hidden-value"));
    let sealed = gateway.sealed_headers(&created.server.unwrap().id).await.unwrap();
    assert!(!sealed.windows(6).any(|window| window == b"hidden"));
    assert!(!gateway.dump("servers").await.contains("hidden-value"));
}

#[tokio::test]
async fn sealed_values_open_as_they_were_set_and_only_for_their_server() {
    let gateway = Gateway::start().await;
    let created = gateway.servers().create_server(with_header("Authorization", SECRET)).await.unwrap().into_inner();
    let id = created.server.unwrap().id;
    let sealed = gateway.sealed_headers(&id).await;
    let keyring = &gateway.state.keyring;
    let opened = store::headers::open(keyring, id.parse().unwrap(), sealed.as_deref()).unwrap();
    let pairs: Vec<_> = opened.iter().map(|(name, value)| (name, value.expose_secret())).collect();
    assert_eq!(pairs, [("Authorization", SECRET)]);
    assert!(!format!("{opened:?}").contains("hidden"));
    let other = gateway.server("other").await.id;
    let moved = store::headers::open(keyring, other.parse().unwrap(), sealed.as_deref());
    assert!(!format!("{:?}", moved.unwrap_err()).contains("hidden"));
}

#[tokio::test]
async fn a_wrong_header_or_url_is_refused_without_its_value() {
    let gateway = Gateway::start().await;
    let wrong = [
        with_header("Host", "hidden-value"),
        with_header("X-A", "hidden-value\n"),
        with_header("hidden-value in the wrong place", "x"),
        v1::CreateServerRequest { url: "https://user:hidden-value@example.com".to_owned(), ..with_header("X-A", "x") },
        v1::CreateServerRequest { url: "hidden-value".to_owned(), ..with_header("X-A", "x") },
    ];
    for request in wrong {
        let status = gateway.servers().create_server(request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        let details = String::from_utf8_lossy(status.details()).into_owned();
        assert!(!format!("{status:?}{details}").contains("hidden-value"), "{status:?}");
    }
}

#[tokio::test]
async fn headers_sealed_with_a_lost_key_can_be_replaced_and_the_refusal_says_how() {
    let gateway = Gateway::start().await;
    let created = gateway.servers().create_server(with_header("Authorization", SECRET)).await.unwrap().into_inner();
    let id = created.server.unwrap().id;
    let lost = Keyring::parse(&Keyring::generate().unwrap()).unwrap();
    let headers =
        store::headers::open(&gateway.state.keyring, id.parse().unwrap(), gateway.sealed_headers(&id).await.as_deref())
            .unwrap();
    let sealed = store::headers::seal(&lost, id.parse().unwrap(), &headers).unwrap().unwrap();
    gateway.put_sealed_headers(&id, &sealed).await;
    let set = async |name: &str| {
        let set_headers = [(name.to_owned(), "new".to_owned())].into();
        let request = v1::UpdateServerRequest { server: id.clone(), set_headers, ..Default::default() };
        gateway.servers().update_server(request).await
    };
    let refusal = set("X-Other").await.unwrap_err();
    assert_eq!(refusal.code(), Code::FailedPrecondition);
    assert!(refusal.message().contains("Authorization"));
    set("authorization").await.unwrap();
    set("X-Other").await.unwrap();
}
