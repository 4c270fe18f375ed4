//! The steps from a payload to its answer, in the order that holds for every client.

use jackline_engine::facts::OutputFact;
use jackline_engine::wire::check;
use jackline_engine::{Event, FaultKind, SessionId, Verdict};
use jackline_host::off::off_now;
use jackline_runtime::{Notice, Outcome, Standing, WAY_OUT, keep_fault};

use super::code_answer::{self, CodeAnswer};
use super::session::HookSession;
use super::{HookServer, door};
use crate::dialect::{
    AnswerTexts, AskRoute, Dialect, HookCall, HookPayload, HookReply, HookReport, Malformed, Moment,
};
use crate::surroundings::Surroundings;

/// Why an event is not believed.
const FORGED: &str = "this event comes from a process of the agent's own, not from its client";

/// Why a client is ended whose conversation is full.
const FULL: &str = "jackline: the conversation is full, and begins anew with a briefing";

/// How much of a notification is shown.
const NOTIFICATION_MAX: usize = 200;

/// An answer, and what is left to do once it is out.
pub struct HookAnswer {
    /// What to print.
    pub reply: HookReply,
    left: LeftWork,
    /// Whether the agent stops although no guard could look.
    stopped: bool,
}

/// What is left to do once an answer is out.
enum LeftWork {
    /// Nothing.
    Nothing,
    /// The session has work that could wait.
    Session(Box<HookSession>),
    /// What broke, or was refused, before there was a session to write it down in.
    Fault { session: Option<SessionId>, reason: String },
}

impl HookAnswer {
    /// The answer of a guard that is broken, unless a person has switched it off.
    pub(super) fn broken(
        dialect: &dyn Dialect,
        call: Option<&HookCall>,
        at: &Surroundings,
        fault: &str,
    ) -> Self {
        let text = broken_text(fault);
        let reply =
            door(|| if is_off(at) { HookReply::silence() } else { dialect.broken(call, &text) });
        Self {
            reply: reply.unwrap_or_else(|| HookReply::refusal(&text)),
            left: LeftWork::fault(call, fault),
            stopped: door(|| call.is_some_and(|call| passes_stop(dialect, call))).unwrap_or(false),
        }
    }

    /// The answer to an event that the client has not sent. Nothing comes of it, and it is
    /// written down.
    fn forged(dialect: &dyn Dialect, call: &HookCall) -> Self {
        let text = format!("jackline: {FORGED}; nothing comes of it");
        let reply = dialect.broken(Some(call), &text);
        Self { reply, left: LeftWork::fault(Some(call), FORGED), stopped: false }
    }

    /// An answer that no session knows of.
    fn aside(reply: HookReply) -> Self {
        Self { reply, left: LeftWork::Nothing, stopped: false }
    }

    /// Does what may wait until the answer is out.
    pub fn finish(self) {
        match self.left {
            LeftWork::Nothing => {}
            LeftWork::Session(session) => session.finish(self.stopped),
            LeftWork::Fault { session, reason } => {
                keep_fault(session.as_ref(), FaultKind::Hook, &reason, self.stopped);
            }
        }
    }
}

impl LeftWork {
    fn fault(call: Option<&HookCall>, reason: &str) -> Self {
        let session = call.and_then(|call| call.session.clone());
        Self::Fault { session, reason: reason.to_owned() }
    }
}

/// Answers a payload of which the hook is known.
pub(super) fn answer(server: &HookServer, payload: HookPayload, at: &Surroundings) -> HookAnswer {
    let dialect = server.dialect;
    let call = payload.call.clone();
    let broken = |reason: &str| HookAnswer::broken(dialect, Some(&call), at, reason);
    match call.moment {
        // Newer than we are, and no gate that we know of.
        Moment::Unknown => return HookAnswer::aside(HookReply::silence()),
        Moment::SettingsChange => {
            return HookAnswer::aside(at_settings(dialect, &payload, at));
        }
        // A forged proposal opens nothing, and this hook is the one that has to be quick.
        Moment::BeforeCall => {}
        _ if (at.forged)() => return HookAnswer::forged(dialect, &call),
        _ => {}
    }
    let report = match dialect.translate(payload, at).and_then(checked) {
        Ok(report) => report,
        Err(error) => return broken(&error.to_string()),
    };
    let runtime = match server.runtime.open(at, server.deadline) {
        Ok(runtime) => runtime,
        Err(reason) => return broken(&reason),
    };
    let mut session = HookSession::new(runtime, report.session.clone());
    let in_run = at.run.is_some();
    let (reply, outcome) =
        Answering { dialect, call: &call, session: &mut session, in_run }.answer(report);
    let stopped = outcome != Outcome::Decided
        && call.moment == Moment::Stop
        && (passes_stop(dialect, &call) || outcome == Outcome::Passed);
    HookAnswer { reply, left: LeftWork::Session(Box::new(session)), stopped }
}

/// A report whose events the journal can hold.
fn checked(report: HookReport) -> Result<HookReport, Malformed> {
    report.events.iter().try_for_each(check)?;
    Ok(report)
}

/// Whether the agent stops now, whatever the answer is.
fn passes_stop(dialect: &dyn Dialect, call: &HookCall) -> bool {
    call.moment == Moment::Stop && (call.stop_blocked || !dialect.abilities().blocks_stops)
}

/// Whether a person has switched the guard off here: they do that for the directory that a path
/// leads to.
fn is_off(at: &Surroundings) -> bool {
    let named = at.workspace();
    let workspace = named.canonicalize();
    off_now(Some(workspace.as_ref().unwrap_or(named))).is_some()
}

