//! Tests of `jackline undo` after a client with hooks wrote files with its own tools.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::hook_support::{
    SESSION, bash_proposed, command_in_hook_environment, deny_answer, hook_answer, merge, payload,
};
use crate::support::{CliOutput, CliWorld, JACKLINE, RELEASED, run_with_input};

/// A proposed call of a file tool of the client.
fn file_call_proposed(world: &CliWorld, call: &str, tool: &str, input: &Value) -> Value {
    let extra = json!({"tool_name": tool, "tool_input": input, "tool_use_id": call});
    payload(world, "PreToolUse", extra)
}

/// The same call after it has finished.
fn file_call_finished(world: &CliWorld, call: &str, tool: &str, input: &Value) -> Value {
    let mut payload = file_call_proposed(world, call, tool, input);
    let response = json!({"filePath": input["file_path"], "type": "update"});
    merge(&mut payload, json!({"hook_event_name": "PostToolUse", "tool_response": response}));
    payload
}

/// Returns a call id that was not used before.
fn new_call_id() -> String {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    format!("toolu_{}", CALLS.fetch_add(1, Ordering::Relaxed))
}

/// Writes a file as the client does: the proposal, the directories, the file, and the result.
fn write_by_client(world: &CliWorld, path: &str, content: &str) {
    let input = json!({"file_path": world.workspace().join(path), "content": content});
    let call = new_call_id();
    assert_eq!(hook_answer(world, &file_call_proposed(world, &call, "Write", &input)), Value::Null);
    let path = world.workspace().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    hook_answer(world, &file_call_finished(world, &call, "Write", &input));
}

/// Edits a file as the client does.
fn edit_by_client(world: &CliWorld, call: &str, path: &str, old: &str, new: &str) {
    let input =
        json!({"file_path": world.workspace().join(path), "old_string": old, "new_string": new});
    assert_eq!(hook_answer(world, &file_call_proposed(world, call, "Edit", &input)), Value::Null);
    let path = world.workspace().join(path);
    let text = fs::read_to_string(&path).unwrap().replacen(old, new, 1);
    fs::write(&path, text).unwrap();
    hook_answer(world, &file_call_finished(world, call, "Edit", &input));
}

fn undo(world: &CliWorld, args: &[&str]) -> CliOutput {
    world.jackline(&[&["undo", SESSION], args].concat()).with_path_placeholders(world)
}

/// Returns the exit status and the report of `undo --json`.
fn undo_json(world: &CliWorld, args: &[&str]) -> (Option<i32>, Value) {
    let run = undo(world, &[&["--json"], args].concat());
    assert_eq!(run.stderr, "", "{run:?}");
    (run.code, run.stdout.parse().unwrap())
}

