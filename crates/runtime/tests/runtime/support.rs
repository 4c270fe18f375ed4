//! A state home and a workspace for one test, with helpers for sending events.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackline_analysis::{Replay, ReplayReport};
use jackline_engine::wire::parse_line;
use jackline_engine::{Definition, SessionId, SessionSummary};
use jackline_host::{FileStateHome, HostAccess, LayerFiles, StateHome};
use jackline_journal::{
    DefinitionSource, EventRecord, FileStore, JournalLine, JournalView, ReadMode, Store,
    StoreError, Verifier, VerifyReport, parse_record,
};
use jackline_runtime::{Definitions, Runtime, RuntimeAnswer, Sessions, load_session};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct RuntimeTest {
    root: TempDir,
    pub(crate) store: FileStore,
    /// A definition that YAML can't express.
    code_definition: Option<Definition>,
}

impl RuntimeTest {
    /// A workspace whose `jackline.yaml` contains `source`.
    pub(crate) fn new(source: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let store = FileStore::new(root.path().join("home"), 7);
        let world = Self { root, store, code_definition: None };
        fs::create_dir(world.workspace()).unwrap();
        fs::write(world.workspace().join("jackline.yaml"), source).unwrap();
        world
    }

    /// A workspace with a definition that YAML can't express.
    pub(crate) fn with_definition(definition: &Definition) -> Self {
        Self { code_definition: Some(definition.clone()), ..Self::new("") }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub(crate) fn directory(&self, session: &str) -> PathBuf {
        self.store.directory(&SessionId::parse(session).unwrap())
    }

    pub(crate) fn journal(&self, session: &str) -> PathBuf {
        self.directory(session).join("journal.jsonl")
    }

    /// A runtime as in a new process.
    pub(crate) fn runtime(&self) -> Runtime {
        self.runtime_on(self.store.clone())
    }

    pub(crate) fn runtime_on(&self, store: impl Store + 'static) -> Runtime {
        let definitions = match &self.code_definition {
            Some(made) => {
                Definitions::made(made.clone(), self.host(LayerFiles::default())).unwrap()
            }
            None => self.definitions(),
        };
        Runtime::new(store, definitions, self.workspace())
    }

    /// Definitions as in a new process, with their own user layer.
    pub(crate) fn definitions(&self) -> Definitions {
        self.definitions_under(None, LayerFiles { managed: None, user: Some(self.user_file()) })
    }

    /// Definitions of a file or of the workspace, below the given layers.
    pub(crate) fn definitions_under(
        &self,
        file: Option<PathBuf>,
        layers: LayerFiles,
    ) -> Definitions {
        Definitions::new(file, self.host(layers))
    }

    /// This machine with the given layers.
    pub(crate) fn host(&self, layers: LayerFiles) -> HostAccess {
        HostAccess::of_machine(Some(self.store.home())).with_layers(layers)
    }

    /// The state home with grants and approvals.
    pub(crate) fn state_home(&self) -> Arc<dyn StateHome> {
        Arc::new(FileStateHome::new(self.store.home()))
    }

    /// A journal as readers see it.
    pub(crate) fn view(&self, session: &str) -> JournalView {
        let id = SessionId::parse(session).unwrap();
        self.store.view_session(&id, ReadMode::Consistent).unwrap().unwrap()
    }

    /// The path of the user's own definition.
    pub(crate) fn user_file(&self) -> PathBuf {
        self.root.path().join("user.yaml")
    }

    /// The lines of a journal, without newlines.
    pub(crate) fn lines(&self, session: &str) -> Vec<Vec<u8>> {
        let bytes = fs::read(self.journal(session)).unwrap();
        bytes
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| line[..line.len() - 1].to_vec())
            .collect()
    }

    /// The records of a journal, without its opening.
    pub(crate) fn records(&self, session: &str) -> Vec<EventRecord> {
        let lines = self.lines(session);
        lines
            .iter()
            .filter_map(|line| match parse_record(line).unwrap() {
                JournalLine::Event(record) => Some(*record),
                JournalLine::Opened(_) => None,
            })
            .collect()
    }

    pub(crate) fn verify(&self, session: &str) -> VerifyReport {
        let journal = self.view(session);
        let mut verifier = Verifier::new(journal.saved_head());
        let torn = journal
            .for_each(|line| {
                verifier.check_line(line);
                Ok::<(), StoreError>(())
            })
            .unwrap();
        verifier.finish(torn)
    }

    /// Checks and replays a journal. Every test calls this for each journal that it writes.
    pub(crate) fn prove(&self, session: &str) {
        assert_eq!(self.verify(session).findings, []);
        let report = replay(Replay::default(), &self.view(session), &self.lines(session));
        assert!(report.is_proven(), "{report:#?}");
    }

    pub(crate) fn summary(&self, session: &str) -> SessionSummary {
        let sessions = Sessions::new(self.store.clone());
        let entry = sessions.select(Some(session), &self.workspace()).unwrap();
        load_session(&self.store, &entry).unwrap().summary()
    }

    pub(crate) fn is_opened(&self, session: &str) -> bool {
        let entry = self.store.entry(&SessionId::parse(session).unwrap()).unwrap();
        entry.is_some_and(|entry| entry.opening().is_ok())
    }
}

/// Sends one event and returns the verdict.
pub(crate) fn send(runtime: &mut Runtime, line: &str) -> Value {
    serde_json::from_str(&answer(runtime, line).json).unwrap()
}

/// Sends one event and returns the whole answer.
pub(crate) fn answer(runtime: &mut Runtime, line: &str) -> RuntimeAnswer {
    let session = SessionId::parse("s").unwrap();
    let event = parse_line(line.as_bytes(), Some(&session)).unwrap();
    runtime.answer_safely(event)
}

/// Proposes a call, and reports its success if it may run.
pub(crate) fn call(runtime: &mut Runtime, call: &str, tool: &str) -> Value {
    let verdict = send(
        runtime,
        &format!(r#"{{"event":"tool_proposed","call":"{call}","tool":"{tool}","args":{{}}}}"#),
    );
    if verdict["decision"] == "allow" {
        let done = format!(r#"{{"event":"tool_finished","call":"{call}","status":"ok"}}"#);
        assert_eq!(send(runtime, &done)["decision"], "allow");
    }
    verdict
}

pub(crate) fn replay(
    mut replay: Replay,
    definitions: &dyn DefinitionSource,
    lines: &[Vec<u8>],
) -> ReplayReport {
    for line in lines {
        replay.replay_line(definitions, line).unwrap();
    }
    replay.finish()
}

/// Every file below a directory.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}
