//! Pure. Rules for the fields of requests. An `Err` says what the field takes, to be read after the field's name.

use std::str::FromStr;

use gatehouse_platform::error::FieldViolation;
use gatehouse_types::shown;

use crate::{card::Hash, error::Error};

/// Most characters of an actor.
pub const ACTOR_CHARS: usize = 64;
/// Most characters of a server's name.
pub const SERVER_CHARS: usize = 32;
/// Most characters of a tool's name in a request, and of what is kept of it.
pub const TOOL_CHARS: (usize, usize) = (512, 256);
/// Most characters of a title in a request, and of what is kept of it.
pub const TITLE_CHARS: (usize, usize) = (2_000, 256);
/// Most bytes of shown arguments.
pub const ARGUMENTS_BYTES: usize = 20 << 10;
/// Most characters of a reason.
pub const REASON_CHARS: usize = 2_000;
/// Most characters of the name of a person.
pub const PERSON_CHARS: usize = 256;
/// Longest time that a card may stay open, in seconds.
pub const TIMEOUT_SEC: u32 = 86_400;

/// The wrong fields found so far, so that a caller mends them all at once.
#[derive(Debug, Default)]
pub struct Fields(Vec<FieldViolation>);

impl Fields {
    /// Nothing wrong yet.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Notes that `field` is wrong and what it takes. The words must not repeat a value that may be secret.
    pub fn wrong(&mut self, field: impl Into<String>, description: impl Into<String>) {
        self.0.push(FieldViolation::new(field, description));
    }

    /// The value; `None` with the field noted when it is wrong.
    pub fn take<T>(&mut self, field: &str, checked: Result<T, String>) -> Option<T> {
        checked.map_err(|words| self.wrong(field, words)).ok()
    }

    /// The built value when nothing was wrong, else [`Error::Invalid`] with every wrong field.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Error> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(Error::Invalid(self.0)),
        }
    }
}

/// An id that must be a UUID in its plain form.
pub fn id<T: FromStr>(text: &str) -> Result<T, String> {
    // `Uuid` would take braces and URNs, too.
    let plain = text.len() == 36;
    text.parse().ok().filter(|_| plain).ok_or_else(|| "takes a UUID such as `0198f1c2-…`".to_owned())
}

/// An id that may be missing.
pub fn some_id<T: FromStr>(text: &str) -> Result<Option<T>, String> {
    if text.is_empty() { Ok(None) } else { id(text).map(Some) }
}

/// Name of an actor; empty is the default actor.
pub fn actor(text: &str) -> Result<String, String> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | ':' | '-');
    if text.len() > ACTOR_CHARS || !text.chars().all(allowed) {
        return Err(format!("takes at most {ACTOR_CHARS} characters of `A-Z a-z 0-9 _ . : -`"));
    }
    Ok(text.to_owned())
}

/// Name of a server.
pub fn server(text: &str) -> Result<String, String> {
    let allowed = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || matches!(letter, b'_' | b'-');
    if text.is_empty() || text.len() > SERVER_CHARS || !text.bytes().all(allowed) {
        return Err(format!("takes 1 to {SERVER_CHARS} characters of `a-z 0-9 _ -`"));
    }
    Ok(text.to_owned())
}

/// Name of a tool as its server chose it, fit to be shown.
pub fn tool(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("is missing".to_owned());
    }
    foreign(text, TOOL_CHARS)
}

/// Title of a tool as its server chose it, fit to be shown.
pub fn title(text: &str) -> Result<String, String> {
    foreign(text, TITLE_CHARS)
}

fn foreign(text: &str, (most, kept): (usize, usize)) -> Result<String, String> {
    if text.chars().nth(most).is_some() {
        return Err(format!("takes at most {most} characters"));
    }
    Ok(shown::line(text, kept))
}

/// Arguments to be shown.
pub fn arguments(text: &str) -> Result<String, String> {
    if text.len() > ARGUMENTS_BYTES {
        return Err(format!("takes at most {ARGUMENTS_BYTES} bytes"));
    }
    Ok(shown::json(text))
}

/// A size in bytes.
pub fn bytes(number: i64) -> Result<u64, String> {
    u64::try_from(number).map_err(|_| "takes a size in bytes".to_owned())
}

