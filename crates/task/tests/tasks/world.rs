//! A test setup: a state home, a workspace, and a task for a scripted model.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use jackline_engine::SessionId;
use jackline_journal::{EventRecord, FileStore, JournalLine, parse_record};
use jackline_sandbox_host::Sandbox;
use jackline_task::registry::Registry;
use jackline_task::{
    ArtifactKind, AttemptEvent, AttemptEventKind, Delegate, ScriptedAnswer, TRACE_FILE, Task,
    TaskError, TaskModel, TaskOptions, TaskReport, TaskScript, run_task,
};
use serde_json::{Map, Value};
use tempfile::TempDir;

/// The worker program. It is built if it does not exist.
pub(crate) fn sandbox() -> Sandbox {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || built_program("jackline-sandbox", "jackline-sandbox");
    Sandbox { path: Some(BUILT.get_or_init(build).clone()) }
}

/// The program that supervises commands.
pub(crate) fn supervisor() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built_program("jackline-workspace", "jackline-shell-child")).clone()
}

/// A program of another crate, beside the test program.
fn built_program(package: &str, program: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let path = profile.join(program);
    if !path.is_file() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--locked", "-p", package, "--bin", program, "--target-dir"]);
        cargo.arg(profile.parent().unwrap());
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(cargo.status().unwrap().success());
    }
    path
}

pub(crate) struct TaskWorld {
    root: TempDir,
}

/// The result of a task, with its events.
pub(crate) struct FinishedTask {
    pub(crate) report: TaskReport,
    pub(crate) events_seen: Vec<AttemptEvent>,
}

impl TaskWorld {
    pub(crate) fn new(definition: &str) -> Self {
        let world = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir(world.work()).unwrap();
        fs::create_dir(world.root.path().join("defined")).unwrap();
        fs::write(world.definition(), definition).unwrap();
        world
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("home")
    }

    fn definition(&self) -> PathBuf {
        self.root.path().join("defined/jackline.yaml")
    }

    pub(crate) fn store(&self) -> FileStore {
        FileStore::new(self.home(), 0)
    }

    pub(crate) fn options(&self) -> TaskOptions {
        TaskOptions {
            store: self.store(),
            workspace: self.work(),
            definition: Some(self.definition()),
            sandbox: sandbox(),
            program: None,
            cancelled: Arc::default(),
        }
    }

    pub(crate) fn try_run(&self, task: &Task) -> Result<FinishedTask, TaskError> {
        let mut told = Vec::new();
        let report = run_task(task, self.options(), &mut |it| told.push(it.clone()))?;
        Ok(FinishedTask { report, events_seen: told })
    }

    #[track_caller]
    pub(crate) fn run(&self, task: &Task) -> FinishedTask {
        self.try_run(task).unwrap()
    }

    /// Runs a task whose model answers with these programs.
    #[track_caller]
    pub(crate) fn programs(&self, programs: &[&str]) -> FinishedTask {
        self.run(&task(programs))
    }

    /// The contents of the workspace, by path.
    pub(crate) fn files(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        let mut open = vec![self.work()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(self.work()).unwrap().display().to_string();
                if path.is_dir() {
                    if name != ".jackline" {
                        files.insert(format!("{name}/"), String::new());
                        open.push(path);
                    }
                } else {
                    files.insert(name, fs::read_to_string(&path).unwrap());
                }
            }
        }
        files
    }

    pub(crate) fn generated_tools(&self) -> Vec<String> {
        let listing = Registry::of_home(&self.home()).list().unwrap();
        listing.tools.into_iter().map(|tool| tool.name).collect()
    }

    pub(crate) fn directory(&self, session: &str) -> PathBuf {
        self.store().directory(&SessionId::parse(session).unwrap())
    }

    /// The trace of a session, one value per call.
    pub(crate) fn trace(&self, done: &FinishedTask) -> Vec<Value> {
        let path = self.directory(&done.report.session).join(TRACE_FILE);
        let text = fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The names of the events of a session.
    pub(crate) fn events(&self, session: &str) -> Vec<String> {
        let records = self.records(session);
        records.iter().map(|record| record.event.kind.name().to_owned()).collect()
    }

    pub(crate) fn records(&self, session: &str) -> Vec<EventRecord> {
        let bytes = fs::read(self.directory(session).join("journal.jsonl")).unwrap();
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines
            .filter_map(|line| match parse_record(line).unwrap() {
                JournalLine::Event(record) => Some(*record),
                JournalLine::Opened(_) => None,
            })
            .collect()
    }
}

impl FinishedTask {
    /// How many times the model was asked.
    pub(crate) fn requests(&self) -> u32 {
        self.report.trace.lanes.asked
    }

    /// The public outcome as JSON text.
    pub(crate) fn public(&self) -> String {
        serde_json::to_string(&self.report.public).unwrap()
    }

    pub(crate) fn value(&self) -> Option<&Value> {
        self.report.public.value.as_ref()
    }

    /// The violations that were raised, as `subtype line:column`.
    pub(crate) fn violations(&self) -> Vec<String> {
        let each = self.events_seen.iter().filter_map(|told| match &told.kind {
            AttemptEventKind::ViolationsRaised { violations } => Some(violations),
            _ => None,
        });
        each.flatten()
            .map(|it| {
                let at = it.location.map_or_else(String::new, |at| format!(" {at}"));
                format!("{}{at}", it.subtype)
            })
            .collect()
    }

    /// The internal outcome as JSON.
    pub(crate) fn internal(&self) -> Value {
        serde_json::to_value(&self.report.internal).unwrap()
    }
}

pub(crate) fn text_answer(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::Text(text.to_owned())
}

pub(crate) fn scripted_model(answers: Vec<ScriptedAnswer>) -> TaskModel {
    TaskModel::Script(TaskScript { answers, repeats: false })
}

/// A task for which the model writes these programs.
pub(crate) fn task(programs: &[&str]) -> Task {
    Task {
        name: "films".to_owned(),
        prompt: "find the films".to_owned(),
        tools: ["read_file", "write_file", "list_dir"].map(ToOwned::to_owned).to_vec(),
        definition: None,
        model: scripted_model(programs.iter().map(|it| text_answer(it)).collect()),
        context: Map::new(),
        delegates: BTreeMap::new(),
        artifact: ArtifactKind::Program,
    }
}

/// Adds a delegate whose model answers with these programs.
pub(crate) fn with_delegate(mut task: Task, name: &str, programs: &[&str]) -> Task {
    let mut inner = self::task(programs);
    inner.name = format!("{}.{name}", task.name);
    let delegate = Delegate { description: "helps".to_owned(), external: false, task: inner };
    task.delegates.insert(name.to_owned(), delegate);
    task
}
