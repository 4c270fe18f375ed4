//! A run, from its start or its resume to its stop code.

mod driver;
mod engine_connect;
mod program_check;
mod run_error;
mod run_outcome;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jackline_attempt::{InternalOutcome, PublicOutcome};
use jackline_engine::event::PromptSource;
use jackline_engine::verdict::{SafetyAction, SessionStop};
use jackline_engine::{ClientId, Decision, Digest, SessionId, SessionStarted, Timestamp};
use jackline_host::HostAccess;
use jackline_host::clock::now;
use jackline_host::worker::WorkerProgram;
use jackline_journal::FileStore;
use jackline_model::ToolDeclaration;
use jackline_runtime::{AdapterTools, Definitions, Gate, GateAnswer, Runtime};
use jackline_sandbox_host::{ProgramCancel, Sandbox, WorkerPool};
use jackline_task::{
    CallEnvironment, ChangedJournal, RetryCounts, append_run_outcome, new_session_name,
};
use jackline_workspace::shell::CancelSignal;
use jackline_workspace::{Workspace, WorkspaceError, WorkspaceLimits};
use serde_json::json;

use crate::conversation::Conversation;
use crate::engines::{EngineChain, EngineSpec};
use crate::evidence::Evidence;
use crate::model_loop::ModelLoop;
use crate::program_loop::ProgramLoop;
use crate::reply_listener::ToolSchemas;
use crate::run_event::RunEvent;
use crate::run_front::RunFront;
use crate::run_history::{RunHistory, RunStart};
use crate::run_journal::RunJournal;
use crate::run_record::{RUN_SESSION_PREFIX, RunRecord, lock_run};
use crate::run_task::{ActionMode, RunTask};
use crate::stop_signals::StopSignals;
use crate::undo_recorder::UndoRecorder;
use crate::worker;
use crate::workspace_stamps::{StampsFile, WorkspaceStamps};
use driver::RunDriver;
use run_outcome::RunEnd;

pub use run_error::RunError;

/// The client name in the journals of runs.
pub(crate) const CLIENT: &str = "run";

/// The request parameters of models. They are part of the identity of an agent.
const MODEL_PARAMETERS: &str = "output_tokens_max=16000";

/// The system prompt of every model that acts by tool calls.
const SYSTEM_PROMPT: &str = include_str!("system.md");

/// What a caller decides about a run.
pub struct RunOptions {
    /// The store for sessions.
    pub store: FileStore,
    /// The workspace directory.
    pub workspace: PathBuf,
    /// The definition file, if a person named one.
    pub definition: Option<PathBuf>,
    /// The engine that replaces the engine of the task.
    pub engine: Option<EngineSpec>,
    /// The session to resume.
    pub resumed: Option<SessionId>,
    /// The record that is stored for a later resume.
    pub record: RunRecord,
    /// When the run must have ended.
    pub deadline: Option<Timestamp>,
    /// The role of the agent, if a person named one.
    pub role: Option<String>,
    /// Whether the run waits while the session needs a person.
    pub waits_for_person: bool,
    /// The path of this program, which also runs verifications and sends notifications.
    pub program: Option<PathBuf>,
    /// The sandbox for programs.
    pub sandbox: Sandbox,
    /// The agent clients that can be run under the guards of a session.
    pub workers: Vec<&'static dyn WorkerProgram>,
    /// Set by the caller to interrupt the run.
    pub cancelled: Arc<AtomicBool>,
}

