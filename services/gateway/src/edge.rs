//! The edge.
pub mod session_id;
