//! One payload in, one answer out, whatever happens.

use std::panic::{AssertUnwindSafe, catch_unwind};

use jackline_engine::{Decision, Event, Verdict};
use jackline_runtime::{Outcome, Runtime, Standing, ask_code};

use super::answer::{Reply, Words, broken, end_run, render};
use super::payload::{Hook, Payload};
use super::surroundings::Surroundings;
use super::translate::{Asking, Translated, translate};

/// How a person passes a guard that is broken.
const WAY_OUT: &str = "a person can look with `jackline status`, or pass for a while with `jackline off --for 30m --why …`";

/// An answer, and what is left to do once it is out.
pub struct Answered {
    /// What to print.
    pub reply: Reply,
    /// Does what may wait; see [`Runtime::leave`].
    pub runtime: Option<Runtime>,
}

impl Answered {
    fn only(reply: Reply) -> Self {
        Self { reply, runtime: None }
    }
}

/// Answers a payload. `heard` is told what it is as soon as that is known, so
/// that a deadline can be answered in the right words.
pub fn answer(
    input: &[u8],
    surroundings: &Surroundings,
    start: impl FnOnce(&Surroundings) -> Result<Runtime, String>,
    heard: impl FnOnce(Hook, bool),
) -> Answered {
    let mut hook = None;
    let answered = catch_unwind(AssertUnwindSafe(|| {
        let payload = match Payload::parse(input) {
            Ok(payload) => payload,
            Err(error) => return Answered::only(Reply::shut(&broken_text(&error.to_string()))),
        };
        let stop_blocked = payload.flag("stop_hook_active");
        hook = Some((payload.hook, stop_blocked));
        heard(payload.hook, stop_blocked);
        if payload.hook == Hook::Other {
            // Newer than we are, and no gate that we know of.
            return Answered::only(Reply::silence());
        }
        understood(payload, surroundings, start)
    }));
    answered.unwrap_or_else(|_| {
        let text = broken_text("an internal fault");
        Answered::only(match hook {
            Some((hook, stop_blocked)) => broken(hook, stop_blocked, &text),
            None => Reply::shut(&text),
        })
    })
}

/// The answer when the deadline is over.
pub fn timed_out(hook: Option<(Hook, bool)>, seconds: u64) -> Reply {
    let text = broken_text(&format!("it found no answer within {seconds} seconds"));
    match hook {
        Some((hook, stop_blocked)) => broken(hook, stop_blocked, &text),
        None => Reply::shut(&text),
    }
}

/// The answer to a payload that can't even be read.
pub fn unreadable(why: &str) -> Reply {
    Reply::shut(&broken_text(why))
}

fn broken_text(why: &str) -> String {
    format!("jackline, the guard, is broken, not the call: {why}; {WAY_OUT}")
}

fn understood(
    payload: Payload,
    surroundings: &Surroundings,
    start: impl FnOnce(&Surroundings) -> Result<Runtime, String>,
) -> Answered {
    let (hook, stop_blocked) = (payload.hook, payload.flag("stop_hook_active"));
    let shut = |why: &str| Answered::only(broken(hook, stop_blocked, &broken_text(why)));
    let told = match translate(payload, surroundings) {
        Ok(told) => told,
        Err(error) => return shut(&error.to_string()),
    };
    let mut runtime = match start(surroundings) {
        Ok(runtime) => runtime,
        Err(reason) => return shut(&reason),
    };
    let reply = decided(&mut runtime, told);
    Answered { reply, runtime: Some(runtime) }
}

fn decided(runtime: &mut Runtime, told: Translated) -> Reply {
    let Translated { hook, session, event, asking, stop_blocked, .. } = told;
    let Some(event) = event else {
        return match runtime.standing(&session) {
            Some(standing) if hook == Hook::PostToolBatch => ended(&standing),
            _ => Reply::silence(),
        };
    };
    let (verdict, outcome) = ask(runtime, event);
    let mut words = Words { person: runtime.take_warnings(), terminal: None };
    if outcome != Outcome::Decided {
        let text = verdict.context.unwrap_or_else(|| broken_text("it gives no reason"));
        return broken(hook, stop_blocked, &text);
    }
    if hook == Hook::PreToolUse
        && verdict.is_enforced(Decision::Ask)
        && asking == Asking::Nobody
        && let Some(seq) = verdict.seq
    {
        words.person.push(how_to_grant(&verdict, &ask_code(&session, seq)));
    }
    render(hook, &verdict, asking, words)
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
        Standing::Paused(why) => end_run(&format!("jackline: the session is paused: {why}")),
        Standing::Stopped(code) => end_run(&format!("jackline: the session is over: {code}")),
    }
}

fn ask(runtime: &mut Runtime, event: Event) -> (Verdict, Outcome) {
    let answer = runtime.answer(event);
    // Our own JSON has no way to be unreadable; and if it had, this denies.
    let verdict = serde_json::from_str(&answer.json).unwrap_or_else(|_| Verdict {
        decision: Decision::Deny,
        enforced: Some(true),
        ..Verdict::allow()
    });
    (verdict, answer.outcome)
}
