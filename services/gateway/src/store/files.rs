//! Files saved from results. The row is written before the file, so that the quota holds for calls side by side.

use bytes::Bytes;
use gatehouse_types::{CallId, SessionId};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Connection, limit, unsigned};
use crate::{
    error::Error,
    files::{File, FileToSave, Known},
};

/// A file to list.
#[derive(Debug)]
pub struct NewRow<'a> {
    /// The session.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// Path relative to the workspace.
    pub path: &'a str,
    /// The file.
    pub file: &'a FileToSave,
    /// SHA-256 of its content.
    pub sha256: &'a [u8; 32],
    /// The bytes, when the database is to have them.
    pub content: Option<&'a Bytes>,
    /// The time.
    pub now: OffsetDateTime,
}

struct Row {
    path: String,
    size_bytes: i64,
    media_type: String,
    uri: String,
    call_id: Uuid,
    server: String,
    tool: String,
    created_at: OffsetDateTime,
    in_platform: bool,
    sha256: Vec<u8>,
}

impl Row {
    fn into_file(self) -> Result<File, Error> {
        Ok(File {
            path: self.path,
            size: unsigned("files.size_bytes", self.size_bytes)?,
            media_type: self.media_type,
            uri: self.uri,
            call: CallId::from_uuid(self.call_id),
            server: self.server,
            tool: self.tool,
            created_at: self.created_at,
            in_platform: self.in_platform,
            sha256: self.sha256,
        })
    }
}

/// Holds the files of a session until the transaction ends, and counts their bytes; `None` when there is no such session
/// (any more).
pub async fn lock_and_sum(connection: &mut Connection, session: SessionId) -> Result<Option<u64>, Error> {
    let found = sqlx::query_scalar!(
        "SELECT id FROM sessions WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE",
        session.uuid()
    )
    .fetch_optional(&mut *connection)
    .await?;
    if found.is_none() {
        return Ok(None);
    }
    let sum = sqlx::query_scalar!(
        r#"SELECT coalesce(sum(size_bytes), 0)::bigint AS "sum!" FROM files WHERE session_id = $1"#,
        session.uuid()
    )
    .fetch_one(connection)
    .await?;
    unsigned("files.size_bytes", sum).map(Some)
}

/// The files of a call, in their places.
pub async fn of_call(connection: &mut Connection, call: CallId) -> Result<Vec<Known>, Error> {
    let rows = sqlx::query!(
        r#"SELECT place, path, size_bytes, sha256, content IS NOT NULL AS "in_platform!" FROM files
           WHERE call_id = $1 ORDER BY place"#,
        call.uuid()
    )
    .fetch_all(connection)
    .await?;
    let known = rows.into_iter().map(|row| {
        Ok(Known {
            place: unsigned("files.place", row.place)?,
            name: row.path.rsplit('/').next().unwrap_or_default().to_owned(),
            size: unsigned("files.size_bytes", row.size_bytes)?,
            sha256: row.sha256,
            in_platform: row.in_platform,
        })
    });
    known.collect()
}

/// Lists a file; other content that was listed at its place is no longer.
pub async fn put(connection: &mut Connection, new: &NewRow<'_>) -> Result<(), Error> {
    let done = sqlx::query!(
        "INSERT INTO files (session_id, path, call_id, place, size_bytes, media_type, uri, sha256, content, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (call_id, place) DO UPDATE SET path = excluded.path, size_bytes = excluded.size_bytes,
             media_type = excluded.media_type, uri = excluded.uri, sha256 = excluded.sha256,
             content = excluded.content, created_at = excluded.created_at
         WHERE files.session_id = excluded.session_id",
        new.session.uuid(),
        new.path,
        new.call.uuid(),
        place(new.file.place)?,
        size(new.file.content.len())?,
        new.file.media_type,
        new.file.uri,
        new.sha256.as_slice(),
        new.content.map(Bytes::as_ref),
        new.now
    )
    .execute(connection)
    .await?;
    one(done.rows_affected())
}

