//! Plays a scenario through the real `jackline mcp wrap`.
//!
//! A call is what the client asks the proxy for, and its result what a server behind it
//! answers. The verdict is the one that the session's journal then ends with, and what
//! the client and the server got must say the same.
//!
//! Everything else that happens to a session is told beside the proxy (see `telling`),
//! and so is the time, in which neither client nor server has a say.

mod heard;
mod process;
mod tell;

use std::collections::BTreeMap;
use std::time::Duration;

use jackline_engine::{Event, EventKind, SessionId, Timestamp, ToolProposed, Verdict};
use serde_json::Value;

use crate::clock::looks_at_time;
use crate::driver::{Driver, ScenarioPerson, Stage, WorkspaceFiles};
use crate::journals::text;
use crate::place::Program;
use crate::scenario::{Act, Scenario};
use crate::scene::Scene;
use crate::telling::{Telling, event, event_at};
use process::{Heard, Proxy};
use tell::{Teller, Time, Told};

/// How long a server may be silent.
const SILENCE_S: u64 = 300;

/// The same where a scenario is about that. Everything else in it is over sooner.
const SILENCE_SHORT_S: u64 = 2;

/// How often is looked for a record of which nobody says that it is there, a millisecond each.
const LOOKS_MAX: usize = 60_000;

/// The `jackline` binary as a proxy before an MCP server.
pub struct ProxyDriver {
    program: Program,
}

impl ProxyDriver {
    /// A driver for a binary.
    pub fn new(program: Program) -> Self {
        Self { program }
    }

    /// Who tells a scenario on this surface; an error says why nobody can.
    pub fn telling(scenario: &Scenario) -> Result<Telling, String> {
        let mut teller = Teller::new("/workspace".to_owned(), time(scenario));
        let (mut client, mut others) = (false, looks_at_time(scenario));
        for step in &scenario.steps {
            let (line, expect) = match &step.act {
                Act::Send { line, expect } => (line, expect),
                Act::Restart => {
                    teller.restarted();
                    continue;
                }
                _ => continue,
            };
            let event = event_at(step, line)?;
            match teller.tell(&event)? {
                Told::Beside => others = true,
                Told::Call { call, .. } => {
                    client = true;
                    if is_refusal(expect) {
                        teller.refused(&event.session, &call);
                    }
                }
                _ => {}
            }
        }
        Telling::by(client, others)
    }
}

fn time(scenario: &Scenario) -> Time {
    if looks_at_time(scenario) { Time::IsTold } else { Time::Passes }
}

/// Whether a call is not expected to run.
fn is_refusal(expect: &Value) -> bool {
    let decision = expect.get("decision").and_then(Value::as_str);
    let holds = expect.get("enforced").and_then(Value::as_bool) != Some(false);
    holds && matches!(decision, Some("deny" | "ask" | "pause" | "stop"))
}

impl Driver for ProxyDriver {
    fn name(&self) -> &'static str {
        "proxy"
    }

    fn plays(&self, scenario: &Scenario) -> Result<(), String> {
        Self::telling(scenario).map(drop)
    }

    fn stage(&self, scenario: &Scenario) -> Result<Box<dyn Stage>, String> {
        let scene = Scene::new(&self.program, scenario)?;
        let silent = |line: &String| line.contains(r#""status":"timeout""#);
        let short = scenario
            .steps
            .iter()
            .any(|step| matches!(&step.act, Act::Send { line, .. } if silent(line)));
        Ok(Box::new(ProxyStage {
            teller: Teller::new(scene.place.workspace_text(), time(scenario)),
            scene,
            proxies: BTreeMap::new(),
            timeout_s: if short { SILENCE_SHORT_S } else { SILENCE_S },
            numbers: BTreeMap::new(),
        }))
    }
}

struct ProxyStage {
    scene: Scene,
    teller: Teller,
    /// The proxy of each session that has one.
    proxies: BTreeMap<SessionId, Proxy>,
    timeout_s: u64,
    /// What the proxy calls each call.
    numbers: BTreeMap<(SessionId, String), String>,
}

