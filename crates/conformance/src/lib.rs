//! The conformance corpus: one set of scenarios, played on every surface.
//!
//! A [`Scenario`] is a YAML file with events and the expected verdicts. A [`ScenarioDriver`] plays it on
//! one surface of the product. So the engine, the runtime with a store in memory, `jackline stdio`,
//! the hooks of clients, the MCP proxy, the MCP server and runs must give the same verdicts. What a
//! surface can't do is in one table, `jackline_runtime::surfaces`. A scenario is left out only
//! because of that table.

mod call_ids;
mod claude;
mod client_scene;
mod clock;
mod driver;
mod engine;
mod event_sender;
mod expected_text;
mod journals;
mod matching;
mod memory;
mod own_calls;
mod own_words;
mod proxy;
mod recorded_events;
mod run;
mod scenario;
mod scenario_directories;
mod scripted_peers;
mod scripted_shell;
mod serve;
mod stdio;
mod unplayable;
mod workspace_model;

pub use claude::HookDriver;
pub use driver::{
    ScenarioDriver, ScenarioFailure, ScenarioPerson, ScenarioStage, WorkspaceFiles, play_scenario,
};
pub use engine::EngineDriver;
pub use event_sender::EventSenders;
pub use matching::{ExpectationMismatch, find_mismatches};
pub use memory::MemoryDriver;
pub use proxy::ProxyDriver;
pub use run::RunDriver;
pub use scenario::{
    Scenario, ScenarioAction, ScenarioError, ScenarioStep, load_corpus, parse_scenario,
};
pub use scenario_directories::JacklineProgram;
pub use serve::ServeDriver;
pub use stdio::StdioDriver;
pub use unplayable::Unplayable;

use std::path::PathBuf;

use jackline_clients::CLIENTS;
use jackline_runtime::surfaces::{SURFACES, SurfaceProfile};

/// Every surface of the product, in the order of the reference page.
pub fn surfaces() -> Vec<&'static SurfaceProfile> {
    let clients = CLIENTS.iter().map(|client| client.dialect.surface());
    SURFACES.into_iter().chain(clients).collect()
}

/// The directory that contains the scenarios.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
