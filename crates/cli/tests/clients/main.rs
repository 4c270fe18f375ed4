//! Tests of the real client with a scripted model: does the guard work end to end?
//!
//! These tests need the path of the client program in `JACKLINE_TEST_CLAUDE`, and are ignored
//! otherwise. `cargo xtask test --clients` installs the client and runs them. The tests of MCP
//! servers need the servers, and a client for them, in `JACKLINE_TEST_MCP`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod budgets;
mod context;
mod control_files;
mod dirty;
mod doctor;
mod end_to_end;
mod fault_matrix;
mod init;
mod interactive;
mod loops;
mod mcp;
mod mcp_live;
mod mcp_rust;
mod output;
#[path = "../person/program.rs"]
mod person_program;
mod reload;
mod reports;
mod run;
mod tool_names;
mod world;
