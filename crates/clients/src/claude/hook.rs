//! One payload in, one answer out, whatever happens.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use jackline_engine::{
    ActorId, ContextLevel, Decision, Event, EventKind, FaultKind, RequestId, SessionId,
    UsageReported, Verdict,
};
use jackline_runtime::{
    Answer, Deferred, Notice, Outcome, Request, Runtime, Standing, ask_code, keep_fault, off_now,
};

use super::answer::{Reply, Words, broken, hold, render};
use super::codes::{self, Said};
use super::payload::{Hook, Payload};
use super::reload;
use super::surroundings::Surroundings;
use super::translate::{Asking, Translated, session_of, translate};
use super::usage::{Usage, Whose, uncounted};

/// How a person passes a guard that is broken.
const WAY_OUT: &str = "a person can look with `jackline status`, or pass for a while with `jackline off --for 30m --why …`";

/// Why an event is not believed.
const FORGED: &str = "this event comes from a process of the agent's own, not from its client";

/// Why a client is ended whose conversation is full.
const FULL: &str = "jackline: the conversation is full, and begins anew with a briefing";

/// How much of a notification is shown.
const NOTIFICATION_MAX: usize = 200;

/// An answer, and what is left to do once it is out.
pub struct Answered {
    /// What to print.
    pub reply: Reply,
    session: Option<SessionId>,
    runtime: Option<Runtime>,
    /// What broke before there was a runtime to write it down.
    fault: Option<String>,
    /// Whether the agent stops although no gate could look.
    stopped: bool,
    /// Work that answers have left for later.
    deferred: Deferred,
}

impl Answered {
    fn broken(heard: &Heard, surroundings: &Surroundings, fault: &str) -> Self {
        // A person switches off what a path leads to.
        let named = surroundings.workspace();
        let workspace = named.canonicalize();
        let off = off_now(Some(workspace.as_ref().unwrap_or(named))).is_some();
        let shut = || heard.broken(&broken_text(fault));
        Self {
            reply: if off { Reply::silence() } else { shut() },
            session: heard.session.clone(),
            runtime: None,
            fault: Some(fault.to_owned()),
            stopped: heard.passes_stop(),
            deferred: Deferred::default(),
        }
    }

    /// The answer to an event that the client has not sent. Nothing comes of it,
    /// and it is written down.
    fn forged(heard: &Heard) -> Self {
        Self {
            reply: heard.broken(&format!("jackline: {FORGED}; nothing comes of it")),
            session: heard.session.clone(),
            runtime: None,
            fault: Some(FORGED.to_owned()),
            stopped: false,
            deferred: Deferred::default(),
        }
    }

    /// Does what may wait until the answer is out.
    pub fn finish(self) {
        match (self.runtime, &self.session) {
            (Some(mut runtime), Some(session)) => {
                runtime.finish(self.deferred);
                runtime.close(session, self.stopped);
            }
            (_, session) => {
                if let Some(fault) = self.fault {
                    keep_fault(session.as_ref(), FaultKind::Hook, &fault, self.stopped);
                }
            }
        }
    }
}

/// What is known of a payload as soon as it is parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// What happened; none where nobody can tell.
    pub hook: Option<Hook>,
    /// Whether a stop was blocked before in this turn.
    pub stop_blocked: bool,
    /// The session, where the client names it.
    pub session: Option<SessionId>,
}

impl Heard {
    const NOTHING: Self = Self { hook: None, stop_blocked: false, session: None };

    fn of(payload: &Payload, surroundings: &Surroundings) -> Self {
        let session = session_of(payload, surroundings);
        let stop_blocked = payload.flag("stop_hook_active");
        Self { hook: Some(payload.hook), stop_blocked, session }
    }

    fn broken(&self, text: &str) -> Reply {
        match self.hook {
            Some(hook) => broken(hook, self.stop_blocked, text),
            None => Reply::shut(text),
        }
    }

    fn passes_stop(&self) -> bool {
        self.hook == Some(Hook::Stop) && self.stop_blocked
    }
}

/// Answers a payload. `listen` is told what it is as soon as that is known, so
/// that a deadline can be answered in the right words.
pub fn answer(
    input: &[u8],
    surroundings: &Surroundings,
    start: impl FnOnce(&Surroundings) -> Result<Runtime, String>,
    listen: impl FnOnce(Heard),
) -> Answered {
    let mut heard = Heard::NOTHING;
    let answered = catch_unwind(AssertUnwindSafe(|| {
        let payload = match Payload::parse(input) {
            Ok(payload) => payload,
            Err(error) => return Answered::broken(&heard, surroundings, &error.to_string()),
        };
        heard = Heard::of(&payload, surroundings);
        listen(heard.clone());
        understood(payload, &heard, surroundings, start)
    }));
    answered.unwrap_or_else(|_| Answered::broken(&heard, surroundings, "an internal fault"))
}

