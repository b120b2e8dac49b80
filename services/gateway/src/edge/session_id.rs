//! Pure: the `Mcp-Session-Id` that engines get (MCP 2025-11-25, basic/transports, session management).
//!
//! The id describes itself and is signed, so that any replica and a restarted one accept it without a query. It is not a
//! credential: each request's bearer token is checked besides, and the id must belong to that token's session and actor.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use gatehouse_types::{EdgeSessionId, SessionId};
use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use uuid::Uuid;

/// Revisions that the edge speaks with `initialize`, the oldest first.
pub const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// Bytes of the payload: format, id, session, actor, issued at, revision.
const PAYLOAD: usize = 1 + 16 + 16 + 8 + 8 + 1;
/// Bytes of the signature.
const SIGNATURE: usize = 16;
/// First byte of every id of this format.
const FORMAT: u8 = 1;

/// What an id says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeSession {
    /// The engine's MCP session.
    pub id: EdgeSessionId,
    /// The session whose token began it.
    pub session: SessionId,
    /// The actor whose token began it, as a hash.
    pub actor: [u8; 8],
    /// When it began, in seconds since 1970.
    pub issued_at: u64,
    /// Index of its revision in [`LEGACY_VERSIONS`].
    version: u8,
}

/// Signs ids with the first key and accepts those of all.
pub struct Signer {
    keys: Vec<Hmac<Sha256>>,
}

impl EdgeSession {
    /// A new MCP session. `version` must be one of [`LEGACY_VERSIONS`]; any other counts as the newest.
    pub fn begin(session: SessionId, actor: &str, version: &str, now: OffsetDateTime) -> Self {
        let newest = LEGACY_VERSIONS.len() - 1;
        let version = LEGACY_VERSIONS.iter().position(|known| *known == version).unwrap_or(newest);
        Self {
            id: EdgeSessionId::new(),
            session,
            actor: actor_hash(actor),
            issued_at: u64::try_from(now.unix_timestamp()).unwrap_or(0),
            version: u8::try_from(version).unwrap_or(0),
        }
    }

    /// The revision that was negotiated.
    pub fn protocol_version(&self) -> &'static str {
        LEGACY_VERSIONS.get(usize::from(self.version)).copied().unwrap_or(LEGACY_VERSIONS[LEGACY_VERSIONS.len() - 1])
    }

    /// Whether it began longer ago than `max_age_sec`, or in the future.
    pub fn has_expired(&self, now: OffsetDateTime, max_age_sec: u32) -> bool {
        let now = u64::try_from(now.unix_timestamp()).unwrap_or(0);
        // Clocks of replicas may differ a little.
        now.saturating_add(300) < self.issued_at || now > self.issued_at.saturating_add(u64::from(max_age_sec))
    }

    fn payload(&self) -> [u8; PAYLOAD] {
        let mut bytes = [0; PAYLOAD];
        bytes[0] = FORMAT;
        bytes[1..17].copy_from_slice(self.id.uuid().as_bytes());
        bytes[17..33].copy_from_slice(self.session.uuid().as_bytes());
        bytes[33..41].copy_from_slice(&self.actor);
        bytes[41..49].copy_from_slice(&self.issued_at.to_be_bytes());
        bytes[49] = self.version;
        bytes
    }

    fn from_payload(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != PAYLOAD || bytes[0] != FORMAT || usize::from(bytes[49]) >= LEGACY_VERSIONS.len() {
            return None;
        }
        Some(Self {
            id: EdgeSessionId::from_uuid(Uuid::from_slice(&bytes[1..17]).ok()?),
            session: SessionId::from_uuid(Uuid::from_slice(&bytes[17..33]).ok()?),
            actor: bytes[33..41].try_into().ok()?,
            issued_at: u64::from_be_bytes(bytes[41..49].try_into().ok()?),
            version: bytes[49],
        })
    }
}

impl Signer {
    /// A signer of these keys; the first one signs. `None` without a key.
    pub fn new(keys: &[[u8; 32]]) -> Option<Self> {
        let keys: Vec<_> = keys.iter().filter_map(|key| Hmac::new_from_slice(key).ok()).collect();
        (!keys.is_empty()).then_some(Self { keys })
    }

    /// The id's text: 88 characters of base64url.
    pub fn sign(&self, session: &EdgeSession) -> String {
        let payload = session.payload();
        let mut bytes = payload.to_vec();
        if let Some(key) = self.keys.first() {
            let signature = key.clone().chain_update(payload).finalize().into_bytes();
            bytes.extend_from_slice(&signature[..SIGNATURE]);
        }
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// What a text says when one of the keys signed it.
    pub fn verify(&self, text: &str) -> Option<EdgeSession> {
        let mut bytes = [0; PAYLOAD + SIGNATURE];
        let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
        let (payload, signature) = bytes[..length].split_at_checked(PAYLOAD)?;
        if signature.len() != SIGNATURE {
            return None;
        }
        let good = |key: &Hmac<Sha256>| key.clone().chain_update(payload).verify_truncated_left(signature).is_ok();
        if self.keys.iter().any(good) { EdgeSession::from_payload(payload) } else { None }
    }
}

/// The actor as it stands in an id.
pub fn actor_hash(actor: &str) -> [u8; 8] {
    let hash = Sha256::digest(actor.as_bytes());
    let mut short = [0; 8];
    short.copy_from_slice(&hash[..8]);
    short
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use time::Duration;

    use super::*;

    const NOW: OffsetDateTime = time::macros::datetime!(2026-11-30 12:00 UTC);

    fn signer(keys: &[u8]) -> Signer {
        Signer::new(&keys.iter().map(|key| [*key; 32]).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn an_id_is_visible_ascii_and_comes_back_as_it_was_made() {
        for version in LEGACY_VERSIONS {
            let session = EdgeSession::begin(SessionId::new(), "bot-1", version, NOW);
            let text = signer(&[1]).sign(&session);
            assert!(text.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
            assert_eq!(signer(&[1]).verify(&text), Some(session));
            assert_eq!(session.protocol_version(), version);
        }
    }

    #[test]
    fn an_id_of_a_retired_key_is_accepted_while_the_key_is_in_the_ring() {
        let session = EdgeSession::begin(SessionId::new(), "", "2025-11-25", NOW);
        let text = signer(&[1]).sign(&session);
        assert_eq!(signer(&[2, 1]).verify(&text), Some(session));
        assert_eq!(signer(&[2]).verify(&text), None);
    }

    #[test]
    fn an_id_expires_by_time() {
        let session = EdgeSession::begin(SessionId::new(), "", "2025-11-25", NOW);
        assert!(!session.has_expired(NOW + Duration::seconds(60), 60));
        assert!(session.has_expired(NOW + Duration::seconds(61), 60));
        assert!(session.has_expired(NOW - Duration::hours(1), 60));
    }

    proptest! {
        #[test]
        fn no_changed_id_is_accepted(place in 0_usize..88, with in "[A-Za-z0-9_-]") {
            let session = EdgeSession::begin(SessionId::new(), "a", "2025-06-18", NOW);
            let text = signer(&[1]).sign(&session);
            let mut changed = text.clone();
            changed.replace_range(place..=place, &with);
            prop_assert_eq!(text.len(), 88);
            prop_assert!(changed == text || signer(&[1]).verify(&changed).is_none());
        }

        #[test]
        fn no_other_text_is_accepted(text in ".{0,120}") {
            prop_assert_eq!(signer(&[1]).verify(&text), None);
        }
    }
}
