//! `jackline undo` after a hooked client wrote with its own tools.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::hook_support::{SESSION, bash, deny, hear, merge, payload, prepared};
use crate::support::{JACKLINE, Run, World, feed};

/// A call of one of the client's tools for files, about to run.
fn proposed(world: &World, call: &str, tool: &str, input: &Value) -> Value {
    let beyond = json!({"tool_name": tool, "tool_input": input, "tool_use_id": call});
    payload(world, "PreToolUse", beyond)
}

/// The same when it has run.
fn finished(world: &World, call: &str, tool: &str, input: &Value) -> Value {
    let mut payload = proposed(world, call, tool, input);
    let response = json!({"filePath": input["file_path"], "type": "update"});
    merge(&mut payload, json!({"hook_event_name": "PostToolUse", "tool_response": response}));
    payload
}

/// An id that no call had before.
fn call() -> String {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    format!("toolu_{}", CALLS.fetch_add(1, Ordering::Relaxed))
}

/// The client writes a file: it asks, makes directories, writes, and tells.
fn write(world: &World, path: &str, content: &str) {
    let input = json!({"file_path": world.work().join(path), "content": content});
    let call = call();
    assert_eq!(hear(world, &proposed(world, &call, "Write", &input)), Value::Null);
    let path = world.work().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    hear(world, &finished(world, &call, "Write", &input));
}

/// The client edits a file.
fn edit(world: &World, call: &str, path: &str, old: &str, new: &str) {
    let input = json!({"file_path": world.work().join(path), "old_string": old, "new_string": new});
    assert_eq!(hear(world, &proposed(world, call, "Edit", &input)), Value::Null);
    let path = world.work().join(path);
    let text = fs::read_to_string(&path).unwrap().replacen(old, new, 1);
    fs::write(&path, text).unwrap();
    hear(world, &finished(world, call, "Edit", &input));
}

fn undo(world: &World, words: &[&str]) -> Run {
    world.jackline(&[&["undo", SESSION], words].concat()).anywhere(world)
}

