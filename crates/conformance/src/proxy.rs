//! Plays a scenario through the real `jackline mcp wrap`.
//!
//! A call is a request of the client to the proxy, and its result is an answer of the server behind
//! it. The verdict is read from the end of the session's journal. The messages to the client and
//! the server must express the same verdict.
//!
//! All other events are sent beside the proxy (see `event_sender`). This includes the time, which
//! neither client nor server can set.

mod check_messages;
mod proxy_process;

use std::collections::BTreeMap;
use std::time::Duration;

use jackline_engine::{Event, SessionId, Timestamp, Verdict};
use jackline_runtime::surfaces::{MCP_WRAP, SurfaceProfile};
use serde_json::Value;

use crate::call_ids::CallIds;
use crate::client_scene::ClientScene;
use crate::clock::depends_on_time;
use crate::driver::{ScenarioDriver, ScenarioPerson, ScenarioStage, WorkspaceFiles};
use crate::event_sender::{EventSenders, parse_client_event, parse_client_event_at};
use crate::expected_text::expected_text;
use crate::journals::text_at;
use crate::scenario::{Scenario, ScenarioAction};
use crate::scenario_directories::JacklineProgram;
use crate::scripted_peers::{ProxyDelivery, ScriptedPeers, TimeSource, is_refusal};
use crate::unplayable::Unplayable;
use proxy_process::{ProxyMessage, ProxyProcess};

/// The timeout of the server in most scenarios.
const TIMEOUT_S: u64 = 300;

/// The timeout in a scenario about timeouts. Everything else in such a scenario takes less time.
const TIMEOUT_SHORT_S: u64 = 2;

/// How often the journal is read while waiting for a record, once per millisecond.
const JOURNAL_READS_MAX: usize = 60_000;

/// A driver for the `jackline` binary as a proxy in front of an MCP server.
pub struct ProxyDriver {
    program: JacklineProgram,
}

impl ProxyDriver {
    /// A driver for a binary.
    pub fn new(program: JacklineProgram) -> Self {
        Self { program }
    }

    /// Returns which senders a scenario needs here, or why it can't be played here.
    pub fn senders(scenario: &Scenario) -> Result<EventSenders, Unplayable> {
        let mut teller = ScriptedPeers::new(
            &MCP_WRAP,
            scenario,
            "/workspace".to_owned(),
            TimeSource::of(scenario),
        );
        let (mut client, mut others) = (false, depends_on_time(scenario));
        for step in &scenario.steps {
            let (line, expect) = match &step.act {
                ScenarioAction::Send { line, expect } => (line, expect),
                ScenarioAction::Restart => {
                    teller.restarted();
                    continue;
                }
                _ => continue,
            };
            let event = parse_client_event_at(step, line)?;
            match teller.deliver(&event)? {
                ProxyDelivery::Beside => others = true,
                ProxyDelivery::Call { call, .. } => {
                    client = true;
                    if is_refusal(expect) {
                        teller.refused(&event.session, &call);
                    }
                }
                _ => {}
            }
        }
        EventSenders::from_parts(client, others)
    }
}

impl ScenarioDriver for ProxyDriver {
    fn name(&self) -> &'static str {
        "proxy"
    }

    fn surface(&self) -> &'static SurfaceProfile {
        &MCP_WRAP
    }

    fn can_play(&self, scenario: &Scenario) -> Result<(), Unplayable> {
        Self::senders(scenario).map(drop)
    }

    fn stage(&self, scenario: &Scenario) -> Result<Box<dyn ScenarioStage>, String> {
        let scene = ClientScene::new(&self.program, scenario)?;
        let has_timeout = |line: &String| line.contains(r#""status":"timeout""#);
        let is_short = scenario.steps.iter().any(
            |step| matches!(&step.act, ScenarioAction::Send { line, .. } if has_timeout(line)),
        );
        Ok(Box::new(ProxyStage {
            peers: ScriptedPeers::new(
                &MCP_WRAP,
                scenario,
                scene.directories.workspace_text(),
                TimeSource::of(scenario),
            ),
            scene,
            proxies: BTreeMap::new(),
            timeout_s: if is_short { TIMEOUT_SHORT_S } else { TIMEOUT_S },
            ids: CallIds::default(),
        }))
    }
}

struct ProxyStage {
    scene: ClientScene,
    peers: ScriptedPeers,
    /// The proxy of each session that has one.
    proxies: BTreeMap<SessionId, ProxyProcess>,
    timeout_s: u64,
    ids: CallIds,
}

