//! What an adapter gets for an event, whatever happens.
//!
//! Agent clients take silence for consent. So a fault becomes a denial that says the guard is
//! broken, and what a person can do about it.

use jackline_engine::verdict::{Class, GuardName, ViolationType, WireFault};
use jackline_engine::{
    CallId, Decision, Event, EventKind, FaultKind, SessionId, ToolFinished, ToolProposed, Verdict,
    Violation, wire::WireError,
};
use jackline_journal::{Note, Retention};
use serde_json::value::{RawValue, to_raw_value};

use crate::definitions::DefinitionError;
use crate::notify::Notice;
use crate::runtime::{Fault, Runtime, StoredVerdict, named_workspace};
use jackline_host::Agent;

/// How work goes on where the guard can't be mended at once.
pub const WAY_OUT: &str = "a person can look with `jackline status`, or pass for a while with `jackline off --for 30m --why …`";

/// What an adapter shows, and what it does once that is out.
#[derive(Debug)]
pub struct Answer {
    /// The verdict, for adapters that show it in other words.
    pub verdict: Verdict,
    /// The verdict as it is in the journal.
    pub json: String,
    /// Whether this is a decision.
    pub outcome: Outcome,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// What the client may show on the person's desktop. Commands and webhooks are not here;
    /// [`Runtime::finish`] has them sent.
    pub notices: Vec<Notice>,
    /// Work for [`Runtime::finish`] once the answer is out.
    pub deferred: Deferred,
}

/// What an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A decision on the event.
    Decided,
    /// A denial, because the line is no event of its own.
    Refused,
    /// A denial, because the guard is broken.
    Broken,
    /// No decision, because the guard is broken; and no denial, because a person
    /// has switched it off.
    Passed,
}

/// Work that may wait until an answer is out. What is not done stays with the runtime, and is
/// done with the next one.
#[must_use = "give it to `Runtime::finish` once the answer is out"]
#[derive(Debug, Default)]
pub struct Deferred {
    /// A new session may push old ones out.
    pub(crate) retention: Option<Retention>,
}

impl Deferred {
    /// Takes over the work of a later answer.
    pub fn add(&mut self, later: Self) {
        self.retention = later.retention.or_else(|| self.retention.take());
    }
}

/// What an event is about, for an answer that knows nothing else.
pub(crate) struct About {
    pub(crate) session: SessionId,
    pub(crate) call: Option<CallId>,
    pub(crate) workspace: Option<String>,
}

impl About {
    pub(crate) fn of(event: &Event) -> Self {
        let call = match &event.kind {
            EventKind::ToolProposed(ToolProposed { call, .. })
            | EventKind::ToolFinished(ToolFinished { call, .. }) => call.clone(),
            _ => None,
        };
        let workspace = named_workspace(event).map(ToOwned::to_owned);
        Self { session: event.session.clone(), call, workspace }
    }
}

impl Runtime {
    /// Makes an answer of what became of an event.
    pub(crate) fn answer_to(
        &mut self,
        about: About,
        handled: Result<StoredVerdict, Fault>,
    ) -> Answer {
        match handled {
            Ok(StoredVerdict { json, verdict }) => {
                let json: String = Box::<str>::from(json).into();
                let verdict = verdict.map_or_else(|| read_verdict(&json), |verdict| *verdict);
                self.complete(verdict, Some(json), Outcome::Decided)
            }
            Err(fault @ (Fault::IdReused(_) | Fault::InvalidEvent(_))) => {
                // The client's mistake, and no fault of the guard's.
                let reason = format!("{fault}; {}", fault.remedy());
                let error = WireFault { kind: fault.kind(), reason, line: None };
                let (session, call) = (Some(about.session), about.call);
                let verdict = Verdict { session, call, ..Verdict::fault(error) };
                self.complete(verdict, None, Outcome::Refused)
            }
            Err(fault) => {
                self.note_fault(&fault);
                self.notify_broken(&about, &fault);
                self.broken(about, &fault)
            }
        }
    }

