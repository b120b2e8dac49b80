//! The gateway: the only service that speaks MCP, on both sides
