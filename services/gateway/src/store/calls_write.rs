//! Writing the audit: a row before a call that may change something goes out, and the end of each call.

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::audit::{Ended, Started};

/// Inserts the rows of calls that are about to go out, each only when its decision still holds: the catalog has not moved
/// and neither has the session (its mode, profile, tokens, runs, grants or life). A call that waited for a person has its row
/// already, which gets the decision. Returns the ids of the calls that may go out.
pub async fn begin(
    connection: &mut PgConnection,
    calls: &[&Started],
    catalog: &[i64],
) -> Result<Vec<Uuid>, sqlx::Error> {
    let epochs: Vec<i64> = calls.iter().map(|call| call.session_epoch).collect();
    let columns = Columns::of(calls);
    sqlx::query_scalar!(
        r#"INSERT INTO calls (id, session_id, actor, run_id, server_id, server, tool, hints, started_at, arguments,
                              arguments_bytes, arguments_sha256, trace_id, replica_id, policy, permission_mode, decision,
                              decided_by, decided_at, interaction_id)
           SELECT c.id, c.session_id, c.actor, c.run_id, c.server_id, c.server, c.tool, c.hints, c.started_at, c.arguments,
                  c.arguments_bytes, c.arguments_sha256, c.trace_id, c.replica_id, c.policy, c.permission_mode, c.decision,
                  c.decided_by, c.decided_at, c.interaction_id
           FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::int2[],
                       $9::timestamptz[], $10::text[], $11::int8[], $12::bytea[], $13::text[], $14::uuid[], $15::text[],
                       $16::text[], $17::text[], $18::text[], $19::timestamptz[], $20::uuid[], $21::int8[], $22::int8[])
                AS c (id, session_id, actor, run_id, server_id, server, tool, hints, started_at, arguments,
                      arguments_bytes, arguments_sha256, trace_id, replica_id, policy, permission_mode, decision,
                      decided_by, decided_at, interaction_id, session_epoch, catalog)
           JOIN sessions s ON s.id = c.session_id AND s.epoch = c.session_epoch AND s.deleted_at IS NULL
           JOIN config_epoch e ON e.catalog = c.catalog
           ON CONFLICT (id) DO UPDATE SET
               hints = excluded.hints, policy = excluded.policy, permission_mode = excluded.permission_mode,
               decision = excluded.decision, decided_by = excluded.decided_by, decided_at = excluded.decided_at,
               interaction_id = excluded.interaction_id
           WHERE calls.outcome IS NULL
           RETURNING id"#,
        &columns.ids,
        &columns.sessions,
        &columns.actors as &[&str],
        &columns.runs as &[Option<Uuid>],
        &columns.server_ids as &[Option<Uuid>],
        &columns.servers as &[&str],
        &columns.tools as &[&str],
        &columns.hints,
        &columns.started,
        &columns.arguments as &[&str],
        &columns.bytes,
        &columns.hashes as &[&[u8]],
        &columns.traces as &[&str],
        &columns.replicas,
        &columns.policies as &[&str],
        &columns.modes as &[&str],
        &columns.decisions as &[&str],
        &columns.decided_by as &[&str],
        &columns.decided_at as &[Option<OffsetDateTime>],
        &columns.interactions as &[Option<Uuid>],
        &epochs,
        catalog
    )
    .fetch_all(connection)
    .await
}

