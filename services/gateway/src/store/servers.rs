//! Registered servers.

use std::time::Duration;

use gatehouse_platform::error::chain;
use gatehouse_store::epoch;
use gatehouse_types::ServerId;
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Connection, Keyring, Made, as_id, headers, is_taken, known, limit, same_request, unsigned};
use crate::{
    audit::mask::MOST_RULES,
    error::Error,
    registry::{
        header::{self, Headers},
        server::{NewServer, Server, ServerChange, ServerState, Status},
        stdio::Stdio,
    },
};

struct Row {
    id: Uuid,
    name: String,
    description: String,
    enabled: bool,
    url: String,
    stdio: Option<String>,
    header_names: Vec<String>,
    mask_rules: Vec<String>,
    connect_timeout_ms: i32,
    request_timeout_ms: i32,
    max_concurrency: i32,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
    state: String,
    state_message: String,
    state_since: Option<OffsetDateTime>,
    checked_at: Option<OffsetDateTime>,
    protocol_version: String,
    server_name: String,
    server_version: String,
    capabilities: String,
    tools_updated_at: Option<OffsetDateTime>,
    tool_count: i64,
}

impl Row {
    fn into_server(self) -> Result<Server, Error> {
        let millis = |what, number| unsigned(what, number).map(Duration::from_millis);
        Ok(Server {
            id: ServerId::from_uuid(self.id),
            name: self.name,
            description: self.description,
            enabled: self.enabled,
            url: self.url,
            stdio: self.stdio.map(|stdio| known("servers.stdio", Stdio::from_stored(&stdio))).transpose()?,
            header_names: self.header_names,
            mask_rules: self.mask_rules,
            connect_timeout: millis("connect_timeout_ms", self.connect_timeout_ms)?,
            request_timeout: millis("request_timeout_ms", self.request_timeout_ms)?,
            max_concurrency: unsigned("max_concurrency", self.max_concurrency)?,
            status: Status {
                state: known("servers.state", ServerState::from_stored(&self.state))?,
                message: self.state_message,
                since: self.state_since,
                checked_at: self.checked_at,
                protocol_version: self.protocol_version,
                server_name: self.server_name,
                server_version: self.server_version,
                capabilities: self.capabilities,
            },
            tool_count: unsigned("tool_count", self.tool_count)?,
            tools_updated_at: self.tools_updated_at,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

/// A server by id or name, or [`Error::NotFound`].
pub async fn get(connection: &mut Connection, key: &str) -> Result<Server, Error> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT id, name, description, enabled, url, stdio, header_names, mask_rules, connect_timeout_ms,
                  request_timeout_ms, max_concurrency, created_at, updated_at, state, state_message, state_since, checked_at,
                  protocol_version, server_name, server_version, capabilities, tools_updated_at,
                  (SELECT count(*) FROM tools WHERE server_id = servers.id AND position IS NOT NULL) AS "tool_count!"
           FROM servers WHERE id = $1 OR name = $2 ORDER BY (id = $1) IS TRUE DESC LIMIT 1"#,
        as_id(key),
        key
    )
    .fetch_optional(connection)
    .await?;
    row.ok_or_else(|| Error::not_found("server", key))?.into_server()
}

/// Servers in the order of their names: one more than `size`, when there are so many, after the name `after`.
pub async fn list(connection: &mut Connection, after: Option<&str>, size: usize) -> Result<Vec<Server>, Error> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT id, name, description, enabled, url, stdio, header_names, mask_rules, connect_timeout_ms,
                  request_timeout_ms, max_concurrency, created_at, updated_at, state, state_message, state_since, checked_at,
                  protocol_version, server_name, server_version, capabilities, tools_updated_at,
                  (SELECT count(*) FROM tools WHERE server_id = servers.id AND position IS NOT NULL) AS "tool_count!"
           FROM servers WHERE $1::text IS NULL OR name COLLATE "C" > $1 ORDER BY name COLLATE "C" LIMIT $2"#,
        after,
        limit(size)
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(Row::into_server).collect()
}

/// Registers a server. The same `request_id` gives the server that it made before.
pub async fn create(
    connection: &mut Connection,
    keyring: &Keyring,
    new: &NewServer,
    now: OffsetDateTime,
) -> Result<Made<Server>, Error> {
    let id = ServerId::new();
    let digest = new.digest();
    let names: Vec<String> = new.headers.names().map(str::to_owned).collect();
    let inserted = sqlx::query!(
        "INSERT INTO servers (id, name, description, enabled, url, header_names, headers_sealed, connect_timeout_ms,
                              request_timeout_ms, max_concurrency, request_id, request_digest, created_at, updated_at,
                              mask_rules, stdio)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14, $15) ON CONFLICT DO NOTHING",
        id.uuid(),
        new.name,
        new.description,
        new.enabled,
        new.url,
        &names,
        headers::seal(keyring, id, &new.headers)?,
        millis(new.connect_timeout)?,
        millis(new.request_timeout)?,
        unsigned::<i32, _>("max_concurrency", new.max_concurrency)?,
        new.request_id,
        digest.as_slice(),
        now,
        &new.mask_rules,
        new.stdio.as_ref().map(Stdio::to_stored)
    )
    .execute(&mut *connection)
    .await?;
    if inserted.rows_affected() == 1 {
        epoch::bump_catalog(connection).await?;
        return Ok(Made::New(get(connection, &id.to_string()).await?));
    }
    if let Some(request_id) = &new.request_id
        && let Some(before) = made_by(connection, request_id, digest).await?
    {
        return Ok(Made::Before(before));
    }
    Err(name_taken(connection, &new.name).await?)
}

