//! Sealing of secrets at rest, and keys derived for signing.
//!
//! A sealed value is `version (1) | length of the key id (1) | key id | nonce (24) | ciphertext and tag`:
//! XChaCha20-Poly1305 with a random nonce, with the header and the place (table, column, row) as associated data, so
//! that a value that was moved to another row, column or table does not open.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use gatehouse_types::secret::{NoRandomness, random_bytes};
use hkdf::Hkdf;
use secrecy::{ExposeSecret as _, SecretBox, SecretSlice, SecretString};
use sha2::Sha256;

const VERSION: u8 = 1;
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
/// Longest key id in bytes.
pub const MAX_KEY_ID_BYTES: usize = 32;

/// Where a sealed value lives. It opens nowhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    table: &'static str,
    column: &'static str,
    row: String,
}

impl Place {
    /// The place of a value. `row` is the primary key in words, such as an id, or two with `/` between them.
    pub fn new(table: &'static str, column: &'static str, row: impl fmt::Display) -> Self {
        Self { table, column, row: row.to_string() }
    }

    fn associated_data(&self, header: &[u8]) -> Vec<u8> {
        let mut data = Vec::new();
        // Lengths keep `ab` + `c` apart from `a` + `bc`.
        for part in [header, self.table.as_bytes(), self.column.as_bytes(), self.row.as_bytes()] {
            data.extend_from_slice(&(part.len() as u64).to_be_bytes());
            data.extend_from_slice(part);
        }
        data
    }
}

/// The text is not a keyring. Says where, never what.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// No key.
    #[error("the keyring is empty")]
    Empty,
    /// An entry is not `id:key`.
    #[error("entry {0} of the keyring is not `id:key`, with an id of 1 to 32 characters of `A-Z a-z 0-9 . _ -`")]
    Entry(usize),
    /// The key is not 32 bytes in base64.
    #[error("the key of entry {0} of the keyring is not 32 bytes in base64")]
    Key(usize),
    /// Two entries have one id.
    #[error("entry {0} of the keyring has an id that was there before")]
    Duplicate(usize),
}

/// Why a sealed value does not open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Not something that was sealed here.
    #[error("not a sealed value")]
    Malformed,
    /// The key is not in the keyring.
    #[error("sealed with key `{0}`, which is not in the keyring")]
    UnknownKey(String),
    /// Changed, moved from its place, or sealed by another key of the same id.
    #[error("the sealed value does not open: it was changed or moved, or key `{0}` is another one")]
    Refused(String),
}

/// Why a value was not sealed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// No random nonce.
    #[error("the system gave no random bytes")]
    NoRandomness,
    /// Longer than the cipher takes (256 GiB).
    #[error("the value is too long to seal")]
    TooLong,
}

struct Key {
    id: String,
    key: SecretBox<[u8; KEY_BYTES]>,
}

impl Key {
    fn derive(&self, purpose: &str) -> SecretBox<[u8; KEY_BYTES]> {
        let hkdf = Hkdf::<Sha256>::new(Some(b"gatehouse/derive/v1"), self.key.expose_secret());
        SecretBox::init_with_mut(|bytes: &mut [u8; KEY_BYTES]| {
            // Fails only for more than 255 blocks of output; this is one.
            let filled = hkdf.expand(purpose.as_bytes(), bytes);
            debug_assert!(filled.is_ok(), "one block of output");
        })
    }
}

/// The keys that secrets are sealed with. The first seals and signs, all open and verify. Prints only its key ids.
pub struct Keyring {
    /// Never empty.
    keys: Vec<Key>,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|key| &key.id)).finish()
    }
}

impl Keyring {
    /// Reads `id:base64key[,id:base64key…]`. Line breaks separate entries too, so that a file can have one a line.
    pub fn parse(text: &SecretString) -> Result<Self, ParseError> {
        let entries = text.expose_secret().split([',', '\n']).map(str::trim).filter(|entry| !entry.is_empty());
        let mut keys: Vec<Key> = Vec::new();
        for (place, entry) in (1..).zip(entries) {
            let (id, encoded) = entry.split_once(':').ok_or(ParseError::Entry(place))?;
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            if id.is_empty() || id.len() > MAX_KEY_ID_BYTES || !id.bytes().all(allowed) {
                return Err(ParseError::Entry(place));
            }
            if keys.iter().any(|key| key.id == id) {
                return Err(ParseError::Duplicate(place));
            }
            let bytes: SecretSlice<u8> = STANDARD.decode(encoded.trim()).map_err(|_| ParseError::Key(place))?.into();
            let bytes: [u8; KEY_BYTES] = bytes.expose_secret().try_into().map_err(|_| ParseError::Key(place))?;
            keys.push(Key { id: id.to_owned(), key: SecretBox::new(Box::new(bytes)) });
        }
        if keys.is_empty() { Err(ParseError::Empty) } else { Ok(Self { keys }) }
    }

