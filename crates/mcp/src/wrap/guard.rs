//! The session of a proxy: every call of a tool is proposed to the guards, and every
//! result is told to them.

use jackline_engine::json::parse_strict;
use jackline_engine::{
    ActorId, Arguments, CallId, Decision, Event, EventKind, Payload, SessionId, Status, ToolName,
    Verdict,
};
use jackline_journal::Note;
use jackline_runtime::{Outcome, Runtime, ask_code};
use serde_json::{Value, json};

use super::message::Id;

/// The name under which the proxy starts sessions.
const CLIENT: &str = "mcp";

/// What the agent is told where a person has to say.
const WAITS: &str = "a person was told how to let exactly this call pass; go on with something \
                     else, or end the turn and say what waits";

/// Said where a verdict has no words of its own.
const REFUSED: &str = "refused by jackline";

/// How a session of a proxy begins.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Its id.
    pub session: SessionId,
    /// The session of the client that has the server, where that is known.
    pub parent: Option<SessionId>,
    /// The directory the server works in.
    pub workspace: String,
}

/// A call as the client asks for it.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) id: &'a Id,
    pub(super) tool: &'a str,
    /// Its arguments as they were written; none is an empty object.
    pub(super) arguments: Option<&'a str>,
}

/// How a call came back.
#[derive(Debug)]
pub(super) struct CameBack {
    pub(super) call: u64,
    pub(super) status: Status,
    pub(super) text: Option<String>,
    pub(super) background: bool,
}

/// What becomes of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    /// The server gets it, under this number.
    Run(u64),
    /// It does not, and the agent is told why.
    Refuse(String),
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
    pub(super) fn propose(&mut self, wanted: &Wanted<'_>) -> Ruling {
        self.begin();
        self.calls += 1;
        let number = self.calls;
        let tool = match ToolName::parse(wanted.tool) {
            Ok(tool) => tool,
            Err(error) => {
                let reason = format!("the name of the tool {error}");
                let session = self.opening.session.clone();
                self.runtime.refuse_line(number, "tool", &reason, Some(&session));
                return Ruling::Refuse(format!("jackline: {reason}"));
            }
        };
        let written = wanted.arguments.unwrap_or("{}");
        let args = match parse_strict(written.as_bytes()) {
            Ok(args) if args.is_object() => Arguments::Parsed(args),
            // Nobody can say what the server would read; the guards do.
            _ => Arguments::Text(Payload::Inline(written.to_owned())),
        };
        let kind = EventKind::ToolProposed { call: call_id(number), tool, args, cwd: None };
        let request: Value = serde_json::from_str(wanted.id.json()).unwrap_or_default();
        let (verdict, outcome) = self.tell(kind, Some(json!({ "request": request })));
        if outcome == Outcome::Passed {
            return Ruling::Run(number);
        }
        if outcome == Outcome::Decided && verdict.lets_run() {
            self.owed.extend(verdict.context);
            return Ruling::Run(number);
        }
        if verdict.is_enforced(Decision::Ask)
            && let Some(seq) = verdict.seq
        {
            let code = ask_code(&self.opening.session, seq);
            self.aside.push(format!(
                "a call of `{}` waits for a person: `jackline allow {code}` lets exactly this \
                 call pass once, `jackline refuse {code}` refuses it",
                wanted.tool
            ));
        }
        Ruling::Refuse(refusal_text(&verdict))
    }

    /// Tells how a call came back; gives what is to be added to its result.
    pub(super) fn finish(&mut self, back: CameBack) -> Option<String> {
        let CameBack { call, status, text, background } = back;
        let kind = EventKind::ToolFinished {
            call: call_id(call),
            of: None,
            status,
            result: text.map(Payload::Inline),
            exit_code: None,
            seen: Vec::new(),
            background,
        };
        let (verdict, outcome) = self.tell(kind, None);
        if outcome == Outcome::Decided && verdict.concerns_agent() {
            self.owed.extend(verdict.context);
        }
        let owed = std::mem::take(&mut self.owed);
        (!owed.is_empty()).then(|| owed.join("\n\n"))
    }

    /// Keeps words for the next result, where this one had no place for them.
    pub(super) fn owe(&mut self, words: String) {
        self.owed.push(words);
    }

    /// Writes down that tools are not described any more as they were.
    pub(super) fn tools_changed(&mut self, tools: Vec<String>) {
        let names = tools.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        self.aside.push(format!(
            "the server describes {names} otherwise than before; look at it before you trust it"
        ));
        self.runtime.note(Note::ToolsChanged { tools });
        self.begin();
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

    /// Begins the session with what it has to decide first: a server that nobody
    /// calls leaves no journal.
    fn begin(&mut self) {
        if self.begun {
            return;
        }
        self.begun = true;
        let Opening { parent, workspace, .. } = self.opening.clone();
        self.tell(
            EventKind::SessionStarted {
                workspace: Some(workspace),
                client: Some(CLIENT.to_owned()),
                model: None,
                prompt_hash: None,
                deadline: None,
                parent,
                role: None,
            },
            None,
        );
    }

    fn tell(&mut self, kind: EventKind, meta: Option<Value>) -> (Verdict, Outcome) {
        let (session, actor) = (self.opening.session.clone(), ActorId::main());
        let event = Event { session, id: None, at: None, actor, kind, meta };
        let answer = self.runtime.answer(event);
        (answer.verdict(), answer.outcome)
    }
}

fn call_id(number: u64) -> Option<CallId> {
    CallId::parse(format!("c{number}")).ok()
}

/// Why a call does not run, for the agent.
fn refusal_text(verdict: &Verdict) -> String {
    let fault = verdict.error.as_ref().map(|error| error.reason.clone());
    let why = verdict.context.clone().or(fault).unwrap_or_else(|| REFUSED.to_owned());
    if verdict.is_enforced(Decision::Ask) {
        return format!("jackline: {why}\n-> {WAITS}");
    }
    format!("jackline: {why}")
}
