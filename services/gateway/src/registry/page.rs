//! Pure. Pages of lists: their size, and the opaque tokens that say where the next one starts.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use time::OffsetDateTime;

use super::digest::Digest;

/// Items of a page when the request names no number.
pub const DEFAULT_SIZE: usize = 100;
/// Most items of a page.
pub const MAX_SIZE: usize = 500;
/// Longest token that is read, in bytes.
const MAX_TOKEN_BYTES: usize = 4_096;
const CHECK_BYTES: usize = 8;

/// A page that a request asks for: `size` items after the key `after`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<K> {
    /// 1 to [`MAX_SIZE`].
    pub size: usize,
    /// Key of the last item of the page before.
    pub after: Option<K>,
}

/// Key of a list that is sorted by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeKey<I> {
    /// When the item was made, to the microsecond.
    pub at: OffsetDateTime,
    /// Its id, for items of one microsecond.
    pub id: I,
}

/// The size of a page; 0 is the default.
pub fn size(asked: i32) -> Result<usize, String> {
    match usize::try_from(asked) {
        Ok(0) => Ok(DEFAULT_SIZE),
        Ok(size) if size <= MAX_SIZE => Ok(size),
        _ => Err(format!("takes a number from 1 to {MAX_SIZE}")),
    }
}

/// Cuts a page out of rows that were read with one more than its size: the items, and whether more follow.
pub fn cut<T>(mut rows: Vec<T>, size: usize) -> (Vec<T>, bool) {
    let more = rows.len() > size;
    rows.truncate(size);
    (rows, more)
}

/// A list with its filters. A token is good only for the list that made it.
pub struct List<'a>(pub &'a [&'a str]);

impl List<'_> {
    /// The token for the page after the item with this key.
    pub fn token(&self, key: &[&str]) -> String {
        let mut payload = Vec::new();
        for part in key {
            // A part is a name or an id; none is near this bound.
            let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
            payload.extend_from_slice(&length.to_be_bytes());
            payload.extend_from_slice(&part.as_bytes()[..usize::from(length)]);
        }
        let mut bytes = self.check(&payload).to_vec();
        bytes.extend_from_slice(&payload);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The key in a token; `None` for the empty token of a first page.
    pub fn key<const N: usize>(&self, token: &str) -> Result<Option<[String; N]>, String> {
        if token.is_empty() {
            return Ok(None);
        }
        let key = self.decode(token).ok_or_else(|| {
            "takes the `next_page_token` of the page before, with the same filters; leave it out to start anew"
                .to_owned()
        })?;
        Ok(Some(key))
    }

    fn decode<const N: usize>(&self, token: &str) -> Option<[String; N]> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (check, mut payload) = bytes.split_at_checked(CHECK_BYTES)?;
        if self.check(payload) != check {
            return None;
        }
        let mut parts = Vec::with_capacity(N);
        while let Some((length, rest)) = payload.split_first_chunk::<2>() {
            let (part, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            let part = std::str::from_utf8(part).ok().filter(|part| !part.contains('\0'))?;
            parts.push(part.to_owned());
            payload = rest;
        }
        if payload.is_empty() { parts.try_into().ok() } else { None }
    }

    fn check(&self, payload: &[u8]) -> [u8; CHECK_BYTES] {
        let digest = self.0.iter().fold(Digest::new("page"), |digest, part| digest.text(part));
        let whole = digest.bytes(payload).finish();
        let mut check = [0; CHECK_BYTES];
        check.copy_from_slice(&whole[..CHECK_BYTES]);
        check
    }
}

impl<I: std::str::FromStr + ToString> TimeKey<I> {
    /// The parts of this key, for [`List::token`].
    pub fn parts(&self) -> [String; 2] {
        let micros = self.at.unix_timestamp_nanos() / 1_000;
        [micros.to_string(), self.id.to_string()]
    }

    /// The key of these parts.
    pub fn from_parts(parts: &[String; 2]) -> Result<Self, String> {
        let words = || "is not a token of this list".to_owned();
        let micros: i128 = parts[0].parse().map_err(|_| words())?;
        let nanos = micros.checked_mul(1_000).ok_or_else(words)?;
        let at = OffsetDateTime::from_unix_timestamp_nanos(nanos).map_err(|_| words())?;
        let id = parts[1].parse().map_err(|_| words())?;
        Ok(Self { at, id })
    }
}

#[cfg(test)]
mod tests {
    use gatehouse_types::SessionId;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_has_1_to_500_items_and_100_by_default() {
        assert_eq!(size(0), Ok(100));
        assert_eq!(size(500), Ok(500));
        assert!(size(501).is_err() && size(-1).is_err() && size(i32::MIN).is_err());
    }

    #[test]
    fn a_token_of_another_list_or_other_filters_is_refused() {
        let token = List(&["servers"]).token(&["a"]);
        assert!(List(&["profiles"]).key::<1>(&token).is_err());
        assert!(List(&["servers", "filter"]).key::<1>(&token).is_err());
        assert!(List(&["servers"]).key::<2>(&token).is_err());
        assert_eq!(List(&["servers"]).key::<1>(&token), Ok(Some(["a".to_owned()])));
    }

    proptest! {
        #[test]
        fn a_token_gives_back_its_key(one in "[^\0]{0,40}", two in "[^\0]{0,40}") {
            let list = List(&["tools"]);
            prop_assert_eq!(list.key::<2>(&list.token(&[&one, &two])), Ok(Some([one, two])));
        }

        #[test]
        fn no_text_makes_the_reader_of_tokens_fail_in_another_way_than_refusing(text in "\\PC{1,60}") {
            prop_assert!(List(&["tools"]).key::<2>(&text).is_err());
        }

        #[test]
        fn a_changed_token_is_refused(place in 0_usize..20, letter in "[A-Za-z0-9_-]") {
            let list = List(&["servers"]);
            let token = list.token(&["some-server-name"]);
            let letter = letter.chars().next().unwrap();
            let put = |(at, old)| if at == place { letter } else { old };
            let changed: String = token.chars().enumerate().map(put).collect();
            prop_assert!(changed == token || list.key::<1>(&changed).is_err());
        }

        #[test]
        fn a_time_key_comes_back_to_the_microsecond(micros in -1_000_000_000_000_000_i64..4_000_000_000_000_000) {
            let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1_000).unwrap();
            let key = TimeKey { at, id: SessionId::new() };
            prop_assert_eq!(TimeKey::from_parts(&key.parts()), Ok(key));
        }
    }
}