/// What `undo --json` says, and how it ends.
fn told(world: &World, words: &[&str]) -> (Option<i32>, Value) {
    let run = undo(world, &[&["--json"], words].concat());
    assert_eq!(run.stderr, "", "{run:?}");
    (run.code, run.stdout.parse().unwrap())
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

fn nothing(report: &Value) -> bool {
    let empty = |key: &str| report[key].as_array().unwrap().is_empty();
    ["put_back", "taken_away", "left_alone", "failed", "not_kept"].into_iter().all(empty)
}

#[test]
fn what_a_session_wrote_is_shown_then_undone_once() {
    let world = World::new("");
    let work = world.work();
    fs::write(work.join("a.txt"), "one\n").unwrap();
    fs::set_permissions(work.join("a.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    write(&world, "a.txt", "two\n");
    edit(&world, "e1", "a.txt", "two", "three");
    write(&world, "new/deep/b.txt", "made");
    fs::set_permissions(work.join("a.txt"), fs::Permissions::from_mode(0o640)).unwrap();

    let shown = undo(&world, &["--dry-run"]);
    let would = "\
would take away new/deep/b.txt, which was not there
would take away new/deep, which was not there
would take away new, which was not there
would put back  a.txt
what commands of the session did is not undone
";
    assert_eq!((shown.code, shown.stdout.as_str(), shown.stderr.as_str()), (Some(0), would, ""));
    assert_eq!(text(work.join("a.txt")), "three\n", "only shown");

    let done = undo(&world, &[]);
    let did = would
        .replace("would take away", "taken away     ")
        .replace("would put back ", "put back       ");
    assert_eq!((done.code, done.stdout, done.stderr.as_str()), (Some(0), did, ""));
    assert_eq!(text(work.join("a.txt")), "one\n");
    let mode = fs::metadata(work.join("a.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert!(!work.join("new").exists());

    let again = undo(&world, &[]);
    let nothing_left = format!("nothing is left to undo in session `{SESSION}`\n");
    assert_eq!((again.code, again.stdout, again.stderr.as_str()), (Some(0), nothing_left, ""));
    // The session goes on, and so does what can be undone.
    write(&world, "a.txt", "four\n");
    let (code, report) = told(&world, &[]);
    assert_eq!((code, &report["put_back"]), (Some(0), &json!(["a.txt"])));
    assert_eq!(text(work.join("a.txt")), "one\n");
    world.prove(SESSION);
}

#[test]
fn what_somebody_else_did_since_stays_and_is_named_with_the_copy() {
    let world = World::new("");
    let work = world.work();
    for name in ["changed", "gone", "ours"] {
        fs::write(work.join(name), format!("{name} before")).unwrap();
        write(&world, name, "the agent's");
    }
    write(&world, "made/a", "the agent's");
    fs::write(work.join("changed"), "a person's").unwrap();
    fs::remove_file(work.join("gone")).unwrap();
    fs::write(work.join("made/b"), "a person's").unwrap();
    let (code, report) = told(&world, &["--dry-run"]);
    assert_eq!((code, report["dry_run"].as_bool()), (Some(1), Some(true)));
    let (code, report) = told(&world, &[]);
    assert_eq!(code, Some(1));
    assert_eq!(report["put_back"], json!(["ours"]));
    assert_eq!(report["taken_away"], json!(["made/a"]));
    let left = report["left_alone"].as_array().unwrap();
    let whys: Vec<_> =
        left.iter().map(|it| (it["path"].as_str().unwrap(), it["why"].as_str().unwrap())).collect();
    assert_eq!(
        whys,
        [
            ("made", "somebody else has put something into it"),
            ("gone", "somebody else has removed it since"),
            ("changed", "somebody else has changed it since"),
        ]
    );
    assert_eq!(text(work.join("changed")), "a person's");
    assert!(!work.join("gone").exists());
    let copy =
        left[1]["copy"].as_str().unwrap().replace("ROOT", &world.root().display().to_string());
    assert_eq!(text(copy), "gone before");
    assert_eq!(left[0]["copy"], Value::Null);
    assert!(nothing(&told(&world, &[]).1), "done with");
}

#[test]
fn a_persons_edit_between_two_of_the_agent_is_what_undo_gives_back() {
    let world = World::new("");
    let file = world.work().join("a.txt");
    fs::write(&file, "one two").unwrap();
    edit(&world, "e1", "a.txt", "one", "1");
    fs::write(&file, "1 two and a person's three").unwrap();
    edit(&world, "e2", "a.txt", "two", "2");
    assert_eq!(text(&file), "1 2 and a person's three");
    let shown = undo(&world, &["--dry-run"]).stdout;
    let first = world.directory(SESSION).join("undo/calls/0");
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[0],
        "would put back  a.txt, as it was after somebody else's change in between"
    );
    assert!(lines[1].trim().starts_with("what it was at first lies in ROOT/"), "{shown}");
    assert_eq!(text(first), "one two");
    let (code, report) = told(&world, &[]);
    assert_eq!((code, &report["put_back"]), (Some(0), &json!(["a.txt"])));
    assert_eq!(text(&file), "1 two and a person's three");
}

#[test]
fn a_call_of_which_nobody_heard_again_is_undone_where_its_arguments_say_what_it_wrote() {
    let world = World::new("");
    let work = world.work();
    for name in ["written", "edited", "untouched", "notebook"] {
        fs::write(work.join(name), "one").unwrap();
    }
    let path = |name: &str| work.join(name);
    let input = json!({"file_path": path("written"), "content": "two"});
    hear(&world, &proposed(&world, "c1", "Write", &input));
    fs::write(path("written"), "two").unwrap();
    let input = json!({"file_path": path("edited"), "old_string": "one", "new_string": "two"});
    hear(&world, &proposed(&world, "c2", "Edit", &input));
    fs::write(path("edited"), "two").unwrap();
    let input = json!({"file_path": path("untouched"), "content": "two"});
    hear(&world, &proposed(&world, "c3", "Write", &input));
    let input = json!({"notebook_path": path("notebook"), "new_source": "two"});
    hear(&world, &proposed(&world, "c4", "NotebookEdit", &input));
    fs::write(path("notebook"), "two").unwrap();
    let (code, report) = told(&world, &[]);
    assert_eq!(code, Some(1));
    assert_eq!(report["put_back"], json!(["edited", "written"]));
    // Whether the agent wrote that, nobody can say.
    assert_eq!(report["left_alone"][0]["path"], "notebook");
    assert_eq!(text(path("written")) + &text(path("edited")), "oneone");
}

#[test]
fn through_a_link_the_file_is_given_back_and_instead_of_it_the_link() {
    let world = World::new("");
    let work = world.work();
    fs::create_dir(work.join("real")).unwrap();
    fs::write(work.join("real/a"), "a before").unwrap();
    fs::write(work.join("real/b"), "b before").unwrap();
    symlink("real/a", work.join("follows")).unwrap();
    symlink("real/b", work.join("replaces")).unwrap();
    symlink("real", work.join("directory")).unwrap();
    write(&world, "follows", "through the link");
    let input = json!({"file_path": work.join("replaces"), "content": "a file now"});
    hear(&world, &proposed(&world, "c2", "Write", &input));
    fs::remove_file(work.join("replaces")).unwrap();
    fs::write(work.join("replaces"), "a file now").unwrap();
    hear(&world, &finished(&world, "c2", "Write", &input));
    write(&world, "directory/new", "made");
    let (code, report) = told(&world, &[]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["put_back"], json!(["replaces", "real/a"]));
    assert_eq!(report["taken_away"], json!(["real/new"]));
    assert_eq!(fs::read_link(work.join("replaces")).unwrap(), Path::new("real/b"));
    assert_eq!(fs::read_link(work.join("follows")).unwrap(), Path::new("real/a"));
    assert_eq!(text(work.join("real/a")) + &text(work.join("real/b")), "a beforeb before");
}

#[test]
fn what_is_too_large_is_named_and_a_denied_call_leaves_nothing() {
    let world = World::new(
        "rules: [ { name: r, tool: write, when: 'path == \"no.txt\"', deny: No., \
         examples: { deny: [{ path: no.txt }] } } ]",
    );
    let work = world.work();
    fs::File::create(work.join("large")).unwrap().set_len((16 << 20) + 1).unwrap();
    write(&world, "large", "small now");
    write(&world, "large", "smaller");
    let input = json!({"file_path": work.join("no.txt"), "content": "x"});
    let reason = "No. (rule `r`, at `no.txt`)";
    assert_eq!(hear(&world, &proposed(&world, "c9", "Write", &input)), deny(reason));
    let (code, report) = told(&world, &[]);
    assert_eq!((code, &report["put_back"]), (Some(1), &json!([])));
    assert_eq!(report["not_kept"], json!(["`WORKSPACE/large`: it has more than 16 MiB"]));
    let log = text(world.directory(SESSION).join("undo/calls/log"));
    assert!(!log.contains("no.txt"), "{log}");
}

#[test]
fn a_broken_store_of_copies_changes_no_answer_and_is_said() {
    let world = World::new("");
    let file = world.work().join("a.txt");
    fs::write(&file, "one").unwrap();
    assert_eq!(hear(&world, &bash(&world, "c1", "true")), Value::Null);
    fs::write(world.directory(SESSION).join("undo"), "in the way").unwrap();
    write(&world, "a.txt", "two");
    let run = undo(&world, &[]);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.stdout, format!("nothing is left to undo in session `{SESSION}`\n"));
    assert!(
        run.stderr.contains("not kept, so not undone: `WORKSPACE/a.txt` can't be undone: "),
        "{run:?}"
    );
    assert_eq!(text(&file), "two");
    world.prove(SESSION);
}

#[test]
fn a_line_that_was_cut_off_spoils_no_other() {
    let world = World::new("");
    fs::write(world.work().join("a"), "one").unwrap();
    fs::write(world.work().join("b"), "one").unwrap();
    write(&world, "a", "two");
    let log = world.directory(SESSION).join("undo/calls/log");
    fs::write(&log, text(&log) + "{\"before\":{\"path\":\"x").unwrap();
    write(&world, "b", "two");
    let (code, report) = told(&world, &[]);
    assert_eq!(report["put_back"], json!(["b", "a"]));
    assert_eq!(
        (code, &report["not_kept"]),
        (Some(1), &json!(["1 lines of the log can't be read"]))
    );
}

#[test]
fn nothing_is_undone_where_the_workspace_was_moved_or_nobody_knows_the_session() {
    let world = World::new("");
    fs::write(world.work().join("a"), "one").unwrap();
    write(&world, "a", "two");
    let moved = world.root().join("elsewhere");
    fs::rename(world.work(), &moved).unwrap();
    fs::create_dir(world.root().join("here")).unwrap();
    let mut person = world.person();
    person.current_dir(world.root().join("here")).args(["undo", SESSION]);
    let run = feed(&mut person, b"").anywhere(&world);
    assert_eq!(run.code, Some(1));
    let said = "the workspace `WORKSPACE` is not there any more; nothing was undone. Move it back, and try again";
    assert!(run.stderr.contains(said), "{run:?}");
    assert_eq!(text(moved.join("a")), "two");
    fs::rename(&moved, world.work()).unwrap();
    assert_eq!(told(&world, &[]).0, Some(0));
    assert_eq!(text(world.work().join("a")), "one");

    let run = world.jackline(&["undo", "nobody"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("no session `nobody`"), "{run:?}");
    let run = undo(&world, &["7"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("has no attempt `7`; it has none"), "{run:?}");
}

#[test]
fn one_attempt_is_undone_or_all_with_the_last_one_first() {
    use jackline_workspace::{Limits, Workspace};
    let world = World::new("");
    fs::write(world.work().join("a"), "zero").unwrap();
    assert_eq!(hear(&world, &bash(&world, "c1", "true")), Value::Null);
    let workspace = Workspace::open(world.work(), Limits::default()).unwrap();
    for attempt in ["9", "10"] {
        workspace.begin(&world.directory(SESSION).join("undo").join(attempt)).unwrap();
        let args = json!({"path": "a", "content": format!("of attempt {attempt}")});
        workspace.call("write_file", &args).unwrap();
        workspace.commit().unwrap();
    }
    let run = undo(&world, &["8"]);
    assert!(run.stderr.contains("has no attempt `8`; `10`, `9`"), "{run:?}");
    let (code, report) = told(&world, &["10"]);
    assert_eq!((code, &report["put_back"]), (Some(0), &json!(["a"])));
    assert_eq!(text(world.work().join("a")), "of attempt 9");
    assert_eq!(told(&world, &[]).0, Some(0));
    assert_eq!(text(world.work().join("a")), "zero");
}

#[test]
fn an_agent_may_look_and_not_undo() {
    let world = World::new("");
    fs::write(world.work().join("a"), "one").unwrap();
    write(&world, "a", "two");
    let agent = |words: &str| {
        let line = format!("{JACKLINE} undo {SESSION} {words}; true");
        let mut shell = prepared(&world, "sh", &["-c", &line]);
        shell.env("CLAUDECODE", "1");
        feed(&mut shell, b"")
    };
    let run = agent("");
    assert!(run.stderr.contains("only a person may `jackline undo`"), "{run:?}");
    assert_eq!(text(world.work().join("a")), "two");
    assert!(agent("--dry-run").stdout.contains("would put back"));
}

#[test]
fn a_read_only_state_home_undoes_nothing_and_says_so() {
    let world = World::new("");
    let file = world.work().join("a");
    fs::write(&file, "one").unwrap();
    write(&world, "a", "two");
    let home = world.home().display().to_string();
    let line = format!(
        "mount --bind {home} {home} && mount -o remount,bind,ro {home} && {JACKLINE} undo {SESSION}"
    );
    let mut shell = world.apart("/usr/bin/unshare");
    shell.args(["--user", "--map-root-user", "--mount", "sh", "-c", &line]);
    let run = feed(&mut shell, b"").anywhere(&world);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("can't be undone: opening"), "{run:?}");
    assert!(run.stderr.contains("Read-only file system"), "{run:?}");
    assert_eq!(text(&file), "two");
    assert_eq!(told(&world, &[]).0, Some(0));
    assert_eq!(text(&file), "one");
}
