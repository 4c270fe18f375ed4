//! The one door through which an adapter gets an answer, whatever happens.
//!
//! Silence would be taken for consent. So a fault, and even a panic, becomes a
//! denial that says the guard is broken and what a person can do about it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use jackline_engine::{
    Class, Decision, Event, EventKind, SessionId, ToolFinished, ToolProposed, Verdict, Violation,
    WireFault,
    wire::{self, WireError},
};
use jackline_engine::{FaultKind, GuardName, ViolationType};
use jackline_journal::Note;
use serde_json::value::{RawValue, to_raw_value};

use crate::ancestry::Agent;
use crate::definitions::DefinitionError;
use crate::runtime::{Fault, Runtime, Said, named_workspace};

/// How work goes on where the guard can't be mended at once.
const WAY_OUT: &str = "a person can pass for a while with `jackline off --for 30m --why …`";

/// What an adapter shows.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The verdict, as it is in the journal.
    pub json: String,
    /// Whether this is a decision.
    pub outcome: Outcome,
    /// The same verdict, where it was not read from the journal.
    verdict: Option<Box<Verdict>>,
}

impl Answer {
    fn of(verdict: Verdict, outcome: Outcome) -> Self {
        Self { json: render(&verdict), outcome, verdict: Some(Box::new(verdict)) }
    }

    /// The verdict, for adapters that show it in other words.
    pub fn into_verdict(self) -> Verdict {
        // Our own JSON has no way to be unreadable; and if it had, this denies.
        let read = || {
            serde_json::from_str(&self.json).unwrap_or_else(|_| Verdict {
                decision: Decision::Deny,
                enforced: Some(true),
                ..Verdict::allow()
            })
        };
        self.verdict.map_or_else(read, |verdict| *verdict)
    }
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

impl Runtime {
    /// Answers an event.
    pub fn answer(&mut self, event: Event) -> Answer {
        let session = event.session.clone();
        let call = match &event.kind {
            EventKind::ToolProposed(ToolProposed { call, .. })
            | EventKind::ToolFinished(ToolFinished { call, .. }) => call.clone(),
            _ => None,
        };
        let named = named_workspace(&event).map(ToOwned::to_owned);
        // Not every event comes as a line, and every one has to be read again.
        let handled = catch_unwind(AssertUnwindSafe(|| {
            wire::check(&event)?;
            self.handle(event)
        }));
        let fault = match handled {
            Ok(Ok(Said { json, verdict })) => {
                return Answer { json: take(json), outcome: Outcome::Decided, verdict };
            }
            Ok(Err(fault)) => fault,
            Err(panic) => {
                self.forget();
                Fault::Panic(panic_text(panic.as_ref()))
            }
        };
        let (kind, remedy) = (fault.kind(), fault.remedy());
        if let Fault::IdReused(_) | Fault::NoEvent(_) = fault {
            // The client's mistake, and no fault of the guard's.
            let reason = format!("{fault}; {remedy}");
            let fault = WireFault { kind, reason, line: None };
            let verdict = Verdict { session: Some(session), call, ..Verdict::fault(fault) };
            return Answer::of(verdict, Outcome::Refused);
        }
        self.note(Note::Fault { kind: kind.clone(), reason: fault.to_string() });
        let reason = fault.to_string();
        // Whom to tell is asked of what may be what broke.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            self.notice_broken(&session, named.as_deref(), &reason);
        }));
        let message = format!("the guard is broken, not the call: {fault}");
        let remedy = format!("{remedy}; {WAY_OUT}");
        let off = self.is_off(named.as_deref());
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
        let said = Verdict {
            session: Some(session),
            call,
            violations: vec![violation],
            ..Verdict::allow()
        };
        if off {
            return Answer::of(said, Outcome::Passed);
        }
        let reason = format!("{message}; {remedy}");
        let fault = WireFault { kind, reason, line: None };
        let verdict = Verdict {
            session: said.session,
            call: said.call,
            violations: said.violations,
            context: Some(format!("{message}\n-> {remedy}")),
            ..Verdict::fault(fault)
        };
        Answer::of(verdict, Outcome::Broken)
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
        Answer::of(verdict, Outcome::Refused)
    }

    /// Answers a line with a person's word that an agent has sent.
    pub fn refuse_agent(&mut self, line: u64, event: &Event, agent: &Agent) -> Answer {
        let name = event.kind.name();
        let reason = format!("only a person may send this `{name}`, and {agent}");
        self.note(Note::Malformed { line, reason: reason.clone() });
        let kind = FaultKind::OpeningControl;
        let fault = WireFault { kind, reason, line: Some(line) };
        let verdict = Verdict { session: Some(event.session.clone()), ..Verdict::fault(fault) };
        Answer::of(verdict, Outcome::Refused)
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
            Self::Workspace(_) => FaultKind::Workspace,
            Self::IdReused(_) => FaultKind::IdReused,
            Self::NoEvent(error) => error.kind(),
            Self::Panic(_) => FaultKind::Internal,
        }
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::Store(error) => error.remedy(),
            Self::Definition(DefinitionError::NotFound(_)) => "then send it again",
            Self::Definition(_) => "mend the definition (`jackline check`), then send it again",
            Self::Workspace(_) => "work in a directory whose name is UTF-8",
            Self::IdReused(_) => "give every event an id of its own",
            Self::NoEvent(_) => "nothing was written",
            Self::Panic(_) => "report this with the journal of the session",
        }
    }
}

fn take(json: Box<RawValue>) -> String {
    Box::<str>::from(json).into()
}

fn render(verdict: &Verdict) -> String {
    // Plain data has no way to fail to be JSON; and if it had, this denies.
    to_raw_value(verdict).map_or_else(|_| r#"{"v":1,"decision":"deny"}"#.to_owned(), take)
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no reason given".to_owned())
}
