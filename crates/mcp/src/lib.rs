//! MCP: a proxy that stands before any server, and a server of bounded tools.

pub mod serve;
mod wrap;

pub use wrap::{Ends, Opening, Wrap, WrapError, run as wrap};