impl RunOptions {
    /// The program of a client, or why it can't be run.
    pub(crate) fn worker(&self, client: &ClientId) -> Result<&'static dyn WorkerProgram, String> {
        let found = self.workers.iter().find(|worker| worker.name() == client.as_str());
        found.copied().ok_or_else(|| {
            let known: Vec<String> =
                self.workers.iter().map(|worker| format!("`{}`", worker.name())).collect();
            format!(
                "client `{client}` can't be run as a worker; supported clients: {}",
                known.join(", ")
            )
        })
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct RunReport {
    /// The session id.
    pub session: String,
    /// The workspace directory.
    pub workspace: PathBuf,
    /// The stop code. `None` if the run was suspended and can be resumed.
    pub stop: Option<SessionStop>,
    /// Why the run was suspended.
    pub suspend_reason: Option<String>,
    /// The outcome for the caller of the task, without internal details.
    pub public: PublicOutcome,
    /// What a person can check.
    pub evidence: Evidence,
}

/// Returns the id of the resumed session, or a new one.
fn session_name(opening: &RunOptions) -> String {
    let resumed = opening.resumed.as_ref();
    resumed.map_or_else(|| new_session_name(RUN_SESSION_PREFIX), ToString::to_string)
}

/// Returns the file stamps of the workspace from the start of the run.
fn stamps_at_start(opening: &RunOptions, directory: &Path) -> Option<WorkspaceStamps> {
    if opening.resumed.is_some() {
        return WorkspaceStamps::load(directory, StampsFile::RunStart);
    }
    let stamps = WorkspaceStamps::scan(&opening.workspace);
    // Without the file, only the list of changed files is missing.
    let _ = stamps.save(directory, StampsFile::RunStart);
    Some(stamps)
}

/// Runs a task. `hear` gets each event of the run.
pub fn run(
    task: &RunTask,
    opening: RunOptions,
    hear: &mut dyn FnMut(&RunEvent),
) -> Result<RunReport, RunError> {
    let Some(shown) = opening.workspace.to_str() else {
        return Err(WorkspaceError::NotUtf8(opening.workspace).into());
    };
    let root = opening.workspace.clone();
    let definition = opening.definition.clone().or_else(|| task.definition.clone());
    let defined_by = definition.clone();
    let definitions =
        Definitions::new(definition, HostAccess::of_machine(Some(opening.store.home())));
    let resolved =
        definitions.resolve(&root).map_err(|error| RunError::Definition(error.to_string()))?;
    let defined = &resolved.definition;
    let id = session_name(&opening);
    let session = SessionId::parse(id.clone()).map_err(|e| RunError::Session(e.to_string()))?;
    let directory = opening.store.directory(&session);
    let journal = RunJournal::new(opening.store.clone(), session.clone());
    let begun = opening.resumed.as_ref().and_then(|_| RunStart::read(&journal)).unwrap_or_default();
    let engines = engine_connect::resolve_engines(task, &opening, defined, begun.model.as_deref())?;
    let mut chain =
        EngineChain::new(engines, task.sensitive).ok_or(RunError::NoEngine(task.sensitive))?;
    let by_programs = task.action_mode == ActionMode::Programs;

    let lookout =
        Arc::new(StopSignals::new(&root, journal.clone(), Arc::clone(&opening.cancelled)));
    let watched = Arc::clone(&lookout);
    let is_over = move || if by_programs { watched.should_pause() } else { watched.should_stop() };
    let workers =
        WorkerPool::with_cancel(opening.sandbox.clone(), ProgramCancel::when(is_over.clone()));
    if by_programs {
        workers.ensure_available()?;
    }
    jackline_journal::create_directory(&directory)
        .map_err(|error| RunError::Session(error.to_string()))?;
    let Some(_driven) = lock_run(&directory)? else { return Err(RunError::InUse(id)) };
    // A run keeps the definition of its start in its record, also if it resumes under another one.
    let defined_by = opening.record.defined_by.clone().or(defined_by);
    RunRecord { defined_by, ..opening.record.clone() }.save(&directory)?;

    let mut limits = WorkspaceLimits::from_definition(defined.io);
    limits.shell.hidden = engine_connect::key_variables(task, &opening, defined);
    limits.shell.cancel = CancelSignal::when(is_over.clone());
    let workspace = Workspace::open(&root, limits)
        .map_err(|source| WorkspaceError::Open { path: root.clone(), source })?;

    let tools = model_tools(task);
    let mut runtime = Runtime::new(opening.store.clone(), definitions, root.clone())
        .with_tools(known_tools(&tools, task.action_mode))
        .with_deadline(opening.deadline);
    if let Some(program) = &opening.program {
        runtime = runtime.with_verifier(program.clone()).with_notifier(program.clone());
    }
    let gate = RefCell::new(Gate::new(runtime, session.clone()).with_deferred_saving());
    let mut front = RunFront::new(&gate, lookout, hear);
    let worker = worker::WorkerInbox::open(&directory);
    let history = match &opening.resumed {
        Some(session) => restore_session(&mut front, &mut chain, &worker, session, &journal)?,
        None => RunHistory::default(),
    };
    let programs = by_programs.then(|| {
        let ground = CallEnvironment {
            workspace: &workspace,
            store: opening.store.clone(),
            session,
            definition: opening.definition.clone().or_else(|| task.definition.clone()),
            workers,
            cancel: ProgramCancel::when(is_over),
            attempts: history.last_attempt,
        };
        ProgramLoop::open(task, &tools, (ground, &root), &mut front, &history)
    });
    let programs = programs.transpose()?;
    let before = stamps_at_start(&opening, &directory);
    let mut conversation = Conversation::open(&directory)?;
    conversation.answer_open_calls()?;
    let system =
        if by_programs { ProgramLoop::system_prompt() } else { SYSTEM_PROMPT }.trim().to_owned();
    let agent = RunAgent {
        model: chain.first().map(|engine| engine.model_name().to_owned()),
        system: &system,
        tools: &tools,
        role: opening.role.as_ref().or(begun.role.as_ref()).or(task.role.as_ref()),
    };
    let approved = start_session(&mut front, task, &chain, shown, &agent, (&opening, &history))?;
    worker::report_unseen_changes(&mut front, &root, &directory)?;
    let schemas = Arc::new(ToolSchemas::for_tools(defined, &tools));
    let own = ModelLoop {
        workspace: &workspace,
        conversation,
        system_prompt: system,
        tools,
        schemas,
        definition: Arc::clone(defined),
        undo_recorder: UndoRecorder::new(&directory, &root),
        model: None,
    };
    let mut driver = RunDriver::new(task, &opening, front, chain, (own, programs, worker), history);
    let answer = if approved { driver.drive()? } else { driver.end_unapproved() };
    finish_run(driver, answer, &journal, before.as_ref(), root)
}

/// Makes the report of a run that has ended or was suspended.
fn finish_run(
    mut driver: RunDriver<'_, '_>,
    answer: Option<InternalOutcome>,
    journal: &RunJournal,
    before: Option<&WorkspaceStamps>,
    workspace: PathBuf,
) -> Result<RunReport, RunError> {
    let session = journal.session_id().to_string();
    let (stop, left) = driver.take_result();
    let (summary, unrecorded) = (driver.summary(), driver.unrecorded());
    let evidence = Evidence::gather(journal, summary.as_ref(), before, &workspace, unrecorded);
    if let Some(found) = &evidence.tampered {
        return Err(ChangedJournal { session, found: found.clone() }.into());
    }
    let programs = driver.has_programs().then(|| RetryCounts::read(journal.directory()));
    let public = run_outcome::public_outcome(RunEnd {
        stop: stop.as_ref(),
        answer,
        failed_program: driver.failed_program(),
        retries: programs.unwrap_or_default(),
        objections: &evidence.objections,
        has_temporary_failure: driver.has_temporary_failure(),
    });
    if programs.is_some() {
        append_run_outcome(journal.directory(), &session, &public)?;
    }
    Ok(RunReport { session, workspace, stop, suspend_reason: left, public, evidence })
}

/// Restores the state of a session: the used budgets, and the engine that worked last.
fn restore_session(
    front: &mut RunFront<'_>,
    chain: &mut EngineChain,
    worker: &worker::WorkerInbox,
    session: &SessionId,
    journal: &RunJournal,
) -> Result<RunHistory, RunError> {
    let session = session.to_string();
    let history = RunHistory::read(journal, chain)
        .map_err(|error| ChangedJournal { session: session.clone(), found: error.to_string() })?;
    front.continue_call_numbers();
    let summary = front.summary();
    if let Some(stop) = summary.as_ref().and_then(|summary| summary.stop.as_ref()) {
        return Err(RunError::SessionEnded { session, stop: stop.to_string() });
    }
    let model = summary.and_then(|summary| summary.model);
    chain.restore(
        model.as_deref(),
        &worker.merge_question_counts(&history.questions),
        history.first_engine,
        now().boot_ms,
    );
    Ok(history)
}

/// The identity of the agent of a run. Its model is the first engine. The fallback engines are in
/// the definition, which is part of the identity, too.
struct RunAgent<'a> {
    model: Option<String>,
    system: &'a str,
    tools: &'a [ToolDeclaration],
    role: Option<&'a String>,
}

