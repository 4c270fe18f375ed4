//! Tests of `jackline watch` on a pseudo-terminal: its output, its keys, and that it restores the
//! terminal.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use jackline_engine::event::Control;
use jackline_engine::{ControlAction, EventKind};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::pseudo_terminal::{PseudoTerminal, is_ended_by};
use crate::support::{CliWorld, RELEASED, run_with_input};

const ASK_RULE: &str = "version: 1
rules:
  - { name: ask-ship, command: ship, ask: A person decides., examples: { ask: [ship] } }
";

/// Proposes a shell command and returns the decision.
fn propose(world: &CliWorld, session: &str, line: &str) -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let event = format!(
        r#"{{"session":"{session}","event":"tool_proposed","call":"c{call}","tool":"Bash","args":{{"command":"{line}"}}}}"#
    );
    let run = world.stdio(&[event]);
    run.json_lines()[0]["decision"].as_str().unwrap().to_owned()
}

/// Returns the last control event of a session and the person who sent it.
fn last_control(world: &CliWorld, session: &str) -> Option<(ControlAction, Option<String>)> {
    world.records(session).into_iter().rev().find_map(|record| match record.event.kind {
        EventKind::Control(Control { action, by, .. }) => Some((action, by)),
        _ => None,
    })
}

fn watch<'c>(command: &'c mut Command, args: &[&str]) -> &'c mut Command {
    command.env("TERM", "xterm-256color").args(["watch", "--by", "dana"]).args(args)
}

#[test]
fn a_person_watches_and_controls_sessions() {
    let world = CliWorld::new(ASK_RULE);
    propose(&world, "s", "ls");
    assert_eq!(propose(&world, "s", "ship a"), "ask");
    let mut terminal = PseudoTerminal::start(watch(&mut world.person_command(), &[]), 100, 30);
    let screen = terminal.wait_for("1 session, 1 waits for you");
    assert!(screen.alternate && !screen.cursor && screen.pastes_marked);
    assert!(screen.text.contains("Bash `ship a`"), "{}", screen.text);
    assert!(screen.text.contains("A person decides."), "{}", screen.text);

    // Pasted text must not act as keys.
    terminal.press("\u{1b}[200~psy\u{1b}[201~");
    terminal.press("p");
    terminal.wait_for("session `s` is paused");
    let by_dana = |action| Some((action, Some("dana".to_owned())));
    assert_eq!(last_control(&world, "s"), by_dana(ControlAction::Pause));
    assert_eq!(propose(&world, "s", "ls"), "pause");
    terminal.wait_for("by dana: no reason given");
    terminal.press("r");
    terminal.wait_for("session `s` continues");
    assert_eq!(last_control(&world, "s"), by_dana(ControlAction::Resume));
    terminal.press("r");
    terminal.wait_for("the session is not paused");

    // A person who selected the question can answer it at once. Otherwise a new question must first
    // be visible for a moment.
    terminal.press("\ta");
    terminal.wait_for("allowed once: Bash `ship a`");
    assert_eq!(last_control(&world, "s"), by_dana(ControlAction::Grant));
    assert_eq!(propose(&world, "s", "ship a"), "allow");
    terminal.press("a");
    terminal.wait_for("nothing waits for you in this session");

    // Another session appears without a key press.
    propose(&world, "t", "ls");
    terminal.wait_for("2 sessions");
    terminal.resize(30, 30);
    terminal.wait_for("too small: 30x30");
    terminal.resize(100, 30);
    terminal.press("\r");
    terminal.wait_for("q back");
    terminal.press("\u{1b}");
    terminal.wait_for("q quit");
    terminal.press("s");
    terminal.wait_for("stop session `s` permanently?");
    terminal.press("n");
    terminal.wait_for("nothing was stopped");
    terminal.press("sy");
    terminal.wait_for("session `s` is stopped");
    assert_eq!(last_control(&world, "s"), by_dana(ControlAction::Stop));
    terminal.press("q");
    let (status, _) = terminal.wait();
    assert_eq!(status.code(), Some(0));
    world.verify_and_replay("s");
}

