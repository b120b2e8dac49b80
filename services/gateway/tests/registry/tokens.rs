//! `SessionService`: tokens.

use gatehouse_proto::gateway::v1;
use tonic::Code;

use crate::harness::{Gateway, refused, wrong_fields};

async fn issue(gateway: &Gateway, session: &str, actor: &str) -> v1::IssueTokenResponse {
    let request = v1::IssueTokenRequest { session: session.to_owned(), actor: actor.to_owned() };
    gateway.sessions().issue_token(request).await.unwrap().into_inner()
}

async fn start() -> (Gateway, String, String) {
    let gateway = Gateway::start().await;
    gateway.profile("p", &[]).await;
    let made = gateway.session("p").await;
    (gateway, made.session.unwrap().id, made.token)
}

#[tokio::test]
async fn an_issued_token_is_good_beside_the_others() {
    let (gateway, session, first) = start().await;
    let issued = issue(&gateway, &session, "bot-1").await;
    let shown = issued.session_token.unwrap();
    assert_eq!((shown.actor.as_str(), shown.revoked_at), ("bot-1", None));
    assert!(issued.token.starts_with(&shown.prefix));
    for token in [&first, &issued.token] {
        assert!(gateway.good_token(token).await);
    }
    let wrong = v1::IssueTokenRequest { session: String::new(), actor: "a b".to_owned() };
    assert_eq!(wrong_fields(gateway.sessions().issue_token(wrong).await), ["session", "actor"]);
    let unknown = v1::IssueTokenRequest { session: "nobody".to_owned(), ..Default::default() };
    assert_eq!(refused(gateway.sessions().issue_token(unknown).await), Code::NotFound);
}

#[tokio::test]
async fn a_session_has_a_bound_of_good_tokens() {
    let (gateway, session, _) = start().await;
    gateway
        .execute(
            "INSERT INTO session_tokens (id, session_id, hash, prefix, created_at)
             SELECT gen_random_uuid(), (SELECT id FROM sessions), sha256(n::text::bytea), 'x', now()
             FROM generate_series(1, 499) AS n",
        )
        .await;
    let request = v1::IssueTokenRequest { session: session.clone(), ..Default::default() };
    assert_eq!(refused(gateway.sessions().issue_token(request.clone()).await), Code::FailedPrecondition);
    let revoke = v1::RevokeTokenRequest { session, ..Default::default() };
    let revoked = gateway.sessions().revoke_token(revoke).await.unwrap().into_inner().revoked;
    assert_eq!(revoked, 500);
    gateway.sessions().issue_token(request).await.unwrap();
}

#[tokio::test]
async fn rotation_revokes_the_other_tokens_of_the_actor_and_only_those() {
    let (gateway, session, first) = start().await;
    let bot = issue(&gateway, &session, "bot").await.token;
    let second = issue(&gateway, &session, "").await.token;
    let before = gateway.epoch().await.sessions;
    let request = v1::RotateTokenRequest { session: session.clone(), actor: String::new() };
    let rotated = gateway.sessions().rotate_token(request).await.unwrap().into_inner();
    for (token, good) in [(&first, false), (&second, false), (&bot, true), (&rotated.token, true)] {
        assert_eq!(gateway.good_token(token).await, good);
    }
    assert_eq!((gateway.epoch().await.sessions, gateway.session_epoch(&session).await), (before + 1, before + 1));
    let wrong = v1::RotateTokenRequest { session, actor: "x".repeat(65) };
    assert_eq!(wrong_fields(gateway.sessions().rotate_token(wrong).await), ["actor"]);
}

#[tokio::test]
async fn one_token_or_all_of_an_actor_can_be_revoked() {
    let (gateway, session, first) = start().await;
    let bot = issue(&gateway, &session, "bot").await;
    let other = issue(&gateway, &session, "bot").await.token;
    let revoke = async |token_id: &str, actor: &str| {
        let request =
            v1::RevokeTokenRequest { session: session.clone(), token_id: token_id.to_owned(), actor: actor.to_owned() };
        gateway.sessions().revoke_token(request).await
    };
    let id = bot.session_token.unwrap().id;
    let before = gateway.epoch().await.sessions;
    for expected in [1, 0] {
        assert_eq!(revoke(&id, "ignored").await.unwrap().into_inner().revoked, expected);
        assert_eq!(gateway.epoch().await.sessions, before + 1, "revoking again changes nothing");
    }
    assert!(!gateway.good_token(&bot.token).await && gateway.good_token(&other).await);
    assert_eq!(revoke("", "bot").await.unwrap().into_inner().revoked, 1);
    assert!(!gateway.good_token(&other).await && gateway.good_token(&first).await);
    assert_eq!(wrong_fields(revoke("not-a-uuid", "").await), ["token_id"]);
    assert_eq!(refused(revoke("00000000-0000-7000-8000-000000000000", "").await), Code::NotFound);
    let foreign = gateway.session("p").await.session.unwrap().id;
    let request = v1::RevokeTokenRequest { session: foreign, token_id: id, actor: String::new() };
    assert_eq!(refused(gateway.sessions().revoke_token(request).await), Code::NotFound, "of another session");
}

#[tokio::test]
async fn tokens_are_listed_newest_first_without_their_secrets() {
    let (gateway, session, first) = start().await;
    let bot = issue(&gateway, &session, "bot").await;
    let list = async |session: &str| {
        gateway.sessions().list_tokens(v1::ListTokensRequest { session: session.to_owned() }).await
    };
    let listed = list(&session).await.unwrap().into_inner();
    let actors: Vec<_> = listed.session_tokens.iter().map(|token| token.actor.as_str()).collect();
    assert_eq!(actors, ["bot", ""]);
    assert_eq!(listed.session_tokens[0], bot.session_token.unwrap());
    for secret in [&first, &bot.token] {
        assert!(!format!("{listed:?}").contains(secret.as_str()));
    }
    assert_eq!(refused(list("nobody").await), Code::NotFound);
    assert_eq!(wrong_fields(list("").await), ["session"]);
}
