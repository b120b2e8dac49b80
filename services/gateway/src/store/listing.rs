//! Storing what a server lists, and who lists it now.

use std::collections::{HashMap, HashSet};

use gatehouse_store::epoch;
use gatehouse_types::ServerId;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Connection, grants, unsigned};
use crate::{
    error::Error,
    registry::tool::{Changed, ListedTool, ServerFacts, same_capabilities},
};

/// What a row of the cache holds, as far as a listing can change it.
struct Known {
    position: Option<i32>,
    fingerprint: String,
}

/// Stores a listing in place of the one before. Overrides stay; so does the row of a vanished tool that has
/// some, or that an admin acknowledged: one that returns with another definition is not new.
/// Only a real change (definitions, order, capabilities) moves `tools_updated_at` and the counter of changes. The
/// server counts as healthy. `None` when the server was removed meanwhile.
pub async fn replace_listing(
    connection: &mut Connection,
    server: ServerId,
    listed: &[ListedTool],
    facts: &ServerFacts,
    now: OffsetDateTime,
) -> Result<Option<Changed>, Error> {
    let found = sqlx::query!(
        "SELECT capabilities, tools_updated_at, state FROM servers WHERE id = $1 FOR UPDATE",
        server.uuid()
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(found) = found else { return Ok(None) };
    let mut seen = HashSet::with_capacity(listed.len());
    let kept: Vec<&ListedTool> =
        listed.iter().filter(|tool| tool.storable() && seen.insert(tool.name.as_str())).collect();
    let known = known(connection, server).await?;
    let first = found.tools_updated_at.is_none();
    let changed = Changed {
        tools: first || differs(&known, &kept),
        capabilities: first || !same_capabilities(&found.capabilities, &facts.capabilities),
        skipped: listed.len() - kept.len(),
    };
    if changed.tools {
        write_tools(connection, server, &known, &kept, now).await?;
        grants::drop_outdated(connection, server).await?;
    }
    mark_healthy(connection, server, facts, changed.any(), now).await?;
    // Lists say which servers offer nothing and why: the end of a failure counts as a change, too.
    if changed.any() || found.state == "failing" {
        epoch::bump_catalog(connection).await?;
    }
    Ok(Some(changed))
}

async fn known(connection: &mut Connection, server: ServerId) -> Result<HashMap<String, Known>, Error> {
    let rows =
        sqlx::query!("SELECT name, position, fingerprint FROM tools WHERE server_id = $1 FOR UPDATE", server.uuid())
            .fetch_all(connection)
            .await?;
    let known = |position, fingerprint| Known { position, fingerprint };
    Ok(rows.into_iter().map(|row| (row.name, known(row.position, row.fingerprint))).collect())
}

fn differs(known: &HashMap<String, Known>, listed: &[&ListedTool]) -> bool {
    let mut before: Vec<(i32, &str, &str)> = known
        .iter()
        .filter_map(|(name, row)| row.position.map(|position| (position, name.as_str(), row.fingerprint.as_str())))
        .collect();
    before.sort_unstable();
    let after = listed.iter().map(|tool| (tool.name.as_str(), tool.fingerprint.as_str()));
    !before.iter().map(|(_, name, fingerprint)| (*name, *fingerprint)).eq(after)
}

async fn write_tools(
    connection: &mut Connection,
    server: ServerId,
    known: &HashMap<String, Known>,
    listed: &[&ListedTool],
    now: OffsetDateTime,
) -> Result<(), Error> {
    let names: Vec<String> = listed.iter().map(|tool| tool.name.clone()).collect();
    sqlx::query!(
        "DELETE FROM tools WHERE server_id = $1 AND name NOT IN (SELECT unnest($2::text[]))
           AND read_only IS NULL AND destructive IS NULL AND idempotent IS NULL AND policy IS NULL
           AND acknowledged_fingerprint IS NULL",
        server.uuid(),
        &names
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "UPDATE tools SET position = NULL WHERE server_id = $1 AND position IS NOT NULL
           AND name NOT IN (SELECT unnest($2::text[]))",
        server.uuid(),
        &names
    )
    .execute(&mut *connection)
    .await?;
    // A tool whose definition is the same only moves: its text is not sent to the database again.
    let same = |tool: &ListedTool| known.get(&tool.name).is_some_and(|row| row.fingerprint == tool.fingerprint);
    let places: Vec<(i32, &ListedTool)> = listed
        .iter()
        .enumerate()
        .map(|(place, tool)| unsigned("position", place).map(|place| (place, *tool)))
        .collect::<Result<_, Error>>()?;
    let (moved, new): (Vec<_>, Vec<_>) = places.into_iter().partition(|(_, tool)| same(tool));
    move_tools(connection, server, &moved).await?;
    upsert_tools(connection, server, &new, now).await
}

async fn move_tools(connection: &mut Connection, server: ServerId, moved: &[(i32, &ListedTool)]) -> Result<(), Error> {
    let names: Vec<String> = moved.iter().map(|(_, tool)| tool.name.clone()).collect();
    let positions: Vec<i32> = moved.iter().map(|(position, _)| *position).collect();
    sqlx::query!(
        "UPDATE tools SET position = moved.position
         FROM unnest($2::text[], $3::integer[]) AS moved (name, position)
         WHERE tools.server_id = $1 AND tools.name = moved.name AND tools.position IS DISTINCT FROM moved.position",
        server.uuid(),
        &names,
        &positions
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn upsert_tools(
    connection: &mut Connection,
    server: ServerId,
    new: &[(i32, &ListedTool)],
    now: OffsetDateTime,
) -> Result<(), Error> {
    let names: Vec<String> = new.iter().map(|(_, tool)| tool.name.clone()).collect();
    let positions: Vec<i32> = new.iter().map(|(position, _)| *position).collect();
    let definitions: Vec<String> = new.iter().map(|(_, tool)| tool.definition.clone()).collect();
    let fingerprints: Vec<String> = new.iter().map(|(_, tool)| tool.fingerprint.clone()).collect();
    sqlx::query!(
        "INSERT INTO tools (server_id, name, position, definition, fingerprint, changed_at)
         SELECT $1, new.name, new.position, new.definition, new.fingerprint, $6
         FROM unnest($2::text[], $3::integer[], $4::text[], $5::text[]) AS new (name, position, definition, fingerprint)
         ON CONFLICT (server_id, name) DO UPDATE SET position = excluded.position, definition = excluded.definition,
             fingerprint = excluded.fingerprint, changed_at = excluded.changed_at",
        server.uuid(),
        &names,
        &positions,
        &definitions,
        &fingerprints,
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn mark_healthy(
    connection: &mut Connection,
    server: ServerId,
    facts: &ServerFacts,
    changed: bool,
    now: OffsetDateTime,
) -> Result<(), Error> {
    sqlx::query!(
        "UPDATE servers SET state = 'healthy', state_message = '', checked_at = $2, listed_at = $2,
                state_since = CASE WHEN state = 'healthy' THEN state_since ELSE $2 END,
                protocol_version = $3, server_name = $4, server_version = $5, capabilities = $6,
                tools_updated_at = CASE WHEN $7 THEN $2 ELSE tools_updated_at END
         WHERE id = $1",
        server.uuid(),
        now,
        storable(&facts.protocol_version),
        storable(&facts.server_name),
        storable(&facts.server_version),
        storable(&facts.capabilities),
        changed
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Records that a server could not be listed, and why, in words for an admin. False when the server was removed
/// meanwhile.
pub async fn mark_failing(
    connection: &mut Connection,
    server: ServerId,
    message: &str,
    now: OffsetDateTime,
) -> Result<bool, Error> {
    let message = storable(message);
    let found = sqlx::query!("SELECT state, state_message FROM servers WHERE id = $1 FOR UPDATE", server.uuid())
        .fetch_optional(&mut *connection)
        .await?;
    let Some(found) = found else { return Ok(false) };
    sqlx::query!(
        "UPDATE servers SET state = 'failing', state_message = $2, checked_at = $3,
                state_since = CASE WHEN state = 'failing' THEN state_since ELSE $3 END
         WHERE id = $1",
        server.uuid(),
        message,
        now
    )
    .execute(&mut *connection)
    .await?;
    if found.state != "failing" || found.state_message != message {
        epoch::bump_catalog(connection).await?;
    }
    Ok(true)
}

/// Takes the right to list a server until `until`. True for one of all replicas that ask; false while another holds
/// it.
pub async fn claim_refresh(
    connection: &mut Connection,
    server: ServerId,
    lease: Uuid,
    now: OffsetDateTime,
    until: OffsetDateTime,
) -> Result<bool, Error> {
    let done = sqlx::query!(
        "UPDATE servers SET refresh_lease = $2, refresh_lease_until = $4
         WHERE id = $1 AND (refresh_lease IS NULL OR refresh_lease_until <= $3)",
        server.uuid(),
        lease,
        now,
        until
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Gives the right back. False when another has taken it meanwhile, or the server was removed.
pub async fn release_refresh(connection: &mut Connection, server: ServerId, lease: Uuid) -> Result<bool, Error> {
    let done = sqlx::query!(
        "UPDATE servers SET refresh_lease = NULL, refresh_lease_until = NULL WHERE id = $1 AND refresh_lease = $2",
        server.uuid(),
        lease
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// A server's text as Postgres can hold it: U+0000 is the one character that it cannot.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
