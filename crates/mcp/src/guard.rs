//! The session of a proxy or a server: every call of a tool is proposed to the guards,
//! and every result is told to them.

use jackline_engine::{
    Arguments, CallId, Decision, EventKind, OutputFact, PAGE_TURN, Payload, Repair, Seen,
    SessionEnded, SessionId, SessionPhase, SessionStarted, Status, ToolFinished, ToolName,
    ToolProposed, Verdict, Violation, ViolationType,
};
use jackline_journal::Note;
use jackline_runtime::{Outcome, Reporter, Runtime, ask_code, now};
use serde_json::{Value, json};

use crate::page::PAGE;

/// The name under which sessions are started.
const CLIENT: &str = "mcp";

/// What the agent is told where a person has to say.
const WAITS: &str = "a person was told how to let exactly this call pass; go on with something \
                     else, or end the turn and say what waits";

/// Said where a verdict has no words of its own.
const REFUSED: &str = "refused by jackline";

/// How a session begins.
#[derive(Debug, Clone)]
pub struct Opening {
    /// Its id.
    pub session: SessionId,
    /// The session of the client that has the server, where that is known.
    pub parent: Option<SessionId>,
    /// The directory that the tools work in.
    pub workspace: String,
}

/// A call as the client asks for it.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    /// The id of the request.
    pub(crate) request: Value,
    pub(crate) tool: &'a str,
    pub(crate) args: Arguments,
}

/// How a call came back.
#[derive(Debug)]
pub(crate) struct CameBack {
    pub(crate) call: u64,
    pub(crate) status: Status,
    pub(crate) text: Option<String>,
    pub(crate) exit_code: Option<i64>,
    pub(crate) seen: Vec<Seen>,
    pub(crate) background: bool,
}

/// What becomes of a call.
#[derive(Debug)]
pub(crate) enum Ruling {
    /// It runs, under this number; with these arguments where they had to be cleaned up.
    Run(u64, Option<Value>),
    /// It does not, and the agent is told why.
    Refuse(Refusal),
}

/// Why a call does not run.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    pub(crate) text: String,
    pub(crate) violations: Vec<Violation>,
    /// What was expected of the arguments, and how often they may be written again.
    pub(crate) repair: Option<Repair>,
    /// With what code the session ended, where this is what ended it.
    pub(crate) ended: Option<String>,
}

impl Refusal {
    /// A call that no guard has seen.
    pub(crate) fn unseen(code: &'static str, reason: &str) -> Self {
        let text = format!("jackline: {reason}");
        Self { code, text, violations: Vec::new(), repair: None, ended: None }
    }

    /// Whether it is refused because there is no such tool, and for nothing else.
    pub(crate) fn is_of_unknown_tool(&self) -> bool {
        says(&self.violations, &ViolationType::UnknownTool)
    }
}

/// Whose session it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begun {
    /// It begins and ends with the calls.
    Here,
    /// Somebody else has begun it, and will end it: calls are a part of what it is about.
    Elsewhere,
}

/// What the calls of a session are called that others speak in, too: a harness numbers its
/// own, and so does every other process that has joined.
fn names_of_joined() -> String {
    format!("mcp-{}-{}-", now().wall.as_ms(), std::process::id())
}

/// The guards of one session.
pub(crate) struct Guard {
    reporter: Reporter,
    opening: Opening,
    begun: Option<Begun>,
    /// What stands before the number of each call.
    calls: String,
    /// What the agent is to be told with the next result.
    owed: Vec<String>,
    /// What people are to be told.
    aside: Vec<String>,
}

impl Guard {
    pub(crate) fn new(runtime: Runtime, opening: Opening) -> Self {
        let reporter = Reporter::new(runtime.saving_late(), opening.session.clone());
        let calls = "c".to_owned();
        Self { reporter, opening, begun: None, calls, owed: Vec::new(), aside: Vec::new() }
    }

    /// Asks whether a call may run.
    pub(crate) fn propose(&mut self, wanted: Wanted<'_>) -> Ruling {
        let Wanted { request, tool: name, args } = wanted;
        self.begin();
        let number = self.reporter.next_call();
        let tool = match ToolName::parse(name) {
            Ok(tool) => tool,
            Err(error) => {
                let reason = format!("the name of the tool {error}");
                let session = self.opening.session.clone();
                self.reporter.runtime().refuse_line(number, "tool", &reason, Some(&session));
                return Ruling::Refuse(Refusal::unseen("invalid_tool", &reason));
            }
        };
        let kind = EventKind::ToolProposed(ToolProposed {
            call: self.call_id(number),
            tool,
            args,
            ..ToolProposed::default()
        });
        let (verdict, outcome) = self.reporter.tell_with(kind, Some(json!({ "request": request })));
        if outcome == Outcome::Passed {
            return Ruling::Run(number, None);
        }
        if outcome == Outcome::Decided && verdict.lets_run() {
            self.owed.extend(verdict.context);
            return Ruling::Run(number, verdict.args);
        }
        if verdict.is_enforced(Decision::Ask)
            && let Some(seq) = verdict.seq
        {
            let code = ask_code(&self.opening.session, seq);
            self.aside.push(format!(
                "a call of `{name}` waits for a person: `jackline allow {code}` lets exactly this \
                 call pass once, `jackline refuse {code}` refuses it"
            ));
        }
        let mut refused = refusal(verdict);
        if name == PAGE_TURN {
            // The agent calls it otherwise.
            refused.text = refused.text.replace(PAGE_TURN, PAGE);
        }
        Ruling::Refuse(refused)
    }

