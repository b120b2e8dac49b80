//! What leaves the database when it is old enough.

use gatehouse_gateway::retention::{Swept, sweep};
use gatehouse_proto::gateway::v1;
use gatehouse_types::{SessionId, Settings};
use sqlx::Row as _;
use time::{Duration, OffsetDateTime};

use crate::harness::Gateway;

const DAY: Duration = Duration::days(1);

fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_900_000_000).unwrap()
}

/// Writes `count` calls of a session, of this age; without an outcome they still run.
async fn calls(gateway: &Gateway, session: &str, count: u32, age: Duration, outcome: Option<&str>) {
    let outcome = outcome.map_or("NULL".to_owned(), |outcome| format!("'{outcome}'"));
    let statement = format!(
        "INSERT INTO calls (id, session_id, server, tool, hints, outcome, started_at, arguments, arguments_bytes,
                            arguments_sha256, replica_id)
         SELECT gen_random_uuid(), '{session}', 's', 't', 0, {outcome}, to_timestamp({}), '', 0, '', gen_random_uuid()
         FROM generate_series(1, {count})",
        (now() - age).unix_timestamp()
    );
    gateway.execute(&statement).await;
}

async fn events(gateway: &Gateway, count: u32, age: Duration) {
    let at = (now() - age).unix_timestamp();
    let columns = "INSERT INTO events (kind, payload, created_at)";
    gateway
        .execute(&format!("{columns} SELECT 'k', '{{}}', to_timestamp({at}) FROM generate_series(1, {count})"))
        .await;
}

async fn count(gateway: &Gateway, of: &str) -> i64 {
    let query = sqlx::query(sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {of}")));
    query.fetch_one(&gateway.state.pool).await.unwrap().get(0)
}

#[tokio::test]
async fn calls_and_events_leave_at_their_age_in_batches_and_a_call_that_runs_never() {
    let gateway = Gateway::start().await;
    let session = SessionId::new().to_string();
    let settings = Settings { audit_retention_days: 10, events_retention_days: 5, ..Settings::default() };
    calls(&gateway, &session, 2_500, DAY * 11, Some("ok")).await;
    calls(&gateway, &session, 3, DAY * 11, None).await;
    calls(&gateway, &session, 4, DAY * 9, Some("unknown")).await;
    events(&gateway, 2_500, DAY * 6).await;
    events(&gateway, 4, DAY * 4).await;
    let swept = sweep(&gateway.state.pool, &settings, now()).await.unwrap();
    assert_eq!(swept, Swept { calls: 2_500, events: 2_500, sessions: 0 });
    assert_eq!((count(&gateway, "calls").await, count(&gateway, "events").await), (7, 4));
    assert_eq!(count(&gateway, "calls WHERE outcome IS NULL").await, 3);
    assert_eq!(sweep(&gateway.state.pool, &settings, now()).await.unwrap(), Swept::default());
}

#[tokio::test]
async fn two_replicas_that_sweep_at_once_delete_each_row_once() {
    let gateway = Gateway::start().await;
    calls(&gateway, &SessionId::new().to_string(), 5_000, DAY * 100, Some("ok")).await;
    events(&gateway, 3_000, DAY * 100).await;
    let (pool, settings) = (&gateway.state.pool, Settings::default());
    let (one, two) = tokio::join!(sweep(pool, &settings, now()), sweep(pool, &settings, now()));
    let (one, two) = (one.unwrap(), two.unwrap());
    // One that finds the rest in the other's hands leaves it to that one.
    assert_eq!((one.calls + two.calls, one.events + two.events), (5_000, 3_000));
    assert_eq!((count(&gateway, "calls").await, count(&gateway, "events").await), (0, 0));
}

#[tokio::test]
async fn a_deleted_sessions_belongings_leave_after_a_week_and_its_row_with_its_last_call() {
    let gateway = Gateway::start().await;
    gateway.server("s").await;
    gateway.profile("p", &["s"]).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = gateway.session("p").await.session.unwrap().id;
        let run = v1::BeginRunRequest { session: id.clone(), ..Default::default() };
        gateway.sessions().begin_run(run).await.unwrap();
        gateway
            .execute(&format!(
                "INSERT INTO files (session_id, path, call_id, place, size_bytes, sha256, created_at)
                 VALUES ('{id}', 'a', gen_random_uuid(), 0, 1, '', now());
                 INSERT INTO grants (id, session_id, server_id, tool, fingerprint, interaction_id, granted_by, granted_at)
                 SELECT gen_random_uuid(), '{id}', id, 't', '', gen_random_uuid(), 'x', now() FROM servers;
                 INSERT INTO upstream_sessions (server_id, session_id, mcp_session_id_sealed, protocol_version,
                                                initialize_result, config_hash, used_at)
                 SELECT id, '{id}', '', '', '', '', now() FROM servers"
            ))
            .await;
        ids.push(id);
    }
    let [recorded, forgotten, living] = ids.as_slice() else { panic!("three were made") };
    for id in [recorded, forgotten] {
        gateway.sessions().delete_session(v1::DeleteSessionRequest { session: id.clone() }).await.unwrap();
    }
    calls(&gateway, recorded, 1, DAY * 30, Some("ok")).await;
    let settings = Settings::default();
    let deleted_at = gateway.state.now();
    let belongings = ["files", "grants", "upstream_sessions", "session_tokens", "runs"];
    sweep(&gateway.state.pool, &settings, deleted_at + DAY * 6).await.unwrap();
    for table in belongings {
        assert_eq!(count(&gateway, table).await, 3, "{table}");
    }
    let swept = sweep(&gateway.state.pool, &settings, deleted_at + DAY * 8).await.unwrap();
    assert_eq!(swept.sessions, 1);
    for table in belongings {
        assert_eq!(count(&gateway, table).await, 1, "{table}");
        assert_eq!(count(&gateway, &format!("{table} WHERE session_id = '{living}'")).await, 1, "{table}");
    }
    assert_eq!(count(&gateway, &format!("sessions WHERE id = '{recorded}'")).await, 1, "the audit names it");
    let swept = sweep(&gateway.state.pool, &settings, now() + DAY * 61).await.unwrap();
    assert_eq!((swept.calls, swept.sessions), (1, 1));
    assert_eq!(count(&gateway, "sessions").await, 1);
}
