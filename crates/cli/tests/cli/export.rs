//! Tests of `jackline export`: a session in one file, which every command that reads a journal can
//! read.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::pseudo_terminal::PseudoTerminal;
use crate::support::{CliOutput, CliWorld, read_lines};

const DEFINITION: &str = "version: 1\nname: a/b\nmode: enforce\n";

/// A session that reads a file, is denied a call, runs tests and ends.
const EVENTS: [&str; 8] = [
    r#"{"event":"session_started","model":"m1","prompt_hash":"sha256:aa"}"#,
    r#"{"event":"tool_proposed","call":"a","tool":"Read","args":{"file_path":"README.md"}}"#,
    r#"{"event":"tool_finished","call":"a","status":"ok","result":"hello"}"#,
    r#"{"event":"tool_proposed","call":"b","tool":"Write","args":{"file_path":"jackline.yaml","content":"x"}}"#,
    r#"{"event":"tool_proposed","call":"c","tool":"Bash","args":{"command":"TOKEN=abcdef123456 cargo test"}}"#,
    r#"{"event":"tool_finished","call":"c","status":"ok","exit_code":0}"#,
    r#"{"event":"stop_proposed"}"#,
    r#"{"event":"session_ended"}"#,
];

/// Creates a world with the session `s1`, and the path of its export outside of the workspace.
fn export_session() -> (CliWorld, PathBuf) {
    let world = CliWorld::new(DEFINITION);
    let events = EVENTS.map(|line| line.replacen('{', r#"{"v":1,"session":"s1","#, 1));
    world.stdio(&events);
    let out = world.root().join("s1.json");
    let run = world.jackline(&["export", "s1", "--out", out.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:?}");
    // The steps are the same as in `status` and `run`: calls, but not the stop and the end.
    assert!(run.stderr.contains("9 records, 3 steps, 5 actions in the trajectory;"), "{run:?}");
    let status = world.jackline(&["status", "s1"]).stdout;
    let mut rows = status.lines().map(|row| row.split_whitespace().collect::<Vec<&str>>());
    assert!(rows.any(|row| row.starts_with(&["steps", "3"])), "{status}");
    (world, out)
}

/// Runs a command on a file.
fn run_on_file(world: &CliWorld, command: &str, out: &Path) -> CliOutput {
    world.jackline(&[command, out.to_str().unwrap()])
}

/// Changes one text in an export.
fn edit_export(out: &PathBuf, from: &str, to: &str) {
    let text = fs::read_to_string(out).unwrap();
    let other = text.replacen(from, to, 1);
    assert_ne!(other, text, "the export does not contain {from}");
    fs::write(out, other).unwrap();
}

#[test]
fn an_export_is_not_printed_on_a_terminal() {
    let (world, _) = export_session();
    let mut command = world.person_command();
    let terminal = PseudoTerminal::start(command.args(["export", "s1"]), 200, 40);
    let (status, screen) = terminal.final_screen();
    assert_eq!(status.code(), Some(2), "{screen}");
    assert!(screen.contains("write it to a file with `-o FILE`, or pipe it"), "{screen}");
    assert_eq!(world.jackline(&["export", "-o", "short.json"]).code, Some(0));
    assert!(world.workspace().join("short.json").is_file());
}

#[test]
fn an_export_contains_the_journal_and_a_summary() {
    let (world, out) = export_session();
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&out).unwrap();
    assert!(!text.contains("abcdef123456"));
    let export: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&export["session_id"], &export["model_version"]), (&"s1".into(), &"m1".into()));
    assert_eq!(
        (&export["prompt_hash"], &export["redacted"]["places"]),
        (&"sha256:aa".into(), &1.into())
    );
    let journal: Vec<&str> =
        export["journal"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert_eq!(journal, read_lines(&world.journal_path("s1")));
    let steps: Vec<String> = export["trajectory"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            format!("{} {} {} {}", it["state"], it["action"], it["next_state"], it["decision"])
        })
        .collect();
    let steps: Vec<String> = steps.iter().map(|step| step.replace('"', "")).collect();
    assert_eq!(
        steps,
        [
            "planning Read README.md executing null",
            "executing Write jackline.yaml testing deny",
            "testing Bash TOKEN=REDACTED-secret cargo test verifying null",
            "verifying stop verifying null",
            "verifying session ended stopped null",
        ]
    );
    // Without `--out` the export is printed.
    assert_eq!(world.jackline(&["export"]).stdout, text);
}

