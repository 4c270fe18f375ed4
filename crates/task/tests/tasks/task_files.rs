//! Task files: loaded, or all errors at once.

use std::fs;
use std::path::Path;

use jackline_task::{ArtifactKind, ScriptedAnswer, TaskModel, TaskScript, load_task};
use serde_json::json;

fn write(directory: &Path, name: &str, text: &str) {
    fs::write(directory.join(name), text).unwrap();
}

fn wrong(text: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "task.yaml", text);
    write(directory.path(), "script.yaml", "steps: [x]");
    let error = load_task(directory.path()).unwrap_err().to_string();
    let file = directory.path().join("task.yaml").display().to_string();
    error.lines().map(|line| line.replace(&file, "")).collect()
}

#[test]
fn a_task_is_read_with_its_script_and_its_delegates() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("films");
    fs::create_dir(&directory).unwrap();
    write(&directory, "one.py", "ok(1)\n");
    write(
        &directory,
        "script.yaml",
        "steps:\n  - |\n    ok(0)\n  - { file: one.py }\n  - { timeout: true }\n  - { status: 529 }\n  - { text: '' }\nrepeat: true\n",
    );
    write(
        &directory,
        "task.yaml",
        "prompt: find films\ntools: [read_file]\nmodel: { script: script.yaml }\n\
         context: { year: 1984 }\nartifact: program\ndelegates:\n  scout:\n    \
         description: looks\n    prompt: look\n    external: true\n    artifact: plan\n",
    );
    let task = load_task(&directory).unwrap();
    assert_eq!((task.name.as_str(), task.prompt.as_str()), ("films", "find films"));
    assert_eq!(task.context["year"], json!(1984));
    let text = |text: &str| ScriptedAnswer::Text(text.to_owned());
    let answers = vec![
        text("ok(0)\n"),
        text("ok(1)\n"),
        ScriptedAnswer::Timeout,
        ScriptedAnswer::Status(529),
        text(""),
    ];
    assert_eq!(task.model, TaskModel::Script(TaskScript { answers, repeats: true }));
    let scout = &task.delegates["scout"];
    assert!(scout.external && scout.task.artifact == ArtifactKind::Plan);
    assert_eq!(scout.task.model, TaskModel::Inherited);
    assert_eq!(scout.task.name, "films.scout");
}

#[test]
fn all_errors_are_reported_at_once_with_their_positions() {
    let found = wrong(
        "promt: x\ntools: [reed_file, read_file, read_file]\nmodel: { url: 'http://models.example', nam: x }\n\
         artifact: poem\ncontext: [1]\ndelegates:\n  a: { external: 3 }\n",
    );
    assert_eq!(
        found,
        [
            ":1:1: a task needs a `prompt`",
            ":1:1: unknown key `promt` in a task; did you mean `prompt`?",
            ":2:9: there is no tool `reed_file`; did you mean `read_file`?",
            ":2:31: `read_file` occurs twice",
            ":3:8: a model with a `url` needs a `name`",
            ":3:15: `url` is not encrypted and not on this machine; use https://",
            ":3:40: unknown key `nam` in `model`; did you mean `name`?",
            ":4:11: `artifact` can't be `poem`; use `program` or `plan`",
            ":5:10: `context` must be a mapping, not a list",
            ":7:6: a delegate needs a `prompt`",
            ":7:18: `external` must be true or false, not a number",
        ]
    );
    assert_eq!(
        wrong("prompt: x"),
        [
            ":1:1: a task needs a `model`; add `model: { script: FILE }` or `model: { url: …, name: … }`"
        ]
    );
    assert!(wrong("prompt: [")[0].contains("not valid YAML"));
}

#[test]
fn a_missing_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let error = load_task(&directory.path().join("nowhere")).unwrap_err().to_string();
    assert!(error.starts_with("can't read `"), "{error}");
    write(directory.path(), "task.yaml", "prompt: x\nmodel: { script: gone.yaml }");
    let error = load_task(directory.path()).unwrap_err().to_string();
    assert!(error.contains("gone.yaml"), "{error}");
}
