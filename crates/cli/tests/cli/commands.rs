//! Tests of the output that people and programs read: each command on a small session.

use std::fs;

use jackline_journal::check_line;
use serde_json::{Value, json};

use crate::support::{CliWorld, read_lines};

const DEFINITION: &str = "\
name: acme/coder
policies: [ sequential_dependency: { deploy: [lint] } ]
completion: { files: [report.md] }
limits: { steps: 20, total_tokens: 1000 }
";

const CHECKSUM: &str = "ef5d97d28c9e7627a52a20c8439caf9977cb64dcf7dea664714782224d0f9923";

/// A small session with dates long ago, so that no test depends on the clock.
fn small_session() -> CliWorld {
    let world = CliWorld::new(DEFINITION);
    let run = world.stdio(&[
        r#"{"session":"s1","at":"2001-01-01T00:00:00Z","event":"session_started","client":"test"}"#,
        r#"{"at":"2001-01-01T00:00:01Z","event":"prompt_submitted","text":"Ship it."}"#,
        r#"{"at":"2001-01-01T00:00:02Z","event":"tool_proposed","call":"c1","tool":"deploy","args":{"env":"prod"}}"#,
        r#"{"at":"2001-01-01T00:00:03Z","event":"tool_proposed","call":"c2","tool":"lint","args":{}}"#,
        "not json",
        r#"{"at":"2001-01-01T00:00:04Z","event":"tool_finished","call":"c2","status":"ok","result":"fine"}"#,
        r#"{"at":"2001-01-01T00:00:05Z","event":"usage_reported","input":10,"output":5}"#,
        r#"{"at":"2001-01-01T00:00:06Z","event":"stop_proposed","reason":"end_turn"}"#,
        r#"{"at":"2001-01-01T00:00:07Z","event":"tool_proposed","call":"c3","tool":"deploy","args":{}}"#,
    ]);
    assert_eq!(run.code, Some(2));
    world
}

