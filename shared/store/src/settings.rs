//! Settings as stored: a row for each one that differs from its default.

use gatehouse_types::Settings;
use serde_json::Value;
use sqlx::PgConnection;
use time::OffsetDateTime;

/// A stored setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Name, such as `tools.maxDescriptionChars`.
    pub key: String,
    /// The value.
    pub value: Value,
    /// When it was last changed.
    pub updated_at: OffsetDateTime,
    /// Name of the caller that changed it.
    pub updated_by: String,
}

/// The settings in force, and the rows that made them so.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Defaults, with the valid rows applied.
    pub settings: Settings,
    /// The valid rows, in the order of their keys.
    pub rows: Vec<Row>,
}

/// Loads the settings. A row that this version does not know, or whose value is out of bounds, is logged and left out:
/// a row that a newer version wrote must not stop this one.
pub async fn load(connection: &mut PgConnection) -> Result<Stored, sqlx::Error> {
    let rows = sqlx::query_as!(Row, "SELECT key, value, updated_at, updated_by FROM settings ORDER BY key")
        .fetch_all(connection)
        .await?;
    let mut settings = Settings::default();
    let rows = rows
        .into_iter()
        .filter(|row| match settings.set(&row.key, &row.value) {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(setting.key = row.key, error.message = %error, "stored setting is left out");
                false
            }
        })
        .collect();
    Ok(Stored { settings, rows })
}
