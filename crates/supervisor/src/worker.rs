//! An agent program as the worker: one start is one iteration.
//!
//! It runs as a command does: a supervisor of its own stands above it, adopts what it leaves
//! behind, and ends all of it when the time is over or a person says so. What it does is
//! decided on by the hooks that it was started with; a program that has none is only looked at
//! from outside, when it wants to be done.

mod failing;
mod told;

use std::sync::Arc;
use std::time::Duration;

use jackline_engine::event::Control;
use jackline_engine::verdict::ContextLevel;
use jackline_engine::{Action, Digest};
use jackline_host::clock::now;
use jackline_host::worker::{WorkerConversation, WorkerProgram, WorkerReport, WorkerStart};
use jackline_host::{FileStateHome, Grant, Pin, Pins, StateHome, Trust};
use jackline_model::{ErrorKind, ModelError};
use jackline_workspace::shell::{
    COMMAND_BYTES_MAX, Cancel, Confine, ShellError, ShellLimits, ShellOutput, run,
};

use crate::engines::{EngineKind, EngineSpec};
use crate::own::{Ended, Stopped, propose_stop, shown};
use crate::run::Opening;
use crate::run_front::RunFront;
use crate::told::Told as Say;
use crate::waiting::time_left;

pub(crate) use told::Told;

/// How long one start may take.
const TIMEOUT_MS: u64 = 60 * 60 * 1000;

/// Keys of providers that agents need, although commands of theirs should not have them.
const KEYS: [&str; 5] = [
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OPENROUTER_API_KEY",
];

/// Who holds a session, in its records.
const BY: &str = "jackline run";

/// What is kept of its output.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

/// What a program has come to.
struct Answer {
    /// The conversation that goes on, as its client calls it.
    conversation: Option<String>,
    /// What it says.
    said: String,
    /// Why it came to nothing.
    failure: Option<ModelError>,
    /// Whether the conversation that was to go on is none that its client knows.
    is_lost: bool,
}

/// Has the worker work for an iteration. None where the conversation that was to go on is
/// none that its client knows: it has to be told everything.
pub(crate) fn iterate(
    front: &mut RunFront<'_>,
    engine: &EngineSpec,
    opening: &Opening,
    told: &mut Told,
    prompt: &str,
) -> Option<Ended> {
    match start(front, engine, opening, told, prompt) {
        Ok(ended) => ended,
        Err(error) => Some(Ended::Lost(error)),
    }
}

fn start(
    front: &mut RunFront<'_>,
    engine: &EngineSpec,
    opening: &Opening,
    told: &mut Told,
    prompt: &str,
) -> std::io::Result<Option<Ended>> {
    let conversation = engine.remembers().then(|| match told.conversation() {
        Some(known) => known.to_owned(),
        None => new_conversation(front),
    });
    let resumes = told.conversation().is_some();
    let words = match words(front, engine, opening, conversation.as_deref(), resumes) {
        Ok(words) => words,
        Err(reason) => {
            return Ok(Some(Ended::Failed(ModelError::new(ErrorKind::Auth, reason))));
        }
    };
    front.say(&Say::Asking { model: engine.label.clone() });
    let line = words.iter().map(String::as_str).chain([prompt]).map(quoted);
    let line = line.collect::<Vec<_>>().join(" ");
    let limits = limits(front, engine, opening);
    let (before, calls, is_fresh) = (words_of_people(opening), calls(front), told.is_whole());
    told.start(conversation.clone())?;
    let output = match run(&opening.workspace, &limits, &line) {
        Ok(output) => output,
        Err(error) => {
            told.again(conversation)?;
            return Ok(Some(Ended::Failed(failed(&error))));
        }
    };
    let answer = Answer::of(engine, opening, &output);
    if engine.remembers() && answer.is_lost {
        told.again(None)?;
        return Ok(None);
    }
    keep(told, &output, &answer, conversation)?;
    if words_of_people(opening) != before {
        hold(front, engine);
        return Ok(Some(Ended::Held));
    }
    if output.cancelled || front.lookout.is_over() {
        return Ok(Some(Ended::Held));
    }
    if !answer.said.trim().is_empty() {
        front.say(&Say::Said { text: shown(&answer.said) });
    }
    Ok(Some(match answer.failure {
        Some(_) if time_left(front).is_some_and(|left| left.is_zero()) => Ended::TimeIsUp,
        Some(error) if error.kind == ErrorKind::ContextLength && !is_fresh => Ended::Full,
        Some(error) => Ended::Failed(error),
        None => {
            let calls =
                if engine.remembers() { self::calls(front).saturating_sub(calls) } else { 1 };
            stop(front, told, &answer.said, u32::try_from(calls).unwrap_or(u32::MAX))?
        }
    }))
}

/// A name for a conversation, in the form of a random UUID.
fn new_conversation(front: &RunFront<'_>) -> String {
    let now = now();
    let seed = format!("{} {} {}", front.session(), now.wall.as_ms(), now.boot_ms);
    let hex = Digest::of(seed.as_bytes()).to_string();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30))
}

