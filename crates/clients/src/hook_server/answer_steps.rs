//! The steps from a payload to its answer, in the same order for every client.

use jackline_engine::facts::OutputFact;
use jackline_engine::wire::check_bounds;
use jackline_engine::{Event, FaultKind, SessionId, Verdict};
use jackline_host::off_switch::current_off_period;
use jackline_runtime::surfaces::SurfaceCapability;
use jackline_runtime::{
    AnswerKind, HOW_TO_TURN_OFF, PersonNotification, SessionRunState, spool_fault,
};

use super::code_answer::{self, CodeAnswer};
use super::hook_session::HookSession;
use super::{HookServer, catch_panic};
use crate::dialect::{
    AnswerTexts, AskRoute, Dialect, HookCall, HookMoment, HookPayload, HookReply, HookReport,
    PayloadError,
};
use crate::hook_environment::HookEnvironment;

/// Why an event is refused: a tool of the agent sent it.
const FORGED_EVENT: &str = "a process of the agent sent this event, not its client";

/// The reason to end a client whose conversation is full.
const CONVERSATION_FULL: &str =
    "jackline: the conversation is full; a new one starts with a briefing";

/// How many characters of a notification are shown.
const NOTIFICATION_CHARS_MAX: usize = 200;

/// An answer, and the work to do after it is printed.
pub struct HookAnswer {
    /// What to print.
    pub reply: HookReply,
    deferred: DeferredAnswerWork,
    /// Whether the agent stops although no guard checked the stop.
    stopped: bool,
}

/// The work to do after an answer is printed.
enum DeferredAnswerWork {
    /// Nothing.
    Nothing,
    /// The deferred work of the session.
    Session(Box<HookSession>),
    /// To record a fault or a refusal that occurred before the session was open.
    Fault { session: Option<SessionId>, reason: String },
}

impl HookAnswer {
    /// The answer of a broken guard. It is empty if a person has switched the guard off.
    pub(super) fn for_fault(
        dialect: &dyn Dialect,
        call: Option<&HookCall>,
        at: &HookEnvironment,
        fault: &str,
    ) -> Self {
        let text = guard_broken_text(fault);
        let reply = catch_panic(|| {
            if is_off(at) { HookReply::empty() } else { dialect.render_fault(call, &text) }
        });
        Self {
            reply: reply.unwrap_or_else(|| HookReply::refusal(&text)),
            deferred: DeferredAnswerWork::fault(call, fault),
            stopped: catch_panic(|| call.is_some_and(|call| will_stop(dialect, call)))
                .unwrap_or(false),
        }
    }

    /// The answer to an event that the client did not send. The event is ignored, and the attempt
    /// is recorded.
    fn for_forged_event(dialect: &dyn Dialect, call: &HookCall) -> Self {
        let text = format!("jackline: {FORGED_EVENT}; it is ignored");
        let reply = dialect.render_fault(Some(call), &text);
        Self {
            reply,
            deferred: DeferredAnswerWork::fault(Some(call), FORGED_EVENT),
            stopped: false,
        }
    }

    /// An answer that is not recorded in a session.
    fn without_session(reply: HookReply) -> Self {
        Self { reply, deferred: DeferredAnswerWork::Nothing, stopped: false }
    }

    /// Does the deferred work, after the answer is printed.
    pub fn run_deferred(self) {
        match self.deferred {
            DeferredAnswerWork::Nothing => {}
            DeferredAnswerWork::Session(session) => session.finish(self.stopped),
            DeferredAnswerWork::Fault { session, reason } => {
                spool_fault(session.as_ref(), FaultKind::Hook, &reason, self.stopped);
            }
        }
    }
}

impl DeferredAnswerWork {
    fn fault(call: Option<&HookCall>, reason: &str) -> Self {
        let session = call.and_then(|call| call.session.clone());
        Self::Fault { session, reason: reason.to_owned() }
    }
}

