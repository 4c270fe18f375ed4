//! Plays a scenario through the real `jackline mcp serve`, with its own tools.
//!
//! A call of the scenario is a request of the client. The tools really run, but a scenario decides
//! about the output and the exit status of commands (see `scripted_shell`). The verdict is read
//! from the end of the session's journal. The answer to the client must express it.
//!
//! All other events are sent beside the server (see `event_sender`).

mod serve_process;

use std::collections::BTreeMap;

use jackline_engine::{
    CallStatus, Decision, Event, EventKind, Payload, SessionId, Timestamp, ToolFinished, Verdict,
};
use jackline_runtime::surfaces::{MCP_SERVE, SurfaceProfile};
use serde_json::Value;

use crate::client_scene::ClientScene;
use crate::driver::{ScenarioDriver, ScenarioPerson, ScenarioStage, WorkspaceFiles};
use crate::event_sender::{EventSenders, parse_client_event, parse_client_event_at};
use crate::expected_text::expected_text;
use crate::own_calls::{OwnCall, check_calls, exit_status};
use crate::own_words::in_workspace_words;
use crate::recorded_events::RecordedEvents;
use crate::scenario::{Scenario, ScenarioAction};
use crate::scenario_directories::JacklineProgram;
use crate::scripted_peers::{ProxyDelivery, ScriptedPeers, TimeSource, is_refusal};
use crate::scripted_shell::ScriptedShell;
use crate::unplayable::Unplayable;
use serve_process::ServeProcess;

/// A driver for the `jackline` binary as an MCP server of the workspace tools.
pub struct ServeDriver {
    program: JacklineProgram,
}

impl ServeDriver {
    /// A driver for a binary.
    pub fn new(program: JacklineProgram) -> Self {
        Self { program }
    }

    /// Returns which senders a scenario needs here, or why it can't be played here.
    pub fn senders(scenario: &Scenario) -> Result<EventSenders, Unplayable> {
        let scenario = &in_workspace_words(scenario);
        let time = TimeSource::of(scenario);
        let mut peers = ScriptedPeers::new(&MCP_SERVE, scenario, "/workspace".to_owned(), time);
        let (mut client, mut others) = (false, time == TimeSource::Harness);
        for step in &scenario.steps {
            let (line, expect) = match &step.act {
                ScenarioAction::Send { line, expect } => (line, expect),
                ScenarioAction::Restart => {
                    peers.restarted();
                    continue;
                }
                _ => continue,
            };
            let event = parse_client_event_at(step, line)?;
            match peers.deliver(&event)? {
                ProxyDelivery::Beside => others = true,
                ProxyDelivery::Call { call, .. } => {
                    client = true;
                    if is_refusal(expect) {
                        peers.refused(&event.session, &call);
                    }
                }
                _ => {}
            }
        }
        let senders = EventSenders::from_parts(client, others)?;
        check_calls(scenario)?;
        Ok(senders)
    }
}

impl ScenarioDriver for ServeDriver {
    fn name(&self) -> &'static str {
        "serve"
    }

    fn surface(&self) -> &'static SurfaceProfile {
        &MCP_SERVE
    }

    fn in_own_words(&self, scenario: &Scenario) -> Scenario {
        in_workspace_words(scenario)
    }

    fn can_play(&self, scenario: &Scenario) -> Result<(), Unplayable> {
        Self::senders(scenario).map(drop)
    }

    fn stage(&self, scenario: &Scenario) -> Result<Box<dyn ScenarioStage>, String> {
        let scene = ClientScene::new(&self.program, scenario)?;
        let workspace = scene.directories.workspace_text();
        Ok(Box::new(ServeStage {
            peers: ScriptedPeers::new(&MCP_SERVE, scenario, workspace, TimeSource::of(scenario)),
            scene,
            shell: ScriptedShell::new()?,
            servers: BTreeMap::new(),
            recorded: RecordedEvents::default(),
            returned: BTreeMap::new(),
        }))
    }
}

struct ServeStage {
    scene: ClientScene,
    peers: ScriptedPeers,
    shell: ScriptedShell,
    /// The server of each session that has one.
    servers: BTreeMap<SessionId, ServeProcess>,
    recorded: RecordedEvents,
    /// The answers to calls that returned at once, until the scenario expects their results.
    returned: BTreeMap<(SessionId, String), Value>,
}

