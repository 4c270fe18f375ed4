//! Runs an agent program as the worker: one start is one iteration.
//!
//! The program runs like a shell command: a supervising process adopts its child processes, and
//! ends all of them at a timeout or on request. The hooks of the program ask the guards about each
//! call. A program without hooks is only checked from outside, when it wants to stop.

mod worker_failure;
mod worker_inbox;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jackline_engine::event::Control;
use jackline_engine::verdict::ContextLevel;
use jackline_engine::{ControlAction, Digest};
use jackline_host::clock::now;
use jackline_host::worker::{WorkerConversation, WorkerProgram, WorkerReport, WorkerStart};
use jackline_host::{
    AgentApproval, AgentApprovals, FileStateHome, StateHome, TrustGrant, TrustStore,
};
use jackline_model::{ModelError, ModelErrorKind};
use jackline_workspace::shell::{
    COMMAND_BYTES_MAX, CancelSignal, ConfineMode, ShellError, ShellLimits, ShellOutput, run_command,
};

use crate::engines::{EngineKind, EngineSpec};
use crate::model_loop::{IterationEnd, StopOutcome, preview, propose_stop};
use crate::run::RunOptions;
use crate::run_event::RunEvent as Say;
use crate::run_front::RunFront;
use crate::waiting::time_left;
use crate::workspace_stamps::{StampsFile, WorkspaceStamps};

pub(crate) use worker_inbox::WorkerInbox;

/// The time limit of one start.
const TIMEOUT_MS: u64 = 60 * 60 * 1000;

/// API key variables that agent programs need, although their commands must not see them.
const PROVIDER_KEY_VARIABLES: [&str; 5] = [
    "ANTHROPIC_API_KEY",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OPENROUTER_API_KEY",
];

/// Who paused the session, in its records.
const PAUSED_BY: &str = "jackline run";

/// How many bytes of the output are stored.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

/// The result of one start of a program.
struct WorkerAnswer {
    /// The conversation to resume, as its client names it.
    conversation: Option<String>,
    /// The last text of the agent.
    text: String,
    /// Why the start failed.
    failure: Option<ModelError>,
    /// Whether the client no longer has the conversation that was to be resumed.
    has_lost_conversation: bool,
}

/// Runs the program for one iteration. `None` if its client no longer has the conversation, so that
/// the next prompt must contain the task.
pub(crate) fn run_iteration(
    front: &mut RunFront<'_>,
    engine: &EngineSpec,
    opening: &RunOptions,
    told: &mut WorkerInbox,
    prompt: &str,
) -> Option<IterationEnd> {
    match run_worker(front, engine, opening, told, prompt) {
        Ok(ended) => ended,
        Err(error) => Some(IterationEnd::NotSaved(error)),
    }
}

