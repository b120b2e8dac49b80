//! Profiles and the servers in them.

use std::collections::HashMap;

use gatehouse_store::epoch;
use gatehouse_types::{ProfileId, ServerId};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{Connection, Made, as_id, is_taken, limit, same_request};
use crate::{
    error::Error,
    registry::{
        check::Fields,
        profile::{Member, MemberRef, NewProfile, Profile, ProfileChange, merged},
    },
};

struct Row {
    id: Uuid,
    name: String,
    description: String,
    created_at: OffsetDateTime,
    updated_at: OffsetDateTime,
}

impl Row {
    fn with(self, servers: Vec<Member>) -> Profile {
        Profile {
            id: ProfileId::from_uuid(self.id),
            name: self.name,
            description: self.description,
            servers,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// A profile by id or name, or [`Error::NotFound`].
pub async fn get(connection: &mut Connection, key: &str) -> Result<Profile, Error> {
    let row = sqlx::query_as!(
        Row,
        "SELECT id, name, description, created_at, updated_at FROM profiles WHERE id = $1 OR name = $2
         ORDER BY (id = $1) IS TRUE DESC LIMIT 1",
        as_id(key),
        key
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or_else(|| Error::not_found("profile", key))?;
    let servers = members(connection, &[row.id]).await?.remove(&row.id).unwrap_or_default();
    Ok(row.with(servers))
}

/// Profiles in the order of their names: one more than `size`, when there are so many, after the name `after`.
pub async fn list(connection: &mut Connection, after: Option<&str>, size: usize) -> Result<Vec<Profile>, Error> {
    let rows = sqlx::query_as!(
        Row,
        r#"SELECT id, name, description, created_at, updated_at FROM profiles
           WHERE $1::text IS NULL OR name COLLATE "C" > $1 ORDER BY name COLLATE "C" LIMIT $2"#,
        after,
        limit(size)
    )
    .fetch_all(&mut *connection)
    .await?;
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let mut members = members(connection, &ids).await?;
    let mut with_servers = |row: Row| {
        let servers = members.remove(&row.id).unwrap_or_default();
        row.with(servers)
    };
    Ok(rows.into_iter().map(&mut with_servers).collect())
}

async fn members(connection: &mut Connection, profiles: &[Uuid]) -> Result<HashMap<Uuid, Vec<Member>>, Error> {
    let rows = sqlx::query!(
        r#"SELECT profile_id, server_id, servers.name, tools FROM profile_servers
           JOIN servers ON servers.id = server_id WHERE profile_id = ANY($1) ORDER BY servers.name COLLATE "C""#,
        profiles
    )
    .fetch_all(connection)
    .await?;
    let mut members: HashMap<Uuid, Vec<Member>> = HashMap::new();
    for row in rows {
        let member = Member { id: ServerId::from_uuid(row.server_id), server: row.name, tools: row.tools };
        members.entry(row.profile_id).or_default().push(member);
    }
    Ok(members)
}

/// Makes a profile. The same `request_id` gives the profile that it made before.
pub async fn create(
    connection: &mut Connection,
    new: &NewProfile,
    now: OffsetDateTime,
) -> Result<Made<Profile>, Error> {
    let id = ProfileId::new();
    let digest = new.digest();
    let inserted = sqlx::query!(
        "INSERT INTO profiles (id, name, description, request_id, request_digest, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT DO NOTHING",
        id.uuid(),
        new.name,
        new.description,
        new.request_id,
        digest.as_slice(),
        now
    )
    .execute(&mut *connection)
    .await?;
    if inserted.rows_affected() == 1 {
        let servers = resolve(connection, "servers", &new.servers).await?;
        put_members(connection, id, &servers).await?;
        epoch::bump_catalog(connection).await?;
        return Ok(Made::New(get(connection, &id.to_string()).await?));
    }
    if let Some(request_id) = &new.request_id {
        let before = sqlx::query!("SELECT id, request_digest FROM profiles WHERE request_id = $1", request_id)
            .fetch_optional(&mut *connection)
            .await?;
        if let Some(before) = before {
            same_request(request_id, before.request_digest.as_deref(), digest)?;
            return Ok(Made::Before(get(connection, &before.id.to_string()).await?));
        }
    }
    Err(taken(&new.name))
}

fn taken(name: &str) -> Error {
    Error::AlreadyExists(format!("there is a profile `{name}` already; choose another name, or update that one"))
}

/// Changes a profile; an empty change changes nothing.
pub async fn update(
    connection: &mut Connection,
    key: &str,
    change: &ProfileChange,
    now: OffsetDateTime,
) -> Result<Profile, Error> {
    let id = sqlx::query_scalar!(
        "SELECT id FROM profiles WHERE id = $1 OR name = $2 ORDER BY (id = $1) IS TRUE DESC LIMIT 1 FOR UPDATE",
        as_id(key),
        key
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or_else(|| Error::not_found("profile", key))?;
    let profile = get(connection, &id.to_string()).await?;
    if change.is_empty() {
        return Ok(profile);
    }
    if !change.set_servers.is_empty() || !change.remove_servers.is_empty() {
        let servers = changed_members(connection, profile.servers, change).await?;
        put_members(connection, profile.id, &servers).await?;
    }
    let done = sqlx::query!(
        "UPDATE profiles SET name = coalesce($2, name), description = coalesce($3, description), updated_at = $4
         WHERE id = $1",
        id,
        change.name,
        change.description,
        now
    )
    .execute(&mut *connection)
    .await;
    match (done, &change.name) {
        (Err(error), Some(name)) if is_taken(&error, "profiles_name_key") => return Err(taken(name)),
        (Err(error), _) => return Err(error.into()),
        (Ok(done), _) if done.rows_affected() == 1 => {}
        (Ok(_), _) => return Err(Error::Broken("a locked profile is gone".to_owned())),
    }
    epoch::bump_catalog(connection).await?;
    get(connection, &id.to_string()).await
}

async fn changed_members(
    connection: &mut Connection,
    now: Vec<Member>,
    change: &ProfileChange,
) -> Result<Vec<Member>, Error> {
    let set = resolve(connection, "set_servers", &change.set_servers).await?;
    let as_member = |server: &String| MemberRef { server: server.clone(), tools: None };
    let remove: Vec<MemberRef> = change.remove_servers.iter().map(as_member).collect();
    let remove: Vec<ServerId> =
        resolve(connection, "remove_servers", &remove).await?.iter().map(|member| member.id).collect();
    if let Some(place) = set.iter().position(|member| remove.contains(&member.id)) {
        return Err(Error::field(format!("set_servers[{place}]"), "is taken out by the same request"));
    }
    merged(now, set, &remove).map_err(|words| Error::field("set_servers", words))
}

/// The servers of these ids or names, locked against removal. Each that is unknown, or there twice, is named by its
/// place.
async fn resolve(connection: &mut Connection, field: &str, given: &[MemberRef]) -> Result<Vec<Member>, Error> {
    let names: Vec<String> = given.iter().map(|member| member.server.clone()).collect();
    let ids: Vec<Uuid> = names.iter().filter_map(|name| as_id(name)).collect();
    let rows = sqlx::query!(
        "SELECT id, name FROM servers WHERE id = ANY($1) OR name = ANY($2) ORDER BY id FOR KEY SHARE",
        &ids,
        &names
    )
    .fetch_all(connection)
    .await?;
    let mut fields = Fields::new();
    let mut members: Vec<Member> = Vec::with_capacity(given.len());
    for (place, member) in given.iter().enumerate() {
        let by_id = as_id(&member.server).and_then(|id| rows.iter().find(|row| row.id == id));
        let Some(row) = by_id.or_else(|| rows.iter().find(|row| row.name == member.server)) else {
            fields.wrong(format!("{field}[{place}]"), format!("names no server: there is no `{}`", member.server));
            continue;
        };
        let id = ServerId::from_uuid(row.id);
        if members.iter().any(|other| other.id == id) {
            fields.wrong(format!("{field}[{place}]"), format!("names the server `{}` again", row.name));
            continue;
        }
        members.push(Member { id, server: row.name.clone(), tools: member.tools.clone() });
    }
    fields.finish(members)
}

async fn put_members(connection: &mut Connection, profile: ProfileId, members: &[Member]) -> Result<(), Error> {
    let ids: Vec<Uuid> = members.iter().map(|member| member.id.uuid()).collect();
    sqlx::query!("DELETE FROM profile_servers WHERE profile_id = $1 AND server_id <> ALL($2)", profile.uuid(), &ids)
        .execute(&mut *connection)
        .await?;
    for member in members {
        sqlx::query!(
            "INSERT INTO profile_servers (profile_id, server_id, tools) VALUES ($1, $2, $3)
             ON CONFLICT (profile_id, server_id) DO UPDATE SET tools = excluded.tools
             WHERE profile_servers.tools IS DISTINCT FROM excluded.tools",
            profile.uuid(),
            member.id.uuid(),
            member.tools.as_deref()
        )
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Removes a profile. [`Error::Precondition`] while a session uses it.
pub async fn delete(connection: &mut Connection, key: &str) -> Result<(), Error> {
    // The lock keeps sessions from being made with it meanwhile: see `sessions::lock_profile`.
    let profile = sqlx::query!(
        "SELECT id, name FROM profiles WHERE id = $1 OR name = $2 ORDER BY (id = $1) IS TRUE DESC LIMIT 1 FOR UPDATE",
        as_id(key),
        key
    )
    .fetch_optional(&mut *connection)
    .await?
    .ok_or_else(|| Error::not_found("profile", key))?;
    let users = sqlx::query_scalar!(
        r#"SELECT count(*) AS "count!" FROM sessions WHERE profile_id = $1 AND deleted_at IS NULL"#,
        profile.id
    )
    .fetch_one(&mut *connection)
    .await?;
    if users > 0 {
        let words = format!(
            "{users} sessions use the profile `{}`; delete them or give them another profile first",
            profile.name
        );
        return Err(Error::Precondition(words));
    }
    let done = sqlx::query!("DELETE FROM profiles WHERE id = $1", profile.id).execute(&mut *connection).await?;
    if done.rows_affected() != 1 {
        return Err(Error::Broken("a locked profile is gone".to_owned()));
    }
    epoch::bump_catalog(connection).await?;
    Ok(())
}
