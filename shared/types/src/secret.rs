//! Random secrets that are shown once: API keys and session tokens.

use rand::{TryRngCore, rngs::OsRng};
use secrecy::SecretString;

/// Prefix of an API key.
pub const API_KEY_PREFIX: &str = "ghk_";
/// Prefix of a session token.
pub const SESSION_TOKEN_PREFIX: &str = "ghs_";
/// How much of a secret is kept in the clear to recognise it by.
pub const SHOWN_CHARS: usize = 10;

/// The system has no random numbers to give.
#[derive(Debug, thiserror::Error)]
#[error("the system gave no random bytes")]
pub struct NoRandomness;

/// Fills an array with random bytes of the operating system.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    OsRng.try_fill_bytes(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

/// A new secret: `prefix` and 43 characters of base64url (256 random bits).
pub fn generate(prefix: &str) -> Result<SecretString, NoRandomness> {
    let bytes: [u8; 32] = random_bytes()?;
    let mut text = String::with_capacity(prefix.len() + 43);
    text.push_str(prefix);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, byte| (word << 8) | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            let six = (word >> (18 - 6 * place)) & 63;
            text.push(char::from(ALPHABET[six as usize]));
        }
    }
    Ok(SecretString::from(text))
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The part of a secret that may be stored and shown.
pub fn shown_prefix(secret: &str) -> String {
    secret.chars().take(SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_secret_has_its_prefix_and_43_characters_of_base64url() {
        let secret = generate(API_KEY_PREFIX).unwrap();
        let rest = secret.expose_secret().strip_prefix(API_KEY_PREFIX).unwrap();
        assert_eq!(rest.len(), 43);
        assert!(rest.bytes().all(|byte| ALPHABET.contains(&byte)));
        assert_ne!(generate(API_KEY_PREFIX).unwrap().expose_secret(), secret.expose_secret());
    }
}
