//! An agent program as the worker: one start is one iteration.
//!
//! It runs as a command does: a supervisor of its own stands above it, adopts what it leaves
//! behind, and ends all of it when the time is over or a person says so. What it does is
//! decided on by the hooks that it was started with; a program that has none is only looked at
//! from outside, when it wants to be done.

use jackline_engine::{ContextLevel, Decision, EventKind, Payload};
use jackline_model::{ErrorKind, ModelError};
use jackline_workspace::shell::{Cancel, Confine, ShellError, ShellLimits, ShellOutput, run};

use crate::desk::{Desk, why};
use crate::engines::{EngineKind, EngineSpec};
use crate::own::{Ended, completion, shown};
use crate::run::Opening;
use crate::told::Told;

/// How long one start may take.
const TIMEOUT_MS: u64 = 60 * 60 * 1000;

/// Keys that agents need, although commands of theirs should not have them.
const KEYS: [&str; 7] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OPENROUTER_API_KEY",
];

/// What is kept of its output.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

/// Has the worker work for an iteration.
pub(crate) fn iterate(
    desk: &mut Desk<'_>,
    engine: &EngineSpec,
    opening: &Opening,
    prompt: &str,
) -> Ended {
    let words = match words(desk, engine, opening) {
        Ok(words) => words,
        Err(reason) => return Ended::Failed(ModelError::new(ErrorKind::Auth, reason)),
    };
    desk.say(&Told::Asking { model: engine.label.clone() });
    let line = words.iter().map(String::as_str).chain([prompt]).map(quoted);
    let line = line.collect::<Vec<_>>().join(" ");
    let lookout = desk.lookout.clone();
    let limits = ShellLimits {
        timeout_ms: TIMEOUT_MS,
        output_bytes_max: OUTPUT_BYTES_MAX,
        // Its hooks write where the guard keeps its records.
        confine: Confine::Off,
        environment: KEYS.map(str::to_owned).to_vec(),
        cancel: Cancel::when(move || lookout.is_over()),
        ..ShellLimits::default()
    };
    let output = match run(&opening.workspace, &limits, &line) {
        Ok(output) => output,
        Err(error) => return Ended::Failed(failed(&error)),
    };
    if output.cancelled || desk.lookout.is_over() {
        return Ended::Held;
    }
    let said = said(&output);
    if !said.trim().is_empty() {
        desk.say(&Told::Said { text: shown(&said) });
    }
    if !output.succeeded() {
        return Ended::Failed(ModelError::new(kind_of(&said), ending(engine, &output)));
    }
    stop(desk, said)
}

/// It is done, as it thinks. Where its hooks have decided on that, nothing is asked twice.
fn stop(desk: &mut Desk<'_>, said: String) -> Ended {
    let Some(summary) = desk.summary() else { return Ended::Held };
    if summary.stop.is_some() || summary.phase == "paused" {
        return Ended::Held;
    }
    let mut contexts = summary.context.iter();
    let main = contexts.find(|context| context.actor.is_main());
    if main.is_some_and(|main| main.level >= ContextLevel::Compact) {
        return Ended::Full;
    }
    if let Some(result) = summary.turn.result.filter(|result| *result != "incomplete") {
        return Ended::Done { counts_as: result.to_owned(), answer: said };
    }
    let output = (!said.is_empty()).then(|| Payload::Inline(said.clone()));
    let reason = Some("end_turn".to_owned());
    let verdict = desk.tell(EventKind::StopProposed { reason, output, background: 0 });
    if verdict.is_enforced(Decision::Stop) {
        return Ended::Held;
    }
    if verdict.lets_run() {
        return Ended::Done { counts_as: completion(&verdict), answer: said };
    }
    desk.say(&Told::Stopping { allowed: false, why: shown(&why(&verdict)) });
    desk.owe(&verdict);
    Ended::NotYet { calls: 1 }
}

/// The command line up to the prompt.
fn words(desk: &Desk<'_>, engine: &EngineSpec, opening: &Opening) -> Result<Vec<String>, String> {
    match &engine.kind {
        EngineKind::Command(words) => Ok(words.clone()),
        EngineKind::Claude { model } => match &opening.claude {
            Some(hooked) => hooked(desk.session(), model.as_deref()),
            None => Err("Claude Code can't be run from here".to_owned()),
        },
        EngineKind::Script(_) | EngineKind::Model(_) => Err("it is no program".to_owned()),
    }
}

/// What it says at the end: Claude Code in a field of its answer, others as they print it.
fn said(output: &ShellOutput) -> String {
    let last = output.output.lines().rev().find(|line| line.trim_start().starts_with('{'));
    let answer = last.and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let result = answer.as_ref().and_then(|answer| answer.get("result")?.as_str());
    result.map_or_else(|| output.output.clone(), ToOwned::to_owned)
}

/// What kind of failure the words of a program tell of, as far as anybody can see.
fn kind_of(said: &str) -> ErrorKind {
    let said = said.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&["usage limit", "limit reached", "quota"]) {
        ErrorKind::PlanLimit
    } else if has(&["overloaded", "529", "503"]) {
        ErrorKind::Overload
    } else if has(&["rate limit", "429"]) {
        ErrorKind::RateLimit
    } else if has(&["api key", "log in", "/login", "401"]) {
        ErrorKind::Auth
    } else {
        ErrorKind::BadAnswer
    }
}

fn ending(engine: &EngineSpec, output: &ShellOutput) -> String {
    let how = match (output.timed_out, output.exit_code, output.signal) {
        (true, ..) => "ran out of time".to_owned(),
        (_, Some(code), _) => format!("ended with code {code}"),
        (_, None, Some(signal)) => format!("was ended by signal {signal}"),
        _ => "ended".to_owned(),
    };
    format!("`{}` {how}: {}", engine.label, shown(said(output).trim()))
}

fn failed(error: &ShellError) -> ModelError {
    ModelError::new(ErrorKind::BadRequest, format!("{error}; {}", error.guidance()))
}

/// A word as a shell takes it, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_one_word_for_the_shell() {
        assert_eq!(quoted("it's $(rm)\n"), "'it'\\''s $(rm)\n'");
    }
}
