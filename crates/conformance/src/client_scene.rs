//! The parts that all client surfaces share: a workspace, the real clock, the journals, and a
//! `jackline stdio` process for the events of the person and the harness.

use jackline_engine::Timestamp;
use serde_json::Value;

use crate::clock::ScenarioClock;
use crate::driver::ScenarioPerson;
use crate::journals::JournalReader;
use crate::scenario::Scenario;
use crate::scenario_directories::{JacklineProgram, ScenarioDirectories};
use crate::stdio::StdioProcess;

/// A scenario that is played through a client.
pub(crate) struct ClientScene {
    pub(crate) directories: ScenarioDirectories,
    pub(crate) clock: ScenarioClock,
    pub(crate) journals: JournalReader,
    /// The process for the person and the harness, once it is needed.
    stdio: Option<StdioProcess>,
}

impl ClientScene {
    pub(crate) fn new(program: &JacklineProgram, scenario: &Scenario) -> Result<Self, String> {
        let mut place = ScenarioDirectories::new(program)?;
        let clock = ScenarioClock::starting(&place, scenario)?;
        place.write_start(scenario, clock.start)?;
        Ok(Self { directories: place, clock, journals: JournalReader::default(), stdio: None })
    }

    /// Sends a line of the person or the harness.
    pub(crate) fn send_by_stdio(&mut self, line: &str) -> Result<Value, String> {
        let process = match &mut self.stdio {
            Some(process) => process,
            none => none.insert(StdioProcess::start(&self.directories)?),
        };
        let verdict =
            process.send(line).map_err(|problem| self.directories.with_stderr(&problem))?;
        self.journals.skip(&self.directories)?;
        Ok(verdict)
    }

    /// Ends the process for the person and the harness.
    pub(crate) fn end_stdio(&mut self) -> Result<(), String> {
        let Some(process) = self.stdio.take() else { return Ok(()) };
        process.end().map_err(|problem| self.directories.with_stderr(&problem))
    }
}

impl ScenarioPerson for ClientScene {
    fn off(&mut self, why: &str, _: Timestamp) -> Result<(), String> {
        // This is longer than the hour by which the session's clock is ahead.
        self.directories.run(&["off", "--for", "6h", "--by", "person", "--why", why])?;
        self.journals.skip(&self.directories)
    }

    fn on(&mut self) -> Result<(), String> {
        self.directories.run(&["on"])?;
        self.journals.skip(&self.directories)
    }

    fn approve(&mut self, session: &str) -> Result<(), String> {
        self.directories.approve_agent(session)
    }
}
