//! What has changed.

use std::time::Duration;

use gatehouse_types::InteractionId;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Connection, DbError, cards::Row};
use crate::{card::Card, error::Error};

/// A card that is open or was closed lately.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// Its id.
    pub id: InteractionId,
    /// Its version.
    pub version: i64,
    /// Whether it is open.
    pub open: bool,
}

/// A reading of the table.
#[derive(Debug)]
pub struct Heads {
    /// The database's time just before it.
    pub at: OffsetDateTime,
    /// Every card that was open, or closed since the time asked for.
    pub cards: Vec<Head>,
}

/// Reads which cards are open or were closed since `since`; without that, within the time `lately` before now.
pub async fn heads(
    connection: &mut Connection,
    since: Option<OffsetDateTime>,
    lately: Duration,
) -> Result<Heads, DbError> {
    let at = super::now(connection).await?;
    let rows = sqlx::query!(
        r#"SELECT id AS "id!", version AS "version!", true AS "open!" FROM interactions WHERE state = 'open'
           UNION ALL
           SELECT id, version, false FROM interactions WHERE closed_at > $1"#,
        since.unwrap_or(at - lately)
    )
    .fetch_all(connection)
    .await?;
    let head = |row: (Uuid, i64, bool)| Head { id: InteractionId::from_uuid(row.0), version: row.1, open: row.2 };
    Ok(Heads { at, cards: rows.into_iter().map(|row| head((row.id, row.version, row.open))).collect() })
}

/// These cards, in the order in which they were last changed. A row that is broken is an error of its own.
pub async fn cards(connection: &mut Connection, ids: &[InteractionId]) -> Result<Vec<Result<Card, Error>>, DbError> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
    let rows = sqlx::query_as!(
        Row,
        "SELECT id, state, session_id, actor, run_id, call_id, server, tool, card, arguments_sha256, terms_sha256,
                created_at, expires_at, closed_at, answer, reason, answered_by, answered_at, version
         FROM interactions WHERE id = ANY($1) ORDER BY coalesce(closed_at, created_at), id",
        &ids
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Row::into_card).collect())
}
