//! Pure. Rules for the texts in requests. An `Err` says what the field takes, to be read after the field's name.

use std::str::FromStr;

/// Most characters of a description.
pub const DESCRIPTION_CHARS: usize = 1_000;
/// Most characters of a `request_id`.
pub const REQUEST_ID_CHARS: usize = 128;
/// Most characters of an external id.
pub const EXTERNAL_ID_CHARS: usize = 256;
/// Most characters of an actor.
pub const ACTOR_CHARS: usize = 64;
/// Most characters of a name or id to look something up by.
pub const LOOKUP_CHARS: usize = 256;
/// Most bytes of a language tag.
pub const LOCALE_BYTES: usize = 64;
/// Most characters of an API key's name.
pub const KEY_NAME_CHARS: usize = 64;
/// Most characters of a tool's name in a request.
pub const TOOL_NAME_CHARS: usize = 512;

fn printable(text: &str, most: usize) -> Result<(), String> {
    if text.chars().count() > most {
        return Err(format!("takes at most {most} characters"));
    }
    if text.chars().any(char::is_control) {
        return Err("takes no control characters".to_owned());
    }
    Ok(())
}

/// Text for people: may have lines and tabs.
pub fn description(text: &str) -> Result<String, String> {
    if text.chars().count() > DESCRIPTION_CHARS {
        return Err(format!("takes at most {DESCRIPTION_CHARS} characters"));
    }
    if text.chars().any(|letter| letter.is_control() && !matches!(letter, '\n' | '\t')) {
        return Err("takes no control characters except line feeds and tabs".to_owned());
    }
    Ok(text.to_owned())
}

/// The id that makes a request idempotent; empty is none.
pub fn request_id(text: &str) -> Result<Option<String>, String> {
    optional(text, REQUEST_ID_CHARS)
}

/// An id in the caller's own system; empty is none.
pub fn external_id(text: &str) -> Result<Option<String>, String> {
    optional(text, EXTERNAL_ID_CHARS)
}

/// A text that may be empty for "none".
fn optional(text: &str, most: usize) -> Result<Option<String>, String> {
    printable(text, most)?;
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

/// An id or name to look something up by.
pub fn lookup(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("is missing".to_owned());
    }
    printable(text, LOOKUP_CHARS)?;
    Ok(text.to_owned())
}

/// A filter: an id or name, or empty for "all".
pub fn filter(text: &str) -> Result<Option<String>, String> {
    optional(text, LOOKUP_CHARS)
}

/// Name of a tool at its server, to look it up or to allow it.
pub fn tool_name(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("is missing".to_owned());
    }
    printable(text, TOOL_NAME_CHARS)?;
    Ok(text.to_owned())
}

/// An id that must be a UUID.
pub fn id<T: FromStr>(text: &str) -> Result<T, String> {
    // The plain form only: `Uuid` would take braces and URNs, too.
    let plain = text.len() == 36;
    text.parse().ok().filter(|_| plain).ok_or_else(|| "takes a UUID such as `0198f1c2-…`".to_owned())
}

/// Name of an actor; empty is the default actor.
pub fn actor(text: &str) -> Result<String, String> {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | ':' | '-');
    if text.len() > ACTOR_CHARS || !text.chars().all(allowed) {
        return Err(format!("takes at most {ACTOR_CHARS} characters of `A-Z a-z 0-9 _ . : -`"));
    }
    Ok(text.to_owned())
}

/// Name of an API key.
pub fn key_name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err(format!("takes 1 to {KEY_NAME_CHARS} characters"));
    }
    printable(text, KEY_NAME_CHARS)?;
    Ok(text.to_owned())
}

/// A language tag of the shape that BCP 47 (RFC 5646, section 2.1) gives: `en`, `zh-CN`, `zh-Hans-CN`.
pub fn locale(text: &str) -> Result<String, String> {
    let words = || "takes a BCP 47 language tag such as `en` or `zh-CN`".to_owned();
    if text.len() > LOCALE_BYTES {
        return Err(words());
    }
    let mut subtags = text.split('-');
    let language = subtags.next().unwrap_or_default();
    let private = language.eq_ignore_ascii_case("x");
    let good_language = (2..=8).contains(&language.len()) && language.bytes().all(|byte| byte.is_ascii_alphabetic());
    let mut last = language;
    for subtag in subtags {
        if !(1..=8).contains(&subtag.len()) || !subtag.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(words());
        }
        last = subtag;
    }
    // A single letter announces an extension; something must follow it.
    if (good_language || private) && last.len() > 1 { Ok(text.to_owned()) } else { Err(words()) }
}

#[cfg(test)]
mod tests {
    use gatehouse_types::SessionId;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_locale_has_the_shape_of_bcp_47() {
        for good in ["en", "zh-CN", "zh-Hans-CN", "de-CH-1996", "en-a-bbb-x-a-ccc", "x-private", "yue"] {
            assert!(locale(good).is_ok(), "{good}");
        }
        for bad in ["", "e", "en-", "-en", "en_US", "en--US", "en-US-x", "12", "englishlanguage", "en-123456789", "é"]
        {
            assert!(locale(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_id_is_a_plain_uuid() {
        assert!(id::<SessionId>("0198f1c2-0000-7000-8000-000000000000").is_ok());
        for bad in ["", "x", "0198f1c2000070008000000000000000", "{0198f1c2-0000-7000-8000-000000000000}"] {
            assert!(id::<SessionId>(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_that_passes_holds_a_null_character(text in "\\PC{0,20}\0?\\PC{0,20}") {
            for passed in [lookup(&text), description(&text), tool_name(&text), actor(&text), key_name(&text)] {
                prop_assert!(passed.is_err() || !text.contains('\0'));
            }
            for passed in [request_id(&text), external_id(&text), filter(&text)] {
                prop_assert!(passed.is_err() || !text.contains('\0'));
            }
        }

        #[test]
        fn an_actor_is_at_most_64_of_its_characters(text in "[A-Za-z0-9_.:-]{0,64}", other in "[^A-Za-z0-9_.:-]") {
            prop_assert_eq!(actor(&text), Ok(text.clone()));
            let with_another = format!("{text}{other}");
            prop_assert!(actor(&with_another).is_err());
            prop_assert!(actor(&"a".repeat(65)).is_err());
        }

        #[test]
        fn characters_are_counted_not_bytes(count in 0_usize..1_200) {
            prop_assert_eq!(description(&"订".repeat(count)).is_ok(), count <= DESCRIPTION_CHARS);
        }
    }
}
