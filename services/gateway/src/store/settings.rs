//! Settings, as an admin changes them. `gatehouse_store::settings` loads them.

use gatehouse_store::{
    epoch,
    settings::{Stored, load},
};
use time::OffsetDateTime;

use super::Connection;
use crate::{error::Error, registry::setting::SettingsChange};

/// Applies a change. Gives the settings before and after it; the counter of changes moves only when they differ.
pub async fn update(
    connection: &mut Connection,
    change: &SettingsChange,
    author: &str,
    now: OffsetDateTime,
) -> Result<(Stored, Stored), Error> {
    let before = load(connection).await?;
    for (key, value) in &change.set {
        sqlx::query!(
            "INSERT INTO settings (key, value, updated_at, updated_by) VALUES ($1, $2, $3, $4)
             ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at,
                 updated_by = excluded.updated_by",
            key,
            value,
            now,
            author
        )
        .execute(&mut *connection)
        .await?;
    }
    let reset: Vec<String> = change.reset.iter().map(|key| (*key).to_owned()).collect();
    sqlx::query!("DELETE FROM settings WHERE key = ANY($1)", &reset).execute(&mut *connection).await?;
    let after = load(connection).await?;
    if after.settings != before.settings {
        epoch::bump_catalog(connection).await?;
    }
    Ok((before, after))
}