fn run_worker(
    front: &mut RunFront<'_>,
    engine: &EngineSpec,
    opening: &RunOptions,
    told: &mut WorkerInbox,
    prompt: &str,
) -> std::io::Result<Option<IterationEnd>> {
    let conversation = engine.keeps_conversation().then(|| match told.conversation() {
        Some(known) => known.to_owned(),
        None => new_conversation_id(front),
    });
    let resumes = told.conversation().is_some();
    let words = match command_words(front, engine, opening, conversation.as_deref(), resumes) {
        Ok(words) => words,
        Err(reason) => {
            return Ok(Some(IterationEnd::ModelFailed(ModelError::new(
                ModelErrorKind::Auth,
                reason,
            ))));
        }
    };
    front.emit(&Say::Asking { model: engine.label.clone() });
    let line = words.iter().map(String::as_str).chain([prompt]).map(shell_quoted);
    let line = line.collect::<Vec<_>>().join(" ");
    let limits = shell_limits(front, engine, opening);
    let (before, is_fresh) = (approvals_and_grants(opening), told.has_full_task());
    told.record_start(conversation.clone())?;
    let directory = opening.store.directory(front.session());
    if !engine.keeps_conversation() {
        WorkspaceStamps::scan(&opening.workspace).save(&directory, StampsFile::WorkerStart)?;
    }
    let output = run_command(&opening.workspace, &limits, &line);
    report_unseen_changes(front, &opening.workspace, &directory)?;
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            told.record_failed_start(conversation)?;
            return Ok(Some(IterationEnd::ModelFailed(shell_failure(&error))));
        }
    };
    let answer = WorkerAnswer::from_output(engine, opening, &output);
    if engine.keeps_conversation() && answer.has_lost_conversation {
        told.record_failed_start(None)?;
        return Ok(None);
    }
    record_result(told, &output, &answer, conversation)?;
    if approvals_and_grants(opening) != before {
        pause_session(front, engine);
        return Ok(Some(IterationEnd::Interrupted));
    }
    if output.cancelled || front.stop_signals.should_stop() {
        return Ok(Some(IterationEnd::Interrupted));
    }
    if !answer.text.trim().is_empty() {
        front.emit(&Say::AgentText { text: preview(&answer.text) });
    }
    Ok(Some(match answer.failure {
        Some(_) if time_left(front).is_some_and(|left| left.is_zero()) => IterationEnd::OutOfTime,
        Some(error) if error.kind == ModelErrorKind::ContextLength && !is_fresh => {
            IterationEnd::ConversationFull
        }
        Some(error) => IterationEnd::ModelFailed(error),
        None => propose_worker_stop(front, told, &answer.text)?,
    }))
}

/// Reports the files that a program without hooks changed, also one whose supervisor was killed: the
/// guards see no calls of it. A program with hooks reports its calls itself.
pub(crate) fn report_unseen_changes(
    front: &mut RunFront<'_>,
    workspace: &Path,
    directory: &Path,
) -> std::io::Result<()> {
    let Some(before) = WorkspaceStamps::load(directory, StampsFile::WorkerStart) else {
        return Ok(());
    };
    if let Some(changed) = before.changes_since(workspace) {
        front.report(changed);
        if front.fault().is_some() {
            // The run ends here, and reports the changes when it resumes.
            return Ok(());
        }
    }
    WorkspaceStamps::remove(directory, StampsFile::WorkerStart)
}

/// A new conversation id, in the form of a random UUID.
fn new_conversation_id(front: &RunFront<'_>) -> String {
    let now = now();
    let seed = format!("{} {} {}", front.session(), now.wall.as_ms(), now.boot_ms);
    let hex = Digest::of(seed.as_bytes()).to_string();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30))
}

fn shell_limits(
    front: &mut RunFront<'_>,
    engine: &EngineSpec,
    opening: &RunOptions,
) -> ShellLimits {
    let left = time_left(front).unwrap_or(Duration::MAX).as_millis();
    let lookout = front.stop_signals.clone();
    // The hooks of a client stop its calls during a pause. A program without hooks has to be ended
    // instead, unless the pause was already there and the guards let it pass.
    let passes = engine.keeps_conversation() || lookout.should_pause();
    let keys = opening.workers.iter().flat_map(|worker| worker.key_variables());
    let keys = PROVIDER_KEY_VARIABLES.iter().chain(keys);
    let ends = move || if passes { lookout.should_stop() } else { lookout.should_pause() };
    ShellLimits {
        timeout_ms: u64::try_from(left).unwrap_or(u64::MAX).min(TIMEOUT_MS),
        output_bytes_max: OUTPUT_BYTES_MAX,
        // The hooks write to the directory of the guard's records.
        confine: ConfineMode::Off,
        environment: keys.map(|key| (*key).to_owned()).collect(),
        cancel: CancelSignal::when(ends),
        ..ShellLimits::default()
    }
}

/// Stores the result of a start before anything else happens.
fn record_result(
    told: &mut WorkerInbox,
    output: &ShellOutput,
    answer: &WorkerAnswer,
    conversation: Option<String>,
) -> std::io::Result<()> {
    told.set_last_output(&answer.text);
    if output.cancelled || output.timed_out {
        return told.record_interruption();
    }
    // A client that could not continue has got its prompt, and reports its conversation.
    match &answer.conversation {
        Some(known) if conversation.is_some() => told.record_delivery(Some(known.clone())),
        _ if answer.failure.is_some() => told.record_failed_start(conversation),
        _ => told.record_delivery(conversation),
    }
}