/// Writes the ends of calls: of those that have a row, and of those (read-only ones) that have none yet.
pub async fn end(connection: &mut PgConnection, calls: &[(&Started, &Ended)]) -> Result<(), sqlx::Error> {
    let started: Vec<&Started> = calls.iter().map(|(started, _)| *started).collect();
    let columns = Columns::of(&started);
    let outcomes: Vec<&str> = calls.iter().map(|(_, ended)| ended.outcome.as_str()).collect();
    let durations: Vec<i64> = calls.iter().map(|(_, ended)| ended.duration_us).collect();
    let retries: Vec<i32> = calls.iter().map(|(_, ended)| ended.retries).collect();
    let result_bytes: Vec<i64> = calls.iter().map(|(_, ended)| ended.result_bytes).collect();
    let structured: Vec<Option<&str>> = calls.iter().map(|(_, ended)| ended.structured_result.as_deref()).collect();
    let errors: Vec<&str> = calls.iter().map(|(_, ended)| ended.error.as_str()).collect();
    let files: Vec<serde_json::Value> = calls.iter().map(|(_, ended)| ended.files.as_slice().into()).collect();
    let notes: Vec<serde_json::Value> = calls.iter().map(|(_, ended)| ended.notes.as_slice().into()).collect();
    sqlx::query!(
        r#"INSERT INTO calls (id, session_id, actor, run_id, server_id, server, tool, hints, started_at, arguments,
                              arguments_bytes, arguments_sha256, trace_id, replica_id, policy, permission_mode, decision,
                              decided_by, decided_at, interaction_id, outcome, duration_us, retries, result_bytes,
                              structured_result, error, files, notes)
           SELECT c.id, c.session_id, c.actor, c.run_id, c.server_id, c.server, c.tool, c.hints, c.started_at, c.arguments,
                  c.arguments_bytes, c.arguments_sha256, c.trace_id, c.replica_id, c.policy, c.permission_mode, c.decision,
                  c.decided_by, c.decided_at, c.interaction_id, c.outcome, c.duration_us, c.retries, c.result_bytes,
                  c.structured_result, c.error, ARRAY(SELECT jsonb_array_elements_text(c.files)),
                  ARRAY(SELECT jsonb_array_elements_text(c.notes))
           FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::int2[],
                       $9::timestamptz[], $10::text[], $11::int8[], $12::bytea[], $13::text[], $14::uuid[], $15::text[],
                       $16::text[], $17::text[], $18::text[], $19::timestamptz[], $20::uuid[], $21::text[], $22::int8[],
                       $23::int4[], $24::int8[], $25::text[], $26::text[], $27::jsonb[], $28::jsonb[])
                AS c (id, session_id, actor, run_id, server_id, server, tool, hints, started_at, arguments,
                      arguments_bytes, arguments_sha256, trace_id, replica_id, policy, permission_mode, decision,
                      decided_by, decided_at, interaction_id, outcome, duration_us, retries, result_bytes,
                      structured_result, error, files, notes)
           ON CONFLICT (id) DO UPDATE SET
               decision = excluded.decision, decided_by = excluded.decided_by, decided_at = excluded.decided_at,
               interaction_id = excluded.interaction_id, files = excluded.files, notes = excluded.notes,
               outcome = excluded.outcome, duration_us = excluded.duration_us, retries = excluded.retries,
               result_bytes = excluded.result_bytes, structured_result = excluded.structured_result, error = excluded.error"#,
        &columns.ids,
        &columns.sessions,
        &columns.actors as &[&str],
        &columns.runs as &[Option<Uuid>],
        &columns.server_ids as &[Option<Uuid>],
        &columns.servers as &[&str],
        &columns.tools as &[&str],
        &columns.hints,
        &columns.started,
        &columns.arguments as &[&str],
        &columns.bytes,
        &columns.hashes as &[&[u8]],
        &columns.traces as &[&str],
        &columns.replicas,
        &columns.policies as &[&str],
        &columns.modes as &[&str],
        &columns.decisions as &[&str],
        &columns.decided_by as &[&str],
        &columns.decided_at as &[Option<OffsetDateTime>],
        &columns.interactions as &[Option<Uuid>],
        &outcomes as &[&str],
        &durations,
        &retries,
        &result_bytes,
        &structured as &[Option<&str>],
        &errors as &[&str],
        &files,
        &notes
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Records that calls still run which have no row yet: read-only ones that take their time, and those that wait for a person.
pub async fn still_running(connection: &mut PgConnection, calls: &[&Started]) -> Result<(), sqlx::Error> {
    let columns = Columns::of(calls);
    sqlx::query!(
        r#"INSERT INTO calls (id, session_id, actor, run_id, server_id, server, tool, hints, started_at, arguments,
                              arguments_bytes, arguments_sha256, trace_id, replica_id, policy, permission_mode, decision,
                              decided_by, decided_at, interaction_id)
           SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::uuid[], $6::text[], $7::text[],
                                $8::int2[], $9::timestamptz[], $10::text[], $11::int8[], $12::bytea[], $13::text[],
                                $14::uuid[], $15::text[], $16::text[], $17::text[], $18::text[], $19::timestamptz[],
                                $20::uuid[])
           ON CONFLICT (id) DO NOTHING"#,
        &columns.ids,
        &columns.sessions,
        &columns.actors as &[&str],
        &columns.runs as &[Option<Uuid>],
        &columns.server_ids as &[Option<Uuid>],
        &columns.servers as &[&str],
        &columns.tools as &[&str],
        &columns.hints,
        &columns.started,
        &columns.arguments as &[&str],
        &columns.bytes,
        &columns.hashes as &[&[u8]],
        &columns.traces as &[&str],
        &columns.replicas,
        &columns.policies as &[&str],
        &columns.modes as &[&str],
        &columns.decisions as &[&str],
        &columns.decided_by as &[&str],
        &columns.decided_at as &[Option<OffsetDateTime>],
        &columns.interactions as &[Option<Uuid>]
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Rows turned into columns, as `unnest` takes them.
struct Columns<'a> {
    ids: Vec<Uuid>,
    sessions: Vec<Uuid>,
    actors: Vec<&'a str>,
    runs: Vec<Option<Uuid>>,
    server_ids: Vec<Option<Uuid>>,
    servers: Vec<&'a str>,
    tools: Vec<&'a str>,
    hints: Vec<i16>,
    started: Vec<OffsetDateTime>,
    arguments: Vec<&'a str>,
    bytes: Vec<i64>,
    hashes: Vec<&'a [u8]>,
    traces: Vec<&'a str>,
    replicas: Vec<Uuid>,
    policies: Vec<&'a str>,
    modes: Vec<&'a str>,
    decisions: Vec<&'a str>,
    decided_by: Vec<&'a str>,
    decided_at: Vec<Option<OffsetDateTime>>,
    interactions: Vec<Option<Uuid>>,
}

