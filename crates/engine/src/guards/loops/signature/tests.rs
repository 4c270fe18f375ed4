//! Which calls count as the same, and which only look alike.

use alloc::string::{String, ToString};

use serde_json::{Value, json};

use super::*;
use crate::definition::{DeclaredTool, Definition, ToolPaths};
use crate::proposal::ProposalSource;
use crate::session_location::SessionLocation;
use crate::wire::parse_line;

fn with<T>(tool: &str, args: &Value, cwd: &str, ask: impl Fn(&Proposal<'_>) -> T) -> T {
    let paths = ToolPaths { read: [String::from("/from")].into(), write: [].into() };
    let copy = DeclaredTool { paths, ..DeclaredTool::with_name("copy") };
    let definition = Definition { tools: [copy].into(), ..Definition::default() };
    let place =
        SessionLocation { workspace: Some("/project".into()), ..SessionLocation::default() };
    let event = json!({
        "session": "s", "event": "tool_proposed", "call": "c", "tool": tool, "args": args, "cwd": cwd,
    });
    let event = parse_line(event.to_string().as_bytes(), None).unwrap();
    let heard = ProposalSource::of(&definition, &event).unwrap();
    ask(&Proposal::of(&definition, &place, &heard))
}

fn signature(tool: &str, args: &Value, cwd: &str) -> Digest128 {
    with(tool, args, cwd, |proposal| call_signature(proposal, &LoopSettings::default(), None))
}

fn coarse(tool: &str, args: &Value) -> Option<CoarseSubject> {
    with(tool, args, "/project", coarse_subject)
}

fn line(text: &str) -> Option<CoarseSubject> {
    coarse("Bash", &json!({ "command": text }))
}

#[test]
fn the_spelling_of_a_path_does_not_change_the_call() {
    let read =
        |path: &str, cwd: &str| signature("Read", &json!({"file_path": path, "limit": 3}), cwd);
    let one = read("src/a.rs", "/project");
    assert_eq!(one, read("./src/a.rs", "/project"));
    assert_eq!(one, read("/project/src/a.rs", "/elsewhere"));
    assert_eq!(one, read("a.rs", "/project/src"));
    assert_ne!(one, read("src/b.rs", "/project"));
    assert_ne!(one, signature("Read", &json!({"file_path": "src/a.rs", "limit": 4}), "/project"));
    assert_ne!(one, signature("Write", &json!({"file_path": "src/a.rs", "limit": 3}), "/project"));
    let copy = |from: &str| signature("copy", &json!({"from": from, "to": "x"}), "/project");
    assert_eq!(copy("a"), copy("./a"));
    assert_ne!(copy("a"), copy("b"));
}

#[test]
fn all_sleeps_are_the_same_call() {
    let run = |line: &str, cwd: &str| signature("Bash", &json!({ "command": line }), cwd);
    let one = run("sleep 5", "/project");
    for line in
        ["sleep 6", "sleep 1m", "/bin/sleep 5", "sleep 1; sleep 2", "sleep 5 # for the build"]
    {
        assert_eq!(one, run(line, "/elsewhere"), "{line}");
    }
    for line in ["sleep 5 && make", "sleep 5 > a.txt", "sleep", "echo sleep 5", "sleep $(cat n)"] {
        let waits = with("Bash", &json!({ "command": line }), "/project", is_only_waiting);
        assert_eq!(waits, line == "sleep", "{line}");
    }
}

#[test]
fn the_same_command_line_in_another_directory_is_another_call() {
    let run = |cwd: &str| signature("Bash", &json!({"command": "make"}), cwd);
    assert_eq!(run("/project"), run("/project/."));
    assert_ne!(run("/project"), run("/project/sub"));
}

#[test]
fn comments_and_spaces_of_a_command_line_do_not_count() {
    let run = |line: &str, about: &str| {
        let args = json!({"command": line, "description": about, "timeout": about.len()});
        signature("Bash", &args, "/project")
    };
    let one = run("make check", "first");
    assert_eq!(one, signature("Bash", &json!({"command": "make check"}), "/project"));
    for line in [" make  check ", "make check # again", "make\tcheck\n"] {
        assert_eq!(one, run(line, "another attempt"), "{line:?}");
    }
    for line in ["make check#1", "make check; ls", "make\ncheck", "makecheck"] {
        assert_ne!(one, run(line, "first"), "{line:?}");
    }
    assert_ne!(run("echo 'a  b'", ""), run("echo 'a b'", ""));
    assert_ne!(run("cat <<E\na  b\nE", ""), run("cat <<E\na b\nE", ""));
    let with_stdin =
        |text: &str| signature("Bash", &json!({"command": "python3 -", "stdin": text}), "/project");
    assert_ne!(with_stdin("print(1)"), with_stdin("print(2)"));
}

#[test]
fn volatile_arguments_do_not_count() {
    let loops =
        LoopSettings { volatile: [String::from("/nonce")].into(), ..LoopSettings::default() };
    let of = |nonce: &str, q: &str| {
        let args = json!({"nonce": nonce, "q": q});
        with("ask", &args, "/project", |proposal| call_signature(proposal, &loops, None))
    };
    assert_eq!(of("1", "a"), of("2", "a"));
    assert_ne!(of("1", "a"), of("1", "b"));
}

#[test]
fn the_coarse_signature_depends_on_program_and_directory() {
    assert_eq!(line("pytest tests/unit/test_a.py"), line("pytest -x tests/other/test_b.py -k b"));
    assert_eq!(line("cd /project && cargo test one"), line("cd /project && cargo test two"));
    assert_eq!(line("sed -n '1,5p' a.py"), line("sed -n '6,9p' a.py"));
    assert_ne!(line("pytest tests/unit"), line("pytest docs/unit"));
    assert_ne!(line("cargo test"), line("cargo build"));
    assert_ne!(line("sed -n '1,5p' a.py"), line("sed -n '1,5p' b.py"));
    let shown = |text: &str| line(text).map(|subject| subject.shown);
    let curl = shown("curl -s https://example.org/a?b=c").unwrap();
    assert_eq!(curl, "Bash(curl https://example.org/*)");
    assert_eq!(shown("pytest -x tests/unit/a.py").unwrap(), "Bash(pytest tests/*)");
    assert_ne!(line("echo a > x.txt"), line("echo a > y.txt"));
}

#[test]
fn other_calls_have_the_coarse_signature_of_their_file_or_none() {
    let edit = |path: &str, new: &str| coarse("Edit", &json!({"file_path": path, "new": new}));
    assert_eq!(edit("foo.py", "a"), edit("foo.py", "b"));
    assert_ne!(edit("foo.py", "a"), edit("bar.py", "a"));
    assert_eq!(coarse("get_weather", &json!({"city": "Bern"})), None);
}

#[test]
fn a_call_is_shown_on_one_line() {
    let shown = |tool: &str, args: &Value| with(tool, args, "/project", format_call);
    assert_eq!(shown("Bash", &json!({"command": "pytest tests/unit"})), "Bash(pytest tests/unit)");
    assert_eq!(shown("Edit", &json!({"file_path": "/project/a.py"})), "Edit(a.py)");
    assert_eq!(shown("get_weather", &json!({"city": "Bern"})), r#"get_weather({"city":"Bern"})"#);
    assert!(shown("Bash", &json!({"command": "x".repeat(1000)})).len() < 200);
}

#[test]
fn results_with_the_same_text_and_status_are_equal() {
    let of = |status: &str, exit: Option<i64>, text: &str| {
        let event = json!({
            "session": "s", "event": "tool_finished", "call": "c", "status": status,
            "exit_code": exit, "result": text,
        });
        let event = parse_line(event.to_string().as_bytes(), None).unwrap();
        let result = crate::observe::observe(&event).result;
        let status = if status == "ok" { CallStatus::Ok } else { CallStatus::Error };
        outcome_signature(result.as_ref(), status, exit, false)
    };
    assert_eq!(of("ok", None, "took 1.5s"), of("ok", Some(0), "took 9.1s"));
    assert_ne!(of("ok", None, "x"), of("error", None, "x"));
    assert_ne!(of("error", Some(1), "x"), of("error", Some(2), "x"));
    assert_eq!(of("error", Some(1), "pid 1"), of("error", Some(1), "pid 2"));
}