    /// The answer of a guard that is broken: a denial, unless a person has switched it off.
    pub(crate) fn broken(&mut self, about: About, fault: &Fault) -> Answer {
        let kind = fault.kind();
        let message = format!("the guard is broken, not the call: {fault}");
        let remedy = format!("{}; {WAY_OUT}", fault.remedy());
        let off = self.is_off(about.workspace.as_deref());
        let violation = Violation {
            id: "v0.1".to_owned(),
            guard: GuardName::Runtime,
            kind: ViolationType::GuardFault,
            subtype: (&kind).into(),
            class: Class::Terminal,
            message: message.clone(),
            location: None,
            correction: Some(remedy.clone()),
            decision: Decision::Deny,
            enforced: !off,
        };
        let (session, call) = (Some(about.session), about.call);
        let violations = vec![violation];
        if off {
            let verdict = Verdict { session, call, violations, ..Verdict::allow() };
            return self.complete(verdict, None, Outcome::Passed);
        }
        let context = Some(format!("{message}\n-> {remedy}"));
        let reason = format!("{message}; {remedy}");
        let error = WireFault { kind, reason, line: None };
        let verdict = Verdict { session, call, violations, context, ..Verdict::fault(error) };
        self.complete(verdict, None, Outcome::Broken)
    }

    pub(crate) fn note_fault(&mut self, fault: &Fault) {
        self.note(Note::Fault { kind: fault.kind(), reason: fault.to_string() });
    }

    fn complete(&mut self, verdict: Verdict, json: Option<String>, outcome: Outcome) -> Answer {
        let json = json.unwrap_or_else(|| render(&verdict));
        let (warnings, notices, deferred) = self.take_extras();
        Answer { verdict, json, outcome, warnings, notices, deferred }
    }

    /// Answers a line that is no event.
    pub fn refuse_line(
        &mut self,
        line: u64,
        kind: FaultKind,
        reason: &str,
        session: Option<&SessionId>,
    ) -> Answer {
        self.note(Note::Malformed { line, reason: reason.to_owned() });
        let verdict = Verdict {
            session: session.cloned(),
            ..Verdict::fault(WireFault {
                kind,
                reason: format!("line {line} is not an event: {reason}"),
                line: Some(line),
            })
        };
        self.complete(verdict, None, Outcome::Refused)
    }

    /// Answers a line with a person's word that an agent has sent.
    pub fn refuse_agent(&mut self, line: u64, event: &Event, agent: &Agent) -> Answer {
        let name = event.kind.name();
        let reason = format!("only a person may send this `{name}`, and {agent}");
        self.note(Note::Malformed { line, reason: reason.clone() });
        let kind = FaultKind::OpeningControl;
        let fault = WireFault { kind, reason, line: Some(line) };
        let verdict = Verdict { session: Some(event.session.clone()), ..Verdict::fault(fault) };
        self.complete(verdict, None, Outcome::Refused)
    }

    /// Answers a line that can't be parsed.
    pub fn refuse(&mut self, line: u64, error: &WireError, session: Option<&SessionId>) -> Answer {
        self.refuse_line(line, error.kind(), &error.to_string(), session)
    }
}

impl Fault {
    fn kind(&self) -> FaultKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Definition(_) => FaultKind::Definition,
            Self::Facts(_) => FaultKind::Facts,
            Self::Workspace(_) => FaultKind::Workspace,
            Self::IdReused(_) => FaultKind::IdReused,
            Self::InvalidEvent(error) => error.kind(),
            Self::Panic(_) => FaultKind::Internal,
        }
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::Store(error) => error.remedy(),
            Self::Definition(DefinitionError::NotFound(_)) => "then send it again",
            Self::Definition(_) => "mend the definition (`jackline check`), then send it again",
            Self::Facts(_) => {
                "check the program that answers the guard's queries, then send it again"
            }
            Self::Workspace(_) => "work in a directory whose name is UTF-8",
            Self::IdReused(_) => "give every event an id of its own",
            Self::InvalidEvent(_) => "nothing was written",
            Self::Panic(_) => "report this with the journal of the session",
        }
    }
}

/// Reads a verdict from the journal. Our own JSON can't be unreadable; if it were, this denies.
fn read_verdict(json: &str) -> Verdict {
    serde_json::from_str(json).unwrap_or_else(|_| Verdict {
        decision: Decision::Deny,
        enforced: Some(true),
        ..Verdict::allow()
    })
}

fn render(verdict: &Verdict) -> String {
    let take = |json: Box<RawValue>| Box::<str>::from(json).into();
    // Plain data has no way to fail to be JSON; and if it had, this denies.
    to_raw_value(verdict).map_or_else(|_| r#"{"v":1,"decision":"deny"}"#.to_owned(), take)
}