impl ScenarioStage for ProxyStage {
    fn send(&mut self, line: &str, now: Timestamp) -> Result<Value, String> {
        let event = parse_client_event(line)?;
        let delivery = self.peers.deliver(&event)?;
        if delivery == ProxyDelivery::Beside {
            let line = self.scene.clock.to_real(line, now)?;
            let verdict = self.scene.send_by_stdio(&self.ids.with_own_ids(&event, &line)?)?;
            return self
                .ids
                .with_scenario_ids(&event.session, &self.scene.clock.to_scenario(verdict));
        }
        if let Some(tick) = self.scene.clock.tick(event.session.as_str(), now) {
            self.scene.send_by_stdio(&tick)?;
        }
        let verdict = self
            .send_through(&event, delivery)
            .map_err(|problem| self.scene.directories.with_stderr(&problem))?;
        let verdict = serde_json::to_value(verdict).map_err(|error| error.to_string())?;
        self.ids.with_scenario_ids(&event.session, &self.scene.clock.to_scenario(verdict))
    }

    fn person(&mut self) -> &mut dyn ScenarioPerson {
        &mut self.scene
    }

    fn file_time(&self, now: Timestamp) -> Timestamp {
        self.scene.clock.real(now)
    }

    fn files(&mut self) -> &mut dyn WorkspaceFiles {
        &mut self.scene.directories
    }

    fn restart(&mut self) -> Result<(), String> {
        // Kill the proxies, because a proxy that exits normally ends its session.
        self.proxies.clear();
        self.peers.restarted();
        self.scene.end_stdio()
    }

    fn finish(mut self: Box<Self>) -> Result<(), String> {
        for (_, proxy) in std::mem::take(&mut self.proxies) {
            proxy.leave().map_err(|problem| self.scene.directories.with_stderr(&problem))?;
        }
        self.scene.end_stdio()?;
        self.scene.directories.check_journals()
    }
}

impl ProxyStage {
    /// Sends an event through the proxy, and returns the verdict.
    fn send_through(&mut self, event: &Event, delivery: ProxyDelivery) -> Result<Verdict, String> {
        match delivery {
            ProxyDelivery::Call { call, line } => {
                let heard = self.proxy(&event.session)?.send(&line)?;
                let verdict = self.recorded_verdict(event)?;
                check_messages::check_call(&line, &heard, &verdict)?;
                match heard {
                    ProxyMessage::Server(_) => self.expect_texts(event, &verdict, false)?,
                    _ => self.peers.refused(&event.session, &call),
                }
                Ok(verdict)
            }
            ProxyDelivery::Result { call, result } => {
                let got = self.proxy(&event.session)?.answer(&call, &result)?;
                let verdict = self.recorded_verdict(event)?;
                self.expect_texts(event, &verdict, true)?;
                let owed = std::mem::take(&mut self.proxy(&event.session)?.expected_texts);
                check_messages::check_result(&result, &got, &owed, &verdict)?;
                Ok(verdict)
            }
            ProxyDelivery::Cancel { call } => {
                self.proxy(&event.session)?.cancel(&call)?;
                let verdict = self.recorded_verdict(event)?;
                self.expect_texts(event, &verdict, true)?;
                Ok(verdict)
            }
            ProxyDelivery::Timeout { call } => {
                let got = self.proxy(&event.session)?.wait_for_timeout(&call)?;
                check_messages::check_failure("timeout", &got)?;
                let verdict = self.recorded_verdict(event)?;
                self.expect_texts(event, &verdict, true)?;
                Ok(verdict)
            }
            ProxyDelivery::Crash { call } => {
                let got = self.proxy(&event.session)?.crash(&call)?;
                check_messages::check_failure("server_gone", &got)?;
                self.proxies.remove(&event.session);
                self.recorded_verdict(event)
            }
            ProxyDelivery::Leave => {
                let proxy = self.proxies.remove(&event.session).ok_or("no proxy runs")?;
                proxy.leave()?;
                self.recorded_verdict(event)
            }
            ProxyDelivery::Beside => Err("this event must be sent beside the proxy".to_owned()),
        }
    }

