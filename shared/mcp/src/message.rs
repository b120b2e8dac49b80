//! Pure
//!
//! One JSON-RPC 2.0 message, read in one pass and borrowed from its bytes. Payloads stay the text they came as.

use std::{borrow::Cow, fmt};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::scan::{self, Fault};

/// What was sent is no JSON at all.
pub const PARSE_ERROR: i64 = -32_700;
/// JSON, but no message.
pub const INVALID_REQUEST: i64 = -32_600;
/// The receiver has no such method.
pub const METHOD_NOT_FOUND: i64 = -32_601;
/// The parameters do not fit the method.
pub const INVALID_PARAMS: i64 = -32_602;
/// The receiver failed.
pub const INTERNAL_ERROR: i64 = -32_603;

/// Deepest nesting that is let through by default. A tree this deep is read by any parser; a deeper one is an attack on one.
pub const MOST_DEPTH: usize = 128;

/// A request's id in the sender's spelling: a number or a string with its quotes. It is echoed, never interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id<'a>(&'a str);

impl<'a> Id<'a> {
    /// The id as JSON text.
    pub const fn as_json(self) -> &'a str {
        self.0
    }

    /// The number that the id is, or that its string spells: some servers turn the numbers they are sent into strings.
    pub fn number(self) -> Option<u64> {
        let digits = self.0.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(self.0);
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse().ok()).flatten()
    }

    /// Reads an id; `None` for anything but a string or a number.
    pub fn read(raw: &'a RawValue) -> Option<Self> {
        Self::from_text(raw.get())
    }

    fn from_text(json: &'a str) -> Option<Self> {
        let first = json.as_bytes().first()?;
        matches!(first, b'"' | b'-' | b'0'..=b'9').then_some(Self(json))
    }
}

impl fmt::Display for Id<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A message. Members that JSON-RPC does not name are kept in `extra` of [`Parsed`].
#[derive(Debug, Clone)]
pub enum Message<'a> {
    /// Asks for an answer.
    Request {
        /// To be echoed.
        id: Id<'a>,
        /// The method's name.
        method: Cow<'a, str>,
        /// An object or an array, if there is any.
        params: Option<&'a RawValue>,
    },
    /// Asks for none.
    Notification {
        /// The method's name.
        method: Cow<'a, str>,
        /// An object or an array, if there is any.
        params: Option<&'a RawValue>,
    },
    /// Answers a request.
    Result {
        /// The request's id.
        id: Id<'a>,
        /// Whatever the request brought: the text of one JSON value.
        result: &'a str,
    },
    /// Refuses a request, or a message whose id could not be read.
    Error {
        /// The request's id; absent when it is missing or `null`.
        id: Option<Id<'a>>,
        /// Why.
        error: ErrorObject<'a>,
    },
}

/// The error of an answer.
#[derive(Debug, Clone, Deserialize)]
pub struct ErrorObject<'a> {
    /// The kind of error.
    pub code: i64,
    /// For people.
    #[serde(borrow, default)]
    pub message: Cow<'a, str>,
    /// Whatever else the sender says, as it was written.
    #[serde(borrow, default)]
    pub data: Option<&'a RawValue>,
}

/// A message and what JSON-RPC does not know of it.
#[derive(Debug, Clone)]
pub struct Parsed<'a> {
    /// The message.
    pub message: Message<'a>,
    /// Top-level members that JSON-RPC does not name, as they were written.
    pub extra: Vec<(Cow<'a, str>, &'a str)>,
}

/// What was read is no message. Carries the JSON-RPC error to give.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct Malformed {
    /// [`PARSE_ERROR`] or [`INVALID_REQUEST`].
    pub code: i64,
    /// What is wrong, in words for the sender.
    pub words: &'static str,
    /// The id to answer with, as JSON text, when it could be read.
    pub id: Option<String>,
}

