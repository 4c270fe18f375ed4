//! `jackline doctor`: closed where the guard holds, open where it does not.

use std::process::Command;

use jackline_clients::doctor::{Standing, canary};
use jackline_clients::live::{Guard, Installed, Scratch};
use serde_json::Value;

use crate::world::{JACKLINE, client};

fn doctor(scratch: &Scratch, program: &std::path::Path) -> (Option<i32>, Value) {
    let mut command = Command::new(JACKLINE);
    scratch.enter(&mut command);
    let output = command
        .args(["doctor", "claude", "--json", "--client-program"])
        .arg(program)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}")))
}

/// Without a client there is nothing to try, and a person wants to know how to get one.
#[test]
fn a_client_that_is_not_there_is_asked_for() {
    let scratch = Scratch::new().unwrap();
    for (program, words) in [
        ("/nowhere/claude", ["`/nowhere/claude` is not found", "@anthropic-ai/claude-code"]),
        ("no-such-client", ["`no-such-client` is not found", "--client-program"]),
        ("/bin/false", ["`/bin/false` does not answer to --version", "exit 1"]),
    ] {
        let mut command = Command::new(JACKLINE);
        scratch.enter(&mut command);
        command.args(["doctor", "claude", "--client-program", program]);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout), (Some(2), Vec::new()), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}

fn standings(report: &Value) -> Vec<&str> {
    let lines = report.get("lines").and_then(Value::as_array).unwrap();
    lines.iter().map(|line| line.get("standing").and_then(Value::as_str).unwrap()).collect()
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn every_line_of_defence_is_closed() {
    let scratch = Scratch::new().unwrap();
    let guard = Guard::of(JACKLINE.as_ref());
    scratch.write_settings(&guard.settings()).unwrap();
    let (code, report) = doctor(&scratch, &client());
    assert_eq!((code, standings(&report)), (Some(0), vec!["closed"; 18]), "{report:#}");
    assert!(report.pointer("/latency/p99_micros").is_some_and(Value::is_u64), "{report:#}");
}

/// A client that runs no hooks is a door without a lock, and must be called so.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_client_that_runs_no_hooks_is_open() {
    let scratch = Scratch::new().unwrap();
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exec '{0}' --version\n\
         exec '{0}' --settings '{{\"disableAllHooks\":true}}' \"$@\"\n",
        client().display()
    );
    let program = scratch.write_program("claude", &text).unwrap();
    let (code, report) = doctor(&scratch, &program);
    assert_eq!(code, Some(1), "{report:#}");
    let open = standings(&report).iter().filter(|standing| **standing == "open").count();
    // All that was tried but that no objection is no approval, and nothing is installed.
    assert_eq!(open, 12 + 1, "{report:#}");
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_canary_sings_where_the_guard_holds_and_not_where_it_is_gone() {
    let client = Installed::find(Some(&client())).unwrap();
    let report = canary(&client, JACKLINE.as_ref()).unwrap();
    assert_eq!(report.standing, Standing::Closed, "{report:?}");
    let report = canary(&client, "/nowhere/jackline".as_ref()).unwrap();
    assert_ne!(report.standing, Standing::Closed, "{report:?}");
}
