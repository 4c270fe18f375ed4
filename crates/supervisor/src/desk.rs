//! The session of a run: what happens is told to the guards, and what they say is obeyed.

use std::cell::RefCell;
use std::sync::Arc;

use jackline_engine::{
    ActorId, Arguments, Decision, Definition, EventKind, FaultKind, Payload, PromptSource,
    PromptSubmitted, Seen, SessionId, Status, Summary, ToolFinished, ToolName, ToolProposed,
    Verdict,
};
use jackline_journal::Note;
use jackline_runtime::{Outcome, Reporter, ask_code};

use crate::lookout::Lookout;
use crate::told::Told;

/// The session of a run.
pub(crate) struct Desk<'h> {
    reporter: &'h RefCell<Reporter>,
    session: SessionId,
    pub(crate) lookout: Arc<Lookout>,
    hear: &'h mut dyn FnMut(&Told),
    /// What the agent is to be told with what it is told next.
    owed: Vec<String>,
    /// Why no gate is left, once the guard is broken.
    broken: Option<(String, Ends)>,
}

/// For how long a guard that is broken ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// Until somebody has mended it.
    ForNow,
    /// What it rests on is gone.
    ForGood,
}

impl Ends {
    fn of(verdict: &Verdict) -> Self {
        let is_gone = verdict.error.as_ref().is_some_and(|it| it.kind.is_permanent());
        if is_gone { Self::ForGood } else { Self::ForNow }
    }
}

/// What becomes of a call.
pub(crate) enum Ruling {
    /// It runs under this number, with these arguments where they are others.
    Run { number: u64, args: Option<serde_json::Value> },
    /// It does not, and the agent is told why.
    Refuse(String),
}

/// How a call came back.
pub(crate) struct CameBack {
    pub(crate) number: u64,
    pub(crate) status: Status,
    pub(crate) text: String,
    pub(crate) exit_code: Option<i64>,
    pub(crate) seen: Vec<Seen>,
}

impl<'h> Desk<'h> {
    pub(crate) fn new(
        reporter: &'h RefCell<Reporter>,
        lookout: Arc<Lookout>,
        hear: &'h mut dyn FnMut(&Told),
    ) -> Self {
        let owed = Vec::new();
        let session = reporter.borrow().session().clone();
        Self { reporter, session, lookout, hear, owed, broken: None }
    }

