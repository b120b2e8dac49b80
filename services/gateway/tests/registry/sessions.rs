//! `SessionService`: the sessions themselves.

use std::{fs, os::unix::fs::symlink};

use gatehouse_proto::gateway::v1::{self, EngineKind, PermissionMode};
use tonic::Code;

use crate::harness::{Gateway, MCP_URL, refused, wrong_fields};

fn new(profile: &str) -> v1::CreateSessionRequest {
    v1::CreateSessionRequest { profile: profile.to_owned(), ..Default::default() }
}

async fn get(gateway: &Gateway, session: &str) -> Result<tonic::Response<v1::GetSessionResponse>, tonic::Status> {
    gateway.sessions().get_session(v1::GetSessionRequest { session: session.to_owned() }).await
}

#[tokio::test]
async fn a_new_session_has_a_token_a_url_and_its_defaults() {
    let gateway = Gateway::start().await;
    let profile = gateway.profile("p", &[]).await;
    let made = gateway.session(&profile.id).await;
    let session = made.session.unwrap();
    assert_eq!((session.profile.as_str(), session.locale.as_str()), ("p", "en"));
    assert_eq!((session.engine(), session.permission_mode()), (EngineKind::Other, PermissionMode::Ask));
    assert_eq!((session.external_id.as_str(), session.workspace.as_str()), ("", ""));
    assert!(made.token.starts_with("ghs_") && made.token.len() == 47);
    assert_eq!(made.mcp_url, MCP_URL);
    assert!(gateway.good_token(&made.token).await);
    assert!(!gateway.dump("session_tokens").await.contains(&made.token));
    let found = get(&gateway, &session.id).await.unwrap().into_inner();
    assert_eq!((found.session.unwrap(), found.mcp_url.as_str(), found.open_runs), (session, MCP_URL, Vec::new()));
}

#[tokio::test]
async fn every_wrong_field_of_a_session_is_named_at_once() {
    let gateway = Gateway::start().await;
    let request = v1::CreateSessionRequest {
        request_id: "x".repeat(129),
        profile: String::new(),
        engine: 99,
        permission_mode: 99,
        workspace: "../up".to_owned(),
        locale: "en_US".to_owned(),
        external_id: "x".repeat(257),
    };
    let named = wrong_fields(gateway.sessions().create_session(request).await);
    let expected = ["request_id", "profile", "engine", "permission_mode", "workspace", "locale", "external_id"];
    assert_eq!(named, expected);
    assert_eq!(refused(gateway.sessions().create_session(new("nobody")).await), Code::NotFound);
}

