//! What can go wrong before and while a request is carried out.

use std::{error::Error as StdError, fmt, io};

use crate::{guard::Refused, target::BadUrl};

/// A request that got no answer. Never holds headers, bodies or queries.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host name has no address.
    #[error("the host {host} could not be resolved")]
    DnsFailed {
        /// The host asked for.
        host: String,
        /// What the resolver said.
        #[source]
        source: Option<io::Error>,
    },
    /// Every address of the host is one that must not be called.
    #[error("{0}")]
    AddressRefused(Refused),
    /// Nobody listens at the address.
    #[error("the connection was refused")]
    ConnectionRefused,
    /// No connection within the time allowed, TLS included.
    #[error("no connection within the time allowed")]
    ConnectTimedOut,
    /// No way to the address, or the connection broke while it was made.
    #[error("the connection could not be made")]
    ConnectFailed(#[source] io::Error),
    /// The TLS handshake failed.
    #[error("{0}")]
    TlsFailed(TlsFailure),
    /// The connection was gone before anything of the request was written.
    #[error("the connection was gone before the request was sent")]
    NotWritten(#[source] hyper_util::client::legacy::Error),
    /// The connection broke after the request was (perhaps partly) written: it may have been carried out.
    #[error("the connection broke before the answer")]
    Reset(#[source] Box<dyn StdError + Send + Sync>),
    /// The server redirects to where the request must not go.
    #[error("{0}")]
    RedirectRefused(String),
    /// The URL cannot be called.
    #[error("the URL cannot be called: {0}")]
    BadUrl(#[from] BadUrl),
    /// The request itself cannot be written (a header or method that HTTP does not allow).
    #[error("the request cannot be written")]
    BadRequest(#[source] http::Error),
}

impl Error {
    /// Whether it is certain that the server carried nothing out, so that any request may be sent once more.
    pub fn certainly_not_carried_out(&self) -> bool {
        !matches!(self, Self::Reset(_) | Self::RedirectRefused(_))
    }
}

/// Why TLS did not come about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsFailure {
    /// The certificate's time is over.
    Expired,
    /// The certificate's time has not come.
    NotYetValid,
    /// Signed by nobody this process trusts.
    UnknownIssuer,
    /// Issued for another host.
    WrongHost,
    /// Withdrawn by its issuer.
    Revoked,
    /// The other side does not speak TLS.
    NotTls,
    /// Anything else, in the TLS library's words.
    Other(String),
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "the server's certificate has expired",
            Self::NotYetValid => "the server's certificate is not valid yet",
            Self::UnknownIssuer => "the server's certificate is signed by an authority that is not trusted here",
            Self::WrongHost => "the server's certificate is for another host name",
            Self::Revoked => "the server's certificate was revoked",
            Self::NotTls => "the server does not speak TLS on this port",
            Self::Other(words) => return write!(f, "the TLS handshake failed: {words}"),
        })
    }
}

impl From<&rustls::Error> for TlsFailure {
    fn from(error: &rustls::Error) -> Self {
        use rustls::CertificateError as Certificate;
        match error {
            rustls::Error::InvalidCertificate(certificate) => match certificate {
                Certificate::Expired | Certificate::ExpiredContext { .. } => Self::Expired,
                Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => Self::NotYetValid,
                Certificate::UnknownIssuer => Self::UnknownIssuer,
                Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => Self::WrongHost,
                Certificate::Revoked => Self::Revoked,
                other => Self::Other(other.to_string()),
            },
            rustls::Error::InvalidMessage(_) => Self::NotTls,
            other => Self::Other(other.to_string()),
        }
    }
}

/// The trust anchors could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsSetupError {
    /// The extra certificates are not PEM.
    #[error("the extra certificate authorities are not readable PEM")]
    ExtraCa(#[source] rustls::pki_types::pem::Error),
    /// The TLS library refused a setting or a certificate.
    #[error("TLS could not be set up")]
    Rustls(#[from] rustls::Error),
}

/// What a connector failed with. Travels through the HTTP client as a boxed error and is found again by [`classify`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("the host could not be resolved")]
    Dns(#[source] Option<io::Error>),
    #[error("{0}")]
    Refused(Refused),
    #[error("no connection within the time allowed")]
    TimedOut,
}

/// Reads the error of the HTTP client.
pub(crate) fn classify(host: &str, error: hyper_util::client::legacy::Error) -> Error {
    if error.is_connect() {
        return classify_connect(host, &error);
    }
    // "Canceled" means that the request was handed back: not a byte of it was written.
    if find::<hyper::Error>(&error).is_some_and(hyper::Error::is_canceled) {
        return Error::NotWritten(error);
    }
    Error::Reset(Box::new(error))
}

/// Reads the error of a connector.
pub(crate) fn classify_connect(host: &str, error: &(dyn StdError + 'static)) -> Error {
    if let Some(own) = find::<ConnectError>(error) {
        return match own {
            ConnectError::Dns(source) => Error::DnsFailed { host: host.to_owned(), source: source.as_ref().map(copy) },
            ConnectError::Refused(refused) => Error::AddressRefused(refused.clone()),
            ConnectError::TimedOut => Error::ConnectTimedOut,
        };
    }
    if let Some(tls) = find::<rustls::Error>(error) {
        return Error::TlsFailed(TlsFailure::from(tls));
    }
    match find::<io::Error>(error) {
        Some(io) if io.kind() == io::ErrorKind::ConnectionRefused => Error::ConnectionRefused,
        Some(io) if io.kind() == io::ErrorKind::TimedOut => Error::ConnectTimedOut,
        Some(io) => Error::ConnectFailed(copy(io)),
        None => Error::ConnectFailed(io::Error::other(error.to_string())),
    }
}

fn copy(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

/// The first error of a type in a chain. Looks also inside an `io::Error`, which hides what it wraps from `source`.
fn find<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}
