//! Types generated from `proto/` and nothing else.
//!
//! The comments of the `.proto` files are the documentation; `docs/errors.md` lists the reasons that errors carry.
//! Nothing outside `grpc.rs`, `convert.rs`, `peers.rs` and the command's client uses these types.

mod debug;

/// The gateway's services.
pub mod gateway {
    /// Version 1.
    #[allow(
        missing_docs,
        clippy::all,
        clippy::pedantic,
        clippy::allow_attributes_without_reason,
        reason = "generated from the proto files, whose comments are the documentation"
    )]
    pub mod v1 {
        tonic::include_proto!("gatehouse.gateway.v1");
    }
}

/// The interaction service.
pub mod interaction {
    /// Version 1.
    #[allow(
        missing_docs,
        clippy::all,
        clippy::pedantic,
        clippy::allow_attributes_without_reason,
        reason = "generated from the proto files, whose comments are the documentation"
    )]
    pub mod v1 {
        tonic::include_proto!("gatehouse.interaction.v1");
    }
}

/// The descriptors of all files, for reflection and for tests that walk every RPC: an encoded `FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