/// Reads one message; nesting below `most_depth`. The caller bounds the size.
pub fn parse(bytes: &[u8], most_depth: usize) -> Result<Parsed<'_>, Malformed> {
    let text = std::str::from_utf8(bytes).map_err(|_| malformed(PARSE_ERROR, "the message is not UTF-8"))?;
    let text = text.trim_ascii();
    match text.as_bytes().first() {
        Some(b'{') => {}
        Some(b'[') => return Err(malformed(INVALID_REQUEST, "batches are not part of this protocol")),
        Some(_) => return Err(not_an_object(text)),
        None => return Err(malformed(PARSE_ERROR, "the message is empty")),
    }
    let members = scan::members(text, most_depth).map_err(|fault| match fault {
        Fault::Invalid => malformed(PARSE_ERROR, "the message is not valid JSON"),
        Fault::TooDeep => malformed(INVALID_REQUEST, "the message is nested too deeply"),
    })?;
    let mut envelope = Envelope::default();
    for (name, value) in members {
        envelope.put(name, value);
    }
    envelope.into_message()
}

fn malformed(code: i64, words: &'static str) -> Malformed {
    Malformed { code, words, id: None }
}

fn not_an_object(text: &str) -> Malformed {
    if serde_json::from_str::<&RawValue>(text).is_ok() {
        malformed(INVALID_REQUEST, "the message is not an object")
    } else {
        malformed(PARSE_ERROR, "the message is not valid JSON")
    }
}

#[derive(Default)]
struct Envelope<'a> {
    version: Option<&'a str>,
    id: Option<&'a str>,
    method: Option<&'a str>,
    params: Option<&'a str>,
    result: Option<&'a str>,
    error: Option<&'a str>,
    extra: Vec<(Cow<'a, str>, &'a str)>,
    twice: bool,
}

impl<'a> Envelope<'a> {
    fn put(&mut self, name: Cow<'a, str>, value: &'a str) {
        let place = match name.as_ref() {
            "jsonrpc" => &mut self.version,
            "id" => &mut self.id,
            "method" => &mut self.method,
            "params" => &mut self.params,
            "result" => &mut self.result,
            "error" => &mut self.error,
            _ => {
                self.twice |= self.extra.iter().any(|(known, _)| *known == name);
                self.extra.push((name, value));
                return;
            }
        };
        self.twice |= place.replace(value).is_some();
    }

    fn into_message(self) -> Result<Parsed<'a>, Malformed> {
        let id = self.id.and_then(Id::from_text);
        let refuse = |words| Err(Malformed { code: INVALID_REQUEST, words, id: id.map(|id| id.as_json().to_owned()) });
        if self.twice {
            return refuse("a member of the message occurs twice");
        }
        if self.version.is_none_or(|version| version != "\"2.0\"") {
            return refuse("jsonrpc is not \"2.0\"");
        }
        let null_id = self.id == Some("null");
        if self.id.is_some() && id.is_none() && !null_id {
            return refuse("id is neither a string nor a number");
        }
        let message = match (self.method, self.result, self.error) {
            (Some(method), None, None) => {
                let Ok(method) = scan::unquoted(method) else { return refuse("method is not a string") };
                let params = self.params.filter(|params| *params != "null");
                if params.is_some_and(|params| !params.starts_with(['{', '['])) {
                    return refuse("params is neither an object nor an array");
                }
                // Was read as JSON above.
                let params = params.and_then(|params| serde_json::from_str(params).ok());
                match id {
                    Some(id) => Message::Request { id, method, params },
                    None if null_id => return refuse("the id of a request is null"),
                    None => Message::Notification { method, params },
                }
            }
            (None, Some(result), None) => match id {
                Some(id) => Message::Result { id, result },
                None => return refuse("a result without an id"),
            },
            (None, None, Some(error)) => match serde_json::from_str(error) {
                Ok(error) => Message::Error { id, error },
                Err(_) => return refuse("error has no code"),
            },
            _ => return refuse("the message is neither a request nor a notification nor an answer"),
        };
        Ok(Parsed { message, extra: self.extra })
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
