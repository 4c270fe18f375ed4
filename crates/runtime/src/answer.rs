//! The answer that an adapter gets for an event, also when the guard is broken.
//!
//! Agent clients treat silence as consent. So a fault becomes a denial. The denial says that the
//! guard is broken, and what a person can do about it.

use jackline_definition::FILE_NAME;
use jackline_engine::verdict::{GuardName, ViolationClass, ViolationType, WireFault};
use jackline_engine::{
    Arguments, CallId, Decision, Event, EventKind, FaultKind, SessionId, ToolFinished,
    ToolProposed, Verdict, Violation, wire::WireError,
};
use jackline_journal::{JournalNote, Retention};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::definitions::DefinitionError;
use crate::git::BranchDefinition;
use crate::notify::PersonNotification;
use crate::runtime::{Runtime, RuntimeFault, StoredVerdict, named_workspace};
use jackline_host::NotAPerson;

/// The way to continue work when the guard can't be fixed at once.
pub const HOW_TO_TURN_OFF: &str = "a person can check with `jackline status`, or turn the guard off for a while with `jackline off --for 30m --why …`";

/// The answer that an adapter shows, and the work that is left after the adapter has shown it.
#[derive(Debug)]
pub struct RuntimeAnswer {
    /// The verdict, for adapters that show it in their own format.
    pub verdict: Verdict,
    /// The verdict as JSON, exactly as the journal stores it.
    pub json: String,
    /// Whether the guards decided, or why they did not.
    pub outcome: AnswerKind,
    /// Warnings for people.
    pub warnings: Vec<String>,
    /// Notifications that the client may show on the person's desktop. Notifications by command or
    /// webhook are not included; [`Runtime::finish`] sends them.
    pub notices: Vec<PersonNotification>,
    /// Work for [`Runtime::finish`], after the adapter has shown the answer.
    pub deferred: DeferredWork,
}

/// The kind of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    /// The guards decided on the event.
    Decided,
    /// A denial, because the input is not an acceptable event.
    Refused,
    /// A denial, because the guard is broken.
    Broken,
    /// No decision, because the guard is broken. It is not a denial either, because a person has
    /// turned the guard off, or because the call only brings back the definition.
    GuardOff,
}

/// Work that may wait until the adapter has shown an answer. Work that is not done stays with the
/// runtime, which does it after the next answer.
#[must_use = "pass it to `Runtime::finish` after the answer is shown"]
#[derive(Debug, Default)]
pub struct DeferredWork {
    /// Set when a new session was opened, so that old sessions may have to be removed.
    pub(crate) retention: Option<Retention>,
}

impl DeferredWork {
    /// Adds the work of a later answer.
    pub fn merge(&mut self, later: Self) {
        self.retention = later.retention.or_else(|| self.retention.take());
    }
}

/// What an answer says about its event when there is no decision.
pub(crate) struct AnswerSubject {
    pub(crate) session: SessionId,
    pub(crate) call: Option<CallId>,
    pub(crate) workspace: Option<String>,
    /// The command line of a proposed call.
    line: Option<String>,
}

impl AnswerSubject {
    pub(crate) fn from_event(event: &Event) -> Self {
        let call = match &event.kind {
            EventKind::ToolProposed(ToolProposed { call, .. })
            | EventKind::ToolFinished(ToolFinished { call, .. }) => call.clone(),
            _ => None,
        };
        let workspace = named_workspace(event).map(ToOwned::to_owned);
        let line = match &event.kind {
            EventKind::ToolProposed(ToolProposed { args: Arguments::Parsed(args), .. }) => {
                args.get("command").and_then(Value::as_str).map(ToOwned::to_owned)
            }
            _ => None,
        };
        Self { session: event.session.clone(), call, workspace, line }
    }
}

impl Runtime {
    /// Turns the result of handling an event into an answer.
    pub(crate) fn answer_to(
        &mut self,
        about: AnswerSubject,
        handled: Result<StoredVerdict, RuntimeFault>,
    ) -> RuntimeAnswer {
        match handled {
            Ok(StoredVerdict { json, verdict }) => {
                let json: String = Box::<str>::from(json).into();
                let verdict = verdict.map_or_else(|| read_verdict(&json), |verdict| *verdict);
                self.complete(verdict, Some(json), AnswerKind::Decided)
            }
            Err(fault @ (RuntimeFault::IdReused(_) | RuntimeFault::InvalidEvent(_))) => {
                // This is a mistake of the client and not a fault of the guard.
                let reason = format!("{fault}; {}", fault.remedy());
                let error = WireFault { kind: fault.kind(), reason, line: None };
                let (session, call) = (Some(about.session), about.call);
                let verdict = Verdict { session, call, ..Verdict::from_fault(error) };
                self.complete(verdict, None, AnswerKind::Refused)
            }
            Err(fault) => {
                self.note_fault(&fault);
                self.notify_broken(&about, &fault);
                self.broken(about, &fault)
            }
        }
    }

