//! `jackline doctor`: closed where the guard holds, open where it does not.

use std::io::Read as _;
use std::process::{Command, Stdio};

use jackline_clients::claude::CLIENT;
use jackline_clients::installed::Installed;
use jackline_setup::doctor::{Standing, canary};
use jackline_setup::live::Scratch;
use serde_json::Value;

use crate::world::{JACKLINE, World, client, hooks};

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
        ("/bin/false", ["`/bin/false --version` does not say", "which version"]),
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
    scratch.install(CLIENT.installation, &hooks(JACKLINE)).unwrap();
    let (code, report) = doctor(&scratch, &client());
    assert_eq!((code, standings(&report)), (Some(0), vec!["closed"; 17]), "{report:#}");
    assert!(report.pointer("/latency/p99_micros").is_some_and(Value::is_u64), "{report:#}");
}

/// A client that runs no hooks is a door without a lock, and must be called so.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_client_that_runs_no_hooks_is_open() {
    let scratch = Scratch::new().unwrap();
    let world = World { scratch };
    let (code, report) = doctor(&world.scratch, &world.unguarded_client());
    assert_eq!(code, Some(1), "{report:#}");
    let open = standings(&report).iter().filter(|standing| **standing == "open").count();
    // All that was tried but that no objection is no approval, and nothing is installed.
    assert_eq!(open, 12 + 1, "{report:#}");
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_canary_sings_where_the_guard_holds_and_not_where_it_is_gone() {
    let client = Installed::find(&CLIENT, Some(&client())).unwrap();
    let report = canary(&client, JACKLINE).unwrap();
    assert_eq!(report.standing, Standing::Closed, "{report:?}");
    let report = canary(&client, "/nowhere/jackline").unwrap();
    assert_ne!(report.standing, Standing::Closed, "{report:?}");
}

/// Whoever has no patience, or is killed, leaves nothing behind.
#[test]
fn a_doctor_who_is_killed_leaves_no_client_and_no_directory() {
    for signal in ["-TERM", "-KILL"] {
        let scratch = Scratch::new().unwrap();
        let place = scratch.home().join("temporary");
        std::fs::create_dir(&place).unwrap();
        let line = scratch.root().join("line");
        let made = Command::new("mkfifo").arg(&line).status().unwrap();
        assert!(made.success());
        // A client that holds the line for as long as it lives.
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && exec echo 2.1.325\n\
             exec > '{}'; sleep 20; echo I am still here\n",
            line.display()
        );
        let client = scratch.write_program("claude", &text).unwrap();
        let mut command = Command::new(JACKLINE);
        scratch.enter(&mut command);
        command.env("TMPDIR", &place).args(["doctor", "claude", "--client-program"]).arg(client);
        let mut doctor = command.stderr(Stdio::null()).spawn().unwrap();
        let mut line = std::fs::File::open(line).unwrap();
        let killed = Command::new("kill").arg(signal).arg(doctor.id().to_string()).status();
        assert!(killed.unwrap().success() && !doctor.wait().unwrap().success());
        let mut said = Vec::new();
        assert_eq!(line.read_to_end(&mut said).unwrap(), 0, "the client is gone");
        while std::fs::read_dir(&place).unwrap().next().is_some() {
            std::thread::yield_now();
        }
    }
}
