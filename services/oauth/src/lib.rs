//! The oauth service
