//! The interaction service