/// The answer when the deadline is over.
pub fn timed_out(heard: Option<Heard>, surroundings: &Surroundings, seconds: u64) -> Answered {
    let heard = heard.unwrap_or(Heard::NOTHING);
    Answered::broken(&heard, surroundings, &format!("it found no answer within {seconds} seconds"))
}

/// The answer to a payload that can't even be read.
pub fn unreadable(surroundings: &Surroundings, why: &str) -> Answered {
    Answered::broken(&Heard::NOTHING, surroundings, why)
}

fn broken_text(why: &str) -> String {
    format!("jackline, the guard, is broken, not the call: {why}; {WAY_OUT}")
}

fn understood(
    payload: Payload,
    heard: &Heard,
    surroundings: &Surroundings,
    start: impl FnOnce(&Surroundings) -> Result<Runtime, String>,
) -> Answered {
    let aside = match payload.hook {
        // Newer than we are, and no gate that we know of.
        Hook::Other => Some(Reply::silence()),
        Hook::ConfigChange => Some(at_settings(&payload, surroundings)),
        _ => None,
    };
    if let Some(reply) = aside {
        let session = heard.session.clone();
        let deferred = Deferred::default();
        return Answered { reply, session, runtime: None, fault: None, stopped: false, deferred };
    }
    // A proposal that nobody made opens nothing, and it is the one that has to be
    // quick.
    if payload.hook != Hook::PreToolUse && (surroundings.forged)() {
        return Answered::forged(heard);
    }
    let told = match translate(payload, surroundings) {
        Ok(told) => told,
        Err(error) => return Answered::broken(heard, surroundings, &error.to_string()),
    };
    let mut runtime = match start(surroundings) {
        // What it calls a tool with stays as it is.
        Ok(runtime) => runtime.keeping_arguments(),
        Err(reason) => return Answered::broken(heard, surroundings, &reason),
    };
    let session = Some(told.session.clone());
    let in_run = surroundings.run.is_some();
    let (reply, outcome, deferred) = decided(&mut runtime, told, in_run);
    let stopped = outcome != Outcome::Decided
        && heard.hook == Some(Hook::Stop)
        && (heard.stop_blocked || outcome == Outcome::Passed);
    Answered { reply, session, runtime: Some(runtime), fault: None, stopped, deferred }
}

/// The answer to settings that changed: no matter of the session's rules, and
/// none that waits for its journal.
fn at_settings(payload: &Payload, surroundings: &Surroundings) -> Reply {
    if off_now(Some(surroundings.workspace())).is_some() {
        return Reply::silence();
    }
    reload::objection(payload, surroundings).map_or_else(Reply::silence, |why| hold(&why))
}

/// `in_run`: somebody drives the client, and begins its conversation anew where it is full.
fn decided(runtime: &mut Runtime, told: Translated, in_run: bool) -> (Reply, Outcome, Deferred) {
    let Translated {
        hook,
        session,
        event,
        asking,
        stop_blocked,
        costs,
        actor,
        typed,
        returned,
        writes,
    } = told;
    let mut deferred = Deferred::default();
    if let Some((path, whose)) = costs {
        count(runtime, &session, &actor, (&path, whose), &mut deferred);
    }
    let Some(event) = event else {
        let reply = match runtime.standing(&session) {
            Some(Standing::Running) if hook == Hook::PostToolBatch && in_run => {
                if is_full(runtime, &session) { hold(FULL) } else { Reply::silence() }
            }
            Some(standing) if hook == Hook::PostToolBatch => ended(&standing),
            _ => Reply::silence(),
        };
        return (reply, Outcome::Decided, deferred);
    };
    let mut words = Words::default();
    match typed.map(|typed| codes::answer(runtime, &session, &typed)) {
        Some(Said::Answer(control, told)) => {
            let answer = runtime.answer(*control);
            words.hear(&answer);
            deferred.add(answer.deferred);
            if answer.outcome == Outcome::Decided {
                words.agent = Some(told);
            }
        }
        Some(Said::Nothing(why)) => words.person.push(why),
        None => {}
    }
    let page = returned.and_then(|returned| returned.page(runtime, &session));
    let offered_output = page.as_ref().map(|page| page.fact.clone());
    let answer = runtime.answer(Request { event, offered_output });
    words.hear(&answer);
    let Answer { verdict, outcome, notices, deferred: later, .. } = answer;
    deferred.add(later);
    if let Some(writes) = writes {
        writes.note(runtime, &session, (&verdict, outcome));
    }
    let shown = verdict.page.as_ref().is_some_and(|page| page.enforced);
    words.output = page.filter(|_| shown).map(|page| page.output);
    words.terminal = notification(&notices);
    match outcome {
        Outcome::Decided => {}
        Outcome::Passed => return (Reply::silence(), outcome, deferred),
        Outcome::Refused | Outcome::Broken => {
            let text = match (verdict.context, verdict.error) {
                (Some(text), _) => format!("jackline: {text}"),
                (None, Some(error)) => broken_text(&error.reason),
                (None, None) => broken_text("it gives no reason"),
            };
            return (broken(hook, stop_blocked, &text), outcome, deferred);
        }
    }
    if hook == Hook::PreToolUse
        && verdict.is_enforced(Decision::Ask)
        && asking == Asking::Nobody
        && let Some(seq) = verdict.seq
    {
        words.person.push(how_to_grant(&verdict, &ask_code(&session, seq)));
    }
    (render(hook, &verdict, asking, words), outcome, deferred)
}