/// The answer to settings that change: no matter of the session's rules, and none that waits for
/// its journal.
fn at_settings(dialect: &dyn Dialect, payload: &HookPayload, at: &Surroundings) -> HookReply {
    if is_off(at) {
        return HookReply::silence();
    }
    let objection = dialect.objection(payload, at);
    objection.map_or_else(HookReply::silence, |why| dialect.hold(&payload.call, &why))
}

/// The answer to one report, in its session.
struct Answering<'a> {
    dialect: &'a dyn Dialect,
    call: &'a HookCall,
    session: &'a mut HookSession,
    /// A supervisor drives the client, and begins its conversation again where it is full.
    in_run: bool,
}

impl Answering<'_> {
    fn answer(mut self, mut report: HookReport) -> (HookReply, Outcome) {
        if let Some(usage) = report.usage.take() {
            self.session.count_usage(&report.actor, &*usage);
        }
        if report.events.is_empty() {
            return (self.hold_ended(), Outcome::Decided);
        }
        let mut texts = AnswerTexts { asking: report.asking, ..AnswerTexts::default() };
        self.take_code(&report, &mut texts);
        let replaces = self.dialect.abilities().replaces_outputs;
        let output = report.output.take().filter(|_| replaces);
        let page = output.and_then(|output| self.session.replace_output(output));
        let offered = page.as_ref().map(|page| page.fact.clone());
        let (verdict, outcome) = self.decide(report.events, offered);
        if let Some(write) = report.writes {
            self.session.note_write(write, &verdict, outcome);
        }
        let shown = verdict.page.as_ref().is_some_and(|page| page.enforced);
        texts.output = page.filter(|_| shown).map(|page| page.output);
        let notes = self.session.take_notes();
        texts.person.extend(notes.into_iter().map(|it| format!("jackline: {it}")));
        texts.terminal = notification(&self.session.take_notices());
        match outcome {
            Outcome::Passed => (HookReply::silence(), outcome),
            Outcome::Refused | Outcome::Broken => {
                (self.dialect.broken(Some(self.call), &fault_text(verdict)), outcome)
            }
            Outcome::Decided => {
                texts.person.extend(self.question(&verdict, texts.asking));
                (self.dialect.render(self.call, &verdict, texts), outcome)
            }
        }
    }

    /// Decides on all events. The severest verdict counts, and what is broken above all.
    fn decide(
        &mut self,
        events: Vec<Event>,
        mut offered: Option<OutputFact>,
    ) -> (Verdict, Outcome) {
        let mut counts: Option<(Verdict, Outcome)> = None;
        let last = events.len().saturating_sub(1);
        for (at, event) in events.into_iter().enumerate() {
            // An output belongs to the last event.
            let offered = offered.take_if(|_| at == last);
            let judged = self.session.submit(event, offered);
            let is_decided = judged.1 == Outcome::Decided;
            counts = match counts {
                Some(known) if is_decided && known.0.decision > judged.0.decision => Some(known),
                _ => Some(judged),
            };
            if !is_decided {
                break;
            }
        }
        counts.unwrap_or_else(|| (Verdict::allow(), Outcome::Decided))
    }

    /// Holds a client whose session a person, or a guard, has paused or stopped.
    fn hold_ended(&mut self) -> HookReply {
        if self.call.moment != Moment::AfterCalls {
            return HookReply::silence();
        }
        let hold = |why: &str| self.dialect.hold(self.call, why);
        match self.session.standing() {
            Some(Standing::Running) if self.in_run && self.session.is_full() => hold(FULL),
            Some(Standing::Running) | None => HookReply::silence(),
            Some(Standing::Paused(why)) => hold(&format!("jackline: the session is paused: {why}")),
            Some(Standing::Stopped(code)) => {
                hold(&format!("jackline: the session is over: {code}"))
            }
        }
    }

    /// Takes the answer to a question that a person typed.
    fn take_code(&mut self, report: &HookReport, texts: &mut AnswerTexts) {
        let Some(typed) = &report.typed else { return };
        let summary = self.session.summary();
        match code_answer::answer(summary, self.session.id(), typed) {
            CodeAnswer::Control(control, told) => {
                if self.session.submit(*control, None).1 == Outcome::Decided {
                    texts.agent = Some(told);
                }
            }
            CodeAnswer::Unknown(why) => texts.person.push(why),
        }
    }

    /// The question to a person, where the client does not ask it. The agent is not told: it can't
    /// use a code, and should not try.
    fn question(&self, verdict: &Verdict, asking: AskRoute) -> Option<String> {
        let is_here = self.call.moment == Moment::BeforeCall && asking == AskRoute::Command;
        let ask = self.session.pending_ask(verdict).filter(|_| is_here)?;
        Some(format!(
            "jackline: this call waits for you: {}\n{}; or type {} here",
            ask.question,
            ask.how_to_answer(),
            ask.code
        ))
    }
}

fn broken_text(why: &str) -> String {
    format!("jackline, the guard, is broken, not the call: {why}; {WAY_OUT}")
}

/// Why there is no decision.
fn fault_text(verdict: Verdict) -> String {
    match (verdict.context, verdict.error) {
        (Some(text), _) => format!("jackline: {text}"),
        (None, Some(error)) => broken_text(&error.reason),
        (None, None) => broken_text("it gives no reason"),
    }
}

/// What the person's terminal shows on their desktop: one line, of which the client takes nothing
/// that acts on the terminal.
fn notification(notices: &[Notice]) -> Option<String> {
    let text: Vec<&str> = notices.iter().map(|notice| notice.text.as_str()).collect();
    let line: String =
        text.join("; ").chars().filter(|c| !c.is_control()).take(NOTIFICATION_MAX).collect();
    (!line.is_empty()).then(|| format!("\u{1b}]9;jackline: {line}\u{7}"))
}
