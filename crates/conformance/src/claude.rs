//! Plays a scenario through the real `jackline hook claude`, a process an event.
//!
//! Each event is told as the payload with which Claude Code would cause it. The
//! verdict is the one that the session's journal then ends with, and what was
//! printed must say the same in the client's words.
//!
//! What a client has no part in is told as in life (see `telling`). Time passes
//! the same way: a hook has no say in what time it is, so the harness reports at
//! that time that no tokens were used.

mod heard;
mod tell;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Output, Stdio};

use jackline_engine::{EventKind, Timestamp, ToolProposed};
use serde_json::Value;

use crate::clock::looks_at_time;
use crate::driver::{Driver, ScenarioPerson, Stage, WorkspaceFiles};
use crate::place::Program;
use crate::scenario::{Act, Scenario};
use crate::scene::Scene;
use crate::telling::{Telling, event, event_at};
use tell::{Teller, Told};

/// What an answer at the gate begins with.
const SEAL: &[u8] = b"jackline:1:";

/// The `jackline` binary as the hook of Claude Code.
pub struct HookDriver {
    program: Program,
}

impl HookDriver {
    /// A driver for a binary.
    pub fn new(program: Program) -> Self {
        Self { program }
    }

    /// Who tells a scenario on this surface; an error says why nobody can.
    pub fn telling(scenario: &Scenario) -> Result<Telling, String> {
        let mut teller = Teller::new(scenario, "/workspace".to_owned());
        let (mut client, mut others) = (false, looks_at_time(scenario));
        let mut proposed = BTreeSet::new();
        for step in &scenario.steps {
            let Act::Send { line, .. } = &step.act else { continue };
            let event = event_at(step, line)?;
            if let EventKind::ToolProposed(ToolProposed { call: Some(call), .. }) = &event.kind
                && !proposed.insert((event.session.clone(), call.clone()))
            {
                return Err("a call is proposed twice under one id".to_owned());
            }
            match teller.tell(&event)? {
                Told::Hook { .. } => client = true,
                Told::Beside => others = true,
            }
        }
        Telling::by(client, others)
    }
}

impl Driver for HookDriver {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn plays(&self, scenario: &Scenario) -> Result<(), String> {
        Self::telling(scenario).map(drop)
    }

    fn stage(&self, scenario: &Scenario) -> Result<Box<dyn Stage>, String> {
        let scene = Scene::new(&self.program, scenario)?;
        let teller = Teller::new(scenario, scene.place.workspace_text());
        Ok(Box::new(HookStage { scene, teller }))
    }
}

struct HookStage {
    scene: Scene,
    teller: Teller,
}

impl Stage for HookStage {
    fn send(&mut self, line: &str, now: Timestamp) -> Result<Value, String> {
        let event = event(line)?;
        let session = event.session.as_str();
        match self.teller.tell(&event)? {
            Told::Beside => {
                let line = self.scene.clock.to_real(line, now)?;
                let verdict = self.scene.send_beside(&line)?;
                Ok(self.scene.clock.to_scenario(verdict))
            }
            Told::Hook { hook, payload } => {
                if let Some(tick) = self.scene.clock.tick(session, now) {
                    self.scene.send_beside(&tick)?;
                }
                let printed = self.run(hook, session, &payload)?;
                let record = self.recorded(&printed)?;
                self.scene.clock.learn(&record);
                let verdict = heard::check(hook, &event, &printed, &record)?;
                self.teller.answered(hook, session, &verdict);
                let verdict = serde_json::to_value(verdict).map_err(|error| error.to_string())?;
                Ok(self.scene.clock.to_scenario(verdict))
            }
        }
    }

    fn files(&mut self) -> &mut dyn WorkspaceFiles {
        &mut self.scene.place
    }

    fn person(&mut self) -> &mut dyn ScenarioPerson {
        &mut self.scene
    }

    fn file_time(&self, now: Timestamp) -> Timestamp {
        self.scene.clock.real(now)
    }

