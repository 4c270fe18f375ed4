//! The real client against a scripted model: does the last metre work?
//!
//! These tests want the client's program in `JACKLINE_TEST_CLAUDE`, and are ignored
//! otherwise; `cargo xtask test --clients` installs it and runs them. Those of MCP servers
//! want them, and a client of theirs, in `JACKLINE_TEST_MCP`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod budgets;
mod context;
mod dirty;
mod doctor;
mod fault_matrix;
mod init;
mod last_metre;
mod loops;
mod markers;
mod mcp;
mod mcp_live;
mod mcp_rust;
mod output;
mod reload;
mod reports;
mod run;
mod world;