/// Replaces the parts of an output that differ between runs, and collapses column padding.
fn normalise_output(world: &CliWorld, text: &str) -> String {
    let text = text.replace(&world.workspace().display().to_string(), "WORK");
    let lines = text.lines().map(|line| {
        let line = match line.split_once(": ") {
            Some((key @ ("    \"boot_id\"" | "    \"boot_ms\"" | "    \"wall\""), _)) => {
                format!("{key}: …")
            }
            _ => line.to_owned(),
        };
        let words: Vec<&str> = line.split(' ').collect();
        let mut output_words: Vec<String> = Vec::new();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
            if number && words.get(at + 1) == Some(&"d") && words.get(at + 2) == Some(&"ago") {
                output_words.push("AGO".to_owned());
                at += 3;
            } else if word.len() == 64
                && word.bytes().all(|byte| byte.is_ascii_hexdigit())
                && *word != CHECKSUM
            {
                output_words.push("HASH".to_owned());
                at += 1;
            } else {
                output_words.push((*word).to_owned());
                at += 1;
            }
        }
        let mut line = output_words.join(" ");
        while line.trim_start().contains("   ") {
            line = line.replace("   ", "  ");
        }
        line
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn check_output(world: &CliWorld, args: &[&str], code: i32, expected: &str) {
    let run = world.jackline(args);
    assert_eq!(normalise_output(world, &run.stdout), expected, "{args:?}");
    assert_eq!((run.code, run.stderr.as_str()), (Some(code), ""), "{args:?}");
}

#[test]
fn check_shows_the_effect_of_a_definition() {
    let world = CliWorld::new(DEFINITION);
    check_output(
        &world,
        &["check"],
        0,
        &format!(
            "\
jackline.yaml: ok, 1 warning
  acme/coder in mode enforce
  tools: deploy, lint
  deploy needs lint
  to stop: report.md (at most 5 blocked stops per turn, 3 with the same text)
  at most 20 steps per session
  at most 1000 total tokens per session
  checksum {CHECKSUM}
warning: `sequential_dependency` waits for `lint`, a tool that Claude Code does not have; \
declare it in `tools` if the agent has it"
        ),
    );
    let run = world.jackline(&["check", "--json"]);
    let output: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (&output["ok"], &output["file"], &output["checksum"], &output["definition"]["name"]),
        (&json!(true), &json!("jackline.yaml"), &json!(CHECKSUM), &json!("acme/coder"))
    );
}

#[test]
fn check_shows_everything_that_a_definition_requires() {
    let world = CliWorld::new(
        "name: acme/coder\nunknown_tools: client\nshell: { opaque: ask }\n\
         identity: { roles: [release] }\nprotected: [keys/]\n\
         tools:\n  ship: { commands: [make ship], roles: [release] }\n  \
         pay: { schema: { type: object } }\n  look: { output_schema: { type: object } }\n\
         plan: { schema: { type: object } }\noutputs: { report: { schema: { type: object } } }\n\
         schema: { repair_max_attempts: 1, correction_max_attempts: 5 }\n\
         limits: { tool_calls: { ship: 2 } }\nloops: {}\nprogress: {}\ncontext: {}\n\
         io: { shell: { seconds: 9 } }\n",
    );
    let run = world.jackline(&["check"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    for line in [
        "unknown_tools: client",
        "shell.opaque: ask",
        "identity: roles release",
        "tools: ship, pay, look",
        "tool `pay` of kind other, arguments checked by a schema",
        "tool `look` of kind other, results checked by a schema",
        "plan: checked by its own schema",
        "outputs: `report`, checked by schemas",
        "schema: repair_max_attempts 1, correction_max_attempts 5",
        "tool `ship` of kind other, only for roles release",
        "protected: `keys/`",
        "at most 2 calls of `ship` per session",
        "loops: enforce, warns at 3, pauses at 5, stops at 10",
        "pauses after 3 failed iterations in a row; default length of an iteration: 50 steps",
        "context: warn at 75 %, compact at 80 %, block at 85 %",
        "io: shell.seconds 9",
    ] {
        assert!(run.stdout.contains(&format!("\n  {line}\n")), "{line}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("warning"), "{}", run.stdout);
}

#[test]
fn check_reports_every_mistake() {
    let world = CliWorld::new("toolz: {}\nmode: obsrve\n");
    let run = world.jackline(&["check"]);
    assert_eq!(
        (run.code, run.stdout.as_str(), run.stderr.as_str()),
        (
            Some(1),
            "jackline.yaml:1:1: unknown key `toolz` in the definition; did you mean `tools`?\n\
             jackline.yaml:2:7: `mode` can't be `obsrve`; did you mean `observe`?\n",
            "error: 2 problems in `jackline.yaml`\n"
        )
    );
    let run = world.jackline(&["check", "--json", "-d", "jackline.yaml"]);
    assert_eq!(run.code, Some(1));
    assert_eq!(
        serde_json::from_str::<Value>(&run.stdout).unwrap(),
        json!({"file": "jackline.yaml", "ok": false, "in_force": null, "problems": [
            {"file": "jackline.yaml", "line": 1, "column": 1, "message": "unknown key `toolz` in the definition", "hint": "did you mean `tools`?"},
            {"file": "jackline.yaml", "line": 2, "column": 7, "message": "`mode` can't be `obsrve`", "hint": "did you mean `observe`?"},
        ]})
    );
    let run = world.jackline(&["check", "gone.yaml"]);
    assert_eq!(
        (run.code, run.stderr.as_str()),
        (
            Some(2),
            "error: can't read the definition `gone.yaml`: No such file or directory (os error 2)\n"
        )
    );
}

#[test]
fn status_shows_the_state_of_a_session() {
    let world = small_session();
    check_output(
        &world,
        &["status"],
        0,
        "\
s1 running
  definition  acme/coder (enforce)
  workspace  WORK
  started  AGO (2001-01-01T00:00:00Z)
  lasted  7 s
  turn  1 not finished, blocked once
  steps  4 of 20
  tokens  15 of 1000 (10 in, 5 out)
  calls  3: 1 ok, 1 denied
  in flight  deploy c3
  epoch  0 (number of changes of the workspace)
  records  9",
    );
    let mut status: Value =
        serde_json::from_str(&world.jackline(&["status", "--json"]).stdout).unwrap();
    assert!(status["modified"].take().is_string());
    let agent_checksum = status["identity"]["agent_checksum"].clone();
    assert_eq!(agent_checksum.as_str().map(str::len), Some(64), "{agent_checksum}");
    assert_eq!(
        status,
        json!({"session": "s1", "workspace": world.workspace(), "modified": null,
        "on_trial": {"would_deny": 0, "would_ask": 0, "while_off": 0, "by": {}, "of_last_records": null},
        "definition": {"name": "acme/coder", "checksum": CHECKSUM, "mode": "enforce"},
        "safety": {"iteration_count": 0, "max_iterations": null, "consecutive_failures": 0,
            "max_consecutive_failures": null,
            "last_tool_signatures": ["deploy({\"env\":\"prod\"})", "lint({})", "deploy({})"],
            "signature_history_depth": 64, "soft_loop_threshold": 3, "hard_loop_threshold": 5,
            "loop_detected": false},
        "context": {"estimated_usage_pct": null, "warning_threshold": null,
            "mandatory_threshold": null, "hard_block_threshold": null, "last_compaction": null},
        "identity": {"agent_checksum": agent_checksum, "workflow_binding": null,
            "authorized_roles": null, "role": null},
        "dirty_bits": {"code_modified": false, "tests_run": false, "tests_passing": "unknown",
            "docs_updated": false, "skipped": false},
        "summary": {"phase": "running", "seq": 8, "started": "2001-01-01T00:00:00Z",
            "elapsed_ms": 7000, "steps": 4, "epoch": 0,
            "turn": {"number": 1, "result": null, "blocks": 1, "steps": 4,
                "usage": {"input": 10, "cache_read": 0, "cache_creation": 0, "output": 5,
                    "cost_micros": 0, "unpriced": 1, "unknown": 0}},
            "usage": {"input": 10, "cache_read": 0, "cache_creation": 0, "output": 5,
                    "cost_micros": 0, "unpriced": 1, "unknown": 0},
            "invocations": {"proposed": 3, "invalid_arguments": 0, "denied": 1, "not_approved": 0,
                "unresolved": 0, "timed_out": 0, "crashed": 0, "failed": 0, "cancelled": 0,
                "ok": 1},
            "in_flight": [["c3", "deploy"]], "actors": [["main", 3]],
            "goal": "Ship it.",
            "loops": {"actors": [], "last": []},
            "progress": {"consecutive_failures": 0, "iteration_count": 0},
            "dirty_bits": {"code_modified": false, "tests_run": false,
                "tests_passing": "unknown", "docs_updated": false, "skipped": false},
            "budgets": [
                {"dimension": "steps", "used": 4, "max": 20, "per": "session", "soft": false},
                {"dimension": "total_tokens", "used": 15, "max": 1000, "per": "session",
                    "soft": false},
            ],
            "last_actions": [
                {"seq": 3, "tool": "deploy", "does": "{\"env\":\"prod\"}", "ended": "deny"},
                {"seq": 4, "tool": "lint", "does": "{}", "ended": "ok"},
                {"seq": 8, "tool": "deploy", "does": "{}", "ended": "open"},
            ]}})
    );
}

/// Scripts around autonomous loops read these keys.
#[test]
fn status_json_has_the_counters_of_an_autonomous_loop() {
    let world = CliWorld::new(
        "limits: { iterations: 100 }\nprogress: {}\ncontext: {}\nloops: { profile: strict }\n",
    );
    let read = |n: u32| {
        [
            json!({"event": "tool_proposed", "call": format!("c{n}"), "tool": "Read",
                "args": {"file_path": "a.rs"}}),
            json!({"event": "tool_finished", "call": format!("c{n}"), "status": "ok",
                "result": "text"}),
        ]
    };
    let mut events = vec![
        json!({"session": "s", "event": "compaction_finished", "at": "2001-01-01T00:00:00Z"}),
        json!({"session": "s", "event": "usage_reported", "input": 62, "output": 0, "window": 100}),
        json!({"event": "iteration_ended", "build": "failed"}),
    ];
    events.extend((1..4).flat_map(read));
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    assert_eq!(world.stdio(&lines).code, Some(0));
    let status: Value =
        serde_json::from_str(&world.jackline(&["status", "--json"]).stdout).unwrap();
    assert_eq!(
        (&status["safety"], &status["context"]),
        (
            &json!({"iteration_count": 1, "max_iterations": 100, "consecutive_failures": 1,
                "max_consecutive_failures": 3,
                "last_tool_signatures": ["Read(a.rs)", "Read(a.rs)", "Read(a.rs)"],
                "signature_history_depth": 64, "soft_loop_threshold": 3, "hard_loop_threshold": 3,
                "loop_detected": true}),
            &json!({"estimated_usage_pct": 62, "warning_threshold": 75, "mandatory_threshold": 80,
                "hard_block_threshold": 85, "last_compaction": "2001-01-01T00:00:00Z"})
        )
    );
}

#[test]
fn violations_are_summed_over_the_sessions_of_the_workspace() {
    let world = small_session();
    let of_one = world.jackline(&["violations", "s1", "--json"]).json_lines();
    let expected = json!([
        {"guard": "completion", "type": "task_incomplete", "subtype": "missing_files",
            "enforced": 1, "observed": 0},
        {"guard": "sequential_dependency", "type": "tool_policy_violation",
            "subtype": "missing_prerequisite", "enforced": 1, "observed": 0},
    ]);
    assert_eq!(
        of_one[0],
        json!({"sessions": 1, "violations": expected,
        "guardrail_violation_subtypes": {}})
    );
    world.stdio(&[
        r#"{"session":"s2","event":"session_started"}"#,
        r#"{"session":"s2","event":"tool_proposed","call":"c","tool":"deploy","args":{}}"#,
    ]);
    let of_all = world.jackline(&["violations", "--json"]).json_lines();
    assert_eq!(of_all[0]["sessions"], 2);
    assert_eq!(of_all[0]["violations"][1]["enforced"], 2, "{of_all:?}");
    // An unreadable session is named, and the others still count.
    fs::write(world.journal_path("s2"), "nothing\n").unwrap();
    let run = world.jackline(&["violations", "s1", "s2"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.stderr.contains("session `s2` is not counted: "), "{run:?}");
    assert!(run.stdout.starts_with("in 1 session\n"), "{run:?}");
}

#[test]
fn status_lists_all_sessions_even_unreadable_ones() {
    let world = small_session();
    world.stdio(&[r#"{"session":"bad","event":"session_started"}"#]);
    fs::write(world.journal_path("bad"), "nothing\n").unwrap();
    let run = world.jackline(&["status", "--all"]);
    assert_eq!(run.code, Some(0));
    assert!(run.stdout.contains("\ns1 "), "{}", run.stdout);
    assert!(run.stdout.contains("\nbad "), "{}", run.stdout);
    // The JSON output lists them too.
    let run = world.jackline(&["status", "--all", "--json"]);
    assert_eq!(run.session_ids(), ["bad", "s1"]);
}

#[test]
fn log_lists_what_happened() {
    let world = small_session();
    check_output(
        &world,
        &["log"],
        0,
        "\
1 bookkeeping record not listed (token usage, successful results); `--all` lists them
#  when  event  details  verdict
1  AGO  session_started  test  allow
2  AGO  prompt_submitted  Ship it.  allow
3  AGO  tool_proposed  deploy c1 {\"env\":\"prod\"}  deny  `deploy` needs `lint` to have succeeded first
4  AGO  tool_proposed  lint c2 {}  allow
5  AGO  tool_finished  c2 ok  allow
  note  line 5: not valid JSON: expected ident at column 2
7  AGO  stop_proposed  end_turn  deny  The required file `report.md` is missing.
8  AGO  tool_proposed  deploy c3 {}  allow",
    );
    check_output(
        &world,
        &["log", "-n", "1"],
        0,
        "\
6 earlier records; `-n 7` shows them
1 bookkeeping record not listed (token usage, successful results); `--all` lists them
#  when  event  details  verdict
8  AGO  tool_proposed  deploy c3 {}  allow",
    );
    check_output(
        &world,
        &["log", "--objections", "s1"],
        0,
        "\
#  when  event  details  verdict
3  AGO  tool_proposed  deploy c1 {\"env\":\"prod\"}  deny  `deploy` needs `lint` to have succeeded first
7  AGO  stop_proposed  end_turn  deny  The required file `report.md` is missing.",
    );
}

#[test]
fn log_lists_bookkeeping_records_only_with_all() {
    let world = CliWorld::new("");
    let finished = |call: &str, exit_code: u32| {
        format!(
            r#"{{"event":"tool_finished","call":"{call}","status":"ok","exit_code":{exit_code}}}"#
        )
    };
    let proposed = |call: &str| {
        format!(
            r#"{{"event":"tool_proposed","call":"{call}","tool":"Bash","args":{{"command":"true"}}}}"#
        )
    };
    let usage = r#"{"event":"usage_reported","input":10,"output":5}"#.to_owned();
    let events =
        [proposed("c1"), finished("c1", 0), usage, proposed("c2"), finished("c2", 1)].join("\n");
    let run = world.stdio(&[events]);
    assert_eq!(run.code, Some(0), "{run:?}");

    let log = |args: &[&str]| {
        let run = world.jackline(&[&["log"], args].concat());
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{args:?}");
        run.stdout
    };
    let short = log(&[]);
    assert!(!short.contains("usage_reported") && !short.contains("c1 ok"), "{short}");
    // A failed command is always listed.
    assert!(short.contains("c2 exit code 1"), "{short}");
    assert!(short.starts_with("2 bookkeeping records not listed"), "{short}");
    let all = log(&["--all"]);
    for text in ["usage_reported", "c1 ok", "c2 exit code 1"] {
        assert!(all.contains(text), "{text}: {all}");
    }
    assert!(!all.contains("not listed"), "{all}");
    // Programs always get every record.
    assert_eq!(log(&["--json"]), log(&["--json", "--all"]));
    assert!(log(&["--json"]).contains("usage_reported"));
}

#[test]
fn log_json_is_the_journal_byte_for_byte() {
    let world = small_session();
    let journal = fs::read_to_string(world.journal_path("s1")).unwrap();
    assert_eq!(world.jackline(&["log", "--json"]).stdout, journal);
    let last = journal.lines().last().unwrap();
    assert_eq!(world.jackline(&["log", "--json", "-n", "1"]).stdout, format!("{last}\n"));
}

/// A record contains the exact output of a tool, and its hash covers every byte.
#[test]
fn log_json_does_not_escape_terminal_control_characters() {
    let world = small_session();
    let text =
        "del \u{7f} csi \u{9b}31m nel \u{85} esc \u{1b}[31m bel \u{7} zwj \u{200d} bom \u{feff}";
    let line = json!({"session": "s1", "event": "prompt_submitted", "text": text}).to_string();
    assert_eq!(world.stdio(&[&line]).decisions(), ["allow"]);
    let journal = fs::read_to_string(world.journal_path("s1")).unwrap();
    assert_eq!(world.jackline(&["log", "--json"]).stdout, journal);
    let shown = world.jackline(&["show", "--json", "s1", "9"]).stdout;
    assert_eq!(check_line(shown.trim_end().as_bytes()).map(|_| ()), Ok(()));
}

#[test]
fn show_prints_one_complete_record() {
    let world = small_session();
    let third = "\
#3 tool_proposed by main AGO (2001-01-01T00:00:02Z)
deny

v3.1 sequential_dependency tool_policy_violation / missing_prerequisite
  `deploy` needs `lint` to have succeeded first
  -> run `lint`, then `deploy` again

event
{
  \"args\": {
    \"env\": \"prod\"
  },
  \"at\": \"2001-01-01T00:00:02Z\",
  \"call\": \"c1\",
  \"event\": \"tool_proposed\",
  \"session\": \"s1\",
  \"tool\": \"deploy\"
}

facts
{
  \"now\": {
    \"boot_id\": …
    \"boot_ms\": …
    \"wall\": …
  },
  \"observed\": {
    \"args\": \"03a5f04da5bec064232d9d33ab477324\"
  }
}

decided by engine 0.1.0 (semantics 12)";
    check_output(&world, &["show", "s1", "3"], 0, third);
    check_output(&world, &["show", "3"], 0, third);
    // Without a number: the last violation.
    let run = world.jackline(&["show"]);
    assert!(run.stdout.starts_with("#7 stop_proposed"), "{}", run.stdout);
    let journal = read_lines(&world.journal_path("s1"));
    assert_eq!(world.jackline(&["show", "--json", "s1", "3"]).stdout, format!("{}\n", journal[3]));
    for (args, error) in [
        (&["show", "s1", "99"][..], "error: session `s1` has no record 99\n"),
        (&["show", "s1", "x"], "error: `x` is not a record number\n"),
    ] {
        let run = world.jackline(args);
        assert_eq!((run.code, run.stderr.as_str()), (Some(2), error));
    }
}

#[test]
fn verify_and_replay_report_an_unchanged_journal() {
    let world = small_session();
    check_output(&world, &["verify"], 0, "s1: clean, 9 records, head HASH");
    check_output(&world, &["replay"], 0, "s1: proven, all 8 verdicts are the same");
    let head = check_line(read_lines(&world.journal_path("s1"))[8].as_bytes()).unwrap().hash;
    let bytes = fs::metadata(world.journal_path("s1")).unwrap().len();
    let report = json!({"records": 9, "bytes": bytes, "head": head, "findings": [], "more": 0});
    let json_output =
        |args: &[&str]| serde_json::from_str::<Value>(&world.jackline(args).stdout).unwrap();
    assert_eq!(
        json_output(&["verify", "--json"]),
        json!({"session": "s1", "clean": true, "report": report})
    );
    assert_eq!(
        json_output(&["replay", "--json"]),
        json!({"session": "s1", "proven": true, "chain": report,
            "replay": {"events": 8, "same": 8, "differ_by_version": 0, "differ_by_fault": 0,
                "differences": []}})
    );
}

#[test]
fn verify_and_replay_reject_a_changed_journal() {
    let world = small_session();
    let journal = fs::read_to_string(world.journal_path("s1")).unwrap();
    fs::write(world.journal_path("s1"), journal.replacen("Ship it.", "Ship it!", 1)).unwrap();
    check_output(
        &world,
        &["verify"],
        1,
        "s1: not clean, 9 records, head HASH\n  record 2 tampered: its bytes do not match its hash",
    );
    let run = world.jackline(&["replay"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.contains("record 2 tampered: its bytes do not match its hash"));
}

#[test]
fn a_truncated_journal_denies_every_call() {
    let world = small_session();
    let journal = fs::read_to_string(world.journal_path("s1")).unwrap();
    let cut = journal.len() - journal.lines().last().unwrap().len() - 1;
    fs::write(world.journal_path("s1"), &journal[..cut]).unwrap();
    check_output(
        &world,
        &["verify"],
        1,
        "s1: not clean, 8 records, head HASH\n  record 8 truncated: it is missing",
    );
    let run = world.stdio(&[r#"{"session":"s1","event":"stop_proposed"}"#]);
    assert_eq!((run.decisions(), run.code), (vec!["deny journal_truncated".to_owned()], Some(3)));
    assert_eq!(fs::read_to_string(world.journal_path("s1")).unwrap(), journal[..cut]);
}

#[test]
fn a_session_is_named_by_its_id_a_prefix_or_its_file() {
    let world = small_session();
    world.stdio(&[r#"{"session":"s22","event":"session_started"}"#]);
    let journal = world.journal_path("s1").display().to_string();
    for name in ["s1", &journal] {
        let run = world.jackline(&["verify", name]);
        assert!(run.stdout.starts_with("s1: clean"), "{run:?}");
    }
    assert!(world.jackline(&["verify", "s2"]).stdout.starts_with("s22: clean"));
    for (name, error) in [
        ("s", "error: several sessions begin with `s`: "),
        ("zzz", "error: no session `zzz`; `jackline status --all` lists all sessions\n"),
    ] {
        let run = world.jackline(&["verify", name]);
        assert_eq!(run.code, Some(2));
        assert!(run.stderr.starts_with(error), "{}", run.stderr);
    }
    // The latest session of this workspace.
    assert!(world.jackline(&["verify"]).stdout.starts_with("s22: clean"));
    let run = world.jackline(&["verify", "--all"]);
    assert_eq!((run.code, run.stdout.lines().count()), (Some(0), 2));
}

#[test]
fn invalid_usage_exits_with_2() {
    let world = CliWorld::new("");
    for args in [
        &["stido"][..],
        &[],
        &["stdio", "--deadline", "tomorrow"],
        &["stdio", "--session", ""],
        &["stdio", "--nope"],
        &["log", "-n", "x"],
        &["status", "unknown"],
        &["replay"],
    ] {
        assert_eq!(world.jackline(args).code, Some(2), "{args:?}");
    }
    assert_eq!(world.jackline(&["--help"]).code, Some(0));
    assert_eq!(world.jackline(&["--version"]).stdout, "jackline 0.1.0\n");
}
