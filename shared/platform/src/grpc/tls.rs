//! Certificates and keys of gRPC servers and clients, as PEM.

use std::fmt;

use secrecy::{ExposeSecret as _, SecretString};
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

use crate::config::Source;

/// A certificate chain and its private key. Prints neither.
#[derive(Clone)]
pub struct KeyPair {
    certificate: String,
    key: SecretString,
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair").finish_non_exhaustive()
    }
}

impl KeyPair {
    /// Both as PEM.
    pub fn new(certificate: impl Into<String>, key: SecretString) -> Self {
        Self { certificate: certificate.into(), key }
    }

    fn identity(&self) -> Identity {
        Identity::from_pem(&self.certificate, self.key.expose_secret())
    }
}

/// TLS of a server.
#[derive(Debug, Clone)]
pub struct ServerTls {
    /// What the server shows.
    pub own: KeyPair,
    /// The authority whose client certificates count as the service credential (mTLS), as PEM. Callers without a
    /// certificate still need another credential.
    pub client_ca: Option<String>,
}

impl ServerTls {
    /// From `GATEHOUSE_GRPC_TLS_CERT`, `_KEY` and `_CLIENT_CA`; none of them: no TLS.
    pub fn load(source: &Source) -> Option<Self> {
        let certificate = source.file_text("GATEHOUSE_GRPC_TLS_CERT");
        let key = source.file_text("GATEHOUSE_GRPC_TLS_KEY").map(SecretString::from);
        let client_ca = source.file_text("GATEHOUSE_GRPC_TLS_CLIENT_CA");
        match (certificate, key) {
            (Some(certificate), Some(key)) => Some(Self { own: KeyPair::new(certificate, key), client_ca }),
            (None, None) if source.text("GATEHOUSE_GRPC_TLS_CLIENT_CA").is_none() => None,
            (certificate, key) => {
                // A file that cannot be read was noted by its getter.
                for (found, variable) in
                    [(certificate.is_some(), "GATEHOUSE_GRPC_TLS_CERT"), (key.is_some(), "GATEHOUSE_GRPC_TLS_KEY")]
                {
                    if !found && source.text(variable).is_none() {
                        source.missing(variable);
                    }
                }
                None
            }
        }
    }

    pub(super) fn config(&self) -> ServerTlsConfig {
        let config = ServerTlsConfig::new().identity(self.own.identity()).timeout(super::server::HANDSHAKE_TIMEOUT);
        match &self.client_ca {
            Some(ca) => config.client_ca_root(Certificate::from_pem(ca)).client_auth_optional(true),
            None => config,
        }
    }
}

/// TLS of a client.
#[derive(Debug, Clone)]
pub struct ClientTls {
    /// The authority that the server's certificate must come from, as PEM.
    pub ca: String,
    /// What the client shows (mTLS).
    pub own: Option<KeyPair>,
}

impl ClientTls {
    /// From `GATEHOUSE_GRPC_TLS_CA`, else `GATEHOUSE_GRPC_TLS_CLIENT_CA`, and the service's own `GATEHOUSE_GRPC_TLS_CERT` and
    /// `_KEY`. Neither authority: none.
    pub fn load(source: &Source) -> Option<Self> {
        let variable = ["GATEHOUSE_GRPC_TLS_CA", "GATEHOUSE_GRPC_TLS_CLIENT_CA"]
            .into_iter()
            .find(|variable| source.text(variable).is_some())?;
        let own = ServerTls::load(source).map(|server| server.own);
        Some(Self { ca: source.file_text(variable)?, own })
    }

    pub(super) fn config(&self) -> ClientTlsConfig {
        let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&self.ca));
        match &self.own {
            Some(own) => config.identity(own.identity()),
            None => config,
        }
    }
}