impl<'a> Columns<'a> {
    fn of(calls: &[&'a Started]) -> Self {
        Self {
            ids: calls.iter().map(|call| call.id.uuid()).collect(),
            sessions: calls.iter().map(|call| call.session.uuid()).collect(),
            actors: calls.iter().map(|call| call.actor.as_str()).collect(),
            runs: calls.iter().map(|call| call.run.map(gatehouse_types::RunId::uuid)).collect(),
            server_ids: calls.iter().map(|call| call.server_id.map(gatehouse_types::ServerId::uuid)).collect(),
            servers: calls.iter().map(|call| call.server.as_str()).collect(),
            tools: calls.iter().map(|call| call.tool.as_str()).collect(),
            hints: calls.iter().map(|call| call.hints).collect(),
            started: calls.iter().map(|call| call.started_at).collect(),
            arguments: calls.iter().map(|call| call.arguments.as_str()).collect(),
            bytes: calls.iter().map(|call| call.arguments_bytes).collect(),
            hashes: calls.iter().map(|call| call.arguments_sha256.as_slice()).collect(),
            traces: calls.iter().map(|call| call.trace_id.as_str()).collect(),
            replicas: calls.iter().map(|call| call.replica.uuid()).collect(),
            policies: calls.iter().map(|call| call.policy).collect(),
            modes: calls.iter().map(|call| call.mode).collect(),
            decisions: calls.iter().map(|call| call.decided.word).collect(),
            decided_by: calls.iter().map(|call| call.decided.by.as_str()).collect(),
            decided_at: calls.iter().map(|call| call.decided.at).collect(),
            interactions: calls
                .iter()
                .map(|call| call.decided.interaction.map(gatehouse_types::InteractionId::uuid))
                .collect(),
        }
    }
}
