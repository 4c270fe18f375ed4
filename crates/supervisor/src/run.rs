//! A run from its beginning, or from where it was left, to its one stop code.

mod driver;
mod error;
mod reach;
mod startable;

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jackline_attempt::{InternalOutcome, OutcomeError, PublicOutcome, egress};
use jackline_engine::event::PromptSource;
use jackline_engine::verdict::{SafetyAction, SafetyKind, Stop};
use jackline_engine::{ClientId, Digest, SessionId, SessionStarted, StopCode, Timestamp};
use jackline_host::HostAccess;
use jackline_host::clock::now;
use jackline_host::worker::WorkerProgram;
use jackline_journal::FileStore;
use jackline_model::Tool;
use jackline_runtime::{Definitions, Gate, GateAnswer, Runtime};
use jackline_sandbox_host::{Ending, Sandbox, Workers};
use jackline_task::{Ground, new_session_name};
use jackline_workspace::shell::Cancel;
use jackline_workspace::{Limits, Workspace, WorkspaceError};
use serde_json::{Value, json};

use crate::conversation::Conversation;
use crate::engines::{Chain, EngineSpec};
use crate::evidence::{Evidence, Looks};
use crate::history::{Begun, History};
use crate::keeping::{Kept, PREFIX, drive};
use crate::listening::Schemas;
use crate::lookout::Lookout;
use crate::own::Own;
use crate::programs::Programs;
use crate::run_front::RunFront;
use crate::run_journal::RunJournal;
use crate::spec::{Acts, RunTask};
use crate::told::Told;
use crate::undoing::Undoing;
use crate::worker;
use driver::Driver;

pub use error::RunError;

/// The name under which sessions are started.
pub(crate) const CLIENT: &str = "run";

/// The role in which an agent acts, unless told.
const ROLE: &str = "developer";

/// With what models are asked, besides what they are asked: it is a part of who the agent is.
const PARAMETERS: &str = "output_tokens_max=16000";

/// What holds for every agent of ours.
const SYSTEM: &str = include_str!("system.md");

/// Where a run works, and by what.
pub struct Opening {
    /// The store of the machine.
    pub store: FileStore,
    /// The directory that tools work in.
    pub workspace: PathBuf,
    /// The definition, where a person has named one.
    pub definition: Option<PathBuf>,
    /// Who works: what takes the place of the task's own, and of the definition's.
    pub engine: Option<EngineSpec>,
    /// The session that goes on, and what it was begun with.
    pub resumed: Option<SessionId>,
    /// What is kept so that it can go on.
    pub kept: Kept,
    /// When it must be over.
    pub deadline: Option<Timestamp>,
    /// The role in which the agent acts, where a person has named one.
    pub role: Option<String>,
    /// Whether a person is waited for.
    pub waits: bool,
    /// This program, which runs verifications and sends notices.
    pub program: Option<PathBuf>,
    /// Where the worker is that runs programs.
    pub sandbox: Sandbox,
    /// The clients that can be run under the guards of a session.
    pub workers: Vec<&'static dyn WorkerProgram>,
    /// Set from outside when the run is to be left.
    pub cancelled: Arc<AtomicBool>,
}

impl Opening {
    /// The program of a client, or why it can't be run.
    pub(crate) fn worker(&self, client: &ClientId) -> Result<&'static dyn WorkerProgram, String> {
        let found = self.workers.iter().find(|worker| worker.word() == client.as_str());
        found.copied().ok_or_else(|| {
            let known: Vec<String> =
                self.workers.iter().map(|worker| format!("`{}`", worker.word())).collect();
            format!("no client `{client}` can be run as a worker; known: {}", known.join(", "))
        })
    }
}

/// How a run went.
#[derive(Debug)]
pub struct Report {
    /// Its session.
    pub session: String,
    /// Where it worked.
    pub workspace: PathBuf,
    /// Its stop code; none where it was left, and can go on.
    pub stop: Option<Stop>,
    /// Why it was left.
    pub left: Option<String>,
    /// What whoever asked is told.
    pub public: PublicOutcome,
    /// What can be checked.
    pub evidence: Evidence,
}

