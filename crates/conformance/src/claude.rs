//! Plays a scenario through the real `jackline hook claude`, with one process per event.
//!
//! Each event is sent as the payload that Claude Code would send. The verdict is read from the end
//! of the session's journal. The output of the hook must express the same verdict in the client's
//! format.
//!
//! Events that do not come from the client are sent beside it, as in a real run (see
//! `event_sender`). This includes the time: a hook can't set the time, so the harness reports a
//! token usage of zero at that time.

mod check_output;
mod client;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Output, Stdio};

use jackline_engine::{Event, EventKind, Timestamp, ToolProposed};
use jackline_runtime::surfaces::{SurfaceCapability, SurfaceProfile};
use serde_json::Value;

use crate::client_scene::ClientScene;
use crate::clock::depends_on_time;
use crate::driver::{ScenarioDriver, ScenarioPerson, ScenarioStage, WorkspaceFiles};
use crate::event_sender::{EventSenders, parse_client_event, parse_client_event_at};
use crate::scenario::{Scenario, ScenarioAction};
use crate::scenario_directories::JacklineProgram;
use crate::unplayable::Unplayable;
use client::{HookDelivery, ScriptedClient};

/// The prefix of every sealed answer.
const SEAL_PREFIX: &[u8] = b"jackline:1:";

/// A driver for the `jackline` binary as the hook of Claude Code.
pub struct HookDriver {
    program: JacklineProgram,
}

impl HookDriver {
    /// A driver for a binary.
    pub fn new(program: JacklineProgram) -> Self {
        Self { program }
    }

    /// Returns which senders a scenario needs here, or why it can't be played here.
    pub fn senders(scenario: &Scenario) -> Result<EventSenders, Unplayable> {
        let mut teller = ScriptedClient::new(scenario, "/workspace".to_owned());
        let (mut client, mut others) = (false, depends_on_time(scenario));
        let mut proposed = BTreeSet::new();
        for step in &scenario.steps {
            let ScenarioAction::Send { line, .. } = &step.act else { continue };
            let event = parse_client_event_at(step, line)?;
            if let EventKind::ToolProposed(ToolProposed { call: Some(call), .. }) = &event.kind
                && !proposed.insert((event.session.clone(), call.clone()))
            {
                return Err(SurfaceCapability::RepeatedCallIds.into());
            }
            match teller.deliver(&event)? {
                HookDelivery::Hook { .. } => client = true,
                HookDelivery::Beside => others = true,
            }
        }
        EventSenders::from_parts(client, others)
    }
}

impl ScenarioDriver for HookDriver {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn surface(&self) -> &'static SurfaceProfile {
        jackline_clients::claude::CLIENT.dialect.surface()
    }

    fn can_play(&self, scenario: &Scenario) -> Result<(), Unplayable> {
        Self::senders(scenario).map(drop)
    }

    fn stage(&self, scenario: &Scenario) -> Result<Box<dyn ScenarioStage>, String> {
        let scene = ClientScene::new(&self.program, scenario)?;
        let teller = ScriptedClient::new(scenario, scene.directories.workspace_text());
        Ok(Box::new(HookStage { scene, client: teller }))
    }
}

struct HookStage {
    scene: ClientScene,
    client: ScriptedClient,
}

impl ScenarioStage for HookStage {
    fn send(&mut self, line: &str, now: Timestamp) -> Result<Value, String> {
        let event = parse_client_event(line)?;
        let session = event.session.as_str();
        match self.client.deliver(&event)? {
            HookDelivery::Beside => {
                let line = self.scene.clock.to_real(line, now)?;
                let verdict = self.scene.send_by_stdio(&line)?;
                Ok(self.scene.clock.to_scenario(verdict))
            }
            HookDelivery::Hook { hook, payload } => {
                if let Some(tick) = self.scene.clock.tick(session, now) {
                    self.scene.send_by_stdio(&tick)?;
                }
                let printed = self.run(hook, &event, &payload)?;
                let record = self.recorded(&printed)?;
                self.scene.clock.learn_start(&record);
                let verdict = check_output::check(hook, &event, &printed, &record)?;
                self.client.note_answer(hook, session, &verdict);
                let verdict = serde_json::to_value(verdict).map_err(|error| error.to_string())?;
                Ok(self.scene.clock.to_scenario(verdict))
            }
        }
    }

    fn files(&mut self) -> &mut dyn WorkspaceFiles {
        &mut self.scene.directories
    }

    fn person(&mut self) -> &mut dyn ScenarioPerson {
        &mut self.scene
    }

    fn file_time(&self, now: Timestamp) -> Timestamp {
        self.scene.clock.real(now)
    }

    fn restart(&mut self) -> Result<(), String> {
        // Every event starts a new hook process anyway.
        self.scene.end_stdio()
    }

