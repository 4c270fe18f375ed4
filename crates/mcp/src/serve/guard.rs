//! The session of a server: every call is proposed to the guards, and every result
//! is told to them.

use jackline_engine::{
    ActorId, Arguments, CallId, Decision, Event, EventKind, Payload, SessionId, ToolName, Verdict,
    Violation,
};
use jackline_runtime::{Outcome, Runtime, ask_code};
use serde_json::{Value, json};

use super::result::Answer;

/// The name under which sessions are started.
const CLIENT: &str = "mcp";

/// What the agent is told where a person has to say.
const WAITS: &str = "a person was told how to let exactly this call pass; go on with something \
                     else, or end the turn and say what waits";

/// How the session of a server begins.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Its id.
    pub session: SessionId,
    /// The session of the client that has the server, where that is known.
    pub parent: Option<SessionId>,
    /// The directory of the tools.
    pub workspace: String,
}

/// What becomes of a call.
#[derive(Debug)]
pub(super) enum Ruling {
    /// It runs, under this number.
    Run(u64),
    /// It does not, and the agent is told why.
    Refuse(Refusal),
}

/// Why a call does not run.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: &'static str,
    pub(super) text: String,
    pub(super) violations: Vec<Violation>,
}

/// The guards of one session.
pub(super) struct Guard {
    runtime: Runtime,
    opening: Opening,
    begun: bool,
    calls: u64,
    /// What the agent is to be told with the next result.
    owed: Vec<String>,
    /// What people are to be told.
    aside: Vec<String>,
}

impl Guard {
    pub(super) fn new(runtime: Runtime, opening: Opening) -> Self {
        Self { runtime, opening, begun: false, calls: 0, owed: Vec::new(), aside: Vec::new() }
    }

    /// Asks whether a call may run.
    pub(super) fn propose(&mut self, id: &Value, tool: &str, args: &Value) -> Ruling {
        self.begin();
        self.calls += 1;
        let number = self.calls;
        let tool = match ToolName::parse(tool) {
            Ok(tool) => tool,
            Err(error) => {
                let reason = format!("the name of the tool {error}");
                self.runtime.refuse_line(number, "tool", &reason, Some(&self.opening.session));
                return Ruling::Refuse(Refusal {
                    code: "invalid_tool",
                    text: format!("jackline: {reason}"),
                    violations: Vec::new(),
                });
            }
        };
        let name = tool.to_string();
        let args = match args {
            Value::Object(_) => Arguments::Parsed(args.clone()),
            other => Arguments::Text(Payload::Inline(other.to_string())),
        };
        let kind = EventKind::ToolProposed { call: call_id(number), tool, args, cwd: None };
        let (verdict, outcome) = self.tell(kind, Some(json!({ "request": id })));
        if outcome == Outcome::Passed {
            return Ruling::Run(number);
        }
        if outcome == Outcome::Decided && verdict.lets_run() {
            self.owed.extend(verdict.context);
            return Ruling::Run(number);
        }
        if let (true, Some(seq)) = (verdict.is_enforced(Decision::Ask), verdict.seq) {
            let code = ask_code(&self.opening.session, seq);
            self.aside.push(format!(
                "a call of `{name}` waits for a person: `jackline allow {code}` lets exactly this \
                 call pass once, `jackline refuse {code}` refuses it"
            ));
        }
        Ruling::Refuse(refusal(verdict))
    }

    /// Tells how a call came back; gives what is to be added to its result.
    pub(super) fn finish(&mut self, number: u64, answer: &Answer) -> Option<String> {
        let kind = EventKind::ToolFinished {
            call: call_id(number),
            of: None,
            status: answer.status,
            result: Some(Payload::Inline(answer.text.clone())),
            exit_code: answer.exit_code,
            seen: answer.seen.clone(),
            background: false,
        };
        let (verdict, outcome) = self.tell(kind, None);
        if outcome == Outcome::Decided {
            self.owed.extend(verdict.context);
        }
        let owed = std::mem::take(&mut self.owed);
        (!owed.is_empty()).then(|| owed.join("\n\n"))
    }

    /// Does what may wait until an answer is out; gives what people are to be told.
    pub(super) fn tidy(&mut self) -> Vec<String> {
        self.runtime.tidy();
        let mut aside = std::mem::take(&mut self.aside);
        aside.extend(self.runtime.take_warnings());
        aside
    }

    /// Ends the session, if it has begun.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.begun) {
            self.tell(EventKind::SessionEnded {}, None);
        }
    }

    /// Begins the session with the first call: a server that nobody calls leaves no journal.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let Opening { parent, workspace, .. } = self.opening.clone();
        let kind = EventKind::SessionStarted {
            workspace: Some(workspace),
            client: Some(CLIENT.to_owned()),
            model: None,
            prompt_hash: None,
            deadline: None,
            parent,
            role: None,
        };
        self.tell(kind, None);
    }

    fn tell(&mut self, kind: EventKind, meta: Option<Value>) -> (Verdict, Outcome) {
        let (session, actor) = (self.opening.session.clone(), ActorId::main());
        let event = Event { session, id: None, at: None, actor, kind, meta };
        let answer = self.runtime.answer(event);
        // Our own JSON has no way to be unreadable; and if it had, this denies.
        let verdict = serde_json::from_str(&answer.json).unwrap_or_else(|_| Verdict {
            decision: Decision::Deny,
            enforced: Some(true),
            ..Verdict::allow()
        });
        (verdict, answer.outcome)
    }
}

fn call_id(number: u64) -> Option<CallId> {
    CallId::parse(format!("c{number}")).ok()
}

fn refusal(verdict: Verdict) -> Refusal {
    let code = match verdict.decision {
        _ if verdict.error.is_some() => "guard_broken",
        Decision::Ask => "waits_for_person",
        Decision::Pause => "paused",
        Decision::Stop => "stopped",
        Decision::Allow | Decision::Rewrite | Decision::Deny => "denied",
    };
    let fault = verdict.error.map(|error| error.reason);
    let why = verdict.context.or(fault).unwrap_or_else(|| "refused by jackline".to_owned());
    let waits = if code == "waits_for_person" { format!("\n-> {WAITS}") } else { String::new() };
    Refusal { code, text: format!("jackline: {why}{waits}"), violations: verdict.violations }
}
