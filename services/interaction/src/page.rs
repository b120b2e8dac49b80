//! Pure. Pages of lists: their size, and the opaque tokens that say where the next one starts.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gatehouse_types::{InteractionId, SessionId};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::state::Word;

/// Cards of a page when the request names no number.
pub const DEFAULT_SIZE: usize = 100;
/// Most cards of a page.
pub const MAX_SIZE: usize = 500;
const CHECK_BYTES: usize = 8;

/// Which cards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only those of this session.
    pub session: Option<SessionId>,
    /// Only those in this state.
    pub word: Option<Word>,
}

/// The size of a page; 0 is the default.
pub fn size(asked: i32) -> Result<usize, String> {
    match usize::try_from(asked) {
        Ok(0) => Ok(DEFAULT_SIZE),
        Ok(size) if size <= MAX_SIZE => Ok(size),
        _ => Err(format!("takes a number from 1 to {MAX_SIZE}")),
    }
}

impl Filter {
    /// The token for the page after this card. Good only with this filter.
    pub fn token(&self, last: InteractionId) -> String {
        let id = last.uuid().into_bytes();
        let mut bytes = self.check(id).to_vec();
        bytes.extend_from_slice(&id);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The card in a token; `None` for the empty token of a first page.
    pub fn after(&self, token: &str) -> Result<Option<InteractionId>, String> {
        if token.is_empty() {
            return Ok(None);
        }
        let id = self.decode(token).ok_or_else(|| {
            "takes the `next_page_token` of the page before, with the same filters; leave it out to start anew"
                .to_owned()
        })?;
        Ok(Some(InteractionId::from_uuid(id)))
    }

    fn decode(&self, token: &str) -> Option<Uuid> {
        let mut bytes = [0; CHECK_BYTES + 16];
        let length = URL_SAFE_NO_PAD.decode_slice(token, &mut bytes).ok()?;
        let (check, id) = bytes.get(..length)?.split_first_chunk::<CHECK_BYTES>()?;
        let id: [u8; 16] = id.try_into().ok()?;
        (self.check(id) == *check).then(|| Uuid::from_bytes(id))
    }

    fn check(&self, id: [u8; 16]) -> [u8; CHECK_BYTES] {
        let session = self.session.map(|session| session.to_string()).unwrap_or_default();
        let word = self.word.map_or("", Word::as_str);
        let digest = Sha256::new().chain_update(format!("cards page\0{session}\0{word}\0")).chain_update(id).finalize();
        let mut check = [0; CHECK_BYTES];
        check.copy_from_slice(&digest[..CHECK_BYTES]);
        check
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_has_1_to_500_cards_and_100_by_default() {
        assert_eq!((size(0), size(1), size(500)), (Ok(100), Ok(1), Ok(500)));
        assert!(size(501).is_err() && size(-1).is_err() && size(i32::MIN).is_err());
    }

    #[test]
    fn a_token_is_good_for_its_filter_alone() {
        let (filter, id) = (Filter { session: None, word: Some(Word::Open) }, InteractionId::new());
        let token = filter.token(id);
        assert_eq!(filter.after(&token), Ok(Some(id)));
        assert_eq!(filter.after(""), Ok(None));
        for other in [
            Filter::default(),
            Filter { word: Some(Word::Answered), ..filter },
            Filter { session: Some(SessionId::new()), ..filter },
        ] {
            assert!(other.after(&token).is_err(), "{other:?}");
        }
        assert!(filter.after(&token[1..]).is_err() && filter.after(&format!("{token}A")).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_of_tokens_fail_in_another_way_than_refusing(text in "\\PC{1,60}") {
            prop_assert!(Filter::default().after(&text).is_err());
        }
    }
}