    fn finish(mut self: Box<Self>) -> Result<(), String> {
        self.scene.end_stdio()?;
        self.scene.directories.check_journals()
    }
}

/// Whether the client asks the person about a call.
fn asks_person(event: &Event) -> bool {
    matches!(event.kind, EventKind::ToolProposed(ToolProposed { asks_person: true, .. }))
}

impl HookStage {
    /// Runs the hook as the client does. A person is at the client only if it asks the person.
    fn run(&self, hook: &str, event: &Event, payload: &Value) -> Result<Output, String> {
        let attended = if asks_person(event) { "1" } else { "0" };
        let failed = |error: std::io::Error| format!("can't run `jackline hook claude`: {error}");
        let sealed = (hook == "PreToolUse").then_some("--sealed");
        let mut child = self
            .scene
            .directories
            .command("hook")
            .arg("claude")
            .args(sealed)
            .env("CLAUDE_PROJECT_DIR", self.client.project(event.session.as_str()))
            .env("CLAUDE_CODE_SESSION_ATTENDED", attended)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(payload.to_string().as_bytes()).map_err(failed)?;
        }
        let mut printed = child.wait_with_output().map_err(failed)?;
        if sealed.is_some() {
            // The installed command line removes the seal before the client sees the answer.
            let answer = printed.stdout.strip_prefix(SEAL_PREFIX).map(<[u8]>::to_vec);
            let unsealed = || {
                format!(
                    "the answer has no seal: the hook {}",
                    check_output::describe_output(&printed)
                )
            };
            printed.stdout = answer.ok_or_else(unsealed)?;
        }
        Ok(printed)
    }

    /// The one record that was written since the last read.
    fn recorded(&mut self, printed: &Output) -> Result<Value, String> {
        let mut events = self.scene.journals.recorded(&self.scene.directories)?.into_iter();
        match (events.next(), events.next()) {
            (Some(record), None) => Ok(record),
            (None, _) => Err(format!(
                "no event was recorded; the hook {}",
                check_output::describe_output(printed)
            )),
            (Some(_), Some(_)) => Err("more than one event was recorded".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_sender::CorpusTally;
    use crate::parse_scenario;

    /// The minimum parts of the corpus that can be played. They may only grow.
    const BY_CLIENT_MIN: usize = 201;
    const TOLD_MIN: usize = 297;

    #[test]
    fn most_of_the_corpus_is_played_by_the_client() {
        let CorpusTally { by_client, together, unplayable: untold } =
            CorpusTally::count(HookDriver::senders);
        assert!(
            by_client >= BY_CLIENT_MIN,
            "only {by_client} scenarios are played by the client alone"
        );
        assert!(by_client + together >= TOLD_MIN, "{untold:#?}");
        let stories_of_wink = untold.values().flatten().any(|name| name.starts_with("wink/"));
        assert!(!stories_of_wink, "{untold:#?}");
    }

    #[test]
    fn unplayable_scenarios_have_a_reason() {
        let why = |step: &str| {
            let source = format!("story: A.\ndefinition: 'version: 1'\nsteps: [{step}]\n");
            HookDriver::senders(&parse_scenario("a/b", source.as_bytes()).unwrap())
        };
        let call = "{ send: { event: tool_proposed, call: c, tool: T, args: {} } }";
        assert_eq!(why(call), Ok(EventSenders::Client));
        let later = "{ time: 5, send: { event: tool_proposed, call: c, tool: T, args: {} } }";
        assert_eq!(why(later), Ok(EventSenders::ClientAndOthers));
        let paused = format!("{call}, {{ send: {{ event: control, action: pause }} }}");
        assert_eq!(why(&paused), Ok(EventSenders::ClientAndOthers));
        let alone = "{ send: { event: control, action: pause } }";
        assert_eq!(why(alone), Err(Unplayable::NoEvents));
        for (step, needed) in [
            ("{ line: '{' }", SurfaceCapability::AnyLine),
            ("{ line: '{\"event\":\"session_ended\"}' }", SurfaceCapability::AnyLine),
            ("{ send: { event: stop_proposed, id: a } }", SurfaceCapability::EventIds),
            (
                "{ send: { event: stop_proposed, at: '2026-01-01T00:00:00Z' } }",
                SurfaceCapability::EventTimes,
            ),
            (
                "{ send: { event: session_ended, actor: a } }",
                SurfaceCapability::SeeSubAgentSessions,
            ),
            (
                "{ send: { event: tool_finished, call: c, status: timeout } }",
                SurfaceCapability::SeeCallStatus,
            ),
            (
                "{ send: { event: tool_proposed, call: c, tool: T, args_text: '[' } }",
                SurfaceCapability::AnyArguments,
            ),
        ] {
            assert_eq!(why(step), Err(Unplayable::Needs(needed)), "{step}");
        }
    }
}