fn file_text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn changes_of_a_session_are_shown_and_then_undone_once() {
    let world = CliWorld::new("");
    let work = world.workspace();
    fs::write(work.join("a.txt"), "one\n").unwrap();
    fs::set_permissions(work.join("a.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    write_by_client(&world, "a.txt", "two\n");
    edit_by_client(&world, "e1", "a.txt", "two", "three");
    write_by_client(&world, "new/deep/b.txt", "made");
    fs::set_permissions(work.join("a.txt"), fs::Permissions::from_mode(0o640)).unwrap();

    let preview = undo(&world, &["--dry-run"]);
    let expected_preview = "\
would remove    new/deep/b.txt, which did not exist before
would remove    new/deep, which did not exist before
would remove    new, which did not exist before
would restore   a.txt
changes made by commands of the session are not undone
";
    assert_eq!(
        (preview.code, preview.stdout.as_str(), preview.stderr.as_str()),
        (Some(0), expected_preview, "")
    );
    assert_eq!(file_text(work.join("a.txt")), "three\n", "a preview changes nothing");

    let done = undo(&world, &[]);
    let expected = expected_preview
        .replace("would remove", "removed     ")
        .replace("would restore", "restored     ");
    assert_eq!((done.code, done.stdout, done.stderr.as_str()), (Some(0), expected, ""));
    assert_eq!(file_text(work.join("a.txt")), "one\n");
    let mode = fs::metadata(work.join("a.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(!work.join("new").exists());

    // Without a name it is the latest session of this workspace, as for other commands.
    let again = world.jackline(&["undo"]);
    let nothing_left = format!("nothing to undo in session `{SESSION}`\n");
    assert_eq!((again.code, again.stdout, again.stderr.as_str()), (Some(0), nothing_left, ""));
    // The session continues, and its new changes can be undone.
    write_by_client(&world, "a.txt", "four\n");
    let (code, report) = undo_json(&world, &[]);
    assert_eq!((code, &report["put_back"]), (Some(0), &json!(["a.txt"])));
    assert_eq!(file_text(work.join("a.txt")), "one\n");
    world.verify_and_replay(SESSION);
}

#[test]
fn later_changes_by_others_stay_and_are_named_with_the_saved_copy() {
    let world = CliWorld::new("");
    let work = world.workspace();
    for name in ["changed", "gone", "ours"] {
        fs::write(work.join(name), format!("{name} before")).unwrap();
        write_by_client(&world, name, "the agent's");
    }
    write_by_client(&world, "made/a", "the agent's");
    fs::write(work.join("changed"), "a person's").unwrap();
    fs::remove_file(work.join("gone")).unwrap();
    fs::write(work.join("made/b"), "a person's").unwrap();
    let (code, report) = undo_json(&world, &["--dry-run"]);
    assert_eq!((code, report["dry_run"].as_bool()), (Some(1), Some(true)));
    let (code, report) = undo_json(&world, &[]);
    assert_eq!(code, Some(1));
    assert_eq!(report["put_back"], json!(["ours"]));
    assert_eq!(report["taken_away"], json!(["made/a"]));
    let left_alone = report["left_alone"].as_array().unwrap();
    let reasons: Vec<_> = left_alone
        .iter()
        .map(|it| (it["path"].as_str().unwrap(), it["why"].as_str().unwrap()))
        .collect();
    assert_eq!(
        reasons,
        [
            ("made", "someone else has added files to it"),
            ("gone", "someone else has removed it since"),
            ("changed", "someone else has changed it since"),
        ]
    );
    assert_eq!(file_text(work.join("changed")), "a person's");
    assert!(!work.join("gone").exists());
    let copy = left_alone[1]["copy"]
        .as_str()
        .unwrap()
        .replace("ROOT", &world.root().display().to_string());
    assert_eq!(file_text(copy), "gone before");
    assert_eq!(left_alone[0]["copy"], Value::Null);
    // What was left alone can be undone later, for example on another branch.
    let (_, again) = undo_json(&world, &[]);
    assert_eq!((&again["put_back"], &again["taken_away"]), (&json!([]), &json!([])));
    assert_eq!(again["left_alone"].as_array().unwrap().len(), 3, "{again}");
    fs::write(work.join("changed"), "the agent's").unwrap();
    assert_eq!(undo_json(&world, &[]).1["put_back"], json!(["changed"]));
    assert_eq!(file_text(work.join("changed")), "changed before");
}

#[test]
fn undo_keeps_a_persons_edit_between_two_edits_of_the_agent() {
    let world = CliWorld::new("");
    let file = world.workspace().join("a.txt");
    fs::write(&file, "one two").unwrap();
    edit_by_client(&world, "e1", "a.txt", "one", "1");
    fs::write(&file, "1 two and a person's three").unwrap();
    edit_by_client(&world, "e2", "a.txt", "two", "2");
    assert_eq!(file_text(&file), "1 2 and a person's three");
    let preview = undo(&world, &["--dry-run"]).stdout;
    let first = world.session_directory(SESSION).join("undo/calls/0");
    let lines: Vec<&str> = preview.lines().collect();
    assert_eq!(lines[0], "would restore   a.txt, with a change that someone else made in between");
    assert!(lines[1].trim().starts_with("the original version is in ROOT/"), "{preview}");
    assert_eq!(file_text(first), "one two");
    let (code, report) = undo_json(&world, &[]);
    assert_eq!((code, &report["put_back"]), (Some(0), &json!(["a.txt"])));
    assert_eq!(file_text(&file), "1 two and a person's three");
}

#[test]
fn an_unfinished_call_is_undone_if_its_arguments_contain_its_change() {
    let world = CliWorld::new("");
    let work = world.workspace();
    for name in ["written", "edited", "untouched", "notebook"] {
        fs::write(work.join(name), "one").unwrap();
    }
    let path = |name: &str| work.join(name);
    let input = json!({"file_path": path("written"), "content": "two"});
    hook_answer(&world, &file_call_proposed(&world, "c1", "Write", &input));
    fs::write(path("written"), "two").unwrap();
    let input = json!({"file_path": path("edited"), "old_string": "one", "new_string": "two"});
    hook_answer(&world, &file_call_proposed(&world, "c2", "Edit", &input));
    fs::write(path("edited"), "two").unwrap();
    let input = json!({"file_path": path("untouched"), "content": "two"});
    hook_answer(&world, &file_call_proposed(&world, "c3", "Write", &input));
    let input = json!({"notebook_path": path("notebook"), "new_source": "two"});
    hook_answer(&world, &file_call_proposed(&world, "c4", "NotebookEdit", &input));
    fs::write(path("notebook"), "two").unwrap();
    let (code, report) = undo_json(&world, &[]);
    assert_eq!(code, Some(1));
    assert_eq!(report["put_back"], json!(["edited", "written"]));
    // The arguments do not show whether the agent wrote this file.
    assert_eq!(report["left_alone"][0]["path"], "notebook");
    assert_eq!(file_text(path("written")) + &file_text(path("edited")), "oneone");
}

#[test]
fn a_file_behind_a_link_is_restored_and_a_replaced_link_is_restored_as_a_link() {
    let world = CliWorld::new("");
    let work = world.workspace();
    fs::create_dir(work.join("real")).unwrap();
    fs::write(work.join("real/a"), "a before").unwrap();
    fs::write(work.join("real/b"), "b before").unwrap();
    symlink("real/a", work.join("follows")).unwrap();
    symlink("real/b", work.join("replaces")).unwrap();
    symlink("real", work.join("directory")).unwrap();
    write_by_client(&world, "follows", "through the link");
    let input = json!({"file_path": work.join("replaces"), "content": "a file now"});
    hook_answer(&world, &file_call_proposed(&world, "c2", "Write", &input));
    fs::remove_file(work.join("replaces")).unwrap();
    fs::write(work.join("replaces"), "a file now").unwrap();
    hook_answer(&world, &file_call_finished(&world, "c2", "Write", &input));
    write_by_client(&world, "directory/new", "made");
    let (code, report) = undo_json(&world, &[]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["put_back"], json!(["replaces", "real/a"]));
    assert_eq!(report["taken_away"], json!(["real/new"]));
    assert_eq!(fs::read_link(work.join("replaces")).unwrap(), Path::new("real/b"));
    assert_eq!(fs::read_link(work.join("follows")).unwrap(), Path::new("real/a"));
    assert_eq!(
        file_text(work.join("real/a")) + &file_text(work.join("real/b")),
        "a beforeb before"
    );
}

#[test]
fn a_file_over_the_size_limit_is_named_and_a_denied_call_saves_nothing() {
    let world = CliWorld::new(
        "rules: [ { name: r, tool: write, when: 'path == \"no.txt\"', deny: No., \
         examples: { deny: [{ path: no.txt }] } } ]",
    );
    let work = world.workspace();
    fs::File::create(work.join("large")).unwrap().set_len((16 << 20) + 1).unwrap();
    write_by_client(&world, "large", "small now");
    write_by_client(&world, "large", "smaller");
    let input = json!({"file_path": work.join("no.txt"), "content": "x"});
    let reason = "No. (rule `r`, at `no.txt`)";
    assert_eq!(
        hook_answer(&world, &file_call_proposed(&world, "c9", "Write", &input)),
        deny_answer(reason)
    );
    let (code, report) = undo_json(&world, &[]);
    assert_eq!((code, &report["put_back"]), (Some(1), &json!([])));
    assert_eq!(report["not_kept"], json!(["`WORKSPACE/large`: it is larger than 16 MiB"]));
    let log = file_text(world.session_directory(SESSION).join("undo/calls/log"));
    assert!(!log.contains("no.txt"), "{log}");
}

#[test]
fn a_broken_undo_store_changes_no_answer_and_is_reported() {
    let world = CliWorld::new("");
    let file = world.workspace().join("a.txt");
    fs::write(&file, "one").unwrap();
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c1", "true")), Value::Null);
    fs::write(world.session_directory(SESSION).join("undo"), "in the way").unwrap();
    write_by_client(&world, "a.txt", "two");
    let run = undo(&world, &[]);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.stdout, format!("nothing to undo in session `{SESSION}`\n"));
    assert!(
        run.stderr.contains(
            "not saved, so not undone: the change of `WORKSPACE/a.txt` can't be undone: "
        ),
        "{run:?}"
    );
    assert_eq!(file_text(&file), "two");
    world.verify_and_replay(SESSION);
}

#[test]
fn an_incomplete_line_in_the_undo_log_damages_no_other_line() {
    let world = CliWorld::new("");
    fs::write(world.workspace().join("a"), "one").unwrap();
    fs::write(world.workspace().join("b"), "one").unwrap();
    write_by_client(&world, "a", "two");
    let log = world.session_directory(SESSION).join("undo/calls/log");
    fs::write(&log, file_text(&log) + "{\"before\":{\"path\":\"x").unwrap();
    write_by_client(&world, "b", "two");
    let (code, report) = undo_json(&world, &[]);
    assert_eq!(report["put_back"], json!(["b", "a"]));
    assert_eq!(
        (code, &report["not_kept"]),
        (Some(1), &json!(["1 lines of the undo log can't be read"]))
    );
}

#[test]
fn a_moved_workspace_or_an_unknown_session_is_not_undone() {
    let world = CliWorld::new("");
    fs::write(world.workspace().join("a"), "one").unwrap();
    write_by_client(&world, "a", "two");
    let moved = world.root().join("elsewhere");
    fs::rename(world.workspace(), &moved).unwrap();
    fs::create_dir(world.root().join("here")).unwrap();
    let mut person = world.person_command();
    person.current_dir(world.root().join("here")).args(["undo", SESSION]);
    let run = run_with_input(&mut person, b"").with_path_placeholders(&world);
    assert_eq!(run.code, Some(1));
    let error = "the workspace `WORKSPACE` no longer exists; nothing was undone; move it back and try again";
    assert!(run.stderr.contains(error), "{run:?}");
    assert_eq!(file_text(moved.join("a")), "two");
    fs::rename(&moved, world.workspace()).unwrap();
    assert_eq!(undo_json(&world, &[]).0, Some(0));
    assert_eq!(file_text(world.workspace().join("a")), "one");

    let run = world.jackline(&["undo", "unknown"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("no session `unknown`"), "{run:?}");
    let run = undo(&world, &["7"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("has no attempt `7`; it has no attempts"), "{run:?}");
}

#[test]
fn one_attempt_is_undone_or_all_in_reverse_order() {
    use jackline_workspace::{Workspace, WorkspaceLimits};
    let world = CliWorld::new("");
    fs::write(world.workspace().join("a"), "zero").unwrap();
    assert_eq!(hook_answer(&world, &bash_proposed(&world, "c1", "true")), Value::Null);
    let workspace = Workspace::open(world.workspace(), WorkspaceLimits::default()).unwrap();
    for attempt in ["9", "10"] {
        workspace
            .begin_attempt(&world.session_directory(SESSION).join("undo").join(attempt))
            .unwrap();
        let args = json!({"path": "a", "content": format!("of attempt {attempt}")});
        workspace.call("write_file", &args).unwrap();
        workspace.commit_attempt().unwrap();
    }
    let run = undo(&world, &["8"]);
    assert!(run.stderr.contains("has no attempt `8`; its attempts: `10`, `9`"), "{run:?}");
    let (code, report) = undo_json(&world, &["10"]);
    assert_eq!((code, &report["put_back"]), (Some(0), &json!(["a"])));
    assert_eq!(file_text(world.workspace().join("a")), "of attempt 9");
    assert_eq!(undo_json(&world, &[]).0, Some(0));
    assert_eq!(file_text(world.workspace().join("a")), "zero");
}

#[test]
fn an_agent_may_preview_but_not_undo() {
    let world = CliWorld::new("");
    fs::write(world.workspace().join("a"), "one").unwrap();
    write_by_client(&world, "a", "two");
    let agent = |args: &str| {
        let line = format!("{RELEASED} undo {SESSION} {args}; true");
        let mut shell = command_in_hook_environment(&world, "sh", &["-c", &line]);
        shell.env("CLAUDECODE", "1");
        run_with_input(&mut shell, b"")
    };
    let run = agent("");
    assert!(run.stderr.contains("only a person may run `jackline undo`"), "{run:?}");
    assert_eq!(file_text(world.workspace().join("a")), "two");
    assert!(agent("--dry-run").stdout.contains("would restore"));
}

#[test]
fn with_a_read_only_state_home_nothing_is_undone_and_an_error_is_reported() {
    let world = CliWorld::new("");
    let file = world.workspace().join("a");
    fs::write(&file, "one").unwrap();
    write_by_client(&world, "a", "two");
    let home = world.home().display().to_string();
    let line = format!(
        "mount --bind {home} {home} && mount -o remount,bind,ro {home} && {JACKLINE} undo {SESSION}"
    );
    let mut shell = world.isolated_command("/usr/bin/unshare");
    shell.args(["--user", "--map-root-user", "--mount", "sh", "-c", &line]);
    let run = run_with_input(&mut shell, b"").with_path_placeholders(&world);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("can't undo the changes of session"), "{run:?}");
    assert!(run.stderr.contains("Read-only file system"), "{run:?}");
    assert_eq!(file_text(&file), "two");
    assert_eq!(undo_json(&world, &[]).0, Some(0));
    assert_eq!(file_text(&file), "one");
}