/// Says where a listed file really is: its path, and the bytes when the database is to have them.
pub async fn moved(
    connection: &mut Connection,
    call: CallId,
    at: u32,
    path: &str,
    content: Option<&Bytes>,
) -> Result<(), Error> {
    let done = sqlx::query!(
        "UPDATE files SET path = $3, content = $4 WHERE call_id = $1 AND place = $2",
        call.uuid(),
        place(at)?,
        path,
        content.map(Bytes::as_ref)
    )
    .execute(connection)
    .await?;
    one(done.rows_affected())
}

/// Takes a file out of the list. One that is not there is no error.
pub async fn forget(connection: &mut Connection, call: CallId, at: u32) -> Result<(), Error> {
    sqlx::query!("DELETE FROM files WHERE call_id = $1 AND place = $2", call.uuid(), place(at)?)
        .execute(connection)
        .await?;
    Ok(())
}

/// Files of a session, the newest first: one more than `size`, when there are so many, after the time and path `after`.
pub async fn list(
    connection: &mut Connection,
    session: SessionId,
    after: Option<&(OffsetDateTime, String)>,
    size: usize,
) -> Result<Vec<File>, Error> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT path, size_bytes, media_type, uri, call_id, coalesce(calls.server, '') AS "server!",
                  coalesce(calls.tool, '') AS "tool!", created_at, content IS NOT NULL AS "in_platform!", sha256
           FROM files LEFT JOIN calls ON calls.id = call_id
           WHERE files.session_id = $1
             AND ($2::timestamptz IS NULL OR created_at < $2 OR created_at = $2 AND path COLLATE "C" > $3)
           ORDER BY created_at DESC, path COLLATE "C" LIMIT $4"#,
        session.uuid(),
        after.map(|(at, _)| *at),
        after.map(|(_, path)| path.as_str()),
        limit(size)
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter().map(Row::into_file).collect()
}

/// The file at a path, or [`Error::NotFound`].
pub async fn get(connection: &mut Connection, session: SessionId, path: &str) -> Result<File, Error> {
    let row = sqlx::query_as!(
        Row,
        r#"SELECT path, size_bytes, media_type, uri, call_id, coalesce(calls.server, '') AS "server!",
                  coalesce(calls.tool, '') AS "tool!", created_at, content IS NOT NULL AS "in_platform!", sha256
           FROM files LEFT JOIN calls ON calls.id = call_id
           WHERE files.session_id = $1 AND path = $2"#,
        session.uuid(),
        path
    )
    .fetch_optional(connection)
    .await?;
    row.ok_or_else(|| Error::not_found("file of this session", path))?.into_file()
}

/// A part of the bytes that the database has; `None` when it has none.
pub async fn slice(
    connection: &mut Connection,
    session: SessionId,
    path: &str,
    offset: u64,
    length: u32,
) -> Result<Option<Bytes>, Error> {
    // A file is far below 2 GiB: the limit of a result is.
    let from = i32::try_from(offset).map_err(|_| Error::Broken("a file is out of range".to_owned()))?;
    let length = i32::try_from(length).unwrap_or(i32::MAX);
    let found = sqlx::query_scalar!(
        "SELECT substring(content FROM $3::int + 1 FOR $4::int) FROM files WHERE session_id = $1 AND path = $2",
        session.uuid(),
        path,
        from,
        length
    )
    .fetch_optional(connection)
    .await?;
    Ok(found.flatten().map(Bytes::from))
}

fn place(place: u32) -> Result<i32, Error> {
    i32::try_from(place).map_err(|_| Error::Broken("a place in a result is out of range".to_owned()))
}

fn size(bytes: usize) -> Result<i64, Error> {
    i64::try_from(bytes).map_err(|_| Error::Broken("the size of a file is out of range".to_owned()))
}

fn one(rows: u64) -> Result<(), Error> {
    if rows == 1 { Ok(()) } else { Err(Error::Broken("the row of a file is gone".to_owned())) }
}