impl WorkerAnswer {
    /// Reads the output of a program in the format of its client. A command line may start any
    /// client.
    fn from_output(engine: &EngineSpec, opening: &RunOptions, output: &ShellOutput) -> Self {
        let speaks = |worker: &&&dyn WorkerProgram| match &engine.kind {
            EngineKind::Client { client, .. } => worker.name() == client.as_str(),
            _ => true,
        };
        let workers = || opening.workers.iter().filter(speaks);
        let report = workers().find_map(|worker| worker.parse_output(&output.output));
        let failure =
            worker_failure::classify_failure(&engine.label, output, report.as_ref(), now().wall);
        let WorkerReport { conversation, text, .. } = report.unwrap_or_default();
        let said = text.unwrap_or_else(|| output.output.clone());
        let is_lost = failure.is_some()
            && conversation.is_none()
            && workers().any(|worker| worker.is_conversation_lost(&said));
        Self { conversation, text: said, failure, has_lost_conversation: is_lost }
    }
}

/// The approvals and trust grants of people, which an agent must not change.
fn approvals_and_grants(opening: &RunOptions) -> (Vec<AgentApproval>, Vec<TrustGrant>) {
    let home: Arc<dyn StateHome> = Arc::new(FileStateHome::new(opening.store.home()));
    (AgentApprovals::of(Arc::clone(&home)).list(), TrustStore::of(home).list())
}

/// Pauses a session if approvals or trust grants changed while its worker ran.
fn pause_session(front: &mut RunFront<'_>, engine: &EngineSpec) {
    let why = format!(
        "approvals or trust grants of people changed while `{}` worked; check `jackline identity list` and \
         `jackline trust --list`, and continue if you made the changes",
        engine.label
    );
    front.report(Control {
        action: ControlAction::Pause,
        by: Some(PAUSED_BY.to_owned()),
        why: Some(why),
        ..Control::default()
    });
}

/// Proposes the stop of an agent program that ended without a failure.
fn propose_worker_stop(
    front: &mut RunFront<'_>,
    told: &mut WorkerInbox,
    said: &str,
) -> std::io::Result<IterationEnd> {
    let Some(summary) = front.summary() else { return Ok(IterationEnd::Interrupted) };
    if summary.stop.is_some() || summary.is_paused() {
        return Ok(IterationEnd::Interrupted);
    }
    let mut contexts = summary.context.iter();
    let main = contexts.find(|context| context.actor.is_main());
    if main.is_some_and(|main| main.level >= ContextLevel::Compact) {
        return Ok(IterationEnd::ConversationFull);
    }
    Ok(match propose_stop(front, said) {
        StopOutcome::Allowed(counts_as) => IterationEnd::done_with_text(counts_as, said),
        StopOutcome::Interrupted => IterationEnd::Interrupted,
        StopOutcome::Refused(text) => {
            told.add_text(text)?;
            IterationEnd::StopRefused { full: false }
        }
    })
}

/// The command line without the prompt.
fn command_words(
    front: &RunFront<'_>,
    engine: &EngineSpec,
    opening: &RunOptions,
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
            Err("it is not an agent program".to_owned())
        }
    }
}

fn shell_failure(error: &ShellError) -> ModelError {
    if let ShellError::TooLong { bytes } = error {
        let message = format!(
            "the command line with the prompt has {bytes} bytes; the limit is {COMMAND_BYTES_MAX}"
        );
        return ModelError::new(ModelErrorKind::BadRequest, message);
    }
    ModelError::new(ModelErrorKind::BadRequest, format!("{error}; {}", error.guidance()))
}

/// Quotes a word for a POSIX shell.
pub(crate) fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_one_word_for_the_shell() {
        assert_eq!(shell_quoted("it's $(rm)\n"), "'it'\\''s $(rm)\n'");
    }
}