impl ScenarioStage for ServeStage {
    fn send(&mut self, line: &str, now: Timestamp) -> Result<Value, String> {
        let event = parse_client_event(line)?;
        let delivery = self.peers.deliver(&event)?;
        if delivery == ProxyDelivery::Beside {
            let line = self.scene.clock.to_real(line, now)?;
            let verdict =
                self.scene.send_by_stdio(&self.recorded.ids.with_own_ids(&event, &line)?)?;
            let verdict = self.scene.clock.to_scenario(verdict);
            return self.recorded.ids.with_scenario_ids(&event.session, &verdict);
        }
        let waits = matches!(delivery, ProxyDelivery::Result { .. });
        // A tool that returned at once was also recorded at once, so time can't pass before it.
        if (!waits || self.returned.is_empty())
            && let Some(tick) = self.scene.clock.tick(event.session.as_str(), now)
        {
            self.scene.send_by_stdio(&tick)?;
        }
        let verdict = self
            .send_to_server(&event, delivery)
            .map_err(|problem| self.scene.directories.with_stderr(&problem))?;
        let verdict = serde_json::to_value(verdict).map_err(|error| error.to_string())?;
        let verdict = self.scene.clock.to_scenario(verdict);
        self.recorded.ids.with_scenario_ids(&event.session, &verdict)
    }

    fn restart(&mut self) -> Result<(), String> {
        // Kill the servers, because a server that exits normally ends its session.
        self.servers.clear();
        self.returned.clear();
        self.peers.restarted();
        self.scene.end_stdio()
    }

    fn finish(mut self: Box<Self>) -> Result<(), String> {
        for (session, server) in std::mem::take(&mut self.servers) {
            // A server that still runs a command does not exit.
            if self.peers.has_open_calls(&session) {
                continue;
            }
            server.leave().map_err(|problem| self.scene.directories.with_stderr(&problem))?;
        }
        self.scene.end_stdio()?;
        self.scene.directories.check_journals()
    }

    fn files(&mut self) -> &mut dyn WorkspaceFiles {
        &mut self.scene.directories
    }

    fn file_time(&self, now: Timestamp) -> Timestamp {
        self.scene.clock.real(now)
    }

    fn person(&mut self) -> &mut dyn ScenarioPerson {
        &mut self.scene
    }
}

impl ServeStage {
    /// Sends an event to the server of its session, and returns the verdict.
    fn send_to_server(&mut self, event: &Event, sent: ProxyDelivery) -> Result<Verdict, String> {
        let session = &event.session;
        match (sent, &event.kind) {
            (ProxyDelivery::Call { call, line }, EventKind::ToolProposed(proposed)) => {
                self.server(session)?.send(&line)?;
                let verdict = self.recorded.verdict(&mut self.scene, event)?;
                if !runs(&verdict) {
                    let answer = self.server(session)?.answer(&call)?;
                    self.peers.refused(session, &call);
                    check_refusal(&answer, &verdict)?;
                } else if OwnCall::of(proposed.tool.as_str()) == OwnCall::RealTool {
                    let answer = self.server(session)?.answer(&call)?;
                    self.returned.insert((session.clone(), call), answer);
                }
                Ok(verdict)
            }
            (ProxyDelivery::Result { call, .. }, EventKind::ToolFinished(finished)) => {
                let answer = match self.returned.remove(&(session.clone(), call.clone())) {
                    Some(answer) => answer,
                    None => {
                        self.end_command(finished)?;
                        self.server(session)?.answer(&call)?
                    }
                };
                let verdict = self.recorded.verdict(&mut self.scene, event)?;
                check_result(&answer, finished, &verdict)?;
                Ok(verdict)
            }
            (ProxyDelivery::Leave, _) => {
                self.servers.remove(session).ok_or("no server runs")?.leave()?;
                self.recorded.verdict(&mut self.scene, event)
            }
            (other, _) => Err(format!("the server can't do this: {other:?}")),
        }
    }

    fn end_command(&mut self, finished: &ToolFinished) -> Result<(), String> {
        let status = exit_status(finished).ok_or("no command can have this result")?;
        let output = finished.result.as_ref().map(Payload::head).unwrap_or_default();
        self.shell.end_command(output, status)
    }

