//! What all HTTP clients of jackline share: the agent, addresses of servers, server-sent events.
//!
//! The crates that ask models and that reach MCP servers both use these, so a redirect, a proxy
//! or an endless event is treated the same way in both.

mod agent;
mod server_url;
mod sse;

pub use agent::{AgentTimeouts, build_agent};
pub use server_url::{Channel, ServerUrl, ServerUrlError, is_loopback};
pub use sse::{OverlongEvent, SseData, SseEvent, SseOverflow, SseParser};