/// A session with budgets, a model without a price, a context, a loop and failing tests.
fn play_busy_session(world: &CliWorld) {
    let call = |call: &str, tool: &str, args: Value, status: &str, result: &str| {
        [
            json!({"event": "tool_proposed", "call": call, "tool": tool, "args": args}),
            json!({"event": "tool_finished", "call": call, "status": status, "result": result}),
        ]
    };
    let usage = |request: &str, model: &str, cost: Option<u64>| {
        json!({"event": "usage_reported", "request": request, "model": model, "input": 77_000,
            "output": 0, "window": 100_000, "cost_micros": cost})
    };
    let failed = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
    let write = json!({"file_path": "a.rs", "content": "x"});
    let read = || json!({"file_path": "b.rs"});
    let events = [
        vec![json!({"session": "s", "event": "session_started"})],
        vec![usage("r1", "claude-sonnet-4-5", Some(2_100_000)), usage("r2", "mystery-9", None)],
        call("c1", "Write", write, "ok", "done").to_vec(),
        call("c2", "Bash", json!({"command": "cargo test"}), "error", failed).to_vec(),
        vec![json!({"event": "iteration_ended"})],
        (3..6).flat_map(|n| call(&format!("c{n}"), "Read", read(), "ok", "text")).collect(),
    ];
    let lines: Vec<String> = events.concat().iter().map(Value::to_string).collect();
    let run = world.stdio(&lines);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.decisions().iter().all(|answer| answer == "allow"), "{run:?}");
}

const BUSY_DEFINITION: &str = "version: 1
limits: { steps: 50, cost_usd: 2.50, tool_calls: { Read: { max: 3, per: turn, soft: true } } }
context: {}
loops: {}
progress: {}
";

/// The rows show the real counters of the guards.
#[test]
fn budgets_context_loops_iterations_and_tests_have_rows() {
    let world = CliWorld::new(BUSY_DEFINITION);
    play_busy_session(&world);
    let mut terminal = PseudoTerminal::start(watch(&mut world.person_command(), &[]), 120, 40);
    let screen_text = terminal.wait_for("1 session").text;
    for row in [
        "budget     3 of 3 calls of Read in this turn, soft",
        "budget     at least 2.10 of 2.50 USD (no price for mystery-9)",
        "budget     5 of 50 steps",
        "context    ███████████████░░░░░ 77 %, filling up",
        "loop       repeat 3 times, soft: Read(b.rs)",
        "iterations 1, the last 1 of 3 failed: tests failed after a change",
        "code       changed, tests fail",
    ] {
        assert!(screen_text.contains(row), "{row}:\n{screen_text}");
    }
    terminal.press("q");
    assert_eq!(terminal.wait().0.code(), Some(0));
    world.verify_and_replay("s");
}

#[test]
fn a_terminal_is_restored_however_watch_ends() {
    let world = CliWorld::new(ASK_RULE);
    propose(&world, "s", "ls");
    for signal in [Signal::TERM, Signal::HUP] {
        let mut terminal = PseudoTerminal::start(watch(&mut world.person_command(), &[]), 80, 24);
        terminal.wait_for("q quit");
        terminal.signal(signal);
        let (status, _) = terminal.wait();
        assert!(is_ended_by(status, signal), "{signal:?}: {status:?}");
    }
    let mut terminal = PseudoTerminal::start(watch(&mut world.person_command(), &[]), 80, 24);
    terminal.wait_for("q quit");
    terminal.press("\u{3}");
    assert_eq!(terminal.wait().0.code(), Some(0), "Ctrl-C");
}

#[test]
fn with_no_color_the_output_has_no_colours() {
    let world = CliWorld::new(ASK_RULE);
    propose(&world, "s", "ship a");
    for (no_color, expected) in [("", true), ("1", false)] {
        let mut command = world.person_command();
        command.env("NO_COLOR", no_color);
        let mut terminal = PseudoTerminal::start(watch(&mut command, &[]), 80, 24);
        terminal.wait_for("1 waits for you");
        terminal.press("q");
        let (_, written) = terminal.wait();
        let has_colours = String::from_utf8_lossy(&written).contains("\u{1b}[0;3");
        assert_eq!(has_colours, expected, "NO_COLOR={no_color}");
    }
}