    /// Who reports for the session, for attempts that are made over it.
    pub(crate) fn reporter(&self) -> &'h RefCell<Reporter> {
        self.reporter
    }

    /// Says something to those who watch.
    pub(crate) fn say(&mut self, told: &Told) {
        (self.hear)(told);
    }

    /// Reports something; where the guard is broken nothing goes on.
    pub(crate) fn tell(&mut self, kind: EventKind) -> Verdict {
        self.tell_with(kind, None)
    }

    /// The same with something that is stored beside it.
    pub(crate) fn tell_with(
        &mut self,
        kind: EventKind,
        meta: Option<serde_json::Value>,
    ) -> Verdict {
        let heard = self.reporter.borrow_mut().tell_with(kind, meta);
        self.heard(heard)
    }

    /// Reports what somebody else did for the agent.
    pub(crate) fn tell_as(&mut self, actor: ActorId, kind: EventKind) -> Verdict {
        let heard = self.reporter.borrow_mut().tell_as(actor, kind);
        self.heard(heard)
    }

    fn heard(&mut self, (verdict, outcome): (Verdict, Outcome)) -> Verdict {
        if outcome == Outcome::Broken {
            self.broken = Some((why(&verdict), Ends::of(&verdict)));
        }
        self.tidy();
        verdict
    }

    /// Tells the agent something by the supervisor, which the guards may refuse.
    pub(crate) fn prompt(&mut self, source: PromptSource, text: &str) -> Verdict {
        let text = Some(Payload::Inline(text.to_owned()));
        let verdict = self.tell(EventKind::PromptSubmitted(PromptSubmitted { source, text }));
        // Whoever is held hears nothing now, and goes on only where that holds no longer.
        if !verdict.is_enforced(Decision::Pause) {
            self.owe(&verdict);
        }
        verdict
    }

    /// Asks whether a call may run.
    pub(crate) fn propose(&mut self, tool: &str, args: Arguments) -> (Ruling, Verdict) {
        let number = self.reporter.borrow_mut().next_call();
        let Ok(name) = ToolName::parse(tool) else {
            let text = format!("jackline: `{}` is no name of a tool", tool.escape_debug());
            return (Ruling::Refuse(text), Verdict::allow());
        };
        let call = Reporter::call_id(number);
        let kind = EventKind::ToolProposed(ToolProposed {
            call,
            tool: name,
            args,
            ..ToolProposed::default()
        });
        let (verdict, outcome) = self.reporter.borrow_mut().tell(kind);
        if outcome == Outcome::Broken {
            self.broken = Some((why(&verdict), Ends::of(&verdict)));
        }
        if outcome == Outcome::Passed || (outcome == Outcome::Decided && verdict.lets_run()) {
            self.owe(&verdict);
            let args = verdict.args.clone();
            return (Ruling::Run { number, args }, verdict);
        }
        let mut text = format!("jackline: {}", why(&verdict));
        if verdict.is_enforced(Decision::Ask)
            && let Some(seq) = verdict.seq
        {
            let code = ask_code(&self.session, seq);
            self.say(&Told::Aside {
                text: format!(
                    "a call of `{tool}` waits for a person: `jackline allow {code}` lets exactly \
                     this call pass once, `jackline refuse {code}` refuses it"
                ),
            });
            text.push_str("\n-> a person was told; go on with something else meanwhile");
        }
        (Ruling::Refuse(text), verdict)
    }

    /// Tells how a call came back; gives what is to be added to its result.
    pub(crate) fn finish(&mut self, back: CameBack) -> (Verdict, Option<String>) {
        let CameBack { number, status, text, exit_code, seen } = back;
        let verdict = self.tell(EventKind::ToolFinished(ToolFinished {
            call: Reporter::call_id(number),
            status,
            result: Some(Payload::Inline(text)),
            exit_code,
            seen,
            ..ToolFinished::default()
        }));
        if verdict.concerns_agent() {
            self.owe(&verdict);
        }
        (verdict, self.take_owed())
    }

    /// Has something that went wrong on our side written down with the next record.
    pub(crate) fn note_fault(&self, kind: FaultKind, reason: String) {
        let note = Note::Fault { kind, reason };
        self.reporter.borrow_mut().runtime().note(note);
    }

    /// What the agent is to be told since this was last asked.
    pub(crate) fn take_owed(&mut self) -> Option<String> {
        let owed = std::mem::take(&mut self.owed);
        (!owed.is_empty()).then(|| owed.join("\n\n"))
    }

    /// Keeps what a verdict says to the agent for the next time.
    pub(crate) fn owe(&mut self, verdict: &Verdict) {
        self.owe_words(verdict.context.clone());
    }

    /// Keeps words to the agent for the next time.
    pub(crate) fn owe_words(&mut self, words: impl IntoIterator<Item = String>) {
        self.owed.extend(words);
    }

    /// Where the session stands, with what others have written meanwhile.
    pub(crate) fn summary(&mut self) -> Option<Summary> {
        self.reporter.borrow_mut().summary()
    }

    /// The definition in force, which a person may have changed.
    pub(crate) fn definition(&self) -> Option<Arc<Definition>> {
        self.reporter.borrow_mut().definition()
    }

    /// The session.
    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Tells those who watch how much is used up.
    pub(crate) fn say_standing(&mut self) {
        let Some(summary) = self.summary() else { return };
        let context_pct = summary.context.first().and_then(|context| context.pct);
        let (steps, budgets) = (summary.steps, summary.budgets);
        self.say(&Told::Standing { steps, budgets, context_pct });
    }

    /// Goes on with the numbers of calls where an earlier process ended.
    pub(crate) fn goes_on(&mut self) {
        let calls = self.summary().map_or(0, |summary| summary.invocations.proposed);
        self.reporter.borrow_mut().calls_so_far(calls);
    }

    /// Why no gate is left, if that is so.
    pub(crate) fn broken(&self) -> Option<(&str, Ends)> {
        self.broken.as_ref().map(|(reason, ends)| (reason.as_str(), *ends))
    }

    fn tidy(&mut self) {
        let mut reporter = self.reporter.borrow_mut();
        reporter.runtime().tidy();
        let warnings = reporter.runtime().take_warnings();
        drop(reporter);
        for text in warnings {
            self.say(&Told::Aside { text });
        }
    }
}

/// Why an event is refused, in words.
pub(crate) fn why(verdict: &Verdict) -> String {
    let fault = verdict.error.as_ref().map(|error| error.reason.clone());
    let stop = verdict.stop.as_ref().map(ToString::to_string);
    verdict.context.clone().or(fault).or(stop).unwrap_or_else(|| "refused by the guards".to_owned())
}
