//! Plays a scenario through the real `jackline run`, with a model that the scenario controls.
//!
//! A call of the scenario is an answer of the model, and so is a stop. The tools really run, but a
//! scenario decides about the output and the exit status of commands (see `scripted_shell`). The
//! verdict is read from the session's journal. The next request to the model must contain its text.

mod model_server;
mod run_order;
mod run_process;

use std::collections::BTreeMap;

use jackline_engine::{
    Arguments, Decision, Event, EventKind, Payload, SessionId, StopProposed, Timestamp,
    ToolFinished, ToolProposed, Verdict,
};
use jackline_runtime::surfaces::{RUN, SurfaceProfile};
use serde_json::Value;

use crate::client_scene::ClientScene;
use crate::driver::{ScenarioDriver, ScenarioPerson, ScenarioStage, WorkspaceFiles};
use crate::event_sender::parse_client_event;
use crate::expected_text::expected_text;
use crate::own_calls::{OwnCall, check_calls, exit_status};
use crate::own_words::in_workspace_words;
use crate::recorded_events::RecordedEvents;
use crate::scenario::Scenario;
use crate::scenario_directories::JacklineProgram;
use crate::scripted_shell::ScriptedShell;
use crate::unplayable::Unplayable;
use run_order::check_order;
use run_process::RunProcess;

/// The prompt of a run whose scenario has none.
const PROMPT: &str = "Do the work.";

/// The text of the model when it stops and the scenario has no text for it.
const STOP_TEXT: &str = "I am done.";

/// A driver for the `jackline` binary as a supervisor of a model.
pub struct RunDriver {
    program: JacklineProgram,
}

impl RunDriver {
    /// A driver for a binary.
    pub fn new(program: JacklineProgram) -> Self {
        Self { program }
    }
}

impl ScenarioDriver for RunDriver {
    fn name(&self) -> &'static str {
        "run"
    }

    fn surface(&self) -> &'static SurfaceProfile {
        &RUN
    }

    fn in_own_words(&self, scenario: &Scenario) -> Scenario {
        in_workspace_words(scenario)
    }

    fn can_play(&self, scenario: &Scenario) -> Result<(), Unplayable> {
        let scenario = in_workspace_words(scenario);
        check_order(&scenario)?;
        check_calls(&scenario)
    }

    fn stage(&self, scenario: &Scenario) -> Result<Box<dyn ScenarioStage>, String> {
        Ok(Box::new(RunStage {
            scene: ClientScene::new(&self.program, scenario)?,
            shell: ScriptedShell::new()?,
            runs: BTreeMap::new(),
            recorded: RecordedEvents::default(),
        }))
    }
}

struct RunStage {
    scene: ClientScene,
    shell: ScriptedShell,
    /// The run of each session.
    runs: BTreeMap<SessionId, RunProcess>,
    recorded: RecordedEvents,
}

impl ScenarioStage for RunStage {
    fn send(&mut self, line: &str, _: Timestamp) -> Result<Value, String> {
        let event = parse_client_event(line)?;
        let verdict = self
            .send_to_run(&event)
            .map_err(|problem| self.scene.directories.with_stderr(&problem))?;
        let verdict = serde_json::to_value(verdict).map_err(|error| error.to_string())?;
        let verdict = self.scene.clock.to_scenario(verdict);
        self.recorded.ids.with_scenario_ids(&event.session, &verdict)
    }

    fn person(&mut self) -> &mut dyn ScenarioPerson {
        &mut self.scene
    }

    fn files(&mut self) -> &mut dyn WorkspaceFiles {
        &mut self.scene.directories
    }

    fn file_time(&self, now: Timestamp) -> Timestamp {
        self.scene.clock.real(now)
    }

    fn restart(&mut self) -> Result<(), String> {
        Err("a run can't be restarted within a scenario".to_owned())
    }

    fn finish(mut self: Box<Self>) -> Result<(), String> {
        self.runs.clear();
        self.scene.directories.check_journals()
    }
}

impl RunStage {
    /// Has the model of the session cause an event, and returns the verdict.
    fn send_to_run(&mut self, event: &Event) -> Result<Verdict, String> {
        match &event.kind {
            EventKind::PromptSubmitted(prompt) => {
                let text = prompt.text.as_ref().map_or(PROMPT, Payload::head).to_owned();
                self.start(&event.session, &text)?;
            }
            EventKind::ToolProposed(proposed) => self.call(&event.session, proposed)?,
            EventKind::ToolFinished(finished) => self.finish_call(&event.session, finished)?,
            EventKind::StopProposed(StopProposed { output, .. }) => {
                let text = output.as_ref().map_or(STOP_TEXT, Payload::head).to_owned();
                self.run(&event.session)?.model.say(&text)?;
            }
            // The run reports the end of an iteration and of the session itself.
            _ => {}
        }
        let verdict = self.recorded.verdict(&mut self.scene, event)?;
        self.expect_texts(event, &verdict)?;
        Ok(verdict)
    }

