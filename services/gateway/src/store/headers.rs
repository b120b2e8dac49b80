//! Values of headers, sealed. Only these two functions know how.

use std::collections::BTreeMap;

use gatehouse_store::{Keyring, Place};
use gatehouse_types::ServerId;
use secrecy::{ExposeSecret as _, SecretSlice};

use crate::{error::Error, registry::header::Headers};

fn place(server: ServerId) -> Place {
    Place::new("servers", "headers_sealed", server)
}

/// Seals the headers of a server; `None` for no headers.
pub fn seal(keyring: &Keyring, server: ServerId, headers: &Headers) -> Result<Option<Vec<u8>>, Error> {
    if headers.is_empty() {
        return Ok(None);
    }
    let plain = serde_json::to_vec(&headers.to_stored()).map_err(|error| Error::Broken(error.to_string()))?;
    // Wiped when dropped.
    let plain = SecretSlice::from(plain);
    let sealed = keyring.seal(&place(server), plain.expose_secret());
    sealed.map(Some).map_err(|error| Error::Broken(format!("sealing headers: {error}")))
}

/// Opens the headers of a server. The error never holds a value.
pub fn open(keyring: &Keyring, server: ServerId, sealed: Option<&[u8]>) -> Result<Headers, Error> {
    let Some(sealed) = sealed else { return Ok(Headers::default()) };
    let plain = keyring
        .open(&place(server), sealed)
        .map_err(|error| Error::Broken(format!("opening the headers of server {server}: {error}")))?;
    // The parser's error would quote what it read.
    let stored: BTreeMap<String, String> = serde_json::from_slice(plain.expose_secret())
        .map_err(|_| Error::Broken(format!("the headers of server {server} are not what was sealed")))?;
    Ok(Headers::from_stored(stored))
}
