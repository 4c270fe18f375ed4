//! Tests of `jackline run` with a local model.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::model_requests::model_file;

const JACKLINE: &str = env!("CARGO_BIN_EXE_jackline");

/// Runs a task with low limits.
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
fn a_run_with_a_local_model_ends_with_a_stop_code() {
    let directory = tempfile::tempdir().unwrap();
    let path = model_file();
    let model = format!("{{ provider: local, name: \"{}\", window: 1024 }}", path.display());
    let output = run(&directory, &model);
    let output_text = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> =
        output_text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = events.last().unwrap_or_else(|| panic!("{:?}", output.stderr));
    println!("{last}");
    assert_eq!(last["event"], "ended", "{output_text}");
    assert!(last["stop"]["code"].is_string(), "{last}");
    let request_count = events.iter().filter(|event| event["event"] == "asking").count();
    assert!(request_count > 0, "{output_text}");
    let replay = Command::new(JACKLINE)
        .args(["replay", "--all"])
        .env("JACKLINE_HOME", directory.path().join("home"))
        .output()
        .unwrap();
    assert!(replay.status.success(), "{replay:?}");
}

#[test]
fn a_missing_model_file_is_reported_before_anything_runs() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(&directory, "local:nowhere.gguf");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("nowhere.gguf` can't be read: No such file"), "{errors}");
}