/// Starts the session, or reports that its agent has resumed. Returns whether the agent may work.
fn start_session(
    front: &mut RunFront<'_>,
    task: &RunTask,
    chain: &EngineChain,
    workspace: &str,
    agent: &RunAgent<'_>,
    (opening, history): (&RunOptions, &RunHistory),
) -> Result<bool, RunError> {
    let resumed = opening.resumed.is_some();
    let hash = |bytes: &[u8]| format!("sha256:{}", Digest::of(bytes));
    // The supervisor does not see the prompt and tools of an agent program.
    let own = chain.first().is_some_and(|engine| !engine.is_worker());
    let described = serde_json::to_vec(agent.tools).unwrap_or_default();
    let words = chain.first().and_then(EngineSpec::command_line).map(|words| json!(words));
    let parameters =
        if own { Some(MODEL_PARAMETERS.to_owned()) } else { words.map(|it| it.to_string()) };
    let started = SessionStarted {
        workspace: Some(workspace.to_owned()),
        client: Some(CLIENT.to_owned()),
        model: agent.model.clone(),
        prompt_hash: own.then(|| hash(agent.system.as_bytes())),
        tools_hash: own.then(|| hash(&described)),
        parameters_hash: parameters.map(|it| hash(it.as_bytes())),
        deadline: opening.deadline,
        role: agent.role.cloned(),
        ..SessionStarted::default()
    };
    let meta = json!({ "started_in": opening.record.started_in, "task": task.name });
    let answer = front.start(started, meta);
    if let Some(fault) = front.fault() {
        return Err(RunError::from_guard_fault(fault));
    }
    ensure_not_refused(&answer)?;
    let session = front.session().to_string();
    let (workspace, model) = (workspace.to_owned(), chain.label());
    front.emit(&RunEvent::Started { session, workspace, model, resumed });
    // A session that has ended gets no prompt.
    if !history.has_prompt && !answer.verdict.is_enforced(Decision::Stop) {
        ensure_not_refused(&front.prompt(PromptSource::Human, &task.prompt))?;
    }
    // The guards would deny each call of this agent, but a program without hooks proposes no calls.
    let mut safety = answer.verdict.safety.iter();
    let denied =
        safety.any(|it| it.is_unapproved_agent() && it.action_taken == SafetyAction::Denied);
    Ok(!denied)
}