/// A SHA-256.
pub fn hash(bytes: &[u8]) -> Result<Hash, String> {
    bytes.try_into().map_err(|_| "takes the 32 bytes of a SHA-256".to_owned())
}

/// How long a card may stay open.
pub fn timeout(seconds: i32) -> Result<std::time::Duration, String> {
    let seconds = u32::try_from(seconds).ok().filter(|seconds| (1..=TIMEOUT_SEC).contains(seconds));
    let seconds = seconds.ok_or_else(|| format!("takes seconds from 1 to {TIMEOUT_SEC}"))?;
    Ok(std::time::Duration::from_secs(u64::from(seconds)))
}

/// A person's reason, for the model; may have lines.
pub fn reason(text: &str) -> Result<String, String> {
    if text.chars().nth(REASON_CHARS).is_some() {
        return Err(format!("takes at most {REASON_CHARS} characters"));
    }
    Ok(shown::block(text, REASON_CHARS))
}

/// Name of a person; `otherwise` when there is none.
pub fn person(text: &str, otherwise: &str) -> Result<String, String> {
    if text.chars().nth(PERSON_CHARS).is_some() {
        return Err(format!("takes at most {PERSON_CHARS} characters"));
    }
    if text.chars().any(shown::is_hidden) {
        return Err("takes no control, direction-changing or invisible characters".to_owned());
    }
    let name = text.trim();
    Ok(if name.is_empty() { otherwise.to_owned() } else { name.to_owned() })
}

#[cfg(test)]
mod tests {
    use gatehouse_types::SessionId;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_rule_holds_at_its_bound() {
        assert!(actor(&"a".repeat(64)).is_ok() && actor(&"a".repeat(65)).is_err() && actor("a b").is_err());
        assert!(server(&"a".repeat(32)).is_ok() && server(&"a".repeat(33)).is_err());
        assert!(server("").is_err() && server("A").is_err());
        assert!(tool("").is_err() && tool(&"订".repeat(512)).is_ok() && tool(&"订".repeat(513)).is_err());
        assert!(title("").is_ok() && title(&"x".repeat(2_001)).is_err());
        assert!(arguments(&"x".repeat(20_480)).is_ok() && arguments(&"x".repeat(20_481)).is_err());
        assert!(bytes(0).is_ok() && bytes(-1).is_err());
        assert!(hash(&[0; 32]).is_ok() && hash(&[0; 31]).is_err() && hash(&[]).is_err());
        for (seconds, good) in [(i32::MIN, false), (0, false), (1, true), (86_400, true), (86_401, false)] {
            assert_eq!(timeout(seconds).is_ok(), good, "{seconds}");
        }
        assert!(reason(&"订".repeat(2_000)).is_ok() && reason(&"订".repeat(2_001)).is_err());
        assert!(person(&"订".repeat(256), "").is_ok() && person(&"订".repeat(257), "").is_err());
    }

    #[test]
    fn who_names_nobody_answers_by_the_name_of_the_key() {
        assert_eq!(person("", "console"), Ok("console".to_owned()));
        assert_eq!(person("  ", "console"), Ok("console".to_owned()));
        assert_eq!(person(" Ada ", "console"), Ok("Ada".to_owned()));
        assert!(person("Ada\u{202e}", "console").is_err() && person("a\nb", "console").is_err());
    }

    #[test]
    fn an_id_is_a_plain_uuid() {
        assert!(id::<SessionId>("0198f1c2-0000-7000-8000-000000000000").is_ok());
        for bad in ["", "x", "0198f1c2000070008000000000000000", "{0198f1c2-0000-7000-8000-000000000000}"] {
            assert!(id::<SessionId>(bad).is_err(), "{bad}");
        }
        assert_eq!(some_id::<SessionId>(""), Ok(None));
        assert!(some_id::<SessionId>("x").is_err());
    }

    proptest! {
        #[test]
        fn nothing_that_a_server_or_a_person_wrote_passes_with_hidden_characters(text in any::<String>()) {
            for passed in [tool(&text), title(&text), arguments(&text), reason(&text), person(&text, "x")] {
                let hides = |found: char| shown::is_hidden(found) && found != '\n' && found != '\t';
                prop_assert!(!passed.unwrap_or_default().chars().any(hides));
            }
        }
    }
}