#[tokio::test]
async fn a_workspace_is_under_the_root_and_goes_through_no_link() {
    let gateway = Gateway::start().await;
    gateway.profile("p", &[]).await;
    let root = gateway.folder();
    fs::create_dir_all(root.join("team/one")).unwrap();
    fs::write(root.join("file"), "").unwrap();
    symlink("/", root.join("out")).unwrap();
    symlink("team", root.join("inside")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    let create = async |workspace: &str| {
        let request = v1::CreateSessionRequest { workspace: workspace.to_owned(), ..new("p") };
        gateway.sessions().create_session(request).await
    };
    for good in ["team/one", "team/to-be-made/deep", "team/one/"] {
        let session = create(good).await.unwrap().into_inner().session.unwrap();
        assert_eq!(session.workspace, good.trim_end_matches('/'));
    }
    for bad in ["/etc", "team/../..", "out/etc", "out", "inside/one", "file", "file/x", "dangling", "a\\b", "a\0b", "."]
    {
        assert_eq!(wrong_fields(create(bad).await), ["workspace"], "{bad}");
    }
}

#[tokio::test]
async fn a_session_is_found_by_id_and_by_external_id() {
    let gateway = Gateway::start().await;
    gateway.profile("p", &[]).await;
    // Callers use UUIDs of their own, too.
    let external = "11111111-2222-4333-8444-555555555555";
    let request = v1::CreateSessionRequest { external_id: external.to_owned(), ..new("p") };
    let session = gateway.sessions().create_session(request.clone()).await.unwrap().into_inner().session.unwrap();
    for key in [session.id.as_str(), external] {
        assert_eq!(get(&gateway, key).await.unwrap().into_inner().session.unwrap(), session);
    }
    assert_eq!(refused(gateway.sessions().create_session(request).await), Code::AlreadyExists);
    assert_eq!(refused(get(&gateway, "other").await), Code::NotFound);
    assert_eq!(wrong_fields(get(&gateway, "").await), ["session"]);
}

#[tokio::test]
async fn the_same_request_gives_the_session_again_with_a_fresh_token_in_place_of_its_first() {
    let gateway = Gateway::start().await;
    gateway.profile("p", &[]).await;
    let request = v1::CreateSessionRequest { request_id: "r".to_owned(), locale: "de".to_owned(), ..new("p") };
    let create = async |request: v1::CreateSessionRequest| gateway.sessions().create_session(request).await;
    let first = create(request.clone()).await.unwrap().into_inner();
    let id = first.session.clone().unwrap().id;
    let issue = v1::IssueTokenRequest { session: id.clone(), actor: String::new() };
    let issued = gateway.sessions().issue_token(issue).await.unwrap().into_inner().token;
    let epoch = gateway.epoch().await.sessions;
    let second = create(request.clone()).await.unwrap().into_inner();
    assert_eq!(second.session, first.session);
    assert!(!gateway.good_token(&first.token).await, "the first token is replaced");
    assert!(gateway.good_token(&second.token).await && gateway.good_token(&issued).await);
    assert_eq!((gateway.epoch().await.sessions, gateway.session_epoch(&id).await), (epoch + 1, epoch + 1));

    let other = v1::CreateSessionRequest { locale: "fr".to_owned(), ..request.clone() };
    assert_eq!(refused(create(other).await), Code::AlreadyExists);
    gateway.sessions().delete_session(v1::DeleteSessionRequest { session: id }).await.unwrap();
    assert_eq!(refused(create(request).await), Code::FailedPrecondition, "a deleted session does not come back");
}

#[tokio::test]
async fn equal_requests_that_race_make_one_session_with_one_good_token() {
    let gateway = Gateway::start().await;
    gateway.profile("p", &[]).await;
    let request =
        v1::CreateSessionRequest { request_id: "r".to_owned(), external_id: "conversation-1".to_owned(), ..new("p") };
    let racing: Vec<_> = (0..8)
        .map(|_| {
            let (mut client, request) = (gateway.sessions(), request.clone());
            tokio::spawn(async move { client.create_session(request).await.unwrap().into_inner() })
        })
        .collect();
    let mut made = Vec::new();
    for racer in racing {
        made.push(racer.await.unwrap());
    }
    assert!(made.iter().all(|answer| answer.session == made[0].session));
    let mut good = 0;
    for answer in &made {
        good += usize::from(gateway.good_token(&answer.token).await);
    }
    assert_eq!(good, 1);
}

#[tokio::test]
async fn sessions_are_listed_newest_first_and_pages_stay_stable_under_inserts() {
    let gateway = Gateway::start().await;
    gateway.profile("p", &[]).await;
    gateway.profile("q", &[]).await;
    let mut ids = Vec::new();
    for profile in ["p", "q", "p", "p"] {
        ids.push(gateway.session(profile).await.session.unwrap().id);
    }
    let list = async |profile: &str, token: &str| {
        let request =
            v1::ListSessionsRequest { page_size: 2, page_token: token.to_owned(), profile: profile.to_owned() };
        gateway.sessions().list_sessions(request).await
    };
    let got = |page: &v1::ListSessionsResponse| -> Vec<String> {
        page.sessions.iter().map(|session| session.id.clone()).collect()
    };
    let first = list("", "").await.unwrap().into_inner();
    gateway.session("p").await;
    gateway.sessions().delete_session(v1::DeleteSessionRequest { session: ids[3].clone() }).await.unwrap();
    let second = list("", &first.next_page_token).await.unwrap().into_inner();
    assert_eq!(
        (got(&first), got(&second)),
        (vec![ids[3].clone(), ids[2].clone()], vec![ids[1].clone(), ids[0].clone()])
    );
    assert_eq!(second.next_page_token, "");
    let only = list("q", "").await.unwrap().into_inner();
    assert_eq!((got(&only), only.next_page_token.as_str()), (vec![ids[1].clone()], ""));
    assert_eq!(wrong_fields(list("q", &first.next_page_token).await), ["page_token"], "a token of other filters");
    assert_eq!(refused(list("nobody", "").await), Code::NotFound);
}

#[tokio::test]
async fn a_change_of_a_session_counts_at_once() {
    let gateway = Gateway::start().await;
    gateway.profile("p", &[]).await;
    gateway.profile("q", &[]).await;
    let session = gateway.session("p").await.session.unwrap();
    let before = gateway.epoch().await;
    let update = async |request: v1::UpdateSessionRequest| {
        let request = v1::UpdateSessionRequest { session: session.id.clone(), ..request };
        gateway.sessions().update_session(request).await
    };
    let same = update(v1::UpdateSessionRequest::default()).await.unwrap().into_inner().session.unwrap();
    assert_eq!((same, gateway.epoch().await), (session.clone(), before));
    let request = v1::UpdateSessionRequest {
        profile: Some("q".to_owned()),
        permission_mode: Some(PermissionMode::ReadOnly.into()),
        locale: Some("zh-CN".to_owned()),
        engine: Some(EngineKind::Codex.into()),
        ..Default::default()
    };
    let after = update(request).await.unwrap().into_inner().session.unwrap();
    assert_eq!((after.profile.as_str(), after.locale.as_str()), ("q", "zh-CN"));
    assert_eq!((after.permission_mode(), after.engine()), (PermissionMode::ReadOnly, EngineKind::Codex));
    let now = gateway.epoch().await;
    assert_eq!((now.sessions, now.catalog), (before.sessions + 1, before.catalog));
    assert_eq!(gateway.session_epoch(&session.id).await, now.sessions);
    let wrong = v1::UpdateSessionRequest {
        permission_mode: Some(9),
        locale: Some(String::new()),
        engine: Some(-1),
        profile: Some(String::new()),
        ..Default::default()
    };
    assert_eq!(wrong_fields(update(wrong).await), ["profile", "permission_mode", "locale", "engine"]);
    let unknown = v1::UpdateSessionRequest { profile: Some("nobody".to_owned()), ..Default::default() };
    assert_eq!(refused(update(unknown).await), Code::NotFound);
}

#[tokio::test]
async fn a_deleted_session_is_gone_with_its_tokens_and_runs() {
    let gateway = Gateway::start().await;
    gateway.profile("p", &[]).await;
    let request = v1::CreateSessionRequest { external_id: "e".to_owned(), ..new("p") };
    let made = gateway.sessions().create_session(request.clone()).await.unwrap().into_inner();
    let id = made.session.unwrap().id;
    let begin = v1::BeginRunRequest { session: id.clone(), ..Default::default() };
    let run = gateway.sessions().begin_run(begin.clone()).await.unwrap().into_inner().run.unwrap();
    let before = gateway.epoch().await.sessions;
    let delete =
        async |key: &str| gateway.sessions().delete_session(v1::DeleteSessionRequest { session: key.to_owned() }).await;
    delete("e").await.unwrap();
    assert_eq!((gateway.epoch().await.sessions, gateway.session_epoch(&id).await), (before + 1, before + 1));
    assert!(!gateway.good_token(&made.token).await);
    assert_eq!(refused(get(&gateway, &id).await), Code::NotFound);
    assert_eq!(refused(gateway.sessions().begin_run(begin).await), Code::NotFound);
    let ended = gateway.sessions().end_run(v1::EndRunRequest { run_id: run.id }).await.unwrap().into_inner();
    assert!(ended.run.unwrap().ended_at.is_some());
    for key in ["e", &id] {
        delete(key).await.unwrap();
    }
    assert_eq!(gateway.epoch().await.sessions, before + 1, "deleting twice changes nothing");
    assert_eq!(refused(delete("never").await), Code::NotFound);
    // The external id is free again, and means the new session.
    let again = gateway.sessions().create_session(request).await.unwrap().into_inner().session.unwrap();
    assert_eq!(get(&gateway, "e").await.unwrap().into_inner().session.unwrap().id, again.id);
}
