//! The conformance corpus: one set of scenarios, played on every surface.
//!
//! A [`Scenario`] is a YAML file with events and the expected verdicts. A [`ScenarioDriver`] plays it on
//! one surface of the product. So the engine, the runtime with a store in memory, `jackline stdio`,
//! the hooks of clients and the MCP proxy must give the same verdicts. The [`Baseline`] of a driver
//! lists the scenarios that it can't pass yet. The driver itself reports which scenarios can't be
//! played on its surface.

mod baseline;
mod claude;
mod client_scene;
mod clock;
mod driver;
mod engine;
mod event_sender;
mod journals;
mod matching;
mod memory;
mod proxy;
mod scenario;
mod scenario_directories;
mod stdio;
mod workspace_model;

pub use baseline::{Baseline, BaselineError};
pub use claude::HookDriver;
pub use driver::{
    ScenarioDriver, ScenarioFailure, ScenarioPerson, ScenarioStage, WorkspaceFiles, play_scenario,
};
pub use engine::EngineDriver;
pub use event_sender::EventSenders;
pub use matching::{ExpectationMismatch, find_mismatches};
pub use memory::MemoryDriver;
pub use proxy::ProxyDriver;
pub use scenario::{
    Scenario, ScenarioAction, ScenarioError, ScenarioStep, load_corpus, parse_scenario,
};
pub use scenario_directories::JacklineProgram;
pub use stdio::StdioDriver;

use std::path::PathBuf;

/// The directory of the scenarios and baselines.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