    /// What a call that runs shows of files, if all of its result is shown.
    pub(crate) fn shows(&mut self, call: u64) -> Vec<Seen> {
        let session = self.opening.session.clone();
        let call = self.call_id(call);
        call.map_or_else(Vec::new, |call| self.reporter.runtime().shows(&session, &call))
    }

    /// Says that of the result that is told of next only a page is shown.
    pub(crate) fn offer(&mut self, page: OutputFact) {
        self.reporter.runtime().offer(page);
    }

    /// Tells how a call came back; gives what is to be added to its result.
    pub(crate) fn finish(&mut self, back: CameBack) -> Option<String> {
        let CameBack { call, status, text, exit_code, seen, background } = back;
        let kind = EventKind::ToolFinished(ToolFinished {
            call: self.call_id(call),
            status,
            result: text.map(Payload::Inline),
            exit_code,
            seen,
            background,
            ..ToolFinished::default()
        });
        let (verdict, outcome) = self.reporter.tell(kind);
        if outcome == Outcome::Decided && verdict.concerns_agent() {
            self.owed.extend(verdict.context);
        }
        let owed = std::mem::take(&mut self.owed);
        (!owed.is_empty()).then(|| owed.join("\n\n"))
    }

    /// Keeps words for the next result, where this one had no place for them.
    pub(crate) fn owe(&mut self, words: String) {
        self.owed.push(words);
    }

    /// Writes down that tools are not described any more as they were.
    pub(crate) fn tools_changed(&mut self, tools: Vec<String>) {
        let names = tools.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        self.aside.push(format!(
            "the server describes {names} otherwise than before; look at it before you trust it"
        ));
        self.reporter.runtime().note(Note::ToolsChanged { tools });
        self.begin();
    }

    /// Does what may wait until an answer is out; gives what people are to be told.
    pub(crate) fn tidy(&mut self) -> Vec<String> {
        self.reporter.runtime().tidy();
        self.aside()
    }

    /// What people are to be told, while a call is on its way.
    pub(crate) fn aside(&mut self) -> Vec<String> {
        self.reporter.runtime().send_notices();
        let mut aside = std::mem::take(&mut self.aside);
        aside.extend(self.reporter.runtime().take_warnings());
        aside
    }

    /// Ends the session, if it has begun.
    pub(crate) fn end(&mut self) {
        if self.begun.take() == Some(Begun::Here) {
            self.reporter.tell(EventKind::SessionEnded(SessionEnded::default()));
            self.reporter.runtime().tidy();
        }
    }

    /// The id of a call by its number.
    fn call_id(&self, number: u64) -> Option<CallId> {
        CallId::parse(format!("{}{number}", self.calls)).ok()
    }

    /// Begins the session with what it has to decide first: a server that nobody
    /// calls leaves no journal. One that is under way stays what it is.
    fn begin(&mut self) {
        if self.begun.is_some() {
            return;
        }
        let before = self.reporter.summary();
        if before
            .as_ref()
            .is_some_and(|it| ![SessionPhase::New, SessionPhase::Ended].contains(&it.phase))
        {
            self.begun = Some(Begun::Elsewhere);
            self.calls = names_of_joined();
            return;
        }
        // What was proposed before has the numbers up to here.
        self.reporter.calls_so_far(before.map_or(0, |it| it.invocations.proposed));
        self.begun = Some(Begun::Here);
        let Opening { parent, workspace, .. } = self.opening.clone();
        self.reporter.tell(EventKind::SessionStarted(SessionStarted {
            workspace: Some(workspace),
            client: Some(CLIENT.to_owned()),
            parent,
            ..SessionStarted::default()
        }));
    }
}

fn refusal(verdict: Verdict) -> Refusal {
    let code = match verdict.decision {
        _ if verdict.error.is_some() => "guard_broken",
        Decision::Ask => "waits_for_person",
        Decision::Pause => "paused",
        Decision::Stop => "stopped",
        _ if says(&verdict.violations, &ViolationType::UnknownTool) => "unknown_tool",
        _ if says(&verdict.violations, &ViolationType::SchemaViolation) => "invalid_arguments",
        _ if is_of_arguments(&verdict.violations) => "invalid_arguments",
        Decision::Allow | Decision::Rewrite | Decision::Deny => "denied",
    };
    let waits = verdict.is_enforced(Decision::Ask);
    let fault = verdict.error.map(|error| error.reason);
    let why = verdict.context.or(fault).unwrap_or_else(|| REFUSED.to_owned());
    let waits = if waits { format!("\n-> {WAITS}") } else { String::new() };
    let text = format!("jackline: {why}{waits}");
    let over = says(&verdict.violations, &ViolationType::SessionOver);
    let stop = verdict.stop.filter(|_| verdict.decision == Decision::Stop && !over);
    let ended = stop.map(|stop| stop.to_string());
    Refusal { code, text, violations: verdict.violations, repair: verdict.repair, ended }
}

/// Whether it is the arguments, of which rules could make nothing either.
fn is_of_arguments(violations: &[Violation]) -> bool {
    let mut holding = violations.iter().filter(|violation| violation.enforced);
    holding.next().is_some_and(|first| first.kind == ViolationType::SchemaViolation)
        && holding.all(|violation| violation.kind == ViolationType::RuleBroken)
}

/// Whether a call is refused for nothing else.
fn says(violations: &[Violation], kind: &ViolationType) -> bool {
    let mut holding = violations.iter().filter(|violation| violation.enforced);
    holding.next().is_some_and(|first| first.kind == *kind) && holding.all(|it| it.kind == *kind)
}
