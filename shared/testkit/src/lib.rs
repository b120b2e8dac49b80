//! What tests share: databases, fake servers, a breakable proxy

pub mod mcp_server;
