//! Who calls over gRPC, and what they may do.

use gatehouse_types::ApiKeyId;
use tonic::{Extensions, Status};

use crate::error::{Failure, Reason, to_status};

/// What a credential allows. `Admin` includes `Sessions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Sessions, runs, calls and their audit.
    Sessions,
    /// Everything.
    Admin,
}

/// An authenticated caller. The server puts it into the request's extensions before a handler runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// Another Gatehouse service: the shared token or a client certificate.
    Service,
    /// An API key.
    ApiKey {
        /// Its id.
        id: ApiKeyId,
        /// Its name, for the record.
        name: String,
        /// What it allows.
        scope: Scope,
    },
}

impl Caller {
    /// Whether this caller may do what needs `scope`.
    pub fn may(&self, scope: Scope) -> bool {
        match self {
            Self::Service => true,
            Self::ApiKey { scope: own, .. } => *own >= scope,
        }
    }

    /// The name to write into records.
    pub fn name(&self) -> &str {
        match self {
            Self::Service => "service",
            Self::ApiKey { name, .. } => name,
        }
    }
}

/// Why a caller is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// No credential, or one that is not known, or revoked.
    #[error("no known credential")]
    Unauthenticated,
    /// The credential's scope is too small.
    #[error("the credential's scope is too small")]
    PermissionDenied,
    /// It is for Gatehouse's own services, and the caller is none.
    #[error("the caller is no service")]
    NotService,
    /// The database could not be asked.
    #[error("the credential could not be checked")]
    Unavailable(#[source] sqlx::Error),
}

impl Failure for Refusal {
    fn reason(&self) -> Reason {
        match self {
            Self::Unauthenticated => Reason::Unauthenticated,
            Self::PermissionDenied | Self::NotService => Reason::PermissionDenied,
            Self::Unavailable(_) => Reason::Unavailable,
        }
    }

    fn external(&self) -> String {
        match self {
            Self::Unauthenticated => {
                "send `authorization: Bearer ghk_…` with an API key that is not revoked; `gatehouse keys create` makes one"
            }
            Self::PermissionDenied => "this API key has scope `sessions`; this needs a key of scope `admin`",
            Self::NotService => {
                "this is for Gatehouse's own services, which show the service token or a client certificate; no API key will do"
            }
            Self::Unavailable(_) => "the credential cannot be checked now; try again",
        }
        .to_owned()
    }
}

/// The caller of a request, when it is another Gatehouse service.
pub fn require_service(extensions: &Extensions) -> Result<&Caller, Status> {
    match extensions.get::<Caller>() {
        Some(caller @ Caller::Service) => Ok(caller),
        Some(Caller::ApiKey { .. }) => Err(to_status(Refusal::NotService)),
        None => Err(to_status(Refusal::Unauthenticated)),
    }
}

/// The caller of a request, when it may do what needs `scope`.
pub fn require(extensions: &Extensions, scope: Scope) -> Result<&Caller, Status> {
    let caller = extensions.get::<Caller>().ok_or(Refusal::Unauthenticated).map_err(to_status)?;
    if caller.may(scope) { Ok(caller) } else { Err(to_status(Refusal::PermissionDenied)) }
}
