//! MCP: a proxy that stands before any server, and a server of bounded tools.

pub mod serve;