impl Stage for ProxyStage {
    fn send(&mut self, line: &str, now: Timestamp) -> Result<Value, String> {
        let event = event(line)?;
        let told = self.teller.tell(&event)?;
        if told == Told::Beside {
            let line = self.scene.clock.to_real(line, now)?;
            let verdict = self.scene.send_beside(&self.numbered(&event, &line)?)?;
            return self.as_told(&event.session, &self.scene.clock.to_scenario(verdict));
        }
        if let Some(tick) = self.scene.clock.tick(event.session.as_str(), now) {
            self.scene.send_beside(&tick)?;
        }
        let verdict = self
            .pass(&event, told)
            .map_err(|problem| self.scene.place.with_complaints(&problem))?;
        let verdict = serde_json::to_value(verdict).map_err(|error| error.to_string())?;
        self.as_told(&event.session, &self.scene.clock.to_scenario(verdict))
    }

    fn person(&mut self) -> &mut dyn ScenarioPerson {
        &mut self.scene
    }

    fn file_time(&self, now: Timestamp) -> Timestamp {
        self.scene.clock.real(now)
    }

    fn files(&mut self) -> &mut dyn WorkspaceFiles {
        &mut self.scene.place
    }

    fn restart(&mut self) -> Result<(), String> {
        // Killed: a proxy that may say goodbye ends its session.
        self.proxies.clear();
        self.teller.restarted();
        self.scene.end_beside()
    }

    fn finish(mut self: Box<Self>) -> Result<(), String> {
        for (_, proxy) in std::mem::take(&mut self.proxies) {
            proxy.leave().map_err(|problem| self.scene.place.with_complaints(&problem))?;
        }
        self.scene.end_beside()?;
        self.scene.place.prove_journals()
    }
}

impl ProxyStage {
    /// Has something pass the proxy, and gives what was decided on it.
    fn pass(&mut self, event: &Event, told: Told) -> Result<Verdict, String> {
        match told {
            Told::Call { call, line } => {
                let heard = self.proxy(&event.session)?.send(&line)?;
                let verdict = self.decided(event)?;
                heard::check_call(&line, &heard, &verdict)?;
                match heard {
                    Heard::Server(_) => self.owe(event, &verdict, false)?,
                    _ => self.teller.refused(&event.session, &call),
                }
                Ok(verdict)
            }
            Told::Result { call, result } => {
                let got = self.proxy(&event.session)?.answer(&call, &result)?;
                let verdict = self.decided(event)?;
                self.owe(event, &verdict, true)?;
                let owed = std::mem::take(&mut self.proxy(&event.session)?.owed);
                heard::check_result(&result, &got, &owed, &verdict)?;
                Ok(verdict)
            }
            Told::Cancel { call } => {
                self.proxy(&event.session)?.cancel(&call)?;
                let verdict = self.decided(event)?;
                self.owe(event, &verdict, true)?;
                Ok(verdict)
            }
            Told::Silence { call } => {
                let got = self.proxy(&event.session)?.silence(&call)?;
                heard::check_failure("timeout", &got)?;
                let verdict = self.decided(event)?;
                self.owe(event, &verdict, true)?;
                Ok(verdict)
            }
            Told::Crash { call } => {
                let got = self.proxy(&event.session)?.crash(&call)?;
                heard::check_failure("server_gone", &got)?;
                self.proxies.remove(&event.session);
                self.decided(event)
            }
            Told::Leave => {
                let proxy = self.proxies.remove(&event.session).ok_or("no proxy runs")?;
                proxy.leave()?;
                self.decided(event)
            }
            Told::Beside => Err("this is told beside the proxy".to_owned()),
        }
    }

    /// The proxy of a session, started where there is none.
    fn proxy(&mut self, session: &SessionId) -> Result<&mut Proxy, String> {
        if !self.proxies.contains_key(session) {
            let directory = self.teller.project(session);
            let proxy =
                Proxy::start(&self.scene.place, session.as_str(), directory, self.timeout_s)?;
            self.proxies.insert(session.clone(), proxy);
        }
        self.proxies.get_mut(session).ok_or_else(|| "no proxy runs".to_owned())
    }

