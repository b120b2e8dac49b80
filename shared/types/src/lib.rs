//! Pure values that every service shares: ids, the clock, hints, settings, backoff.
//!
//! Nothing here waits, reads a socket or asks a database. A decision that needs the time or a random number takes it as a
//! parameter; [`Clock`] is where the time comes from at the edges.

pub mod backoff;
pub mod clock;
pub mod hints;
pub mod id;
pub mod locale;
pub mod policy;
pub mod secret;
pub mod settings;
pub mod shown;

pub use clock::{Clock, SystemClock};
pub use hints::Hints;
pub use id::{
    ApiKeyId, CallId, EdgeSessionId, GrantId, Id, InteractionId, ProfileId, ReplicaId, RunId, ServerId, SessionId,
    TokenId,
};
pub use locale::Locale;
pub use policy::{PermissionMode, Policy};
pub use settings::Settings;
