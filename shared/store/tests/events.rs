//! Events against a real Postgres.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use gatehouse_store::events::{PAYLOAD_BYTES, append};
use gatehouse_testkit::{Database, eventually};
use gatehouse_types::SessionId;
use serde_json::json;

/// How many transactions wait for an advisory lock.
async fn waiting(pool: &sqlx::PgPool) -> i64 {
    let query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    sqlx::query_scalar(query).fetch_one(pool).await.unwrap()
}

#[tokio::test]
async fn events_of_a_session_commit_in_the_order_of_their_ids() {
    let database = Database::new().await;
    let pool = database.pool();
    let session = SessionId::new();
    let mut first = gatehouse_store::begin(&pool).await.unwrap();
    let one = append(&mut first, Some(session), "a", &json!({"n": 1})).await.unwrap();
    let second = tokio::spawn({
        let pool = pool.clone();
        async move {
            let mut second = gatehouse_store::begin(&pool).await.unwrap();
            let two = append(&mut second, Some(session), "b", &json!({"n": 2})).await.unwrap();
            second.commit().await.unwrap();
            two
        }
    });
    eventually("the second waits", async || (waiting(&pool).await == 1).then_some(())).await;
    // Another session, and no session, do not wait for it.
    let mut other = gatehouse_store::begin(&pool).await.unwrap();
    let three = append(&mut other, Some(SessionId::new()), "c", &json!({})).await.unwrap();
    let four = append(&mut other, None, "d", &json!({})).await.unwrap();
    other.commit().await.unwrap();
    assert!(!second.is_finished());
    first.commit().await.unwrap();
    let two = second.await.unwrap();
    assert!(one < three && three < four && four < two, "{one} {three} {four} {two}");
    let kinds: Vec<String> = sqlx::query_scalar("SELECT kind FROM events WHERE session_id = $1 ORDER BY id")
        .bind(session.uuid())
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(kinds, ["a", "b"]);
}

#[tokio::test]
async fn an_event_that_is_not_committed_never_was() {
    let database = Database::new().await;
    let pool = database.pool();
    let mut transaction = gatehouse_store::begin(&pool).await.unwrap();
    append(&mut transaction, None, "a", &json!({"text": "a\u{0}b"})).await.unwrap();
    transaction.rollback().await.unwrap();
    let mut transaction = gatehouse_store::begin(&pool).await.unwrap();
    append(&mut transaction, None, "b", &json!({"text": "a\u{0}b"})).await.unwrap();
    transaction.commit().await.unwrap();
    let rows: Vec<(String, String)> =
        sqlx::query_as("SELECT kind, payload FROM events").fetch_all(&pool).await.unwrap();
    assert_eq!(rows, [("b".to_owned(), r#"{"text":"a\u0000b"}"#.to_owned())]);
}

#[tokio::test]
async fn a_payload_is_an_object_of_a_bounded_size() {
    let database = Database::new().await;
    let mut connection = database.pool().acquire().await.unwrap();
    for payload in [json!([]), json!("a"), json!({"a": "x".repeat(PAYLOAD_BYTES)})] {
        assert!(append(&mut connection, None, "a", &payload).await.is_err());
    }
}
