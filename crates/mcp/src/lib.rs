//! MCP: a proxy that stands before any server, and a server of bounded tools.

mod lines;
mod mcp_front;
mod page;
mod params;
pub mod serve;
mod shown;
mod wrap;

pub use mcp_front::Opening;
pub use wrap::{Address, AddressError, Behind, Encryption, Ends, Wrap, WrapError, run as wrap};
