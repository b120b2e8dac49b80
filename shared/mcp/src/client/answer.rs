//! What comes back.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{message::Id, object};

/// The result of a request, as the bytes that the server wrote.
#[derive(Debug, Clone)]
pub struct Answer {
    result: Bytes,
}

impl Answer {
    /// `result` must be one JSON value: it was read as a [`RawValue`].
    pub(crate) fn new(result: Bytes) -> Self {
        Self { result }
    }

    /// The result's bytes. Shares the body's memory.
    pub fn result_bytes(&self) -> Bytes {
        self.result.clone()
    }

    /// The result as JSON text.
    pub fn result_str(&self) -> &str {
        // The message was UTF-8, and a JSON value begins and ends at character boundaries.
        std::str::from_utf8(&self.result).unwrap_or("null")
    }

    /// The result as a JSON value. Reads the text once more: to look into a large result, use [`Answer::parse`] instead.
    pub fn result(&self) -> &RawValue {
        serde_json::from_str(self.result_str()).unwrap_or(RawValue::NULL)
    }

    /// Reads the result into a type that may borrow from it.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.result_str())
    }
}

/// A report of progress.
#[derive(Debug, Clone)]
pub struct Progress<'a> {
    /// How far the work is, in the server's spelling.
    pub progress: &'a RawValue,
    /// How far it will go, when known.
    pub total: Option<&'a RawValue>,
    /// What is being done.
    pub message: Option<Cow<'a, str>>,
    /// All of `params` as it was written.
    pub params: &'a RawValue,
}

#[derive(Deserialize)]
struct ProgressParams<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: &'a RawValue,
    #[serde(borrow)]
    progress: &'a RawValue,
    #[serde(borrow, default)]
    total: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
}

impl<'a> Progress<'a> {
    /// Reads the parameters of `notifications/progress`: the token, if it is one of ours, and the report.
    pub(crate) fn read(params: &'a RawValue) -> Option<(u64, Self)> {
        let read: ProgressParams<'a> = serde_json::from_str(params.get()).ok()?;
        let token = Id::read(read.token)?.number()?;
        let message = read.message.and_then(object::text);
        Some((token, Self { progress: read.progress, total: read.total, message, params }))
    }
}

/// What the result of `initialize` says, read leniently. Whatever is missing or strange is absent; nothing is lost, because the
/// text itself is kept.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct InitializeView<'a> {
    /// The revision that the server chose.
    #[serde(borrow, rename = "protocolVersion", deserialize_with = "lenient_text")]
    pub protocol_version: Option<Cow<'a, str>>,
    /// The server's capabilities, unknown ones included.
    #[serde(borrow)]
    pub capabilities: Option<&'a RawValue>,
    /// Name, version and more.
    #[serde(borrow, rename = "serverInfo")]
    pub server_info: Option<&'a RawValue>,
    /// Advice for a model on how to use the server.
    #[serde(borrow, deserialize_with = "lenient_text")]
    pub instructions: Option<Cow<'a, str>>,
}

impl<'a> InitializeView<'a> {
    /// A capability by its name, such as `tools` or `tasks`.
    pub fn capability(&self, name: &str) -> Option<&'a RawValue> {
        object::Members::read(self.capabilities?).ok()?.get(name).filter(|value| value.get() != "null")
    }

    /// The server's name and version, as far as it says.
    pub fn server(&self) -> (Option<Cow<'a, str>>, Option<Cow<'a, str>>) {
        let members = self.server_info.and_then(|info| object::Members::read(info).ok()).unwrap_or_default();
        let field = |name| members.get(name).and_then(object::text);
        (field("name"), field("version"))
    }
}

fn lenient_text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    let raw: Option<&'de RawValue> = Option::deserialize(deserializer)?;
    Ok(raw.and_then(object::text))
}
