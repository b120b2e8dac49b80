//! Pure
//!
//! Messages written into one buffer. Payloads are spliced in as they are; nothing is parsed and written again.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::object::Members;

/// One value of a message to be written.
#[derive(Debug, Clone, Copy)]
pub enum Piece<'a> {
    /// JSON that was read.
    Raw(&'a RawValue),
    /// JSON text that the caller knows to be one valid value. It is spliced in unseen: never pass what was not validated.
    Json(&'a str),
    /// Text, to be written as a JSON string.
    Text(&'a str),
    /// A whole number.
    Number(u64),
}

/// The parameters of a request: members in their order, and `_meta`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Params<'a> {
    /// The members besides `_meta`.
    pub members: &'a [(&'a str, Piece<'a>)],
    /// `_meta` to send along; a `progressToken` in it is left out, because tokens belong to one hop.
    pub meta: Option<&'a RawValue>,
    /// More members of `_meta`, which must not be in `meta`.
    pub meta_members: &'a [(&'a str, Piece<'a>)],
}

impl<'a> Params<'a> {
    /// Parameters without `_meta`.
    pub const fn new(members: &'a [(&'a str, Piece<'a>)]) -> Self {
        Self { members, meta: None, meta_members: &[] }
    }

    fn size(&self) -> usize {
        let pieces = self.members.iter().chain(self.meta_members);
        pieces.map(|(name, piece)| name.len() + piece.size() + 8).sum::<usize>()
            + self.meta.map_or(0, |meta| meta.get().len())
    }
}

impl Piece<'_> {
    fn size(&self) -> usize {
        match self {
            Self::Raw(raw) => raw.get().len(),
            Self::Json(text) => text.len(),
            Self::Text(text) => text.len() + text.len() / 8 + 2,
            Self::Number(_) => 20,
        }
    }

    fn write(&self, buffer: &mut Vec<u8>) {
        match self {
            Self::Raw(raw) => buffer.extend_from_slice(raw.get().as_bytes()),
            Self::Json(text) => buffer.extend_from_slice(text.as_bytes()),
            Self::Text(text) => string(buffer, text),
            Self::Number(number) => buffer.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes()),
        }
    }
}

/// A request. With `progress_token`, the receiver may report progress under that number.
pub fn request(id: u64, method: &str, params: &Params<'_>, progress_token: Option<u64>) -> Bytes {
    let mut buffer = Vec::with_capacity(params.size() + method.len() + 128);
    buffer.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    Piece::Number(id).write(&mut buffer);
    buffer.extend_from_slice(b",\"method\":");
    string(&mut buffer, method);
    buffer.extend_from_slice(b",\"params\":");
    write_params(&mut buffer, params, progress_token);
    buffer.push(b'}');
    Bytes::from(buffer)
}

/// A notification.
pub fn notification(method: &str, params: Option<&Params<'_>>) -> Bytes {
    let mut buffer = Vec::with_capacity(params.map_or(0, Params::size) + method.len() + 64);
    buffer.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    string(&mut buffer, method);
    if let Some(params) = params {
        buffer.extend_from_slice(b",\"params\":");
        write_params(&mut buffer, params, None);
    }
    buffer.push(b'}');
    Bytes::from(buffer)
}

/// An answer. `id` is the request's id as JSON text.
pub fn result(id: &str, result: Piece<'_>) -> Bytes {
    let mut buffer = Vec::with_capacity(result.size() + id.len() + 40);
    buffer.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    buffer.extend_from_slice(id.as_bytes());
    buffer.extend_from_slice(b",\"result\":");
    result.write(&mut buffer);
    buffer.push(b'}');
    Bytes::from(buffer)
}

/// A refusal. `id` is the request's id as JSON text, `None` when it could not be read.
pub fn error(id: Option<&str>, code: i64, message: &str, data: Option<&RawValue>) -> Bytes {
    let mut buffer = Vec::with_capacity(message.len() + 96);
    buffer.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    buffer.extend_from_slice(id.unwrap_or("null").as_bytes());
    buffer.extend_from_slice(b",\"error\":{\"code\":");
    buffer.extend_from_slice(itoa::Buffer::new().format(code).as_bytes());
    buffer.extend_from_slice(b",\"message\":");
    string(&mut buffer, message);
    if let Some(data) = data {
        buffer.extend_from_slice(b",\"data\":");
        buffer.extend_from_slice(data.get().as_bytes());
    }
    buffer.extend_from_slice(b"}}");
    Bytes::from(buffer)
}

