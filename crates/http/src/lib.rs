//! What all HTTP clients of Jackline share: the agent, the trusted certificate authorities, server
//! addresses, and server-sent events.
//!
//! The crates that call models and that connect to MCP servers both use this crate. So they treat a
//! redirect, a proxy or an endless event in the same way.

mod agent;
mod certificates;
mod server_url;
mod sse;

pub use agent::{AgentTimeouts, build_agent};
pub use certificates::describe_tls_failure;
pub use server_url::{Channel, ServerUrl, ServerUrlError, is_loopback};
pub use sse::{OverlongEvent, SseData, SseEvent, SseOverflow, SseParser};