    /// The verdict that was recorded since the last look. A proxy says itself that its
    /// session begins.
    fn decided(&mut self, event: &Event) -> Result<Verdict, String> {
        for _ in 0..LOOKS_MAX {
            let recorded = self.scene.journals.recorded(&self.scene.place)?;
            let of_event = |record: &&Value| text(record, "/event/event") == event.kind.name();
            if let Some(record) = recorded.iter().find(of_event) {
                self.scene.clock.learn(record);
                if let EventKind::ToolProposed(ToolProposed { call: Some(call), .. }) = &event.kind
                {
                    let key = (event.session.clone(), call.as_str().to_owned());
                    self.numbers.insert(key, text(record, "/event/call").to_owned());
                }
                return heard::verdict_of(event, record);
            }
            // A call that is taken back is answered to nobody.
            std::thread::sleep(Duration::from_millis(1));
        }
        Err("nothing was recorded".to_owned())
    }

    /// A line in which a person names a call as the proxy does.
    fn numbered(&self, event: &Event, line: &str) -> Result<String, String> {
        let mut line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if let Some(call) = line.get_mut("call") {
            let key = (event.session.clone(), call.as_str().unwrap_or_default().to_owned());
            if let Some(number) = self.numbers.get(&key) {
                *call = Value::from(number.as_str());
            }
        }
        Ok(line.to_string())
    }

    /// A verdict that names calls as the scenario does.
    fn as_told(&self, session: &SessionId, verdict: &Value) -> Result<Value, String> {
        let mut text = verdict.to_string();
        // Where the proxy has joined, its names are like nothing else that is said.
        let own = |((of, _), name): &(&(SessionId, String), &String)| {
            of == session && name.starts_with("mcp-")
        };
        for ((_, call), name) in self.numbers.iter().filter(own) {
            text = text.replace(&format!("`{name}`"), &format!("`{call}`"));
        }
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }

    fn owe(&mut self, event: &Event, verdict: &Verdict, result: bool) -> Result<(), String> {
        let words = heard::owes(verdict, result);
        self.proxy(&event.session)?.owed.extend(words);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_scenario;
    use crate::telling::Tally;

    /// How much of the corpus can be told; it only ever grows.
    const BY_CLIENT_MIN: usize = 185;
    const TOLD_MIN: usize = 417;

    #[test]
    fn most_of_the_corpus_passes_the_proxy() {
        let Tally { by_client, together, untold } = Tally::of(ProxyDriver::telling);
        assert!(by_client >= BY_CLIENT_MIN, "{by_client} scenarios are told by the client alone");
        assert!(by_client + together >= TOLD_MIN, "{untold:#?}");
    }

    #[test]
    fn what_mcp_cannot_say_is_said_of_the_scenario() {
        let why = |steps: &str| {
            let source = format!("story: A.\ndefinition: 'version: 1'\nsteps: [{steps}]\n");
            ProxyDriver::telling(&parse_scenario("a/b", source.as_bytes()).unwrap())
        };
        let call = "{ send: { event: tool_proposed, call: c, tool: T, args: {} } }";
        let with = |more: &str| format!("{call}, {{ send: {{ {more} }} }}");
        assert_eq!(why(call), Ok(Telling::Client));
        assert_eq!(why(&with("event: tool_finished, call: c, status: ok")), Ok(Telling::Client));
        assert_eq!(
            why(&with("event: session_ended")),
            Err("a session ends with an open call, which is then over".to_owned())
        );
        assert_eq!(why(&with("event: stop_proposed")), Ok(Telling::Together));
        assert_eq!(why(&call.replace("{ send", "{ time: 5, send")), Ok(Telling::Together));
        for (steps, reason) in [
            ("{ send: { event: stop_proposed } }".to_owned(), "the client has no part in it"),
            (with("event: tool_finished, call: d, status: ok"), "no call that runs"),
            (with("event: tool_finished, call: c, status: ok, exit_code: 1"), "exit status"),
            (with("event: tool_finished, call: c, status: timeout, result: a"), "`timeout`"),
            (with("event: tool_proposed, call: c, tool: T, args: {}"), "while it is open"),
            (with("event: tool_proposed, call: d, tool: T, args_text: '{'"), "no JSON"),
            (with("event: tool_proposed, call: d, tool: T, args: {}, cwd: a"), "directory"),
            (with("event: tool_proposed, call: d, tool: T, args: {}, actor: a"), "sub-agent"),
            (
                format!(
                    "{call}, {{ restart: true }}, {{ send: {{ event: tool_finished, call: c, status: ok }} }}"
                ),
                "no call that runs",
            ),
        ] {
            let problem = why(&steps).unwrap_err();
            assert!(problem.contains(reason), "{steps}: {problem}");
        }
    }
}