/// Answers a payload whose hook is identified.
pub(super) fn answer_payload(
    server: &HookServer,
    payload: HookPayload,
    at: &HookEnvironment,
) -> HookAnswer {
    let dialect = server.dialect;
    let call = payload.call.clone();
    let broken = |reason: &str| HookAnswer::for_fault(dialect, Some(&call), at, reason);
    match call.moment {
        // A hook of a newer client. It is not a gate.
        HookMoment::Unrecognised => return HookAnswer::without_session(HookReply::empty()),
        HookMoment::SettingsChange => {
            return HookAnswer::without_session(answer_settings_change(dialect, &payload, at));
        }
        // A forged proposal can't open the gate, and this hook must be fast.
        HookMoment::BeforeCall => {}
        _ if (at.is_forged)() => return HookAnswer::for_forged_event(dialect, &call),
        _ => {}
    }
    let report = match dialect.translate_payload(payload, at).and_then(check_events) {
        Ok(report) => report,
        Err(error) => return broken(&error.to_string()),
    };
    let runtime = match server.runtime.open(at, server.deadline) {
        Ok(runtime) => runtime.with_tools(dialect.tools().known()),
        Err(reason) => return broken(&reason),
    };
    let mut session = HookSession::new(runtime, dialect.surface(), report.session.clone());
    let in_run = at.run.is_some();
    let (reply, outcome) =
        AnswerBuilder { dialect, call: &call, session: &mut session, in_run }.answer_report(report);
    let stopped = outcome != AnswerKind::Decided
        && call.moment == HookMoment::Stop
        && (will_stop(dialect, &call) || outcome == AnswerKind::GuardOff);
    HookAnswer { reply, deferred: DeferredAnswerWork::Session(Box::new(session)), stopped }
}

/// Checks that the journal can store the events of a report.
fn check_events(report: HookReport) -> Result<HookReport, PayloadError> {
    report.events.iter().try_for_each(check_bounds)?;
    Ok(report)
}

/// Whether the agent stops now, whatever the answer is.
fn will_stop(dialect: &dyn Dialect, call: &HookCall) -> bool {
    let blocks_stops = dialect.surface().supports(SurfaceCapability::RefuseStop);
    call.moment == HookMoment::Stop && (call.stop_blocked || !blocks_stops)
}

/// Whether a person has switched the guard off for this workspace. Links in its path are resolved.
fn is_off(at: &HookEnvironment) -> bool {
    let workspace = at.workspace();
    let real = workspace.canonicalize();
    current_off_period(Some(real.as_ref().unwrap_or(workspace))).is_some()
}

/// The answer to a change of the settings. It depends neither on the rules of the session nor on
/// its journal.
fn answer_settings_change(
    dialect: &dyn Dialect,
    payload: &HookPayload,
    at: &HookEnvironment,
) -> HookReply {
    if is_off(at) {
        return HookReply::empty();
    }
    let reason = dialect.reject_settings(payload, at);
    reason.map_or_else(HookReply::empty, |why| dialect.render_block(&payload.call, &why))
}

/// Answers one report in its session.
struct AnswerBuilder<'a> {
    dialect: &'a dyn Dialect,
    call: &'a HookCall,
    session: &'a mut HookSession,
    /// Whether a supervisor drives the client. It then starts a new conversation when this one is
    /// full.
    in_run: bool,
}

