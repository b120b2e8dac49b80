//! Pure. Fixed headers that are sent to a server with each request.

use std::{collections::BTreeMap, fmt};

use secrecy::{ExposeSecret as _, SecretString};

use super::{check::Fields, stdio};

/// Most headers of a server.
pub const MOST: usize = 32;
/// Most bytes of a header's name.
pub const NAME_BYTES: usize = 128;
/// Most bytes of a header's value.
pub const VALUE_BYTES: usize = 8_192;

/// Headers that the transport sets itself, or that belong to one hop (RFC 9110, section 7.6.1).
const RESERVED: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "last-event-id",
    "origin",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Names and values, in the order of the names. Names are compared without regard to letter case. Values never show
/// in `Debug`.
#[derive(Clone, Default)]
pub struct Headers(Vec<(String, SecretString)>);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Headers {
    /// Checks the headers of a request; every wrong one is noted under `field`.
    pub fn checked(fields: &mut Fields, field: &str, given: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut checked: Vec<(String, SecretString)> = Vec::new();
        let mut sorted: Vec<(String, String)> = given.into_iter().collect();
        sorted.sort();
        if sorted.len() > MOST {
            fields.wrong(field, format!("takes at most {MOST} headers"));
            return Self::default();
        }
        for (name, value) in sorted {
            if let Err(words) = check_name(&name) {
                fields.wrong(path(field, &name), words);
            } else if checked.iter().any(|(other, _)| other.eq_ignore_ascii_case(&name)) {
                fields.wrong(path(field, &name), "is set twice; letter case does not count in names of headers");
            } else if let Err(words) = check_value(&value) {
                fields.wrong(path(field, &name), words);
            } else {
                checked.push((name, SecretString::from(value)));
            }
        }
        Self(checked)
    }

    /// The variables of a program's environment, checked; all that is wrong is noted.
    pub fn checked_variables(
        fields: &mut Fields,
        field: &str,
        given: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let sorted: BTreeMap<String, String> = given.into_iter().collect();
        if sorted.len() > MOST {
            fields.wrong(field, format!("takes at most {MOST} variables"));
            return Self::default();
        }
        let mut checked: Vec<(String, SecretString)> = Vec::with_capacity(sorted.len());
        for (name, value) in sorted {
            if let Err(words) = stdio::check_variable(&name) {
                fields.wrong(path(field, &name), words);
            } else if checked.iter().any(|(other, _)| other.eq_ignore_ascii_case(&name)) {
                fields.wrong(path(field, &name), "is set twice, in another letter case");
            } else if let Err(words) = stdio::check_variable_value(&value) {
                fields.wrong(path(field, &name), words);
            } else {
                checked.push((name, SecretString::from(value)));
            }
        }
        Self(checked)
    }

    /// Rebuilds headers that were stored.
    pub fn from_stored(stored: BTreeMap<String, String>) -> Self {
        Self(stored.into_iter().map(|(name, value)| (name, SecretString::from(value))).collect())
    }

    /// The form to store: it must be sealed.
    pub fn to_stored(&self) -> BTreeMap<&str, &str> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect()
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Names and values, for sending.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SecretString)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// These headers without those in `remove` and with those in `set` added or replaced.
    #[must_use]
    pub fn changed(mut self, set: &Self, remove: &[String]) -> Self {
        let gone = |name: &str| {
            remove.iter().map(String::as_str).chain(set.names()).any(|other| other.eq_ignore_ascii_case(name))
        };
        self.0.retain(|(name, _)| !gone(name));
        self.0.extend(set.0.iter().cloned());
        self.0.sort_by(|one, other| one.0.cmp(&other.0));
        self
    }
}

/// What is wrong with a name of a header (RFC 9110, section 5.1), if anything.
pub fn check_name(name: &str) -> Result<(), String> {
    if !is_token(name) {
        return Err(format!("has a name that is not 1 to {NAME_BYTES} letters, digits or `!#$%&'*+-.^_`|~`"));
    }
    let lower = name.to_ascii_lowercase();
    if RESERVED.contains(&lower.as_str()) || lower.starts_with("mcp-") {
        return Err("is a header that the transport sets itself; leave it out".to_owned());
    }
    Ok(())
}

fn check_value(value: &str) -> Result<(), String> {
    let visible = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let trimmed = !value.starts_with(' ') && !value.ends_with(' ');
    if value.is_empty() || value.len() > VALUE_BYTES || !visible || !trimmed {
        return Err(format!("takes a value of 1 to {VALUE_BYTES} visible ASCII characters without spaces at its ends"));
    }
    Ok(())
}

fn is_token(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=NAME_BYTES).contains(&name.len()) && name.bytes().all(allowed)
}

/// The path of one header. What is not a name may be a secret in the wrong place, so it is not repeated.
fn path(field: &str, name: &str) -> String {
    if is_token(name) { format!("{field}[\"{name}\"]") } else { field.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;

    fn check(given: &[(&str, &str)]) -> Result<Headers, Error> {
        let mut fields = Fields::new();
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let headers = Headers::checked(&mut fields, "headers", given);
        fields.finish(headers)
    }

    #[test]
    fn headers_of_the_transport_are_refused_in_any_letter_case() {
        for name in RESERVED.iter().chain(&["mcp-session-id", "Mcp-Protocol-Version", "HOST", "MCP-anything"]) {
            let Err(Error::Invalid(wrong)) = check(&[(name, "x")]) else { panic!("{name} passed") };
            assert_eq!(wrong[0].field, format!("headers[\"{name}\"]"));
        }
        assert!(check(&[("authorization", "Bearer x"), ("X-Api-Key", "k"), ("cookie", "a=b")]).is_ok());
    }

    #[test]
    fn every_wrong_header_is_named_and_no_value_is_repeated() {
        let given =
            [("host", "hidden-1"), ("x-a", "hidden-2\n"), ("X-B", "good"), ("x-b", "hidden-3"), ("hidden 4", "v")];
        let error = check(&given).unwrap_err();
        let Error::Invalid(wrong) = &error else { panic!("{error}") };
        assert_eq!(wrong.len(), 4);
        assert!(!format!("{error:?}").contains("hidden"));
    }

    #[test]
    fn a_value_shows_in_no_debug_text() {
        let headers = check(&[("authorization", "Bearer hidden")]).unwrap();
        assert_eq!(format!("{headers:?}"), "[\"authorization\"]");
    }

    #[test]
    fn a_change_replaces_and_removes_without_regard_to_letter_case() {
        let old = check(&[("Authorization", "old"), ("X-Keep", "keep"), ("X-Gone", "gone")]).unwrap();
        let new = old.changed(&check(&[("authorization", "new")]).unwrap(), &["x-gone".to_owned()]);
        let stored = new.to_stored();
        assert_eq!(stored.into_iter().collect::<Vec<_>>(), [("X-Keep", "keep"), ("authorization", "new")]);
    }

    proptest! {
        #[test]
        fn what_passes_can_be_sent(name in "\\PC{0,12}", value in "\\PC{0,12}") {
            if check(&[(&name, &value)]).is_ok() {
                prop_assert!(http::HeaderName::from_bytes(name.as_bytes()).is_ok());
                prop_assert!(http::HeaderValue::from_str(&value).is_ok());
            }
        }

        #[test]
        fn what_was_stored_comes_back(pairs in proptest::collection::btree_map("x-[a-z]{1,5}", "[!-~]{1,9}", 0..9)) {
            let headers = Headers::from_stored(pairs.clone());
            let stored: BTreeMap<String, String> =
                headers.to_stored().into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            prop_assert_eq!(stored, pairs);
        }
    }
}
