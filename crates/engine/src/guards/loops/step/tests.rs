//! Calls that are the same, and calls that only look it.

use alloc::string::{String, ToString};

use serde_json::{Value, json};

use super::*;
use crate::definition::{Definition, Paths, Tool};
use crate::place::Place;
use crate::proposal::Heard;
use crate::wire::parse_line;

fn with<T>(tool: &str, args: &Value, cwd: &str, ask: impl Fn(&Proposal<'_>) -> T) -> T {
    let paths = Paths { read: [String::from("/from")].into(), write: [].into() };
    let copy = Tool { paths, ..Tool::named("copy") };
    let definition = Definition { tools: [copy].into(), ..Definition::default() };
    let place = Place { workspace: Some("/project".into()), ..Place::default() };
    let event = json!({
        "session": "s", "event": "tool_proposed", "call": "c", "tool": tool, "args": args, "cwd": cwd,
    });
    let event = parse_line(event.to_string().as_bytes(), None).unwrap();
    let heard = Heard::of(&definition, &event).unwrap();
    ask(&Proposal::of(&definition, &place, &heard))
}

fn signature(tool: &str, args: &Value, cwd: &str) -> Digest128 {
    with(tool, args, cwd, |proposal| call_signature(proposal, &Loops::default(), None))
}

fn coarse(tool: &str, args: &Value) -> Option<u64> {
    with(tool, args, "/project", coarse_signature)
}

fn line(text: &str) -> Option<u64> {
    coarse("Bash", &json!({ "command": text }))
}

#[test]
fn the_same_file_is_the_same_call_however_it_is_written() {
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
fn waiting_is_one_call_however_long_and_wherever() {
    let run = |line: &str, cwd: &str| signature("Bash", &json!({ "command": line }), cwd);
    let one = run("sleep 5", "/project");
    for line in
        ["sleep 6", "sleep 1m", "/bin/sleep 5", "sleep 1; sleep 2", "sleep 5 # for the build"]
    {
        assert_eq!(one, run(line, "/elsewhere"), "{line}");
    }
    for line in ["sleep 5 && make", "sleep 5 > a.txt", "sleep", "echo sleep 5", "sleep $(cat n)"] {
        let waits = with("Bash", &json!({ "command": line }), "/project", only_waits);
        assert_eq!(waits, line == "sleep", "{line}");
    }
}

#[test]
fn the_same_line_elsewhere_is_another_call() {
    let run = |cwd: &str| signature("Bash", &json!({"command": "make"}), cwd);
    assert_eq!(run("/project"), run("/project/."));
    assert_ne!(run("/project"), run("/project/sub"));
}

#[test]
fn what_is_said_about_a_line_and_how_it_is_spaced_does_not_count() {
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
    let told =
        |text: &str| signature("Bash", &json!({"command": "python3 -", "stdin": text}), "/project");
    assert_ne!(told("print(1)"), told("print(2)"));
}

#[test]
fn what_is_declared_to_say_nothing_does_not_count() {
    let loops = Loops { volatile: [String::from("/nonce")].into(), ..Loops::default() };
    let of = |nonce: &str, q: &str| {
        let args = json!({"nonce": nonce, "q": q});
        with("ask", &args, "/project", |proposal| call_signature(proposal, &loops, None))
    };
    assert_eq!(of("1", "a"), of("2", "a"));
    assert_ne!(of("1", "a"), of("1", "b"));
}

#[test]
fn lines_are_about_the_same_if_they_run_the_same_in_the_same_place() {
    assert_eq!(line("pytest tests/unit/test_a.py"), line("pytest -x tests/other/test_b.py -k b"));
    assert_eq!(line("cd /project && cargo test one"), line("cd /project && cargo test two"));
    assert_eq!(line("sed -n '1,5p' a.py"), line("sed -n '6,9p' a.py"));
    assert_ne!(line("pytest tests/unit"), line("pytest docs/unit"));
    assert_ne!(line("cargo test"), line("cargo build"));
    assert_ne!(line("sed -n '1,5p' a.py"), line("sed -n '1,5p' b.py"));
    assert_ne!(line("echo a > x.txt"), line("echo a > y.txt"));
}

#[test]
fn other_calls_are_about_the_file_they_name_or_about_nothing() {
    let edit = |path: &str, new: &str| coarse("Edit", &json!({"file_path": path, "new": new}));
    assert_eq!(edit("foo.py", "a"), edit("foo.py", "b"));
    assert_ne!(edit("foo.py", "a"), edit("bar.py", "a"));
    assert_eq!(coarse("get_weather", &json!({"city": "Bern"})), None);
}

#[test]
fn a_call_is_shown_in_a_line() {
    let shown = |tool: &str, args: &Value| with(tool, args, "/project", shown);
    assert_eq!(shown("Bash", &json!({"command": "pytest tests/unit"})), "Bash(pytest tests/unit)");
    assert_eq!(shown("Edit", &json!({"file_path": "/project/a.py"})), "Edit(a.py)");
    assert_eq!(shown("get_weather", &json!({"city": "Bern"})), r#"get_weather({"city":"Bern"})"#);
    assert!(shown("Bash", &json!({"command": "x".repeat(1000)})).len() < 200);
}

#[test]
fn a_result_is_the_same_if_it_ended_the_same() {
    let of = |status: &str, exit: Option<i64>, text: &str| {
        let event = json!({
            "session": "s", "event": "tool_finished", "call": "c", "status": status,
            "exit_code": exit, "result": text,
        });
        let event = parse_line(event.to_string().as_bytes(), None).unwrap();
        let result = crate::observe::observe(&event).result;
        let status = if status == "ok" { Status::Ok } else { Status::Error };
        outcome_signature(result.as_ref(), status, exit, false)
    };
    assert_eq!(of("ok", None, "took 1.5s"), of("ok", Some(0), "took 9.1s"));
    assert_ne!(of("ok", None, "x"), of("error", None, "x"));
    assert_ne!(of("error", Some(1), "x"), of("error", Some(2), "x"));
    assert_eq!(of("error", Some(1), "pid 1"), of("error", Some(1), "pid 2"));
}