impl AnswerBuilder<'_> {
    fn answer_report(mut self, mut report: HookReport) -> (HookReply, AnswerKind) {
        if let Some(usage) = report.usage_source.take() {
            self.session.count_usage(&report.actor, &*usage);
        }
        if report.events.is_empty() {
            self.session.withdraw_questions(&report.refused_calls);
            return (self.block_if_not_running(), AnswerKind::Decided);
        }
        let mut texts = AnswerTexts { ask_route: report.ask_route, ..AnswerTexts::default() };
        self.apply_typed_code(&report, &mut texts);
        let replaces = self.dialect.surface().supports(SurfaceCapability::PageResult);
        let output = report.tool_output.take().filter(|_| replaces);
        let page = output.and_then(|output| self.session.replace_output(output));
        let offered = page.as_ref().map(|page| page.fact.clone());
        let (verdict, outcome) = self.decide(report.events, offered);
        if let Some(write) = report.file_write {
            self.session.save_for_undo(write, &verdict, outcome);
        }
        let shown = verdict.page.as_ref().is_some_and(|page| page.enforced);
        texts.replaced_output = page.filter(|_| shown).map(|page| page.output);
        let notes = self.session.take_person_messages();
        texts.person.extend(notes.into_iter().map(|it| format!("jackline: {it}")));
        texts.terminal = notification(&self.session.take_notices());
        match outcome {
            AnswerKind::GuardOff => (HookReply::empty(), outcome),
            AnswerKind::Refused | AnswerKind::Broken => {
                (self.dialect.render_fault(Some(self.call), &fault_text(verdict)), outcome)
            }
            AnswerKind::Decided => {
                texts.person.extend(self.question_for_person(&verdict, texts.ask_route));
                (self.dialect.render_verdict(self.call, &verdict, texts), outcome)
            }
        }
    }

    /// Decides on all events. The most severe verdict counts, but a failure of the guard counts
    /// more.
    fn decide(
        &mut self,
        events: Vec<Event>,
        mut offered: Option<OutputFact>,
    ) -> (Verdict, AnswerKind) {
        let mut counts: Option<(Verdict, AnswerKind)> = None;
        let last = events.len().saturating_sub(1);
        for (at, event) in events.into_iter().enumerate() {
            // The output belongs to the last event.
            let offered = offered.take_if(|_| at == last);
            let judged = self.session.submit(event, offered);
            let is_decided = judged.1 == AnswerKind::Decided;
            counts = match counts {
                Some(worst) if is_decided && worst.0.decision > judged.0.decision => Some(worst),
                _ => Some(judged),
            };
            if !is_decided {
                break;
            }
        }
        counts.unwrap_or_else(|| (Verdict::allow(), AnswerKind::Decided))
    }

    /// Blocks a client whose session was paused or stopped by a person or a guard.
    fn block_if_not_running(&mut self) -> HookReply {
        if self.call.moment != HookMoment::AfterCalls {
            return HookReply::empty();
        }
        let hold = |why: &str| self.dialect.render_block(self.call, why);
        match self.session.run_state() {
            Some(SessionRunState::Running) if self.in_run && self.session.is_context_full() => {
                hold(CONVERSATION_FULL)
            }
            Some(SessionRunState::Running) | None => HookReply::empty(),
            Some(SessionRunState::Paused(why)) => {
                hold(&format!("jackline: the session is paused: {why}"))
            }
            Some(SessionRunState::Stopped(code)) => {
                hold(&format!("jackline: the session has ended: {code}"))
            }
        }
    }

    /// Handles an approval code that a person typed.
    fn apply_typed_code(&mut self, report: &HookReport, texts: &mut AnswerTexts) {
        let Some(typed) = &report.typed_code else { return };
        let summary = self.session.summary();
        match code_answer::answer_typed_code(summary, self.session.id(), typed) {
            CodeAnswer::Answered(control, text) => {
                if self.session.submit(*control, None).1 == AnswerKind::Decided {
                    texts.agent = Some(text);
                }
            }
            CodeAnswer::NoQuestion(why) => texts.person.push(why),
        }
    }

    /// The question to a person, if the client does not ask it. The agent does not see the code: it
    /// must not use it.
    fn question_for_person(&self, verdict: &Verdict, asking: AskRoute) -> Option<String> {
        let is_here = self.call.moment == HookMoment::BeforeCall && asking == AskRoute::ShowCommand;
        let ask = self.session.pending_ask(verdict).filter(|_| is_here)?;
        Some(format!(
            "jackline: this call waits for your approval: {}\n{}; or type {} here",
            ask.question,
            ask.answer_commands(),
            ask.code
        ))
    }
}

fn guard_broken_text(why: &str) -> String {
    format!("jackline, the guard, is broken, not the call: {why}; {HOW_TO_TURN_OFF}")
}

/// Why there is no decision.
fn fault_text(verdict: Verdict) -> String {
    match (verdict.context, verdict.error) {
        (Some(text), _) => format!("jackline: {text}"),
        (None, Some(error)) => guard_broken_text(&error.reason),
        (None, None) => guard_broken_text("no reason was reported"),
    }
}

/// The notification that the person's terminal shows on the desktop. It has one line without
/// control characters, which could control the terminal.
fn notification(notices: &[PersonNotification]) -> Option<String> {
    let text: Vec<&str> = notices.iter().map(|notice| notice.text.as_str()).collect();
    let line: String =
        text.join("; ").chars().filter(|c| !c.is_control()).take(NOTIFICATION_CHARS_MAX).collect();
    (!line.is_empty()).then(|| format!("\u{1b}]9;jackline: {line}\u{7}"))
}
