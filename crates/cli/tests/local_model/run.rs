//! `jackline run` with a model of this machine.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::world::gguf;

const JACKLINE: &str = env!("CARGO_BIN_EXE_jackline");

/// A task for it, within little time.
fn run(directory: &TempDir, model: &str) -> Output {
    let root = directory.path();
    let workspace = root.join("workspace");
    fs::create_dir_all(&workspace).unwrap();
    let definition =
        "version: 1\nname: t/local\nlimits: { steps: 4, iterations: 2, output_tokens: 600 }\n";
    fs::write(root.join("jackline.yaml"), definition).unwrap();
    let task = format!(
        "prompt: Say hello.\ndefinition: jackline.yaml\ntools: [list_dir]\nmodel: {model}\n"
    );
    fs::write(root.join("task.yaml"), task).unwrap();
    let mut command = Command::new(JACKLINE);
    command.args(["run", "--json", "--no-wait"]).arg(root.join("task.yaml"));
    command.current_dir(&workspace).env("JACKLINE_HOME", root.join("home"));
    command.env_remove("JACKLINE_MODEL").output().unwrap()
}

#[test]
fn a_run_with_a_model_of_this_machine_ends_with_a_stop_code() {
    let directory = tempfile::tempdir().unwrap();
    let path = gguf();
    let model = format!("{{ provider: local, name: \"{}\", window: 1024 }}", path.display());
    let output = run(&directory, &model);
    let said = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = events.last().unwrap_or_else(|| panic!("{:?}", output.stderr));
    println!("{last}");
    assert_eq!(last["event"], "ended", "{said}");
    assert!(last["stop"]["code"].is_string(), "{last}");
    let asked = events.iter().filter(|event| event["event"] == "asking").count();
    assert!(asked > 0, "{said}");
    let replay = Command::new(JACKLINE)
        .args(["replay", "--all"])
        .env("JACKLINE_HOME", directory.path().join("home"))
        .output()
        .unwrap();
    assert!(replay.status.success(), "{replay:?}");
}

#[test]
fn a_model_that_is_not_there_is_said_before_anything_is_done() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(&directory, "local:nowhere.gguf");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("nowhere.gguf` can't be read: No such file"), "{said}");
}