    fn call(&mut self, session: &SessionId, proposed: &ToolProposed) -> Result<(), String> {
        let arguments = match &proposed.args {
            Arguments::Parsed(value) => value.to_string(),
            Arguments::Text(text) => text.head().to_owned(),
        };
        let run = self.run(session)?;
        run.runs_command = OwnCall::of(proposed.tool.as_str()) == OwnCall::Command;
        run.model.call(proposed.tool.as_str(), &arguments)
    }

    /// Ends the running command. The other tools have already returned.
    fn finish_call(&mut self, session: &SessionId, finished: &ToolFinished) -> Result<(), String> {
        if !self.run(session)?.runs_command {
            return Ok(());
        }
        let status = exit_status(finished).ok_or("no command can have this result")?;
        let output = finished.result.as_ref().map(Payload::head).unwrap_or_default();
        self.shell.end_command(output, status)
    }

    /// The text of a verdict must be in the next request to the model, if the agent gets it.
    fn expect_texts(&mut self, event: &Event, verdict: &Verdict) -> Result<(), String> {
        let is_result = matches!(event.kind, EventKind::ToolFinished(_));
        let gets_text = match &event.kind {
            EventKind::ToolProposed(_) | EventKind::ToolFinished(_) => true,
            EventKind::StopProposed(_) => verdict.is_enforced(Decision::Deny),
            _ => false,
        };
        if gets_text && let Some(text) = expected_text(verdict, is_result) {
            self.run(&event.session)?.model.expected_texts.push(text);
        }
        Ok(())
    }

    /// The run of a session. It is started if necessary.
    fn run(&mut self, session: &SessionId) -> Result<&mut RunProcess, String> {
        if !self.runs.contains_key(session) {
            self.start(session, PROMPT)?;
        }
        self.runs.get_mut(session).ok_or_else(|| "no run is active".to_owned())
    }

    fn start(&mut self, session: &SessionId, prompt: &str) -> Result<(), String> {
        let run = RunProcess::start(&self.scene, &self.shell, prompt)?;
        self.runs.insert(session.clone(), run);
        self.recorded.learn_session(&mut self.scene, session)
    }
}

#[cfg(test)]
mod tests {
    use jackline_runtime::surfaces::SurfaceCapability as Capability;

    use super::*;
    use crate::event_sender::{CorpusTally, EventSenders};
    use crate::parse_scenario;

    /// The minimum part of the corpus that can be played. It may only grow.
    const PLAYED_MIN: usize = 64;

    fn can_play(scenario: &Scenario) -> Result<EventSenders, Unplayable> {
        RunDriver::new(JacklineProgram::new("jackline"))
            .can_play(scenario)
            .map(|()| EventSenders::Client)
    }

    #[test]
    fn calls_and_stops_are_played_by_the_model() {
        let CorpusTally { by_client, unplayable, .. } = CorpusTally::count(can_play);
        assert!(by_client >= PLAYED_MIN, "{by_client} of {unplayable:#?}");
    }

    #[test]
    fn unplayable_scenarios_have_a_reason() {
        let why = |steps: &str| {
            let source = format!("story: A.\ndefinition: 'version: 1'\nsteps: [{steps}]\n");
            can_play(&parse_scenario("a/b", source.as_bytes()).unwrap())
        };
        let call = "{ send: { event: tool_proposed, call: c, tool: Bash, args: { command: ls } } }";
        let denied = format!("{}, expect: {{ decision: deny }} }}", &call[..call.len() - 2]);
        let stop = "{ send: { event: stop_proposed } }";
        assert_eq!(why(&format!("{denied}, {stop}")), Ok(EventSenders::Client));
        let more = |event: &str| format!("{denied}, {{ send: {{ event: {event} }} }}");
        for (steps, needed) in [
            (format!("{call}, {stop}"), Capability::AnyOrder),
            (format!("{stop}, {call}"), Capability::OverlappingEnds),
            (format!("{denied}, {denied}"), Capability::RepeatedCallIds),
            (more("iteration_ended"), Capability::AnyOrder),
            (more("session_ended"), Capability::OverlappingEnds),
            (more("session_started"), Capability::OwnFirstRecord),
            (more("prompt_submitted, source: human, text: go"), Capability::SeePrompt),
            (format!("{{ time: 5, restart: true }}, {call}"), Capability::EventTimes),
            (format!("{denied}, {{ restart: true }}"), Capability::AnyOrder),
            (format!("{stop}, {{ remove: [a] }}"), Capability::AnyOrder),
        ] {
            assert_eq!(why(&steps), Err(Unplayable::Needs(needed)), "{steps}");
        }
    }
}
