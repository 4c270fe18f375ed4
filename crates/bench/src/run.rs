//! Measures a supervised run: its overhead, how soon it stops, and how soon a fallback model takes
//! over.

mod overhead;
mod primary;
mod stop;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jackline_journal::FileStore;
use jackline_model::scripted::{ModelScript, ScriptStep};
use jackline_sandbox_host::Sandbox;
use jackline_supervisor::{
    ActionMode, EngineKind, EngineSpec, RunEvent, RunOptions, RunRecord, RunTask,
};
use serde_json::json;

use crate::BenchError;
use crate::report::BenchReport;

/// The file that every run must write.
const REQUIRED_FILE: &str = "report.md";

pub(crate) fn run(jackline: &Path, report: &mut BenchReport) -> Result<(), BenchError> {
    overhead::run(report)?;
    stop::run(jackline, report)?;
    primary::run(report)
}

/// Runs a task in this process, with all files below one directory. Returns the stop code.
fn run_task(
    place: &Path,
    definition: &str,
    engine: EngineSpec,
    scripts: &[(&str, ModelScript)],
    hear: &mut dyn FnMut(&RunEvent),
) -> Result<String, BenchError> {
    let (work, definition_file) = (place.join("work"), place.join("jackline.yaml"));
    fs::create_dir_all(&work)?;
    fs::write(&definition_file, format!("version: 1\nname: bench/run\n{definition}"))?;
    let task = RunTask {
        name: "bench".to_owned(),
        file: place.join("task.yaml"),
        prompt: format!("write {REQUIRED_FILE}"),
        definition: Some(definition_file),
        copy: None,
        action_mode: ActionMode::Tools,
        tools: Vec::new(),
        engine: Some(engine),
        scripts: scripts.iter().map(|(name, it)| ((*name).to_owned(), it.clone())).collect(),
        sensitive: false,
        role: None,
    };
    let kept = RunRecord {
        task: task.file.clone(),
        workspace: work.clone(),
        definition: None,
        defined_by: None,
        started_in: place.to_owned(),
        scripted: true,
    };
    let opening = RunOptions {
        store: FileStore::new(place.join("home"), jackline_host::clock::boot_number()),
        workspace: work,
        definition: None,
        engine: None,
        resumed: None,
        record: kept,
        deadline: None,
        waits_for_person: false,
        role: None,
        program: None,
        sandbox: Sandbox::default(),
        workers: Vec::new(),
        cancelled: Arc::new(AtomicBool::new(false)),
    };
    let report = jackline_supervisor::run(&task, opening, hear)?;
    match (report.stop, report.suspend_reason) {
        (Some(stop), _) => Ok(stop.to_string()),
        (None, reason) => {
            Err(format!("the run stopped early: {}", reason.unwrap_or_default()).into())
        }
    }
}

/// An engine that plays a script.
fn scripted_engine(script: ModelScript) -> EngineSpec {
    let (label, kind) = ("scripted".to_owned(), EngineKind::Script(script));
    EngineSpec { label, kind, when: Vec::new(), budget: None, window: Some(200_000) }
}

/// The steps that complete the task.
fn completing_steps() -> [ScriptStep; 2] {
    let args = json!({ "path": REQUIRED_FILE, "content": "done" });
    [ScriptStep::call("write_file", args), ScriptStep::say("It is written.")]
}
