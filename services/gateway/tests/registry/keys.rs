//! `ApiKeyService`.

use gatehouse_proto::gateway::v1::{self, ApiKeyScope};
use tonic::Code;

use crate::harness::{Gateway, refused, wrong_fields};

async fn create(gateway: &Gateway, name: &str, scope: ApiKeyScope) -> v1::CreateApiKeyResponse {
    let request = v1::CreateApiKeyRequest { name: name.to_owned(), scope: scope.into() };
    gateway.keys().create_api_key(request).await.unwrap().into_inner()
}

async fn revoke(gateway: &Gateway, key: &str) -> Result<tonic::Response<v1::RevokeApiKeyResponse>, tonic::Status> {
    gateway.keys().revoke_api_key(v1::RevokeApiKeyRequest { api_key: key.to_owned() }).await
}

#[tokio::test]
async fn a_key_is_shown_once_and_stored_as_a_hash() {
    let gateway = Gateway::start().await;
    let made = create(&gateway, "console", ApiKeyScope::Sessions).await;
    let key = made.api_key.unwrap();
    assert!(made.secret.starts_with("ghk_") && made.secret.len() == 47);
    assert!(made.secret.starts_with(&key.prefix) && key.prefix.len() == 10);
    assert_eq!((key.scope(), key.last_used_at, key.revoked_at), (ApiKeyScope::Sessions, None, None));
    assert!(!gateway.dump("api_keys").await.contains(&made.secret));
    let hash = gatehouse_store::api_keys::hash(&made.secret);
    let mut connection = gateway.state.pool.acquire().await.unwrap();
    let found = gatehouse_store::api_keys::find(&mut connection, &hash, gateway.state.now()).await.unwrap().unwrap();
    assert_eq!((found.id.to_string(), found.revoked), (key.id, false));
}

#[tokio::test]
async fn every_wrong_field_of_a_key_is_named_and_a_name_is_taken_until_it_is_revoked() {
    let gateway = Gateway::start().await;
    for (name, scope) in [("", 0), ("x\n", 7), (&*"x".repeat(65), 0)] {
        let request = v1::CreateApiKeyRequest { name: name.to_owned(), scope };
        assert_eq!(wrong_fields(gateway.keys().create_api_key(request).await), ["name", "scope"]);
    }
    create(&gateway, "one", ApiKeyScope::Sessions).await;
    let again = v1::CreateApiKeyRequest { name: "one".to_owned(), scope: ApiKeyScope::Admin.into() };
    assert_eq!(refused(gateway.keys().create_api_key(again.clone()).await), Code::AlreadyExists);
    revoke(&gateway, "one").await.unwrap();
    gateway.keys().create_api_key(again).await.unwrap();
}

#[tokio::test]
async fn keys_are_listed_newest_first_with_the_revoked_ones() {
    let gateway = Gateway::start().await;
    for name in ["a", "b", "c"] {
        create(&gateway, name, ApiKeyScope::Sessions).await;
    }
    revoke(&gateway, "b").await.unwrap();
    let list = async |token: &str| {
        let request = v1::ListApiKeysRequest { page_size: 2, page_token: token.to_owned() };
        gateway.keys().list_api_keys(request).await
    };
    let first = list("").await.unwrap().into_inner();
    create(&gateway, "d", ApiKeyScope::Sessions).await;
    let second = list(&first.next_page_token).await.unwrap().into_inner();
    let all: Vec<_> = first.api_keys.iter().chain(&second.api_keys).collect();
    assert_eq!(all.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["c", "b", "a"]);
    assert_eq!(all.iter().map(|key| key.revoked_at.is_some()).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(second.next_page_token, "");
    assert_eq!(wrong_fields(list("x").await), ["page_token"]);
}

#[tokio::test]
async fn the_last_admin_key_cannot_be_revoked() {
    let gateway = Gateway::start().await;
    let one = create(&gateway, "one", ApiKeyScope::Admin).await.api_key.unwrap();
    create(&gateway, "sessions", ApiKeyScope::Sessions).await;
    assert_eq!(refused(revoke(&gateway, "one").await), Code::FailedPrecondition);
    create(&gateway, "two", ApiKeyScope::Admin).await;
    let revoked = revoke(&gateway, &one.id).await.unwrap().into_inner().api_key.unwrap();
    assert!(revoked.revoked_at.is_some());
    let again = revoke(&gateway, &one.id).await.unwrap().into_inner().api_key.unwrap();
    assert_eq!(again, revoked, "revoking twice is no error");
    assert_eq!(refused(revoke(&gateway, "two").await), Code::FailedPrecondition);
    revoke(&gateway, "sessions").await.unwrap();
    assert_eq!(refused(revoke(&gateway, "nobody").await), Code::NotFound);
    assert_eq!(wrong_fields(revoke(&gateway, "").await), ["api_key"]);
}

#[tokio::test]
async fn admins_who_revoke_each_other_at_once_leave_one_key() {
    let gateway = Gateway::start().await;
    let names: Vec<String> = (0..6).map(|number| format!("admin-{number}")).collect();
    for name in &names {
        create(&gateway, name, ApiKeyScope::Admin).await;
    }
    let racing: Vec<_> = names
        .into_iter()
        .map(|name| {
            let mut client = gateway.keys();
            tokio::spawn(async move { client.revoke_api_key(v1::RevokeApiKeyRequest { api_key: name }).await })
        })
        .collect();
    let mut refusals = 0;
    for racer in racing {
        if let Err(status) = racer.await.unwrap() {
            assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
            refusals += 1;
        }
    }
    assert_eq!(refusals, 1);
}