#[test]
fn every_command_that_reads_a_journal_reads_an_export() {
    let (world, out) = export_session();
    let journal = world.journal_path("s1");
    for command in ["replay", "verify", "log", "show"] {
        let (of_journal, of_export) =
            (run_on_file(&world, command, &journal), run_on_file(&world, command, &out));
        assert_eq!((of_export.code, &of_export.stderr), (Some(0), &String::new()), "{command}");
        let fixed_lines =
            |run: &CliOutput| run.stdout.lines().filter(|line| !line.contains("ago")).count();
        assert_eq!(fixed_lines(&of_export), fixed_lines(&of_journal), "{command}");
    }
    let proven = run_on_file(&world, "replay", &out);
    assert!(proven.stdout.contains("proven, all 8 verdicts are the same"), "{proven:?}");
    let log = world.jackline(&["log", "--json", out.to_str().unwrap()]);
    assert_eq!(log.stdout, fs::read_to_string(&journal).unwrap());
    fs::write(world.root().join("new.yaml"), "version: 1\nname: a/b\nlimits: {steps: 1}\n")
        .unwrap();
    let backtest = |path: &Path| {
        world.jackline(&["backtest", "--json", "-d", "../new.yaml", path.to_str().unwrap()])
    };
    let of_export = backtest(&out);
    assert_eq!((of_export.code, &of_export.stdout), (Some(0), &backtest(&journal).stdout));
    assert!(of_export.stdout.contains(r#""id":"s1""#), "{of_export:?}");
}

#[test]
fn an_edited_export_is_detected() {
    for (from, to, error) in [
        (
            r#""state":"testing""#,
            r#""state":"planning""#,
            "step 3 of the trajectory does not match",
        ),
        (r#","decision":"deny""#, "", "step 2 of the trajectory does not match"),
        (r#""model_version": "m1""#, r#""model_version": "m2""#, "`model_version` of the export"),
        (r#""prompt_hash": "sha256:aa""#, r#""prompt_hash": null"#, "`prompt_hash` of the export"),
        (r#""session_id": "s1""#, r#""session_id": "s2""#, "`session_id` of the export"),
        (r"cargo test\", r"cargo nest\", "tampered: its bytes do not match its hash"),
    ] {
        let (world, out) = export_session();
        edit_export(&out, from, to);
        let run = run_on_file(&world, "verify", &out);
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.stdout.contains(error), "{run:?}");
    }
}

#[test]
fn an_invalid_export_is_refused() {
    let (world, out) = export_session();
    let text = fs::read_to_string(&out).unwrap();
    let cut = &text[..text.len() / 2];
    let mut empty: Value = serde_json::from_str(&text).unwrap();
    empty["journal"] = Value::Array(Vec::new());
    for (content, error) in [
        (empty.to_string(), "it contains no record"),
        (cut.to_owned(), "it is truncated"),
        (text.replacen(r#""version": 2"#, r#""version": 7"#, 1), "it has version 7"),
        (text.replacen(r#""trajectory""#, r#""way""#, 1), "unknown field `way`"),
    ] {
        fs::write(&out, content).unwrap();
        for command in ["replay", "verify", "log", "show", "backtest"] {
            let run = run_on_file(&world, command, &out);
            assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{command}: {run:?}");
            assert!(run.stderr.contains(error), "{command}: {run:?}");
        }
    }
}

#[test]
fn a_changed_journal_is_not_exported() {
    let (world, out) = export_session();
    fs::remove_file(&out).unwrap();
    let journal = fs::read_to_string(world.journal_path("s1")).unwrap();
    fs::write(world.journal_path("s1"), journal.replacen("README", "readme", 1)).unwrap();
    let run = world.jackline(&["export", "s1", "--out", out.to_str().unwrap()]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("the journal was changed: record 2"), "{run:?}");
    assert!(!out.exists());
    assert_eq!(world.jackline(&["export", "unknown"]).code, Some(2));
}
