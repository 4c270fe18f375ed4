//! MCP: a proxy in front of any MCP server, and a server of bounded workspace tools.

mod bounded_lines;
mod call_params;
mod mcp_session_gate;
mod page_tool;
mod result_size_meta;
pub mod serve;
mod wrap;

pub use mcp_session_gate::{CLIENT_NAME, McpSessionOpening};
pub use wrap::{
    AddressError, Encryption, ProxyError, ProxySetup, ProxyStreams, ServerAddress, ServerTarget,
    run_proxy as wrap,
};
