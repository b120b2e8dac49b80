//! `ProfileService`.

use gatehouse_proto::gateway::v1;
use tonic::Code;

use crate::harness::{Gateway, member, refused, wrong_fields};

fn some(server: &str, tools: &[&str]) -> v1::ProfileServer {
    let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    v1::ProfileServer { server: server.to_owned(), tools, only_tools: true }
}

async fn get(gateway: &Gateway, profile: &str) -> Result<tonic::Response<v1::GetProfileResponse>, tonic::Status> {
    gateway.profiles().get_profile(v1::GetProfileRequest { profile: profile.to_owned() }).await
}

#[tokio::test]
async fn a_profile_holds_servers_with_all_or_some_of_their_tools() {
    let gateway = Gateway::start().await;
    let b = gateway.server("b").await;
    for name in ["a", "c"] {
        gateway.server(name).await;
    }
    let epoch = gateway.epoch().await.catalog;
    let ignored = v1::ProfileServer { tools: vec!["not-counted".to_owned()], ..member("c") };
    let request = v1::CreateProfileRequest {
        name: "support".to_owned(),
        description: "for people".to_owned(),
        servers: vec![ignored, some(&b.id, &["t2", "t1"]), some("a", &[])],
        ..Default::default()
    };
    let profile = gateway.profiles().create_profile(request).await.unwrap().into_inner().profile.unwrap();
    assert_eq!(profile.servers, [some("a", &[]), some("b", &["t2", "t1"]), member("c")]);
    assert_eq!(gateway.epoch().await.catalog, epoch + 1);
    assert_eq!(get(&gateway, "support").await.unwrap().into_inner().profile.unwrap(), profile);
}

#[tokio::test]
async fn every_wrong_field_of_a_profile_is_named_at_once_and_so_is_every_unknown_server() {
    let gateway = Gateway::start().await;
    let a = gateway.server("a").await;
    let request = v1::CreateProfileRequest {
        request_id: "r\n".to_owned(),
        name: "Not Good".to_owned(),
        description: "x".repeat(1_001),
        servers: vec![member(""), some("a", &["", "ok"])],
    };
    let named = wrong_fields(gateway.profiles().create_profile(request).await);
    assert_eq!(named, ["request_id", "name", "description", "servers[0].server", "servers[1].tools[0]"]);
    let request = v1::CreateProfileRequest {
        name: "good".to_owned(),
        servers: vec![member("no-1"), member("a"), member("no-2"), member(&a.id)],
        ..Default::default()
    };
    let named = wrong_fields(gateway.profiles().create_profile(request).await);
    assert_eq!(named, ["servers[0]", "servers[2]", "servers[3]"]);
    assert_eq!(refused(get(&gateway, "good").await), Code::NotFound, "nothing was made");
}

#[tokio::test]
async fn a_profile_is_found_by_id_and_by_name() {
    let gateway = Gateway::start().await;
    let profile = gateway.profile("p", &[]).await;
    for key in ["p", &profile.id] {
        assert_eq!(get(&gateway, key).await.unwrap().into_inner().profile.unwrap(), profile);
    }
    assert_eq!(refused(get(&gateway, "other").await), Code::NotFound);
    assert_eq!(wrong_fields(get(&gateway, "").await), ["profile"]);
}

