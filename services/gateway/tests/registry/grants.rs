//! `SessionService`: approvals for the rest of a session, and runs that wait for a person.

use gatehouse_gateway::store::{grants, listing::replace_listing};
use gatehouse_proto::gateway::v1;
use gatehouse_types::{InteractionId, ServerId, SessionId};
use tonic::Code;

use crate::{
    harness::{Gateway, refused, wrong_fields},
    listing::facts,
    tools::listed,
};

async fn list(gateway: &Gateway, session: &str) -> Vec<v1::Grant> {
    let request = v1::ListGrantsRequest { session: session.to_owned() };
    gateway.sessions().list_grants(request).await.unwrap().into_inner().grants
}

async fn revoke(
    gateway: &Gateway,
    session: &str,
    grant: &str,
) -> Result<tonic::Response<v1::RevokeGrantsResponse>, tonic::Status> {
    let request = v1::RevokeGrantsRequest { session: session.to_owned(), grant_id: grant.to_owned() };
    gateway.sessions().revoke_grants(request).await
}

struct Granted {
    gateway: Gateway,
    server: ServerId,
    session: String,
}

impl Granted {
    async fn start() -> Self {
        let gateway = Gateway::start().await;
        let server = gateway.server("s").await.id.parse().unwrap();
        gateway.profile("p", &["s"]).await;
        let session = gateway.session("p").await.session.unwrap().id;
        let this = Self { gateway, server, session };
        this.lists(&["", ""]).await;
        this
    }

    /// The server lists `one` and `two` with these additions to their definitions.
    async fn lists(&self, rest: &[&str]) {
        let tools: Vec<_> = ["one", "two"].iter().zip(rest).map(|(name, rest)| listed(name, rest)).collect();
        let mut transaction = gatehouse_store::begin(&self.gateway.state.pool).await.unwrap();
        let now = self.gateway.state.now();
        replace_listing(&mut transaction, self.server, &tools, &facts(), now).await.unwrap().unwrap();
        transaction.commit().await.unwrap();
    }

    async fn grant(&self, tool: &str, rest: &str) {
        let grant = grants::NewGrant {
            session: self.session.parse::<SessionId>().unwrap(),
            server: self.server,
            tool,
            fingerprint: &listed(tool, rest).fingerprint,
            interaction: InteractionId::new(),
            by: "ann",
            at: self.gateway.state.now(),
        };
        let mut transaction = gatehouse_store::begin(&self.gateway.state.pool).await.unwrap();
        grants::put(&mut transaction, &grant).await.unwrap();
        transaction.commit().await.unwrap();
    }

    async fn tools(&self) -> Vec<String> {
        list(&self.gateway, &self.session).await.into_iter().map(|grant| grant.tool).collect()
    }
}

#[tokio::test]
async fn grants_are_listed_and_taken_back() {
    let this = Granted::start().await;
    let (gateway, session) = (&this.gateway, &this.session);
    let before = gateway.session_epoch(session).await;
    this.grant("two", "").await;
    this.grant("one", "").await;
    assert!(gateway.session_epoch(session).await > before, "a grant counts from the next call on");
    let grants = list(gateway, session).await;
    assert_eq!(
        grants.iter().map(|grant| (grant.server.as_str(), grant.tool.as_str())).collect::<Vec<_>>(),
        [("s", "one"), ("s", "two")]
    );
    assert_eq!(grants[0].granted_by, "ann");
    assert!(grants[0].granted_at.is_some() && !grants[0].interaction_id.is_empty());

    let before = gateway.session_epoch(session).await;
    assert_eq!(revoke(gateway, session, &grants[0].id).await.unwrap().into_inner().revoked, 1);
    assert!(gateway.session_epoch(session).await > before);
    let before = gateway.session_epoch(session).await;
    assert_eq!(revoke(gateway, session, &grants[0].id).await.unwrap().into_inner().revoked, 0);
    assert_eq!(gateway.session_epoch(session).await, before, "nothing changed");
    assert_eq!(this.tools().await, ["two"]);
    assert_eq!(revoke(gateway, session, "").await.unwrap().into_inner().revoked, 1);
    assert!(this.tools().await.is_empty());
    assert_eq!(wrong_fields(revoke(gateway, "", "x").await), ["session", "grant_id"]);
    assert_eq!(refused(revoke(gateway, "nobody", "").await), Code::NotFound);
}

