//! Between the types of the proto files and those of the core. The core never sees a generated type.

mod audit;
mod files;
mod grants;
pub(crate) mod interactions;
mod keys;
mod profiles;
mod servers;
mod sessions;
mod settings;
mod stdio;
mod tools;
mod upstream;

use time::OffsetDateTime;

pub use self::{
    audit::{ListCalls, call_key},
    files::{ListFiles, file_key},
    grants::grants_to_revoke,
    keys::{CreateKey, ListKeys, key_to_revoke},
    profiles::ListProfiles,
    servers::ListServers,
    sessions::{BeginRun, ListSessions, TokenOf, mcp_session, run_to_end, token_to_revoke},
    settings::settings,
    tools::{AcknowledgeTools, ListTools, UpdateTool, tool},
    upstream::{call_request, test_target},
};
use crate::{
    error::Error,
    registry::{
        check::Fields,
        page::{self, List},
        text,
    },
};

/// A checked change, and what is to be changed.
#[derive(Debug)]
pub struct Change<T> {
    /// Id or name.
    pub key: String,
    /// The change.
    pub change: T,
}

/// A time on the wire.
fn timestamp(at: OffsetDateTime) -> prost_types::Timestamp {
    // A nanosecond of a second is below 10⁹.
    prost_types::Timestamp { seconds: at.unix_timestamp(), nanos: i32::try_from(at.nanosecond()).unwrap_or_default() }
}

/// A time from the wire.
fn time(at: prost_types::Timestamp) -> Result<OffsetDateTime, String> {
    let words = || "takes a time between the years 1 and 9999".to_owned();
    let second = OffsetDateTime::from_unix_timestamp(at.seconds).map_err(|_| words())?;
    let nanos = u32::try_from(at.nanos).map_err(|_| words())?;
    second.replace_nanosecond(nanos).map_err(|_| words())
}

/// A length of time on the wire.
fn duration(length: std::time::Duration) -> prost_types::Duration {
    let seconds = i64::try_from(length.as_secs()).unwrap_or(i64::MAX);
    prost_types::Duration { seconds, nanos: i32::try_from(length.subsec_nanos()).unwrap_or_default() }
}

/// A length of time from the wire.
fn length(length: prost_types::Duration) -> Result<std::time::Duration, String> {
    let words = || "takes a length of time that is not negative".to_owned();
    let seconds = u64::try_from(length.seconds).map_err(|_| words())?;
    let nanos = u32::try_from(length.nanos).ok().filter(|nanos| *nanos < 1_000_000_000).ok_or_else(words)?;
    Ok(std::time::Duration::new(seconds, nanos))
}

/// The one id or name that a request is about.
pub fn lookup(field: &str, text: &str) -> Result<String, Error> {
    text::lookup(text).map_err(|words| Error::field(field, words))
}

/// The size of a page and the key in its token.
fn page<const N: usize>(fields: &mut Fields, size: i32, token: &str, list: &List<'_>) -> (usize, Option<[String; N]>) {
    let size = fields.take("page_size", page::size(size));
    let key = list.key::<N>(token).unwrap_or_else(|words| {
        fields.wrong("page_token", words);
        None
    });
    (size, key)
}

/// `INVALID_ARGUMENT` is for the field; a filter that is empty is none.
fn filter(fields: &mut Fields, field: &str, text: &str) -> Option<String> {
    fields.take(field, text::filter(text))
}