async fn made_by(connection: &mut Connection, request_id: &str, digest: [u8; 32]) -> Result<Option<Server>, Error> {
    let found = sqlx::query!("SELECT id, request_digest FROM servers WHERE request_id = $1", request_id)
        .fetch_optional(&mut *connection)
        .await?;
    let Some(found) = found else { return Ok(None) };
    same_request(request_id, found.request_digest.as_deref(), digest)?;
    get(connection, &found.id.to_string()).await.map(Some)
}

async fn name_taken(connection: &mut Connection, name: &str) -> Result<Error, Error> {
    let taken =
        sqlx::query_scalar!("SELECT name FROM servers WHERE replace(name, '-', '_') = replace($1, '-', '_')", name)
            .fetch_optional(connection)
            .await?;
    Ok(taken_words(name, taken.as_deref()))
}

fn taken_words(name: &str, by: Option<&str>) -> Error {
    let words = match by {
        Some(other) if other != name => {
            format!("`{name}` is too like the server `{other}`: some engines read `-` as `_`; choose another name")
        }
        _ => format!("there is a server `{name}` already; choose another name, or update that one"),
    };
    Error::AlreadyExists(words)
}

/// Changes a server; an empty change changes nothing. A change of URL or headers makes its state unknown, since what
/// was seen was seen elsewhere, and its list of tools due.
pub async fn update(
    connection: &mut Connection,
    keyring: &Keyring,
    key: &str,
    change: &ServerChange,
    now: OffsetDateTime,
) -> Result<Server, Error> {
    let found = sqlx::query!(
        "SELECT id, url, stdio, header_names, headers_sealed, mask_rules FROM servers WHERE id = $1 OR name = $2
         ORDER BY (id = $1) IS TRUE DESC LIMIT 1 FOR UPDATE",
        as_id(key),
        key
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or_else(|| Error::not_found("server", key))?;
    let id = ServerId::from_uuid(found.id);
    if change.is_empty() {
        return get(connection, &id.to_string()).await;
    }
    change.fits(found.stdio.is_some())?;
    let headers = if change.changes_headers() {
        let kept = change.keeps(&found.header_names);
        let old = if kept.is_empty() {
            Headers::default()
        } else {
            headers::open(keyring, id, found.headers_sealed.as_deref()).map_err(|error| cannot_keep(&error, &kept))?
        };
        Some(checked_count(old.changed(&change.set_headers, &change.remove_headers))?)
    } else {
        None
    };
    let other_url = change.url.as_ref().is_some_and(|url| *url != found.url);
    let other_program = change.stdio.as_ref().map(Stdio::to_stored).is_some_and(|stdio| Some(stdio) != found.stdio);
    let elsewhere = headers.is_some() || other_url || other_program;
    write(connection, keyring, id, change, headers.as_ref(), now).await?;
    if change.changes_mask_rules() {
        write_mask_rules(connection, id, &change.mask_rules(&found.mask_rules)).await?;
    }
    if elsewhere {
        forget_state(connection, id, now).await?;
    }
    epoch::bump_catalog(connection).await?;
    get(connection, &id.to_string()).await
}

/// Headers that were sealed with a key that is gone can still be replaced.
fn cannot_keep(error: &Error, kept: &[&str]) -> Error {
    tracing::error!(error.message = %chain(error), "stored headers cannot be unsealed");
    let kept = kept.join("`, `");
    let words = format!(
        "the stored headers cannot be unsealed with the present keyring; set or remove these, too: `{kept}`; \
         or put the key that sealed them back"
    );
    Error::Precondition(words)
}

fn checked_count(headers: Headers) -> Result<Headers, Error> {
    if headers.len() > header::MOST {
        let words = format!("would give the server {} headers; it takes at most {}", headers.len(), header::MOST);
        return Err(Error::field("set_headers", words));
    }
    Ok(headers)
}

async fn write(
    connection: &mut Connection,
    keyring: &Keyring,
    id: ServerId,
    change: &ServerChange,
    headers: Option<&Headers>,
    now: OffsetDateTime,
) -> Result<(), Error> {
    let names: Option<Vec<String>> = headers.map(|headers| headers.names().map(str::to_owned).collect());
    let sealed = headers.map(|headers| headers::seal(keyring, id, headers)).transpose()?.flatten();
    let done = sqlx::query!(
        "UPDATE servers SET name = coalesce($2, name), description = coalesce($3, description), url = coalesce($4, url),
                headers_sealed = CASE WHEN $5::text[] IS NULL THEN headers_sealed ELSE $6 END,
                header_names = coalesce($5, header_names), connect_timeout_ms = coalesce($7, connect_timeout_ms),
                request_timeout_ms = coalesce($8, request_timeout_ms), max_concurrency = coalesce($9, max_concurrency),
                enabled = coalesce($10, enabled), updated_at = $11, stdio = coalesce($12, stdio)
         WHERE id = $1",
        id.uuid(),
        change.name,
        change.description,
        change.url,
        names.as_deref(),
        sealed,
        change.connect_timeout.map(millis).transpose()?,
        change.request_timeout.map(millis).transpose()?,
        change.max_concurrency.map(|number| unsigned::<i32, _>("max_concurrency", number)).transpose()?,
        change.enabled,
        now,
        change.stdio.as_ref().map(Stdio::to_stored)
    )
    .execute(connection)
    .await;
    match (done, &change.name) {
        (Err(error), Some(name)) if is_taken(&error, "servers_name") => Err(taken_words(name, None)),
        (Err(error), _) => Err(error.into()),
        (Ok(done), _) if done.rows_affected() == 1 => Ok(()),
        (Ok(_), _) => Err(Error::Broken("a locked server is gone".to_owned())),
    }
}

async fn write_mask_rules(connection: &mut Connection, id: ServerId, rules: &[String]) -> Result<(), Error> {
    if rules.len() > MOST_RULES {
        let words = format!("would give the server {} rules; it takes at most {MOST_RULES}", rules.len());
        return Err(Error::field("add_mask_rules", words));
    }
    sqlx::query!("UPDATE servers SET mask_rules = $2 WHERE id = $1", id.uuid(), rules).execute(connection).await?;
    Ok(())
}

async fn forget_state(connection: &mut Connection, id: ServerId, now: OffsetDateTime) -> Result<(), Error> {
    sqlx::query!(
        "UPDATE servers SET state = 'unknown', state_message = '', state_since = $2, listed_at = NULL WHERE id = $1",
        id.uuid(),
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes a server with its tools and its places in profiles. Gives its id.
pub async fn delete(connection: &mut Connection, key: &str) -> Result<ServerId, Error> {
    let id = sqlx::query_scalar!(
        "DELETE FROM servers WHERE id = (SELECT id FROM servers WHERE id = $1 OR name = $2
                                         ORDER BY (id = $1) IS TRUE DESC LIMIT 1) RETURNING id",
        as_id(key),
        key
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or_else(|| Error::not_found("server", key))?;
    epoch::bump_catalog(connection).await?;
    Ok(ServerId::from_uuid(id))
}

fn millis(time: Duration) -> Result<i32, Error> {
    unsigned("timeout", time.as_millis())
}