    /// The answer of a broken guard: a denial, unless a person has turned the guard off.
    pub(crate) fn broken(&mut self, about: AnswerSubject, fault: &RuntimeFault) -> RuntimeAnswer {
        let kind = fault.kind();
        let on_branch = match fault {
            RuntimeFault::Definition(DefinitionError::NotFound(directory)) => {
                BranchDefinition::of(directory).map(|found| (directory, found))
            }
            _ => None,
        };
        let (message, remedy) = match &on_branch {
            Some((directory, found)) => {
                let missing = format!("no `{FILE_NAME}` in `{}` or above it", directory.display());
                (missing, format!("{}; {}", found.remedy(), fault.remedy()))
            }
            None => (fault.to_string(), fault.remedy().to_owned()),
        };
        let message = format!("the guard is broken, not the call: {message}");
        let remedy = format!("{remedy}; {HOW_TO_TURN_OFF}");
        // A call that only checks the definition out again brings the guard back.
        let is_repair = on_branch
            .zip(about.line.as_deref())
            .is_some_and(|((_, found), line)| found.is_brought_back_by(line));
        let off = is_repair || self.is_guard_off(about.workspace.as_deref());
        let violation = Violation {
            id: "v0.1".to_owned(),
            guard: GuardName::Runtime,
            kind: ViolationType::GuardFault,
            subtype: (&kind).into(),
            class: ViolationClass::Terminal,
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
            return self.complete(verdict, None, AnswerKind::GuardOff);
        }
        let context = Some(format!("{message}\n-> {remedy}"));
        let reason = format!("{message}; {remedy}");
        let error = WireFault { kind, reason, line: None };
        let verdict = Verdict { session, call, violations, context, ..Verdict::from_fault(error) };
        self.complete(verdict, None, AnswerKind::Broken)
    }

    pub(crate) fn note_fault(&mut self, fault: &RuntimeFault) {
        self.add_journal_note(JournalNote::Fault { kind: fault.kind(), reason: fault.to_string() });
    }

    fn complete(
        &mut self,
        verdict: Verdict,
        json: Option<String>,
        outcome: AnswerKind,
    ) -> RuntimeAnswer {
        let json = json.unwrap_or_else(|| render(&verdict));
        let (warnings, notices, deferred) = self.take_extras();
        RuntimeAnswer { verdict, json, outcome, warnings, notices, deferred }
    }

    /// Answers a line that is not an event.
    pub fn refuse_line(
        &mut self,
        line: u64,
        kind: FaultKind,
        reason: &str,
        session: Option<&SessionId>,
    ) -> RuntimeAnswer {
        self.add_journal_note(JournalNote::Malformed { line, reason: reason.to_owned() });
        let verdict = Verdict {
            session: session.cloned(),
            ..Verdict::from_fault(WireFault {
                kind,
                reason: format!("line {line} is not an event: {reason}"),
                line: Some(line),
            })
        };
        self.complete(verdict, None, AnswerKind::Refused)
    }

    /// Denies an event that only a person may send, because it is not certain that one sent it.
    pub fn refuse_opening(
        &mut self,
        line: u64,
        event: &Event,
        doubt: &NotAPerson,
    ) -> RuntimeAnswer {
        let name = event.kind.name();
        let reason = format!("only a person may send `{name}`, but {doubt}");
        self.add_journal_note(JournalNote::Malformed { line, reason: reason.clone() });
        let kind = FaultKind::OpeningControl;
        let fault = WireFault { kind, reason, line: Some(line) };
        let verdict =
            Verdict { session: Some(event.session.clone()), ..Verdict::from_fault(fault) };
        self.complete(verdict, None, AnswerKind::Refused)
    }

    /// Answers a line that can't be parsed.
    pub fn refuse(
        &mut self,
        line: u64,
        error: &WireError,
        session: Option<&SessionId>,
    ) -> RuntimeAnswer {
        self.refuse_line(line, error.kind(), &error.to_string(), session)
    }
}

impl RuntimeFault {
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
            Self::Definition(DefinitionError::NotFound(_)) => "then send the event again",
            Self::Definition(_) => {
                "fix the definition (`jackline check` shows the errors), then send the event again"
            }
            Self::Facts(_) => {
                "check the program that answers the guard's queries, then send the event again"
            }
            Self::Workspace(_) => "use a workspace whose path is valid UTF-8",
            Self::IdReused(_) => "give every event its own id",
            Self::InvalidEvent(_) => "nothing was recorded; correct the event",
            Self::Panic(_) => "report this with the journal of the session",
        }
    }
}

/// Reads a verdict from the journal. Our own JSON is always readable; if it were not, this denies.
fn read_verdict(json: &str) -> Verdict {
    serde_json::from_str(json).unwrap_or_else(|_| Verdict {
        decision: Decision::Deny,
        enforced: Some(true),
        ..Verdict::allow()
    })
}

fn render(verdict: &Verdict) -> String {
    let take = |json: Box<RawValue>| Box::<str>::from(json).into();
    // Serializing plain data can't fail; if it did, this denies.
    to_raw_value(verdict).map_or_else(|_| r#"{"v":1,"decision":"deny"}"#.to_owned(), take)
}
