//! The conformance corpus: one set of stories, played on every surface.
//!
//! A [`Scenario`] is a YAML file that says what happens and what must be
//! answered. A [`Driver`] plays it on one surface of the product, so that the
//! engine, the runtime on a store in memory, `jackline stdio`, the hooks of clients, the MCP proxy and whatever comes later are held
//! to the same verdicts. What a driver can't pass yet stands in its [`Baseline`];
//! what can't be told on a surface at all the driver itself says.

mod baseline;
mod claude;
mod clock;
mod driver;
mod engine;
mod journals;
mod matching;
mod memory;
mod place;
mod proxy;
mod scenario;
mod scene;
mod stdio;
mod telling;
mod world;

pub use baseline::{Baseline, BaselineError};
pub use claude::HookDriver;
pub use driver::{Driver, Failure, ScenarioPerson, Stage, WorkspaceFiles, play};
pub use engine::EngineDriver;
pub use matching::{Mismatch, mismatches};
pub use memory::MemoryDriver;
pub use place::Program;
pub use proxy::ProxyDriver;
pub use scenario::{Act, Scenario, ScenarioError, Step, load_corpus, parse_scenario};
pub use stdio::StdioDriver;
pub use telling::Telling;

use std::path::PathBuf;

/// Where the scenarios and baselines lie.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