/// Writes text as a JSON string.
pub fn string(buffer: &mut Vec<u8>, text: &str) {
    let escaped = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    buffer.push(b'"');
    if text.as_bytes().iter().any(escaped) {
        write_escaped(buffer, text);
    } else {
        buffer.extend_from_slice(text.as_bytes());
    }
    buffer.push(b'"');
}

fn write_escaped(buffer: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for byte in text.bytes() {
        match byte {
            b'"' => buffer.extend_from_slice(b"\\\""),
            b'\\' => buffer.extend_from_slice(b"\\\\"),
            b'\n' => buffer.extend_from_slice(b"\\n"),
            b'\r' => buffer.extend_from_slice(b"\\r"),
            b'\t' => buffer.extend_from_slice(b"\\t"),
            0..0x20 => {
                let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
                buffer.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[high], HEX[low]]);
            }
            _ => buffer.push(byte),
        }
    }
}

/// An object under construction: commas between the members.
struct Object<'a> {
    buffer: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> Object<'a> {
    fn open(buffer: &'a mut Vec<u8>) -> Self {
        buffer.push(b'{');
        Self { buffer, first: true }
    }

    fn name(&mut self, name: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.first) {
            self.buffer.push(b',');
        }
        string(self.buffer, name);
        self.buffer.push(b':');
        self.buffer
    }

    fn close(self) {
        self.buffer.push(b'}');
    }
}

fn write_params(buffer: &mut Vec<u8>, params: &Params<'_>, progress_token: Option<u64>) {
    let mut object = Object::open(buffer);
    for (name, piece) in params.members {
        piece.write(object.name(name));
    }
    if params.meta.is_some() || !params.meta_members.is_empty() || progress_token.is_some() {
        write_meta(object.name("_meta"), params, progress_token);
    }
    object.close();
}

fn write_meta(buffer: &mut Vec<u8>, params: &Params<'_>, progress_token: Option<u64>) {
    let mut object = Object::open(buffer);
    // What is no object cannot be extended, and is not `_meta`.
    let given = params.meta.and_then(|meta| Members::read(meta).ok()).unwrap_or_default();
    for (name, value) in given.0.iter().filter(|(name, _)| name != "progressToken") {
        Piece::Raw(value).write(object.name(name));
    }
    for (name, piece) in params.meta_members {
        piece.write(object.name(name));
    }
    if let Some(token) = progress_token {
        Piece::Number(token).write(object.name("progressToken"));
    }
    object.close();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn pieces_are_spliced_in_as_they_were_written() {
        let arguments: &RawValue = serde_json::from_str(r#"{ "n":1.0 , "big": 12345678901234567890123 }"#).unwrap();
        let members = [("name", Piece::Text("echo")), ("arguments", Piece::Raw(arguments))];
        let bytes = request(7, "tools/call", &Params::new(&members), Some(7));
        assert_eq!(
            bytes,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{ "n":1.0 , "big": 12345678901234567890123 },"_meta":{"progressToken":7}}}"#
        );
    }

    #[test]
    fn the_meta_of_the_caller_goes_along_without_its_progress_token() {
        let meta: &RawValue = serde_json::from_str(r#"{"progressToken":"theirs","x/y":1e3}"#).unwrap();
        let params =
            Params { meta: Some(meta), meta_members: &[("traceparent", Piece::Text("00-1"))], ..Params::default() };
        let bytes = request(1, "m", &params, Some(1));
        assert!(bytes.ends_with(br#""params":{"_meta":{"x/y":1e3,"traceparent":"00-1","progressToken":1}}}"#));
    }

    #[test]
    fn answers_echo_the_id_in_its_spelling() {
        assert_eq!(result("\"a\"", Piece::Json("{}")), r#"{"jsonrpc":"2.0","id":"a","result":{}}"#);
        assert_eq!(
            error(None, -32_700, "no", None),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#
        );
    }

    proptest! {
        #[test]
        fn any_text_comes_out_as_a_json_string_that_reads_back(text in any::<String>()) {
            let bytes = notification(&text, Some(&Params::new(&[("k", Piece::Text(&text))])));
            let value: Value = serde_json::from_slice(&bytes).unwrap();
            prop_assert_eq!(value, json!({"jsonrpc": "2.0", "method": text, "params": {"k": text}}));
        }
    }
}