    /// The text of a new keyring with one random key.
    pub fn generate() -> Result<SecretString, NoRandomness> {
        let id: [u8; 4] = random_bytes()?;
        let key = SecretBox::new(Box::new(random_bytes::<KEY_BYTES>()?));
        let id = u32::from_be_bytes(id);
        Ok(SecretString::from(format!("k{id:08x}:{}", STANDARD.encode(key.expose_secret()))))
    }

    /// Seals `plaintext` for `place` with the first key.
    pub fn seal(&self, place: &Place, plaintext: &[u8]) -> Result<Vec<u8>, SealError> {
        let key = &self.keys[0];
        let nonce: [u8; NONCE_BYTES] = random_bytes().map_err(|NoRandomness| SealError::NoRandomness)?;
        let mut sealed = header(&key.id);
        let aad = place.associated_data(&sealed);
        let cipher = XChaCha20Poly1305::new(key.key.expose_secret().into());
        let ciphertext = cipher
            .encrypt(XNonce::from_slice(&nonce), Payload { msg: plaintext, aad: &aad })
            .map_err(|_| SealError::TooLong)?;
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&ciphertext);
        Ok(sealed)
    }

    /// Opens what was sealed for `place`, with whichever key sealed it.
    pub fn open(&self, place: &Place, sealed: &[u8]) -> Result<SecretSlice<u8>, OpenError> {
        let (id, rest) = split(sealed).ok_or(OpenError::Malformed)?;
        let (nonce, ciphertext) = rest.split_at_checked(NONCE_BYTES).ok_or(OpenError::Malformed)?;
        let key = self.keys.iter().find(|key| key.id == id).ok_or_else(|| OpenError::UnknownKey(id.to_owned()))?;
        let aad = place.associated_data(&header(id));
        let cipher = XChaCha20Poly1305::new(key.key.expose_secret().into());
        let opened = cipher.decrypt(XNonce::from_slice(nonce), Payload { msg: ciphertext, aad: &aad });
        opened.map(SecretSlice::from).map_err(|_| OpenError::Refused(id.to_owned()))
    }

    /// Whether a sealed value should be sealed anew: the first key is not the one that sealed it.
    pub fn is_outdated(&self, sealed: &[u8]) -> bool {
        split(sealed).is_none_or(|(id, _)| self.keys[0].id != id)
    }

    /// A key for signing for `purpose`, from the first key (HKDF-SHA256, RFC 5869).
    pub fn derive(&self, purpose: &str) -> SecretBox<[u8; KEY_BYTES]> {
        self.keys[0].derive(purpose)
    }

    /// The keys to verify signatures for `purpose` with, one for each key of the keyring; the first is
    /// [`Self::derive`]'s.
    pub fn derive_all(&self, purpose: &str) -> Vec<SecretBox<[u8; KEY_BYTES]>> {
        self.keys.iter().map(|key| key.derive(purpose)).collect()
    }
}

fn header(id: &str) -> Vec<u8> {
    let mut header = Vec::with_capacity(2 + id.len());
    // `parse` holds ids to MAX_KEY_ID_BYTES.
    header.extend_from_slice(&[VERSION, u8::try_from(id.len()).unwrap_or(u8::MAX)]);
    header.extend_from_slice(id.as_bytes());
    header
}

fn split(sealed: &[u8]) -> Option<(&str, &[u8])> {
    let (&[version, length], rest) = sealed.split_first_chunk()?;
    let (id, rest) = rest.split_at_checked(usize::from(length))?;
    if version != VERSION {
        return None;
    }
    Some((std::str::from_utf8(id).ok()?, rest))
}

#[cfg(test)]
mod tests;
