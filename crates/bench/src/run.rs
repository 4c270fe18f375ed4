//! What a supervised run costs, how soon it ends, and how soon another model takes over.

mod overhead;
mod primary;
mod stop;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jackline_journal::FileStore;
use jackline_model::scripted::{Script, Step};
use jackline_sandbox_host::Sandbox;
use jackline_supervisor::{Acts, EngineKind, EngineSpec, Kept, Opening, RunTask, Told};
use serde_json::json;

use crate::Failure;
use crate::report::Report;

/// What every run has to leave behind.
const WANTED: &str = "report.md";

pub(crate) fn run(jackline: &Path, report: &mut Report) -> Result<(), Failure> {
    overhead::run(report)?;
    stop::run(jackline, report)?;
    primary::run(report)
}

/// A run in this process, with everything below one directory; its stop code.
fn drive(
    place: &Path,
    definition: &str,
    engine: EngineSpec,
    scripts: &[(&str, Script)],
    hear: &mut dyn FnMut(&Told),
) -> Result<String, Failure> {
    let (work, defined) = (place.join("work"), place.join("jackline.yaml"));
    fs::create_dir_all(&work)?;
    fs::write(&defined, format!("version: 1\nname: bench/run\n{definition}"))?;
    let task = RunTask {
        name: "bench".to_owned(),
        file: place.join("task.yaml"),
        prompt: format!("write {WANTED}"),
        definition: Some(defined),
        copy: None,
        acts: Acts::Tools,
        tools: Vec::new(),
        engine: Some(engine),
        scripts: scripts.iter().map(|(name, it)| ((*name).to_owned(), it.clone())).collect(),
        sensitive: false,
        role: None,
    };
    let kept = Kept {
        task: task.file.clone(),
        workspace: work.clone(),
        definition: None,
        defined_by: None,
        started_in: place.to_owned(),
        scripted: true,
    };
    let opening = Opening {
        store: FileStore::new(place.join("home"), jackline_host::clock::boot_number()),
        workspace: work,
        definition: None,
        engine: None,
        resumed: None,
        kept,
        deadline: None,
        waits: false,
        role: None,
        program: None,
        sandbox: Sandbox::default(),
        workers: Vec::new(),
        cancelled: Arc::new(AtomicBool::new(false)),
    };
    let report = jackline_supervisor::run(&task, opening, hear)?;
    match (report.stop, report.left) {
        (Some(stop), _) => Ok(stop.to_string()),
        (None, left) => Err(format!("the run was left: {}", left.unwrap_or_default()).into()),
    }
}

/// A model that plays a script.
fn plays(script: Script) -> EngineSpec {
    let (label, kind) = ("scripted".to_owned(), EngineKind::Script(script));
    EngineSpec { label, kind, when: Vec::new(), budget: None, window: Some(200_000) }
}

/// Does what is asked for.
fn works() -> [Step; 2] {
    let args = json!({ "path": WANTED, "content": "done" });
    [Step::call("write_file", args), Step::say("It is written.")]
}
