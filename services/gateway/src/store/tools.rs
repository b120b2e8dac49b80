//! The tool cache, as an admin sees and overrides it. `listing` fills it.

use gatehouse_store::{epoch, events};
use gatehouse_types::{Policy, ServerId, hints::DeclaredHints};
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Connection, known, limit};
use crate::{
    error::Error,
    registry::tool::{Overrides, Tool, ToolChange},
};

struct Row {
    server_id: Uuid,
    server: String,
    name: String,
    definition: String,
    fingerprint: String,
    changed_at: OffsetDateTime,
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    policy: Option<String>,
}

impl Row {
    fn into_tool(self) -> Result<Tool, Error> {
        Ok(Tool {
            server_id: ServerId::from_uuid(self.server_id),
            server: self.server,
            name: self.name,
            definition: self.definition,
            fingerprint: self.fingerprint,
            changed_at: self.changed_at,
            overrides: overrides(self.read_only, self.destructive, self.idempotent, self.policy.as_deref())?,
        })
    }
}

fn overrides(
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    policy: Option<&str>,
) -> Result<Overrides, Error> {
    let policy = policy.map(|word| known("tools.policy", Policy::parse(word))).transpose()?;
    Ok(Overrides { hints: DeclaredHints { read_only, destructive, idempotent, open_world: None }, policy })
}

/// Tools that servers list, in the order of server and tool name: one more than `size`, when there are so many, after
/// `after` (server, tool); of one server or of all.
pub async fn list(
    connection: &mut Connection,
    server: Option<ServerId>,
    after: Option<(&str, &str)>,
    size: usize,
) -> Result<Vec<Tool>, Error> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT tools.server_id, servers.name AS server, tools.name, tools.definition, tools.fingerprint,
                  tools.changed_at, tools.read_only, tools.destructive, tools.idempotent, tools.policy
           FROM tools JOIN servers ON servers.id = tools.server_id
           WHERE tools.position IS NOT NULL AND ($1::uuid IS NULL OR tools.server_id = $1)
             AND ($2::text IS NULL OR (servers.name COLLATE "C", tools.name COLLATE "C") > ($2, $3))
           ORDER BY servers.name COLLATE "C", tools.name COLLATE "C" LIMIT $4"#,
        server.map(ServerId::uuid),
        after.map(|(server, _)| server),
        after.map(|(_, tool)| tool),
        limit(size)
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(Row::into_tool).collect()
}

/// Every pair of server and tool name that servers list: what the names for engines are made of.
pub async fn names(connection: &mut Connection) -> Result<Vec<(String, String)>, Error> {
    let rows = sqlx::query!(
        "SELECT servers.name AS server, tools.name AS tool FROM tools JOIN servers ON servers.id = tools.server_id
         WHERE tools.position IS NOT NULL"
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| (row.server, row.tool)).collect())
}

/// Changes the overrides of a tool, also of one that its server does not list now. Such a tool is forgotten with the last
/// thing that an admin said of it. `by` is the caller, for the event `tools.overridden`. Gives the tool after the change.
pub async fn update(
    connection: &mut Connection,
    server: ServerId,
    tool: &str,
    change: &ToolChange,
    by: &str,
) -> Result<Tool, Error> {
    let now = sqlx::query!(
        "SELECT read_only, destructive, idempotent, policy FROM tools WHERE server_id = $1 AND name = $2 FOR UPDATE",
        server.uuid(),
        tool
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or_else(|| Error::not_found("tool", tool))?;
    let now = overrides(now.read_only, now.destructive, now.idempotent, now.policy.as_deref())?;
    let after = change.applied(now);
    let row = sqlx::query_as!(
        Row,
        "UPDATE tools SET read_only = $3, destructive = $4, idempotent = $5, policy = $6 FROM servers
         WHERE tools.server_id = $1 AND tools.name = $2 AND servers.id = tools.server_id
         RETURNING tools.server_id, servers.name AS server, tools.name, tools.definition, tools.fingerprint,
                   tools.changed_at, tools.read_only, tools.destructive, tools.idempotent, tools.policy",
        server.uuid(),
        tool,
        after.hints.read_only,
        after.hints.destructive,
        after.hints.idempotent,
        after.policy.map(Policy::as_str)
    )
    .fetch_one(&mut *connection)
    .await?;
    sqlx::query!(
        "DELETE FROM tools WHERE server_id = $1 AND name = $2 AND position IS NULL AND read_only IS NULL
           AND destructive IS NULL AND idempotent IS NULL AND policy IS NULL AND acknowledged_fingerprint IS NULL",
        server.uuid(),
        tool
    )
    .execute(&mut *connection)
    .await?;
    if after != now {
        events::append(connection, None, "tools.overridden", &overridden(&row, after, by)).await?;
        epoch::bump_catalog(connection).await?;
    }
    row.into_tool()
}

fn overridden(row: &Row, after: Overrides, by: &str) -> Value {
    json!({
        "server": row.server,
        "tool": row.name,
        "by": by,
        "policy": after.policy,
        "readOnly": after.hints.read_only,
        "destructive": after.hints.destructive,
        "idempotent": after.hints.idempotent,
    })
}
