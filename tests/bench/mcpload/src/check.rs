//! What to send for each tool, and whether the answer is the right one.
use crate::client::{Envelope, Fail};
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum Verify {
    /// The first text is the `message` argument
    Echo,
    /// structuredContent holds `n` and its square
    Structured,
    /// The first text is `kb` KiB long and starts with `tag` and a colon
    Big,
    /// The call succeeded with some content
    Any,
}

impl Verify {
    pub fn for_tool(tool: &str) -> Self {
        [("echo", Self::Echo), ("structured", Self::Structured), ("big", Self::Big)]
            .into_iter()
            .find(|(suffix, _)| tool.ends_with(suffix))
            .map_or(Self::Any, |(_, verify)| verify)
    }

    pub fn default_args(self) -> &'static str {
        match self {
            Self::Echo => r#"{"message":"hello {{n}}"}"#,
            Self::Structured => r#"{"n":{{n}}}"#,
            Self::Big => r#"{"kb":100,"tag":"t{{n}}"}"#,
            Self::Any => "{}",
        }
    }
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct CallResult<'a> {
    #[serde(borrow, default)]
    content: Vec<Content<'a>>,
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
    #[serde(rename = "isError", default)]
    is_error: bool,
}

/// The `result` of a message that answers `id`.
pub fn result_of(message: &[u8], id: u64) -> Result<&RawValue, Fail> {
    let envelope: Envelope = serde_json::from_slice(message).map_err(|_| Fail::Malformed)?;
    if envelope.error.is_some() {
        return Err(Fail::RpcError);
    }
    if !envelope.id.is_some_and(|raw| raw.get().parse() == Ok(id)) {
        return Err(Fail::WrongAnswer);
    }
    envelope.result.ok_or(Fail::Malformed)
}

/// Checks the answer to a tools/call that was sent with the arguments `args`.
pub fn call(verify: Verify, message: &[u8], id: u64, args: &str) -> Result<(), Fail> {
    let result: CallResult = serde_json::from_str(result_of(message, id)?.get()).map_err(|_| Fail::Malformed)?;
    if result.is_error {
        return Err(Fail::RpcError);
    }
    let args: Value = serde_json::from_str(args).map_err(|_| Fail::Malformed)?;
    let text = result.content.first().and_then(|content| content.text.as_deref()).unwrap_or_default();
    let right = match verify {
        Verify::Echo => args["message"].as_str() == Some(text),
        Verify::Structured => {
            let n = args["n"].as_u64().unwrap_or(0);
            let record: Value =
                result.structured.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
            record["n"].as_u64() == Some(n) && record["square"].as_u64() == Some(n.wrapping_mul(n)) && !text.is_empty()
        }
        Verify::Big => {
            let size = args["kb"].as_u64().unwrap_or(0) as usize * 1024;
            let tag = args["tag"].as_str().unwrap_or_default();
            text.len() == size && text.strip_prefix(tag).is_some_and(|rest| rest.starts_with(':'))
        }
        Verify::Any => !result.content.is_empty(),
    };
    if right { Ok(()) } else { Err(Fail::WrongAnswer) }
}

/// Checks the answer to a tools/list; returns how many tools it names.
pub fn list(message: &[u8], id: u64, at_least: usize) -> Result<usize, Fail> {
    #[derive(Deserialize)]
    struct Tools<'a> {
        #[serde(borrow)]
        tools: Vec<&'a RawValue>,
    }
    let listed: Tools = serde_json::from_str(result_of(message, id)?.get()).map_err(|_| Fail::Malformed)?;
    if listed.tools.len() >= at_least { Ok(listed.tools.len()) } else { Err(Fail::WrongAnswer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(verify: Verify, result: &str, args: &str) -> Result<(), Fail> {
        call(verify, format!(r#"{{"jsonrpc":"2.0","id":3,"result":{result}}}"#).as_bytes(), 3, args)
    }

    #[test]
    fn echo_must_return_the_message_of_this_call() {
        let result = r#"{"content":[{"type":"text","text":"a\nb"}]}"#;
        assert_eq!(check(Verify::Echo, result, r#"{"message":"a\nb"}"#), Ok(()));
        assert_eq!(check(Verify::Echo, result, r#"{"message":"other"}"#), Err(Fail::WrongAnswer));
    }

    #[test]
    fn structured_must_keep_the_structured_content() {
        let args = r#"{"n":4}"#;
        let right = r#"{"content":[{"type":"text","text":"{}"}],"structuredContent":{"n":4,"square":16}}"#;
        assert_eq!(check(Verify::Structured, right, args), Ok(()));
        assert_eq!(
            check(Verify::Structured, r#"{"content":[{"type":"text","text":"{}"}]}"#, args),
            Err(Fail::WrongAnswer)
        );
    }

    #[test]
    fn big_must_be_whole_and_carry_its_tag() {
        let text = format!("t9:{}", "x".repeat(1021));
        let result = |text: &str| format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
        assert_eq!(check(Verify::Big, &result(&text), r#"{"kb":1,"tag":"t9"}"#), Ok(()));
        assert_eq!(check(Verify::Big, &result(&text[..1000]), r#"{"kb":1,"tag":"t9"}"#), Err(Fail::WrongAnswer));
        assert_eq!(check(Verify::Big, &result(&text), r#"{"kb":1,"tag":"t8"}"#), Err(Fail::WrongAnswer));
    }

    #[test]
    fn errors_are_told_apart() {
        assert_eq!(check(Verify::Any, r#"{"content":[],"isError":true}"#, "{}"), Err(Fail::RpcError));
        assert_eq!(call(Verify::Any, br#"{"id":3,"error":{}}"#, 3, "{}"), Err(Fail::RpcError));
        assert_eq!(call(Verify::Any, br#"{"id":4,"result":{}}"#, 3, "{}"), Err(Fail::WrongAnswer));
        assert_eq!(call(Verify::Any, b"not json", 3, "{}"), Err(Fail::Malformed));
    }
}
