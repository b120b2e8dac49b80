//! Pure. A digest of what a request asks for, so that a `request_id` cannot come back for something else.

use sha2::{Digest as _, Sha256};

/// SHA-256 over fields with their lengths, so that no two lists of fields run into one.
pub struct Digest(Sha256);

impl Digest {
    /// A digest for requests of one kind.
    pub fn new(kind: &str) -> Self {
        Self(Sha256::new()).text(kind)
    }

    /// Adds a text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// Adds bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds a number.
    #[must_use]
    pub fn number(self, number: u128) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    /// The digest.
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_run_into_each_other() {
        let one = Digest::new("server").text("ab").text("c").finish();
        let two = Digest::new("server").text("a").text("bc").finish();
        assert_ne!(one, two);
        assert_ne!(Digest::new("a").finish(), Digest::new("b").finish());
        assert_eq!(one, Digest::new("server").text("ab").text("c").finish());
    }
}