#[tokio::test]
async fn profiles_are_listed_by_name_in_pages() {
    let gateway = Gateway::start().await;
    gateway.server("s").await;
    for name in ["c", "a", "b"] {
        gateway.profile(name, &["s"]).await;
    }
    let list = async |token: &str| {
        let request = v1::ListProfilesRequest { page_size: 2, page_token: token.to_owned() };
        gateway.profiles().list_profiles(request).await
    };
    let first = list("").await.unwrap().into_inner();
    gateway.profile("aa", &[]).await;
    let second = list(&first.next_page_token).await.unwrap().into_inner();
    let all: Vec<_> = first.profiles.iter().chain(&second.profiles).collect();
    assert_eq!(all.iter().map(|profile| profile.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(all.iter().all(|profile| profile.servers == [member("s")]));
    assert_eq!(second.next_page_token, "");
    assert_eq!(wrong_fields(list("%").await), ["page_token"]);
}

#[tokio::test]
async fn a_change_of_a_profile_adds_replaces_and_takes_out_servers() {
    let gateway = Gateway::start().await;
    for name in ["a", "b", "c", "d"] {
        gateway.server(name).await;
    }
    let before = gateway.profile("p", &["a", "b", "c"]).await;
    let update = async |request: v1::UpdateProfileRequest| {
        let request = v1::UpdateProfileRequest { profile: "p".to_owned(), ..request };
        gateway.profiles().update_profile(request).await
    };
    let request = v1::UpdateProfileRequest {
        set_servers: vec![some("b", &["t"]), member("d")],
        remove_servers: vec!["c".to_owned()],
        ..Default::default()
    };
    let after = update(request).await.unwrap().into_inner().profile.unwrap();
    assert_eq!(after.servers, [member("a"), some("b", &["t"]), member("d")]);
    assert_eq!((after.name.as_str(), after.created_at), ("p", before.created_at));
    let epoch = gateway.epoch().await.catalog;
    let same = update(v1::UpdateProfileRequest::default()).await.unwrap().into_inner().profile.unwrap();
    assert_eq!((same, gateway.epoch().await.catalog), (after, epoch));
    let both = v1::UpdateProfileRequest {
        set_servers: vec![member("a")],
        remove_servers: vec!["a".to_owned()],
        ..Default::default()
    };
    assert_eq!(wrong_fields(update(both).await), ["set_servers[0]"]);
    let unknown = v1::UpdateProfileRequest { remove_servers: vec!["x".to_owned()], ..Default::default() };
    assert_eq!(wrong_fields(update(unknown).await), ["remove_servers[0]"]);
    let renamed = v1::UpdateProfileRequest {
        name: Some("q".to_owned()),
        description: Some("d".to_owned()),
        ..Default::default()
    };
    let renamed = update(renamed).await.unwrap().into_inner().profile.unwrap();
    assert_eq!((renamed.name.as_str(), renamed.description.as_str(), renamed.id), ("q", "d", before.id));
    assert_eq!(refused(update(v1::UpdateProfileRequest::default()).await), Code::NotFound);
}

#[tokio::test]
async fn a_profiles_name_is_taken_once() {
    let gateway = Gateway::start().await;
    gateway.profile("p", &[]).await;
    gateway.profile("q", &[]).await;
    let again = v1::CreateProfileRequest { name: "p".to_owned(), ..Default::default() };
    assert_eq!(refused(gateway.profiles().create_profile(again).await), Code::AlreadyExists);
    let rename = v1::UpdateProfileRequest { profile: "q".to_owned(), name: Some("p".to_owned()), ..Default::default() };
    assert_eq!(refused(gateway.profiles().update_profile(rename).await), Code::AlreadyExists);
}

#[tokio::test]
async fn equal_requests_that_race_make_one_profile_and_another_content_is_refused() {
    let gateway = Gateway::start().await;
    gateway.server("s").await;
    let request = v1::CreateProfileRequest {
        request_id: "r".to_owned(),
        name: "p".to_owned(),
        servers: vec![member("s")],
        ..Default::default()
    };
    let racing: Vec<_> = (0..6)
        .map(|_| {
            let (mut client, request) = (gateway.profiles(), request.clone());
            tokio::spawn(async move { client.create_profile(request).await.unwrap().into_inner().profile.unwrap() })
        })
        .collect();
    let mut made = Vec::new();
    for racer in racing {
        made.push(racer.await.unwrap());
    }
    made.dedup();
    assert_eq!(made.len(), 1, "all got the same profile");
    let other = v1::CreateProfileRequest { servers: vec![some("s", &[])], ..request };
    assert_eq!(refused(gateway.profiles().create_profile(other).await), Code::AlreadyExists);
}

#[tokio::test]
async fn a_profile_in_use_cannot_be_removed_until_its_sessions_are_gone() {
    let gateway = Gateway::start().await;
    gateway.profile("p", &[]).await;
    let session = gateway.session("p").await.session.unwrap();
    let remove = async || {
        let request = v1::DeleteProfileRequest { profile: "p".to_owned() };
        gateway.profiles().delete_profile(request).await
    };
    assert_eq!(refused(remove().await), Code::FailedPrecondition);
    gateway.sessions().delete_session(v1::DeleteSessionRequest { session: session.id }).await.unwrap();
    remove().await.unwrap();
    assert_eq!(refused(remove().await), Code::NotFound);
}

#[tokio::test]
async fn no_session_is_left_without_its_profile_when_both_race() {
    let gateway = Gateway::start().await;
    for round in 0..10 {
        let profile = gateway.profile(&format!("p{round}"), &[]).await.id;
        let racing: Vec<_> = (0..4)
            .map(|_| {
                let mut client = gateway.sessions();
                let request = v1::CreateSessionRequest { profile: profile.clone(), ..Default::default() };
                tokio::spawn(async move { client.create_session(request).await })
            })
            .collect();
        let request = v1::DeleteProfileRequest { profile: profile.clone() };
        let deleted = gateway.profiles().delete_profile(request).await;
        let mut made = 0;
        for racer in racing {
            match racer.await.unwrap() {
                Ok(_) => made += 1,
                Err(status) => assert_eq!(status.code(), Code::NotFound, "{status:?}"),
            }
        }
        match deleted {
            Ok(_) => assert_eq!(made, 0, "round {round}"),
            Err(status) => assert_eq!((status.code(), made), (Code::FailedPrecondition, 4), "round {round}"),
        }
    }
}