    fn restart(&mut self) -> Result<(), String> {
        // A hook starts anew with every event anyway.
        self.scene.end_beside()
    }

    fn finish(mut self: Box<Self>) -> Result<(), String> {
        self.scene.end_beside()?;
        self.scene.place.prove_journals()
    }
}

impl HookStage {
    /// Runs the hook as the client does, with nobody at it.
    fn run(&self, hook: &str, session: &str, payload: &Value) -> Result<Output, String> {
        let failed = |error: std::io::Error| format!("can't run `jackline hook claude`: {error}");
        let sealed = (hook == "PreToolUse").then_some("--sealed");
        let mut child = self
            .scene
            .place
            .command("hook")
            .arg("claude")
            .args(sealed)
            .env("CLAUDE_PROJECT_DIR", self.teller.project(session))
            .env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")
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
            // What the installed command line does before the client sees anything.
            let answer = printed.stdout.strip_prefix(SEAL).map(<[u8]>::to_vec);
            let unsealed = || format!("the answer has no seal: the hook {}", heard::said(&printed));
            printed.stdout = answer.ok_or_else(unsealed)?;
        }
        Ok(printed)
    }

    /// The one record that was written since the last look.
    fn recorded(&mut self, printed: &Output) -> Result<Value, String> {
        let mut events = self.scene.journals.recorded(&self.scene.place)?.into_iter();
        match (events.next(), events.next()) {
            (Some(record), None) => Ok(record),
            (None, _) => {
                Err(format!("nothing was recorded, and the hook {}", heard::said(printed)))
            }
            (Some(_), Some(_)) => Err("more than one event was recorded".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_scenario;
    use crate::telling::Tally;

    /// How much of the corpus can be told; it only ever grows.
    const BY_CLIENT_MIN: usize = 201;
    const TOLD_MIN: usize = 297;

    #[test]
    fn most_of_the_corpus_is_told_by_the_client() {
        let Tally { by_client, together, untold } = Tally::of(HookDriver::telling);
        assert!(by_client >= BY_CLIENT_MIN, "{by_client} scenarios are told by the client alone");
        assert!(by_client + together >= TOLD_MIN, "{untold:#?}");
        let stories_of_wink = untold.values().flatten().any(|name| name.starts_with("wink/"));
        assert!(!stories_of_wink, "{untold:#?}");
    }

    #[test]
    fn what_the_client_cannot_say_is_said_of_the_scenario() {
        let why = |step: &str| {
            let source = format!("story: A.\ndefinition: 'version: 1'\nsteps: [{step}]\n");
            HookDriver::telling(&parse_scenario("a/b", source.as_bytes()).unwrap())
        };
        let told = "{ send: { event: tool_proposed, call: c, tool: T, args: {} } }";
        assert_eq!(why(told), Ok(Telling::Client));
        let later = "{ time: 5, send: { event: tool_proposed, call: c, tool: T, args: {} } }";
        assert_eq!(why(later), Ok(Telling::Together));
        let paused = format!("{told}, {{ send: {{ event: control, action: pause }} }}");
        assert_eq!(why(&paused), Ok(Telling::Together));
        for (step, reason) in [
            ("{ send: { event: control, action: pause } }", "the client has no part in it"),
            ("{ line: '{' }", "a line is no event"),
            ("{ line: '{\"event\":\"session_ended\"}' }", "a line belongs to no session by name"),
            ("{ send: { event: stop_proposed, id: a } }", "an event has an id"),
            ("{ send: { event: stop_proposed, at: '2026-01-01T00:00:00Z' } }", "another time"),
            ("{ send: { event: session_ended, actor: a } }", "of a sub-agent"),
            ("{ send: { event: tool_finished, call: c, status: timeout } }", "`timeout`"),
            ("{ send: { event: tool_proposed, call: c, tool: T, args_text: '[' } }", "no object"),
        ] {
            let problem = why(step).unwrap_err();
            assert!(problem.contains(reason), "{step}: {problem}");
        }
    }
}