fn limits(front: &mut RunFront<'_>, engine: &EngineSpec, opening: &Opening) -> ShellLimits {
    let left = time_left(front).unwrap_or(Duration::MAX).as_millis();
    let lookout = front.lookout.clone();
    // The hooks of a client hold its calls; of one that has none nobody else could. What is
    // there already holds nobody, or it would not be started.
    let passes = engine.remembers() || lookout.is_held();
    let keys = opening.workers.iter().flat_map(|worker| worker.key_variables());
    let keys = KEYS.iter().chain(keys);
    let ends = move || if passes { lookout.is_over() } else { lookout.is_held() };
    ShellLimits {
        timeout_ms: u64::try_from(left).unwrap_or(u64::MAX).min(TIMEOUT_MS),
        output_bytes_max: OUTPUT_BYTES_MAX,
        // Its hooks write where the guard keeps its records.
        confine: Confine::Off,
        environment: keys.map(|key| (*key).to_owned()).collect(),
        cancel: Cancel::when(ends),
        ..ShellLimits::default()
    }
}

/// How many calls the journal has seen.
fn calls(front: &mut RunFront<'_>) -> u64 {
    front.summary().map_or(0, |summary| summary.invocations.proposed)
}

/// Keeps what a start has come to, before anything else is made of it.
fn keep(
    told: &mut Told,
    output: &ShellOutput,
    answer: &Answer,
    conversation: Option<String>,
) -> std::io::Result<()> {
    told.says(&answer.said);
    if output.cancelled || output.timed_out {
        return told.cut_off();
    }
    // A client that could not go on has its prompt all the same, and tells its conversation.
    match &answer.conversation {
        Some(known) if conversation.is_some() => told.heard(Some(known.clone())),
        _ if answer.failure.is_some() => told.again(conversation),
        _ => told.heard(conversation),
    }
}

impl Answer {
    /// What a program has printed, read as its client prints it. A command line may start any
    /// client.
    fn of(engine: &EngineSpec, opening: &Opening, output: &ShellOutput) -> Self {
        let speaks = |worker: &&&dyn WorkerProgram| match &engine.kind {
            EngineKind::Client { client, .. } => worker.word() == client.as_str(),
            _ => true,
        };
        let workers = || opening.workers.iter().filter(speaks);
        let report = workers().find_map(|worker| worker.read(&output.output));
        let failure = failing::failure(&engine.label, output, report.as_ref(), now().wall);
        let WorkerReport { conversation, text, .. } = report.unwrap_or_default();
        let said = text.unwrap_or_else(|| output.output.clone());
        let is_lost = failure.is_some()
            && conversation.is_none()
            && workers().any(|worker| worker.lost_conversation(&said));
        Self { conversation, said, failure, is_lost }
    }
}

/// What people have approved and trusted, which is not the agent's to say.
fn words_of_people(opening: &Opening) -> (Vec<Pin>, Vec<Grant>) {
    let home: Arc<dyn StateHome> = Arc::new(FileStateHome::new(opening.store.home()));
    (Pins::of(Arc::clone(&home)).list(), Trust::of(home).list())
}

/// Holds a session whose worker, or somebody meanwhile, has changed what people have said.
fn hold(front: &mut RunFront<'_>, engine: &EngineSpec) {
    let why = format!(
        "what people have approved or trusted was changed while `{}` worked: see `jackline identity list` and \
         `jackline trust --list`, and go on if it was you",
        engine.label
    );
    front.report(Control {
        action: Action::Pause,
        by: Some(BY.to_owned()),
        why: Some(why),
        ..Control::default()
    });
}

/// It is done, as it thinks.
fn stop(
    front: &mut RunFront<'_>,
    told: &mut Told,
    said: &str,
    calls: u32,
) -> std::io::Result<Ended> {
    let Some(summary) = front.summary() else { return Ok(Ended::Held) };
    if summary.stop.is_some() || summary.is_paused() {
        return Ok(Ended::Held);
    }
    let mut contexts = summary.context.iter();
    let main = contexts.find(|context| context.actor.is_main());
    if main.is_some_and(|main| main.level >= ContextLevel::Compact) {
        return Ok(Ended::Full);
    }
    Ok(match propose_stop(front, said) {
        Stopped::As(counts_as) => Ended::said(counts_as, said),
        Stopped::Held => Ended::Held,
        Stopped::NotYet(text) => {
            told.tell(text)?;
            Ended::NotYet { calls }
        }
    })
}

/// The command line up to the prompt.
fn words(
    front: &RunFront<'_>,
    engine: &EngineSpec,
    opening: &Opening,
    conversation: Option<&str>,
    resumes: bool,
) -> Result<Vec<String>, String> {
    match &engine.kind {
        EngineKind::Command(words) => Ok(words.clone()),
        EngineKind::Client { client, model } => {
            let conversation = conversation.unwrap_or_default();
            opening.worker(client)?.command_line(&WorkerStart {
                session: front.session().as_str(),
                directory: &opening.store.directory(front.session()),
                model: model.as_deref(),
                conversation: if resumes {
                    WorkerConversation::Resumed(conversation)
                } else {
                    WorkerConversation::New(conversation)
                },
            })
        }
        EngineKind::Script(_) | EngineKind::Model(_) | EngineKind::Local(_) => {
            Err("it is no program".to_owned())
        }
    }
}

fn failed(error: &ShellError) -> ModelError {
    if let ShellError::TooLong { bytes } = error {
        let message = format!(
            "what it is to be told has {bytes} bytes with its command line, and {COMMAND_BYTES_MAX} go there at most"
        );
        return ModelError::new(ErrorKind::BadRequest, message);
    }
    ModelError::new(ErrorKind::BadRequest, format!("{error}; {}", error.guidance()))
}

/// A word as a shell takes it, whatever is in it.
pub(crate) fn quoted(word: &str) -> String {
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