/// Runs a task. `hear` is told how it goes on.
pub fn run(
    task: &RunTask,
    opening: Opening,
    hear: &mut dyn FnMut(&Told),
) -> Result<Report, RunError> {
    let Some(shown) = opening.workspace.to_str() else {
        return Err(WorkspaceError::NotUtf8(opening.workspace).into());
    };
    let root = opening.workspace.clone();
    let definition = opening.definition.clone().or_else(|| task.definition.clone());
    let defined_by = definition.clone();
    let definitions =
        Definitions::new(definition, HostAccess::of_machine(Some(opening.store.home())));
    let resolved = definitions.resolve(&root);
    let resolved = resolved.map_err(|error| RunError::Definition(error.to_string()))?;
    let defined = &resolved.definition;
    let id = opening.resumed.as_ref().map_or_else(|| new_session_name(PREFIX), ToString::to_string);
    let session = SessionId::parse(id.clone()).map_err(|e| RunError::Session(e.to_string()))?;
    let directory = opening.store.directory(&session);
    let journal = RunJournal::new(opening.store.clone(), session.clone());
    let begun = opening.resumed.as_ref().and_then(|_| Begun::read(&journal)).unwrap_or_default();
    let engines = reach::engines(task, &opening, defined, begun.model.as_deref())?;
    let mut chain = Chain::new(engines, task.sensitive).ok_or(RunError::Nobody(task.sensitive))?;
    let by_programs = task.acts == Acts::Programs;

    let lookout = Arc::new(Lookout::new(&root, journal.clone(), Arc::clone(&opening.cancelled)));
    let watched = Arc::clone(&lookout);
    let is_over = move || if by_programs { watched.is_held() } else { watched.is_over() };
    let workers = Workers::until(opening.sandbox.clone(), Ending::when(is_over.clone()));
    if by_programs {
        workers.ready()?;
    }
    jackline_journal::create_directory(&directory)
        .map_err(|error| RunError::Session(error.to_string()))?;
    let Some(_driven) = drive(&directory)? else { return Err(RunError::Driven(id)) };
    // One that goes on under another definition was begun under that one all the same.
    let defined_by = opening.kept.defined_by.clone().or(defined_by);
    Kept { defined_by, ..opening.kept.clone() }.save(&directory)?;

    let mut limits = Limits::of(defined.io);
    limits.shell.hidden = reach::key_names(task, &opening, defined);
    limits.shell.cancel = Cancel::when(is_over.clone());
    let workspace = Workspace::open(&root, limits)
        .map_err(|source| WorkspaceError::Open { path: root.clone(), source })?;

    let tools = tools(task);
    let mut runtime = Runtime::new(opening.store.clone(), definitions, root.clone())
        .knowing(tools.iter().map(|tool| tool.name.clone()).collect())
        .with_deadline(opening.deadline);
    if let Some(program) = &opening.program {
        runtime = runtime.with_verifier(program.clone()).with_notifier(program.clone());
    }
    let gate = RefCell::new(Gate::new(runtime, session.clone()).saving_late());
    let mut front = RunFront::new(&gate, lookout, hear);
    let worker = worker::Told::open(&directory);
    let history = match &opening.resumed {
        Some(session) => go_on(&mut front, &mut chain, &worker, session, &journal)?,
        None => History::default(),
    };
    let programs = by_programs.then(|| {
        let ground = Ground {
            workspace: &workspace,
            store: opening.store.clone(),
            session,
            definition: opening.definition.clone().or_else(|| task.definition.clone()),
            workers,
            ending: Ending::when(is_over),
            attempts: history.attempts,
        };
        Programs::take_up(task, &tools, (ground, &root), &mut front, &history)
    });
    let programs = programs.transpose()?;
    let before = match opening.resumed {
        Some(_) => Looks::kept(&directory),
        None => {
            let looks = Looks::of(&root);
            looks.keep(&directory);
            Some(looks)
        }
    };
    let mut conversation = Conversation::open(&directory)?;
    conversation.mend()?;
    let system = if by_programs { Programs::system() } else { SYSTEM };
    let system = system.trim().to_owned();
    let agent = Agent {
        model: chain.first().map(|engine| engine.model_name().to_owned()),
        system: &system,
        tools: &tools,
        role: opening.role.as_ref().or(begun.role.as_ref()).or(task.role.as_ref()),
    };
    let approved = begin(&mut front, task, &chain, shown, &agent, (&opening, &history))?;
    let schemas = Arc::new(Schemas::of(defined, &tools));
    let workspace = &workspace;
    let undoing = Undoing::new(&directory, &root);
    let (model, defined) = (None, Arc::clone(defined));
    let own = Own { workspace, conversation, system, tools, schemas, defined, undoing, model };
    let mut driver = Driver::new(task, &opening, front, chain, (own, programs, worker), history);
    let answer = if approved { driver.drive()? } else { driver.refuse() };
    let (stop, left) = driver.end();
    let summary = driver.summary();
    let unrecorded = driver.unrecorded();
    let evidence = Evidence::gather(&journal, summary.as_ref(), before.as_ref(), &root, unrecorded);
    if let Some(found) = &evidence.tampered {
        return Err(RunError::Tampered { session: id, found: found.clone() });
    }
    let public = public(stop.as_ref(), answer, driver.failed_program());
    Ok(Report { session: id, workspace: root, stop, left, public, evidence })
}