    /// The server of a session. It is started if necessary.
    fn server(&mut self, session: &SessionId) -> Result<&mut ServeProcess, String> {
        if !self.servers.contains_key(session) {
            let project = self.peers.project(session);
            let server = ServeProcess::start(&self.scene, &self.shell, session.as_str(), project)?;
            self.servers.insert(session.clone(), server);
        }
        self.servers.get_mut(session).ok_or_else(|| "no server runs".to_owned())
    }
}

/// Whether a call with this verdict may run.
fn runs(verdict: &Verdict) -> bool {
    verdict.enforced == Some(false)
        || matches!(verdict.decision, Decision::Allow | Decision::Rewrite)
}

/// Checks that a refused call is answered with the text of its verdict.
fn check_refusal(answer: &Value, verdict: &Verdict) -> Result<(), String> {
    let fault = verdict.error.as_ref().map(|error| error.reason.as_str());
    let why = verdict.context.as_deref().or(fault).unwrap_or("refused by jackline");
    let is_error = answer.pointer("/result/isError") == Some(&Value::Bool(true));
    if is_error && texts(answer).contains(why) {
        return Ok(());
    }
    Err(format!("the answer to a refused call must be an error with {why:?}: {answer}"))
}

/// Checks that the answer contains the output of the command, and the text of the guards.
fn check_result(answer: &Value, finished: &ToolFinished, verdict: &Verdict) -> Result<(), String> {
    let shown = texts(answer);
    let output = finished.result.as_ref().map(Payload::head).unwrap_or_default();
    let is_error = answer.pointer("/result/isError") == Some(&Value::Bool(true));
    if is_error && finished.status == CallStatus::Ok {
        return Err(format!("the call must not be an error: {answer}"));
    }
    if verdict.page.is_none() && !shown.contains(output.trim_end()) {
        return Err(format!("the output is missing: {answer}"));
    }
    match expected_text(verdict, true) {
        Some(text) if !shown.contains(&text) => Err(format!("{text:?} is missing: {answer}")),
        _ => Ok(()),
    }
}

/// All texts of an answer.
fn texts(answer: &Value) -> String {
    let items = answer.pointer("/result/content").and_then(Value::as_array);
    let texts = items.into_iter().flatten().filter_map(|item| item.get("text")?.as_str());
    texts.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use jackline_runtime::surfaces::SurfaceCapability as Capability;

    use super::*;
    use crate::event_sender::CorpusTally;
    use crate::parse_scenario;

    /// The minimum parts of the corpus that can be played. They may only grow.
    const BY_CLIENT_MIN: usize = 55;
    const TOLD_MIN: usize = 132;

    #[test]
    fn the_calls_of_commands_and_files_are_played_by_the_server() {
        let CorpusTally { by_client, together, unplayable: untold } =
            CorpusTally::count(ServeDriver::senders);
        assert!(by_client >= BY_CLIENT_MIN, "only {by_client} by the client alone");
        assert!(by_client + together >= TOLD_MIN, "{} of {untold:#?}", by_client + together);
    }

    #[test]
    fn unplayable_scenarios_have_a_reason() {
        let why = |steps: &str| {
            let source = format!("story: A.\ndefinition: 'version: 1'\nsteps: [{steps}]\n");
            ServeDriver::senders(&parse_scenario("a/b", source.as_bytes()).unwrap())
        };
        let call = "{ send: { event: tool_proposed, call: c, tool: Bash, args: { command: ls } } }";
        let read =
            "{ send: { event: tool_proposed, call: c, tool: Read, args: { file_path: a } } }";
        let result =
            |more: &str| format!("{{ send: {{ event: tool_finished, call: c, {more} }} }}");
        let ended = format!("{call}, {}", result("status: error, exit_code: 2, result: no"));
        assert_eq!(why(&ended), Ok(EventSenders::Client));
        for (steps, needed) in [
            (call.replace("Bash", "pay"), Capability::AnyTool),
            (call.replace("command", "line"), Capability::AnyTool),
            (format!("{call}, {}", call.replace("call: c", "call: d")), Capability::AnyResult),
            (format!("{call}, {}", result("status: ok, exit_code: 1")), Capability::AnyResult),
            (format!("{read}, {}", result("status: ok")), Capability::AnyResult),
            (format!("{read}, {call}"), Capability::RepeatedCallIds),
            (result("status: ok"), Capability::StrayResults),
        ] {
            assert_eq!(why(&steps), Err(Unplayable::Needs(needed)), "{steps}");
        }
    }
}
