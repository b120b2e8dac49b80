//! Typed ids. Each is a UUID of version 7, so that ids sort by the time they were made.

use std::{cmp::Ordering, fmt, hash, marker::PhantomData, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// An id of one kind of thing. `Id<Server>` and `Id<Session>` do not mix.
pub struct Id<Of> {
    uuid: Uuid,
    of: PhantomData<fn() -> Of>,
}

/// Kind markers. They have no values.
pub mod kind {
    /// A registered upstream server.
    pub enum Server {}
    /// A profile.
    pub enum Profile {}
    /// A session.
    pub enum Session {}
    /// A bearer token of a session.
    pub enum Token {}
    /// A run.
    pub enum Run {}
    /// A card.
    pub enum Interaction {}
    /// A word that counts for the rest of a session.
    pub enum Grant {}
    /// An API key.
    pub enum ApiKey {}
    /// A tool call in the audit.
    pub enum Call {}
    /// A gateway replica.
    pub enum Replica {}
    /// An MCP session of an engine at the edge.
    pub enum EdgeSession {}
}

/// Id of a registered upstream server.
pub type ServerId = Id<kind::Server>;
/// Id of a profile.
pub type ProfileId = Id<kind::Profile>;
/// Id of a session.
pub type SessionId = Id<kind::Session>;
/// Id of a session's bearer token.
pub type TokenId = Id<kind::Token>;
/// Id of a run.
pub type RunId = Id<kind::Run>;
/// Id of a card.
pub type InteractionId = Id<kind::Interaction>;
/// Id of an approval for the rest of a session.
pub type GrantId = Id<kind::Grant>;
/// Id of an API key.
pub type ApiKeyId = Id<kind::ApiKey>;
/// Id of a tool call.
pub type CallId = Id<kind::Call>;
/// Id of a gateway replica.
pub type ReplicaId = Id<kind::Replica>;
/// Id of an engine's MCP session.
pub type EdgeSessionId = Id<kind::EdgeSession>;

impl<Of> Id<Of> {
    /// A new id, later in order than those made before it.
    #[expect(clippy::disallowed_methods, reason = "this is where ids are made")]
    pub fn new() -> Self {
        Self::from_uuid(Uuid::now_v7())
    }

    /// The id that this UUID stands for.
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self { uuid, of: PhantomData }
    }

    /// The UUID, for storing.
    pub const fn uuid(self) -> Uuid {
        self.uuid
    }
}

impl<Of> Default for Id<Of> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Of> Clone for Id<Of> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Of> Copy for Id<Of> {}

impl<Of> PartialEq for Id<Of> {
    fn eq(&self, other: &Self) -> bool {
        self.uuid == other.uuid
    }
}

impl<Of> Eq for Id<Of> {}

impl<Of> PartialOrd for Id<Of> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<Of> Ord for Id<Of> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.uuid.cmp(&other.uuid)
    }
}

impl<Of> hash::Hash for Id<Of> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.uuid.hash(state);
    }
}

impl<Of> fmt::Debug for Id<Of> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.uuid, f)
    }
}

impl<Of> fmt::Display for Id<Of> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.uuid, f)
    }
}

impl<Of> FromStr for Id<Of> {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::try_parse(text).map(Self::from_uuid)
    }
}

impl<Of> Serialize for Id<Of> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.uuid.serialize(serializer)
    }
}

impl<'de, Of> Deserialize<'de> for Id<Of> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Uuid::deserialize(deserializer).map(Self::from_uuid)
    }
}