/// Goes on with a session: with what is used up, and whoever worked last.
fn go_on(
    front: &mut RunFront<'_>,
    chain: &mut Chain,
    worker: &worker::Told,
    session: &SessionId,
    journal: &RunJournal,
) -> Result<History, RunError> {
    let session = session.to_string();
    let history = History::read(journal, chain).map_err(|error| RunError::Tampered {
        session: session.clone(),
        found: error.to_string(),
    })?;
    front.continue_call_numbers();
    let summary = front.summary();
    if let Some(stop) = summary.as_ref().and_then(|summary| summary.stop.as_ref()) {
        return Err(RunError::Over { session, stop: stop.to_string() });
    }
    let model = summary.and_then(|summary| summary.model);
    chain.go_on(model.as_deref(), &worker.asked(&history.asked), now().boot_ms);
    Ok(history)
}

/// What the agent of a run is made of. Its model is the one that works first: whoever may
/// take over is named by the definition, which is a part of who it is, too.
struct Agent<'a> {
    model: Option<String>,
    system: &'a str,
    tools: &'a [Tool],
    role: Option<&'a String>,
}

/// Begins the session, or says that its agent is back; whether it is one that may work.
fn begin(
    front: &mut RunFront<'_>,
    task: &RunTask,
    chain: &Chain,
    workspace: &str,
    agent: &Agent<'_>,
    (opening, history): (&Opening, &History),
) -> Result<bool, RunError> {
    let resumed = opening.resumed.is_some();
    let hash = |bytes: &[u8]| format!("sha256:{}", Digest::of(bytes));
    // An agent program has a prompt and tools of its own, which it does not show.
    let own = chain.first().is_some_and(|engine| !engine.is_worker());
    let described = serde_json::to_vec(agent.tools).unwrap_or_default();
    let words = chain.first().and_then(EngineSpec::command_line).map(|words| json!(words));
    let parameters = if own { Some(PARAMETERS.to_owned()) } else { words.map(|it| it.to_string()) };
    let started = SessionStarted {
        workspace: Some(workspace.to_owned()),
        client: Some(CLIENT.to_owned()),
        model: agent.model.clone(),
        prompt_hash: own.then(|| hash(agent.system.as_bytes())),
        tools_hash: own.then(|| hash(&described)),
        parameters_hash: parameters.map(|it| hash(it.as_bytes())),
        deadline: opening.deadline,
        role: Some(agent.role.map_or(ROLE, String::as_str).to_owned()),
        ..SessionStarted::default()
    };
    let meta = json!({ "started_in": opening.kept.started_in, "task": task.name });
    let answer = front.start(started, meta);
    if let Some(fault) = front.fault() {
        return Err(RunError::broken(fault));
    }
    refused(&answer)?;
    let session = front.session().to_string();
    let (workspace, model) = (workspace.to_owned(), chain.label());
    front.say(&Told::Started { session, workspace, model, resumed });
    if !history.prompted {
        refused(&front.prompt(PromptSource::Human, &task.prompt))?;
    }
    // Each of its calls would be denied; but a program without hooks proposes none.
    let mut safety = answer.verdict.safety.iter();
    let denied = safety.any(|it| {
        it.kind == SafetyKind::IdentityMismatch && it.action_taken == SafetyAction::Denied
    });
    Ok(!denied)
}

/// A session that is held or ended at once has begun all the same.
fn refused(answer: &GateAnswer) -> Result<(), RunError> {
    let goes = answer.verdict.lets_run() || answer.holds_session();
    if goes { Ok(()) } else { Err(RunError::Session(answer.reason())) }
}

/// The tools that a task may use, as models are told of them.
fn tools(task: &RunTask) -> Vec<Tool> {
    let may = |name: &str| task.tools.is_empty() || task.tools.iter().any(|tool| tool == name);
    let specs = jackline_workspace::tools().iter().filter(|spec| may(spec.name));
    let tool = |spec: &jackline_workspace::ToolSpec| Tool {
        name: spec.name.to_owned(),
        description: spec.description.to_owned(),
        schema: spec.input_schema.clone(),
    };
    specs.map(tool).collect()
}

/// What whoever asked is told of a run that came to nothing.
pub fn not_completed() -> PublicOutcome {
    public(None, None, None)
}

/// What whoever asked is told: the agent's answer where it is done, and nothing of the inside
/// where it is not. Programs that came to nothing leave by the same way as any attempt.
fn public(
    stop: Option<&Stop>,
    answer: Option<InternalOutcome>,
    failed: Option<InternalOutcome>,
) -> PublicOutcome {
    let is_done = stop.is_some_and(|stop| stop.code == StopCode::ObjectiveAchieved);
    let nothing = || InternalOutcome::Ok { value: Value::Null, sources: Vec::new() };
    let not_completed = || {
        let text = "This request couldn't be completed.";
        InternalOutcome::Error(OutcomeError::new("not_completed", text, true))
    };
    let outcome =
        if is_done { answer.unwrap_or_else(nothing) } else { failed.unwrap_or_else(not_completed) };
    egress(&outcome).0
}
