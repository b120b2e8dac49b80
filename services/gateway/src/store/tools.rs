//! The tool cache, as an admin sees and overrides it. `listing` fills it.

use gatehouse_store::epoch;
use gatehouse_types::{ServerId, hints::DeclaredHints};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Connection, limit};
use crate::{
    error::Error,
    registry::tool::{Tool, ToolChange},
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
}

impl From<Row> for Tool {
    fn from(row: Row) -> Self {
        Self {
            server_id: ServerId::from_uuid(row.server_id),
            server: row.server,
            name: row.name,
            definition: row.definition,
            fingerprint: row.fingerprint,
            changed_at: row.changed_at,
            overrides: DeclaredHints {
                read_only: row.read_only,
                destructive: row.destructive,
                idempotent: row.idempotent,
                open_world: None,
            },
        }
    }
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
                  tools.changed_at, tools.read_only, tools.destructive, tools.idempotent
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
    Ok(rows.into_iter().map(Tool::from).collect())
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

/// Changes the overrides of a tool, also of one that its server does not list now. Such a tool is forgotten with its
/// last override. Gives the tool after the change.
pub async fn update(
    connection: &mut Connection,
    server: ServerId,
    tool: &str,
    change: &ToolChange,
) -> Result<Tool, Error> {
    let now = sqlx::query!(
        "SELECT read_only, destructive, idempotent FROM tools WHERE server_id = $1 AND name = $2 FOR UPDATE",
        server.uuid(),
        tool
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or_else(|| Error::not_found("tool", tool))?;
    let now = DeclaredHints {
        read_only: now.read_only,
        destructive: now.destructive,
        idempotent: now.idempotent,
        open_world: None,
    };
    let after = change.applied(now);
    let row = sqlx::query_as!(
        Row,
        "UPDATE tools SET read_only = $3, destructive = $4, idempotent = $5 FROM servers
         WHERE tools.server_id = $1 AND tools.name = $2 AND servers.id = tools.server_id
         RETURNING tools.server_id, servers.name AS server, tools.name, tools.definition, tools.fingerprint,
                   tools.changed_at, tools.read_only, tools.destructive, tools.idempotent",
        server.uuid(),
        tool,
        after.read_only,
        after.destructive,
        after.idempotent
    )
    .fetch_one(&mut *connection)
    .await?;
    sqlx::query!(
        "DELETE FROM tools WHERE server_id = $1 AND name = $2 AND position IS NULL
           AND read_only IS NULL AND destructive IS NULL AND idempotent IS NULL",
        server.uuid(),
        tool
    )
    .execute(&mut *connection)
    .await?;
    if after != now {
        epoch::bump_catalog(connection).await?;
    }
    Ok(row.into())
}
