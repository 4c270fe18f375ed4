//! An agent program as the worker: one start is one iteration.
//!
//! It runs as a command does: a supervisor of its own stands above it, adopts what it leaves
//! behind, and ends all of it when the time is over or a person says so. What it does is
//! decided on by the hooks that it was started with; a program that has none is only looked at
//! from outside, when it wants to be done.

use jackline_engine::{Action, ContextLevel, EventKind};
use jackline_model::{ErrorKind, ModelError};
use jackline_runtime::{Grant, Pin, Pins, Trust};
use jackline_workspace::shell::{Cancel, Confine, ShellError, ShellLimits, ShellOutput, run};

use crate::desk::Desk;
use crate::engines::{EngineKind, EngineSpec};
use crate::own::{Ended, GO_ON, Stopped, propose_stop, shown};
use crate::run::Opening;
use crate::told::Told as Say;

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

/// Who holds a session, in its records.
const BY: &str = "jackline run";

/// What is kept of its output.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

/// What is told to a worker, and what it said last.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// What it is told next.
    pub(crate) prompt: Option<String>,
    /// The conversation that goes on, as its client calls it.
    pub(crate) conversation: Option<String>,
}

/// Has the worker work for an iteration.
pub(crate) fn iterate(
    desk: &mut Desk<'_>,
    engine: &EngineSpec,
    opening: &Opening,
    told: &mut Told,
) -> Ended {
    let mut words = match words(desk, engine, opening) {
        Ok(words) => words,
        Err(reason) => return Ended::Failed(ModelError::new(ErrorKind::Auth, reason)),
    };
    if let (EngineKind::Claude { .. }, Some(conversation)) = (&engine.kind, &told.conversation) {
        words.extend(["--resume".to_owned(), conversation.clone()]);
    }
    if let EngineKind::Claude { .. } = engine.kind {
        // What follows is the prompt, and no further tool.
        words.push("--".to_owned());
    }
    let prompt = told.prompt.take().unwrap_or_else(|| GO_ON.to_owned());
    desk.say(&Say::Asking { model: engine.label.clone() });
    let line = words.iter().map(String::as_str).chain([prompt.as_str()]).map(quoted);
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
    let before = words_of_people(opening);
    let output = match run(&opening.workspace, &limits, &line) {
        Ok(output) => output,
        Err(error) => return Ended::Failed(failed(&error)),
    };
    if words_of_people(opening) != before {
        hold(desk, engine);
        return Ended::Held;
    }
    if output.cancelled || desk.lookout.is_over() {
        return Ended::Held;
    }
    let answer = answer(&output);
    let field = |name: &str| answer.as_ref()?.get(name)?.as_str().map(ToOwned::to_owned);
    told.conversation = field("session_id");
    let said = field("result").unwrap_or_else(|| output.output.clone());
    if !said.trim().is_empty() {
        desk.say(&Say::Said { text: shown(&said) });
    }
    if !output.succeeded() {
        return Ended::Failed(ModelError::new(kind_of(&said), ending(engine, &output, &said)));
    }
    let (ended, next) = stop(desk, &said);
    told.prompt = next;
    ended
}

/// What people have approved and trusted, which is not the agent's to say.
fn words_of_people(opening: &Opening) -> (Vec<Pin>, Vec<Grant>) {
    (Pins::of(&opening.store).list(), Trust::of(&opening.store).list())
}

/// Holds a session whose worker, or somebody meanwhile, has changed what people have said.
fn hold(desk: &mut Desk<'_>, engine: &EngineSpec) {
    let why = format!(
        "what people have approved or trusted was changed while `{}` worked: see `jackline identity list` and \
         `jackline trust --list`, and go on if it was you",
        engine.label
    );
    desk.tell(EventKind::Control {
        action: Action::Pause,
        by: Some(BY.to_owned()),
        why: Some(why),
        call: None,
        ask: None,
        seconds: None,
        constraint: None,
    });
}

/// It is done, as it thinks.
fn stop(desk: &mut Desk<'_>, said: &str) -> (Ended, Option<String>) {
    let Some(summary) = desk.summary() else { return (Ended::Held, None) };
    if summary.stop.is_some() || summary.phase == "paused" {
        return (Ended::Held, None);
    }
    let mut contexts = summary.context.iter();
    let main = contexts.find(|context| context.actor.is_main());
    if main.is_some_and(|main| main.level >= ContextLevel::Compact) {
        return (Ended::Full, None);
    }
    match propose_stop(desk, said) {
        Stopped::As(counts_as) => (Ended::said(counts_as, said), None),
        Stopped::Held => (Ended::Held, None),
        Stopped::NotYet(text) => (Ended::NotYet { calls: 1 }, Some(text)),
    }
}

/// The command line up to the prompt.
fn words(desk: &Desk<'_>, engine: &EngineSpec, opening: &Opening) -> Result<Vec<String>, String> {
    match &engine.kind {
        EngineKind::Command(words) => Ok(words.clone()),
        EngineKind::Claude { model } => match &opening.claude {
            Some(hooked) => hooked(desk.session(), model.as_deref()),
            None => Err("Claude Code can't be run from here".to_owned()),
        },
        EngineKind::Script(_) | EngineKind::Model(_) | EngineKind::Local(_) => {
            Err("it is no program".to_owned())
        }
    }
}

/// The answer of Claude Code, which is a line of JSON; others print what they like.
fn answer(output: &ShellOutput) -> Option<serde_json::Value> {
    let last = output.output.lines().rev().find(|line| line.trim_start().starts_with('{'));
    last.and_then(|line| serde_json::from_str(line).ok())
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

fn ending(engine: &EngineSpec, output: &ShellOutput, said: &str) -> String {
    let how = match (output.timed_out, output.exit_code, output.signal) {
        (true, ..) => "ran out of time".to_owned(),
        (_, Some(code), _) => format!("ended with code {code}"),
        (_, None, Some(signal)) => format!("was ended by signal {signal}"),
        _ => "ended".to_owned(),
    };
    format!("`{}` {how}: {}", engine.label, shown(said.trim()))
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
