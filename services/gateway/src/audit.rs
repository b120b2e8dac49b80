//! The record of every call.
pub mod mask;
