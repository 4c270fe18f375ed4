//! What surfaces share on which a client speaks for the agent: a workspace, the real clock, the
//! journals, and a `jackline stdio` in which the person and the harness speak.

use jackline_engine::Timestamp;
use serde_json::Value;

use crate::clock::Clock;
use crate::driver::ScenarioPerson;
use crate::journals::Journals;
use crate::place::{Place, Program};
use crate::scenario::Scenario;
use crate::stdio::Process;

/// A scenario at play beside a client.
pub(crate) struct Scene {
    pub(crate) place: Place,
    pub(crate) clock: Clock,
    pub(crate) journals: Journals,
    /// Where the person and the harness speak, once they do.
    beside: Option<Process>,
}

impl Scene {
    pub(crate) fn new(program: &Program, scenario: &Scenario) -> Result<Self, String> {
        let mut place = Place::new(program)?;
        let clock = Clock::starting(&place, scenario)?;
        place.furnish(scenario, clock.start)?;
        Ok(Self { place, clock, journals: Journals::default(), beside: None })
    }

    /// Has the person or the harness send a line.
    pub(crate) fn send_beside(&mut self, line: &str) -> Result<Value, String> {
        let process = match &mut self.beside {
            Some(process) => process,
            none => none.insert(Process::start(&self.place)?),
        };
        let verdict = process.send(line).map_err(|problem| self.place.with_complaints(&problem))?;
        self.journals.skip(&self.place)?;
        Ok(verdict)
    }

    /// Ends the process in which the person and the harness speak.
    pub(crate) fn end_beside(&mut self) -> Result<(), String> {
        let Some(process) = self.beside.take() else { return Ok(()) };
        process.end().map_err(|problem| self.place.with_complaints(&problem))
    }
}

impl ScenarioPerson for Scene {
    fn off(&mut self, why: &str, _: Timestamp) -> Result<(), String> {
        // Longer than the hour that the session's clock is ahead.
        self.place.run(&["off", "--for", "6h", "--by", "person", "--why", why])?;
        self.journals.skip(&self.place)
    }

    fn on(&mut self) -> Result<(), String> {
        self.place.run(&["on"])?;
        self.journals.skip(&self.place)
    }

    fn approve(&mut self, session: &str) -> Result<(), String> {
        self.place.approve_agent(session)
    }
}