/// Fails if the guards refused the event. A session that was paused or ended counts as started.
fn ensure_not_refused(answer: &GateAnswer) -> Result<(), RunError> {
    let goes = answer.verdict.allows_run() || answer.blocks_session();
    if goes { Ok(()) } else { Err(RunError::Session(answer.reason())) }
}

/// The tools that the guards know. A program calls also tools that programs generated, and it is
/// checked before it runs, so its host proposes only calls of tools that exist.
fn known_tools(tools: &[ToolDeclaration], action_mode: ActionMode) -> AdapterTools {
    if action_mode == ActionMode::Programs {
        return AdapterTools::all_proposed();
    }
    let is_offered = |name: &str| tools.iter().any(|tool| tool.name == name);
    let specs = jackline_workspace::tools().iter().filter(|spec| is_offered(spec.name));
    AdapterTools::complete(tools.iter().map(|tool| tool.name.clone()))
        .with_schemas(jackline_workspace::argument_schemas(specs))
}

/// The tools that the task may use, as a model sees them.
fn model_tools(task: &RunTask) -> Vec<ToolDeclaration> {
    let may = |name: &str| task.tools.is_empty() || task.tools.iter().any(|tool| tool == name);
    let specs = jackline_workspace::tools().iter().filter(|spec| may(spec.name));
    let tool = |spec: &jackline_workspace::ToolSpec| ToolDeclaration {
        name: spec.name.to_owned(),
        description: spec.description.to_owned(),
        schema: spec.input_schema.clone(),
    };
    specs.map(tool).collect()
}
