//! `SessionService`: runs.

use gatehouse_proto::gateway::v1;
use tonic::Code;

use crate::harness::{Gateway, refused, wrong_fields};

async fn start() -> (Gateway, String) {
    let gateway = Gateway::start().await;
    gateway.profile("p", &[]).await;
    let session = gateway.session("p").await.session.unwrap().id;
    (gateway, session)
}

async fn begin(
    gateway: &Gateway,
    session: &str,
    actor: &str,
    request_id: &str,
) -> Result<tonic::Response<v1::BeginRunResponse>, tonic::Status> {
    let request =
        v1::BeginRunRequest { request_id: request_id.to_owned(), session: session.to_owned(), actor: actor.to_owned() };
    gateway.sessions().begin_run(request).await
}

async fn end(gateway: &Gateway, run: &str) -> Result<tonic::Response<v1::EndRunResponse>, tonic::Status> {
    gateway.sessions().end_run(v1::EndRunRequest { run_id: run.to_owned() }).await
}

#[tokio::test]
async fn an_actor_has_at_most_one_open_run() {
    let (gateway, session) = start().await;
    let before = gateway.epoch().await.sessions;
    let run = begin(&gateway, &session, "bot", "").await.unwrap().into_inner().run.unwrap();
    assert_eq!((run.session_id.as_str(), run.actor.as_str(), run.ended_at), (session.as_str(), "bot", None));
    assert_eq!((gateway.epoch().await.sessions, gateway.session_epoch(&session).await), (before + 1, before + 1));
    let second = begin(&gateway, &session, "bot", "").await.unwrap_err();
    assert_eq!(second.code(), Code::FailedPrecondition);
    assert!(second.message().contains(&run.id), "says which run is open");
    let other = begin(&gateway, &session, "", "").await.unwrap().into_inner().run.unwrap();
    let request = v1::GetSessionRequest { session: session.clone() };
    let open = gateway.sessions().get_session(request).await.unwrap().into_inner().open_runs;
    assert_eq!(open, [other, run.clone()]);
    end(&gateway, &run.id).await.unwrap();
    begin(&gateway, &session, "bot", "").await.unwrap();
    let named = wrong_fields(begin(&gateway, "", "a/b", &"x".repeat(129)).await);
    assert_eq!(named, ["request_id", "session", "actor"]);
    assert_eq!(refused(begin(&gateway, "nobody", "", "").await), Code::NotFound);
}

#[tokio::test]
async fn actors_who_begin_at_once_open_one_run() {
    let (gateway, session) = start().await;
    let racing: Vec<_> = (0..8)
        .map(|_| {
            let mut client = gateway.sessions();
            let request = v1::BeginRunRequest { session: session.clone(), ..Default::default() };
            tokio::spawn(async move { client.begin_run(request).await })
        })
        .collect();
    let mut begun = 0;
    for racer in racing {
        match racer.await.unwrap() {
            Ok(_) => begun += 1,
            Err(status) => assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}"),
        }
    }
    assert_eq!(begun, 1);
}

#[tokio::test]
async fn the_same_request_begins_one_run_also_when_it_races_and_after_its_end() {
    let (gateway, session) = start().await;
    let racing: Vec<_> = (0..6)
        .map(|_| {
            let mut client = gateway.sessions();
            let request =
                v1::BeginRunRequest { request_id: "r".to_owned(), session: session.clone(), actor: String::new() };
            tokio::spawn(async move { client.begin_run(request).await.unwrap().into_inner().run.unwrap().id })
        })
        .collect();
    let mut ids = Vec::new();
    for racer in racing {
        ids.push(racer.await.unwrap());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    end(&gateway, &ids[0]).await.unwrap();
    let again = begin(&gateway, &session, "", "r").await.unwrap().into_inner().run.unwrap();
    assert!(again.id == ids[0] && again.ended_at.is_some());
    assert_eq!(refused(begin(&gateway, &session, "other", "r").await), Code::AlreadyExists);
    let foreign = gateway.session("p").await.session.unwrap().id;
    assert_eq!(refused(begin(&gateway, &foreign, "", "r").await), Code::AlreadyExists);
}

#[tokio::test]
async fn a_run_is_closed_once_and_closing_it_again_changes_nothing() {
    let (gateway, session) = start().await;
    let run = begin(&gateway, &session, "", "").await.unwrap().into_inner().run.unwrap();
    let before = gateway.epoch().await.sessions;
    let ended = end(&gateway, &run.id).await.unwrap().into_inner().run.unwrap();
    assert!(ended.ended_at.is_some());
    assert_eq!(end(&gateway, &run.id).await.unwrap().into_inner().run.unwrap(), ended);
    assert_eq!((gateway.epoch().await.sessions, gateway.session_epoch(&session).await), (before + 1, before + 1));
    assert_eq!(wrong_fields(end(&gateway, "x").await), ["run_id"]);
    assert_eq!(refused(end(&gateway, "00000000-0000-7000-8000-000000000000").await), Code::NotFound);
}