    /// The proxy of a session. It is started if necessary.
    fn proxy(&mut self, session: &SessionId) -> Result<&mut ProxyProcess, String> {
        if !self.proxies.contains_key(session) {
            let directory = self.peers.project(session);
            let proxy = ProxyProcess::start(
                &self.scene.directories,
                session.as_str(),
                directory,
                self.timeout_s,
            )?;
            self.proxies.insert(session.clone(), proxy);
        }
        self.proxies.get_mut(session).ok_or_else(|| "no proxy runs".to_owned())
    }

    /// The verdict that was recorded since the last read. The proxy itself records the start of its
    /// session.
    fn recorded_verdict(&mut self, event: &Event) -> Result<Verdict, String> {
        for _ in 0..JOURNAL_READS_MAX {
            let recorded = self.scene.journals.recorded(&self.scene.directories)?;
            let of_event = |record: &&Value| text_at(record, "/event/event") == event.kind.name();
            if let Some(record) = recorded.iter().find(of_event) {
                self.scene.clock.learn_start(record);
                self.ids.learn(event, record);
                return check_messages::verdict_of(event, record);
            }
            // A cancelled call has no answer to wait for, so the journal is read repeatedly.
            std::thread::sleep(Duration::from_millis(1));
        }
        Err("no event was recorded".to_owned())
    }

    fn expect_texts(
        &mut self,
        event: &Event,
        verdict: &Verdict,
        result: bool,
    ) -> Result<(), String> {
        let words = expected_text(verdict, result);
        self.proxy(&event.session)?.expected_texts.extend(words);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackline_runtime::surfaces::SurfaceCapability as Capability;

    use crate::event_sender::CorpusTally;
    use crate::parse_scenario;

    /// The minimum parts of the corpus that can be played. They may only grow.
    const BY_CLIENT_MIN: usize = 185;
    const TOLD_MIN: usize = 417;

    #[test]
    fn most_of_the_corpus_is_played_through_the_proxy() {
        let CorpusTally { by_client, together, unplayable: untold } =
            CorpusTally::count(ProxyDriver::senders);
        assert!(
            by_client >= BY_CLIENT_MIN,
            "only {by_client} scenarios are played by the client alone"
        );
        assert!(by_client + together >= TOLD_MIN, "{untold:#?}");
    }

    #[test]
    fn unplayable_scenarios_have_a_reason() {
        let why = |steps: &str| {
            let source = format!("story: A.\ndefinition: 'version: 1'\nsteps: [{steps}]\n");
            ProxyDriver::senders(&parse_scenario("a/b", source.as_bytes()).unwrap())
        };
        let call = "{ send: { event: tool_proposed, call: c, tool: T, args: {} } }";
        let with = |more: &str| format!("{call}, {{ send: {{ {more} }} }}");
        assert_eq!(why(call), Ok(EventSenders::Client));
        assert_eq!(
            why(&with("event: tool_finished, call: c, status: ok")),
            Ok(EventSenders::Client)
        );
        assert_eq!(why(&with("event: stop_proposed")), Ok(EventSenders::ClientAndOthers));
        assert_eq!(
            why(&call.replace("{ send", "{ time: 5, send")),
            Ok(EventSenders::ClientAndOthers)
        );
        assert_eq!(why("{ send: { event: stop_proposed } }"), Err(Unplayable::NoEvents));
        let later = format!(
            "{call}, {{ restart: true }}, {{ send: {{ event: tool_finished, call: c, status: ok }} }}"
        );
        for (steps, needed) in [
            (with("event: session_ended"), Capability::OverlappingEnds),
            (with("event: tool_finished, call: d, status: ok"), Capability::StrayResults),
            (
                with("event: tool_finished, call: c, status: ok, exit_code: 1"),
                Capability::SeeExitStatus,
            ),
            (
                with("event: tool_finished, call: c, status: timeout, result: a"),
                Capability::SeeCallStatus,
            ),
            (with("event: tool_proposed, call: c, tool: T, args: {}"), Capability::RepeatedCallIds),
            (
                with("event: tool_proposed, call: d, tool: T, args_text: '{'"),
                Capability::AnyArguments,
            ),
            (
                with("event: tool_proposed, call: d, tool: T, args: {}, cwd: a"),
                Capability::SeeDirectory,
            ),
            (
                with("event: tool_proposed, call: d, tool: T, args: {}, actor: a"),
                Capability::SeeSubAgents,
            ),
            (later, Capability::StrayResults),
        ] {
            assert_eq!(why(&steps), Err(Unplayable::Needs(needed)), "{steps}");
        }
    }
}
