//! Tests of the `jackline` binary from outside: its input, its output and the files that it writes.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod attempt;
mod attempt_journal;
mod attest;
mod backtest;
mod backtest_runs;
mod bad_definitions;
mod bad_input;
mod client_spellings;
mod commands;
mod concurrency;
mod concurrent_controls;
mod control_files;
mod controls;
mod crash;
mod definition_files;
mod disk;
mod doctor;
mod documents;
mod ended_sessions;
mod endings;
mod explain;
mod export;
mod first_day;
mod git_guard;
mod git_state;
mod hook;
mod hook_faults;
mod hook_output;
mod hook_payloads;
mod hook_person;
mod hook_refusal;
mod hook_settings;
mod hook_support;
mod hook_usage;
mod identity;
mod init;
mod init_mcp;
mod layers;
mod left_sessions;
mod linked_guard_files;
mod lost_output;
mod mcp_faults;
mod mcp_http;
mod mcp_pages;
mod mcp_remote;
mod mcp_serve;
mod mcp_streams;
mod mcp_support;
mod mcp_wrap;
mod modes;
mod named_files;
mod notify;
mod parallel_work;
mod pauses_and_blockers;
#[path = "../person/program.rs"]
mod person_program;
mod protected_files;
mod pseudo_terminal;
mod reload;
mod run;
mod run_checks;
mod run_fallback;
mod run_hard_conditions;
mod run_limits;
mod run_listing;
mod run_models;
mod run_person;
mod run_programs;
mod run_refusals;
mod run_support;
mod run_terminal;
mod run_tries;
mod run_workers;
mod session_events;
mod shown_paths;
mod soak;
mod stdio_pages;
mod support;
mod tls;
mod tls_front;
mod tool_names;
mod tools;
mod undo;
mod unknown_tools;
mod verification;
mod verification_stdio;
mod watch;
