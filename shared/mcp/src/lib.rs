//! MCP on the wire: JSON-RPC without loss, event streams, Streamable HTTP