#[test]
fn an_agent_may_watch_and_pause_but_not_allow_or_resume() {
    let world = CliWorld::new(ASK_RULE);
    propose(&world, "s", "ship a");
    let agent = world.root().join("claude");
    fs::copy("/bin/sh", &agent).unwrap();
    let mut command = world.command(agent.to_str().unwrap());
    command.env("TERM", "xterm").args(["-c", &format!("{RELEASED} watch; exit $?")]);
    let mut terminal = PseudoTerminal::start(&mut command, 100, 30);
    let screen = terminal.wait_for("jl-… Bash `ship a`");
    assert!(!screen.text.contains("jl-…m"), "{}", screen.text);
    let records = world.records("s").len();
    // The question must be visible for a moment before a key can answer it.
    terminal.press("\t");
    terminal.press("a");
    terminal.wait_for("only a person may run `jackline allow`, and the agent `claude`");
    assert_eq!(world.records("s").len(), records);
    terminal.press("p");
    terminal.wait_for("session `s` is paused");
    terminal.press("r");
    terminal.wait_for("only a person may run `jackline resume`");
    terminal.press("q");
    assert_eq!(terminal.wait().0.code(), Some(0));
}

#[test]
fn without_a_terminal_an_error_names_the_alternatives() {
    let world = CliWorld::new(ASK_RULE);
    let run = world.jackline(&["watch"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
    assert!(run.stderr.contains("`jackline status --json`"), "{run:?}");
    assert!(run.stderr.contains("`jackline watch --once`"), "{run:?}");
}

/// A frame needs no lock, so it neither waits for a writer nor delays one.
#[test]
fn a_single_frame_needs_no_terminal_and_no_lock() {
    let world = CliWorld::new(ASK_RULE);
    let run = world.jackline(&["watch", "--once"]);
    assert!(run.code == Some(0) && run.stdout.contains("no session has worked here"), "{run:?}");
    propose(&world, "s", "ls");
    propose(&world, "s", "ship a");
    let journal = fs::File::options().append(true).open(world.journal_path("s")).unwrap();
    journal.lock().unwrap();
    // An incomplete record, as if a process were writing it.
    std::io::Write::write_all(&mut &journal, br#"{"v":1,"seq":3,"#).unwrap();
    for args in [&["watch", "--once"][..], &["watch", "--once", "--all"]] {
        let run = world.jackline(args);
        assert_eq!(run.code, Some(0), "{run:?}");
        for fragment in ["1 session, 1 waits for you", "running", "ask ", "Bash `ship a`"] {
            assert!(run.stdout.contains(fragment), "{fragment}: {}", run.stdout);
        }
        assert!(run.stdout.lines().count() <= 24 && !run.stdout.contains('\u{1b}'), "{run:?}");
    }
    // If the saved state is missing or outdated, the state is computed from the records.
    let state = world.session_directory("s").join("state");
    let saved = fs::read(&state).unwrap();
    fs::remove_file(&state).unwrap();
    let run = world.jackline(&["watch", "--once"]);
    assert!(run.stdout.contains("1 session, 1 waits for you"), "{run:?}");
    journal.unlock().unwrap();
    fs::write(&state, saved).unwrap();
    propose(&world, "s", "ls");
    world.verify_and_replay("s");
}

#[test]
fn only_sessions_of_this_workspace_are_shown_without_all() {
    let world = CliWorld::new(ASK_RULE);
    propose(&world, "s", "ls");
    let elsewhere = world.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let once = |args: &[&str]| {
        run_with_input(
            world.person_command().current_dir(&elsewhere).args(["watch", "--once"]).args(args),
            b"",
        )
    };
    assert!(once(&[]).stdout.contains("no session has worked here yet"));
    assert!(once(&["--all"]).stdout.contains("1 session"));
}