#[tokio::test]
async fn one_session_cannot_take_back_anothers_grant() {
    let this = Granted::start().await;
    this.grant("one", "").await;
    let grant = list(&this.gateway, &this.session).await.remove(0);
    let other = this.gateway.session("p").await.session.unwrap().id;
    assert_eq!(revoke(&this.gateway, &other, &grant.id).await.unwrap().into_inner().revoked, 0);
    assert_eq!(this.tools().await, ["one"]);
}

#[tokio::test]
async fn a_grant_ends_with_the_definition_that_was_approved_and_does_not_return_with_it() {
    let this = Granted::start().await;
    this.grant("one", "").await;
    this.grant("two", "").await;
    let before = this.gateway.session_epoch(&this.session).await;
    this.lists(&["", r#","title":"new""#]).await;
    assert_eq!(this.tools().await, ["one"]);
    assert!(this.gateway.session_epoch(&this.session).await > before, "replicas hear of it");
    this.lists(&["", ""]).await;
    assert_eq!(this.tools().await, ["one"], "the old definition is back, the approval is not");
    this.lists(&[]).await;
    this.lists(&["", ""]).await;
    assert!(this.tools().await.is_empty(), "a tool that was gone is asked for again");
}

#[tokio::test]
async fn a_grant_is_kept_once_for_each_tool_and_never_for_a_session_that_is_gone() {
    let this = Granted::start().await;
    this.grant("one", "").await;
    let first = list(&this.gateway, &this.session).await.remove(0);
    this.grant("one", "").await;
    let second = list(&this.gateway, &this.session).await;
    assert_eq!(second.len(), 1);
    assert_ne!(second[0].id, first.id);
    let request = v1::DeleteSessionRequest { session: this.session.clone() };
    this.gateway.sessions().delete_session(request).await.unwrap();
    let grant = grants::NewGrant {
        session: this.session.parse().unwrap(),
        server: this.server,
        tool: "two",
        fingerprint: "f",
        interaction: InteractionId::new(),
        by: "ann",
        at: this.gateway.state.now(),
    };
    let mut transaction = gatehouse_store::begin(&this.gateway.state.pool).await.unwrap();
    assert!(grants::put(&mut transaction, &grant).await.is_err());
}

#[tokio::test]
async fn a_run_with_an_open_card_waits_for_input() {
    let this = Granted::start().await;
    let (gateway, session) = (&this.gateway, &this.session);
    let request = v1::BeginRunRequest { session: session.clone(), ..Default::default() };
    let run = gateway.sessions().begin_run(request).await.unwrap().into_inner().run.unwrap();
    assert_eq!(run.state(), v1::RunState::Running);
    let state = async || {
        let request = v1::GetSessionRequest { session: session.clone() };
        gateway.sessions().get_session(request).await.unwrap().into_inner().open_runs[0].state()
    };
    gateway
        .execute(&format!(
            "INSERT INTO interactions (id, kind, state, session_id, run_id, call_id, replica_id, server, tool, card, created_at, expires_at)
             VALUES (gen_random_uuid(), 'approval', 'open', '{session}', '{}', gen_random_uuid(), gen_random_uuid(), 's', 'one', '{{}}', now(), now() + interval '1 hour')",
            run.id
        ))
        .await;
    assert_eq!(state().await, v1::RunState::WaitingInput);
    gateway.execute("UPDATE interactions SET state = 'timed_out', closed_at = now()").await;
    assert_eq!(state().await, v1::RunState::Running);
    let ended =
        gateway.sessions().end_run(v1::EndRunRequest { run_id: run.id }).await.unwrap().into_inner().run.unwrap();
    assert_eq!(ended.state(), v1::RunState::Ended);
}
