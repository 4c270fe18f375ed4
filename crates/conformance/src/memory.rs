//! Plays a scenario through the runtime in this process, with all durable state in memory.
//!
//! The workspace is a real directory. The journals, the compiled definitions and the approvals are
//! in memory. So this proves that no code above the store and the state home needs files.

use std::path::PathBuf;
use std::sync::Arc;

use jackline_analysis::Replay;
use jackline_engine::{SessionId, Timestamp, wire};
use jackline_host::{AgentApproval, AgentApprovals, HostAccess, MemoryStateHome, StateHome};
use jackline_journal::{MemoryStore, ReadMode, SessionFilter, Store as _, Verifier};
use jackline_runtime::surfaces::{LIBRARY, SurfaceCapability, SurfaceProfile};
use jackline_runtime::{Definitions, Runtime, load_session};
use serde_json::Value;

use crate::driver::{ScenarioDriver, ScenarioPerson, ScenarioStage, WorkspaceFiles};
use crate::scenario::{PERSON, SESSION, START, Scenario, ScenarioAction, ScenarioStep};
use crate::scenario_directories::{JacklineProgram, ScenarioDirectories};
use crate::unplayable::Unplayable;

/// Why a scenario with the off switch can't be played.
const NO_OFF_SWITCH: &str = "the off switch is a file, which this driver does not have";

/// A driver for the runtime with a store in memory.
pub struct MemoryDriver;

impl ScenarioDriver for MemoryDriver {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn surface(&self) -> &'static SurfaceProfile {
        &LIBRARY
    }

    fn can_play(&self, scenario: &Scenario) -> Result<(), Unplayable> {
        let uses_switch =
            |step: &ScenarioStep| matches!(step.act, ScenarioAction::Off(_) | ScenarioAction::On);
        if scenario.steps.iter().any(uses_switch) {
            return Err(SurfaceCapability::StateDirectory.into());
        }
        Ok(())
    }

    fn stage(&self, scenario: &Scenario) -> Result<Box<dyn ScenarioStage>, String> {
        // This driver runs no binary; the directories only provide a workspace.
        let mut place = ScenarioDirectories::new(&JacklineProgram::new("jackline"))?;
        place.write_start(scenario, START)?;
        let (store, home) = (MemoryStore::default(), MemoryStateHome::default());
        let runtime = runtime(&place, &store, &home);
        Ok(Box::new(MemoryStage { place, store, home, runtime, session: session(SESSION)? }))
    }
}

struct MemoryStage {
    place: ScenarioDirectories,
    store: MemoryStore,
    home: MemoryStateHome,
    runtime: Runtime,
    /// The session of lines that name none: that of the previous line.
    session: SessionId,
}

fn runtime(place: &ScenarioDirectories, store: &MemoryStore, home: &MemoryStateHome) -> Runtime {
    let host = HostAccess::with_state_home(Arc::new(home.clone())).with_home(PERSON.into());
    let directory = PathBuf::from(place.workspace_text());
    Runtime::new(store.clone(), Definitions::new(None, host), directory)
        .with_surface(&LIBRARY)
        .with_result_pages()
}

fn session(name: &str) -> Result<SessionId, String> {
    SessionId::parse(name).map_err(|error| error.to_string())
}

impl ScenarioStage for MemoryStage {
    fn send(&mut self, line: &str, _: Timestamp) -> Result<Value, String> {
        let answer = match wire::parse_line(line.as_bytes(), Some(&self.session)) {
            Ok(event) => {
                self.session.clone_from(&event.session);
                self.runtime.answer_safely(event)
            }
            Err(error) => self.runtime.refuse(1, &error, None),
        };
        let verdict = serde_json::from_str(&answer.json).map_err(|error| error.to_string());
        self.runtime.finish(answer.deferred);
        verdict
    }

    fn files(&mut self) -> &mut dyn WorkspaceFiles {
        &mut self.place
    }

    fn person(&mut self) -> &mut dyn ScenarioPerson {
        self
    }

    fn restart(&mut self) -> Result<(), String> {
        self.runtime = runtime(&self.place, &self.store, &self.home);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), String> {
        let entries = self.store.list(&SessionFilter::default());
        for entry in entries.map_err(|error| error.to_string())? {
            let problem = |text: String| format!("session `{}`: {text}", entry.name);
            let view = self.store.view(&entry, ReadMode::Consistent);
            let view = view.map_err(|error| problem(error.to_string()))?;
            let (mut verifier, mut replay) = (Verifier::new(view.saved_head()), Replay::default());
            let torn = view.for_each(|line| {
                verifier.check_line(line);
                replay.replay_line(&view, line)
            });
            let torn = torn.map_err(|error| problem(error.to_string()))?;
            let verified = verifier.finish(torn);
            if !verified.is_clean() {
                return Err(problem(format!("verification found problems: {verified:?}")));
            }
            let report = replay.finish();
            if !report.is_proven() {
                return Err(problem(format!("replay differs: {report:?}")));
            }
        }
        Ok(())
    }
}

impl ScenarioPerson for MemoryStage {
    fn off(&mut self, _: &str, _: Timestamp) -> Result<(), String> {
        Err(NO_OFF_SWITCH.to_owned())
    }

    fn on(&mut self) -> Result<(), String> {
        Err(NO_OFF_SWITCH.to_owned())
    }

    fn approve(&mut self, name: &str) -> Result<(), String> {
        let id = session(name)?;
        let failed = |error: jackline_journal::StoreError| error.to_string();
        let entry = self.store.entry(&id).map_err(failed)?.ok_or("no such session")?;
        let session = load_session(&self.store, &entry).map_err(failed)?;
        let definition = session.definition();
        let pin = AgentApproval {
            checksum: session.agent_checksum(),
            definition: definition.name.clone(),
            workflow: definition.identity.as_ref().and_then(|it| it.workflow.clone()),
            session: id,
            at: START,
            by: "person".to_owned(),
            why: Some("it is known".to_owned()),
        };
        let home: Arc<dyn StateHome> = Arc::new(self.home.clone());
        AgentApprovals::of(home).approve(&pin).map_err(failed)
    }
}