/// Whether the conversation of the main agent has to begin anew.
fn is_full(runtime: &mut Runtime, session: &SessionId) -> bool {
    let contexts = runtime.summary(session).map(|summary| summary.context).unwrap_or_default();
    let main = contexts.iter().find(|context| context.actor.is_main());
    main.is_some_and(|main| main.level >= ContextLevel::Compact)
}

/// Counts what the model's answers cost since it was last counted. That observes;
/// what it makes of limits shows at the next gate.
fn count(
    runtime: &mut Runtime,
    session: &SessionId,
    actor: &ActorId,
    costs: (&Path, Whose),
    deferred: &mut Deferred,
) {
    let report = |used: &Usage| usage_event(session, actor.clone(), used.clone());
    let (path, whose) = costs;
    let used = uncounted(path, whose, |used, said| !runtime.lacks(&report(used), said));
    for used in &used {
        deferred.add(runtime.answer(report(used)).deferred);
    }
}

/// What the person's terminal shows on their desktop: one line, of which the
/// client takes nothing that acts on the terminal.
fn notification(notices: &[Notice]) -> Option<String> {
    let text: Vec<&str> = notices.iter().map(|notice| notice.text.as_str()).collect();
    let line: String =
        text.join("; ").chars().filter(|c| !c.is_control()).take(NOTIFICATION_MAX).collect();
    (!line.is_empty()).then(|| format!("\u{1b}]9;jackline: {line}\u{7}"))
}

/// What an answer of the model cost. Told twice it counts once, by its message; where
/// the client gives none, by its numbers.
fn usage_event(session: &SessionId, actor: ActorId, used: Usage) -> Event {
    let model = used.short_model();
    let Usage { request, input, cache_read, cache_creation, output, unknown, .. } = used;
    let numbers = || {
        if unknown {
            return "unread".to_owned();
        }
        format!("{input}-{cache_read}-{cache_creation}-{output}")
    };
    let request = request.and_then(|id| RequestId::parse(id).ok());
    let kind = EventKind::UsageReported(UsageReported {
        request: request.or_else(|| RequestId::parse(numbers()).ok()),
        model,
        input,
        cache_read,
        cache_creation,
        output,
        unknown,
        ..UsageReported::default()
    });
    Event { session: session.clone(), id: None, at: None, actor, kind, meta: None }
}

/// Told to the person alone: the agent can't use a code, and should not try.
fn how_to_grant(verdict: &Verdict, code: &str) -> String {
    let asks = verdict.violations.iter().find(|it| it.enforced && it.decision == Decision::Ask);
    let what = asks.map_or("a call", |it| it.message.as_str());
    format!(
        "jackline: this call waits for you: {what}\n`jackline allow {code}` lets exactly this call pass once, `jackline refuse {code}` refuses it; or type {code} here"
    )
}

/// A session that a person has stopped or paused.
fn ended(standing: &Standing) -> Reply {
    match standing {
        Standing::Running => Reply::silence(),
        Standing::Paused(why) => hold(&format!("jackline: the session is paused: {why}")),
        Standing::Stopped(code) => hold(&format!("jackline: the session is over: {code}")),
    }
}
