//! Tests of `jackline doctor`: it reports `closed` if the guard works, and `open` if it does not.

use std::io::Read as _;
use std::process::{Command, Stdio};

use jackline_clients::claude::CLIENT;
use jackline_clients::installed_client::InstalledClient;
use jackline_setup::doctor::{CheckStatus, canary};
use jackline_setup::live::ScratchHome;
use serde_json::Value;

use crate::world::{ClientWorld, JACKLINE, client_program, guard_hooks};

fn doctor(scratch: &ScratchHome, program: &std::path::Path) -> (Option<i32>, Value) {
    let mut command = Command::new(JACKLINE);
    scratch.configure_command(&mut command);
    let output = command
        .args(["doctor", "claude", "--json", "--client-program"])
        .arg(program)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}")))
}

/// Without a client the doctor can test nothing, so the error tells which program is wrong.
#[test]
fn a_missing_client_is_named() {
    let scratch = ScratchHome::new().unwrap();
    for (program, fragments) in [
        ("/nowhere/claude", ["no program `/nowhere/claude`", "--client-program"]),
        ("no-such-client", ["`no-such-client`", "--client-program"]),
        ("/bin/false", ["`/bin/false --version` prints no version", "version"]),
    ] {
        let mut command = Command::new(JACKLINE);
        scratch.configure_command(&mut command);
        command.args(["doctor", "claude", "--client-program", program]);
        let output = command.output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout), (Some(2), Vec::new()), "{errors}");
        assert!(fragments.iter().all(|word| errors.contains(word)), "{errors}");
    }
}

fn check_statuses(report: &Value) -> Vec<&str> {
    let lines = report.get("lines").and_then(Value::as_array).unwrap();
    lines.iter().map(|line| line.get("standing").and_then(Value::as_str).unwrap()).collect()
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn every_path_is_closed_with_the_guard() {
    let scratch = ScratchHome::new().unwrap();
    scratch.install(CLIENT.installation, &guard_hooks(JACKLINE)).unwrap();
    let (code, report) = doctor(&scratch, &client_program());
    assert_eq!((code, check_statuses(&report)), (Some(0), vec!["closed"; 17]), "{report:#}");
    assert!(report.pointer("/latency/p99_micros").is_some_and(Value::is_u64), "{report:#}");
}

/// A client that runs no hooks has no guard, and the doctor must report this.
#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn a_client_that_runs_no_hooks_is_open() {
    let scratch = ScratchHome::new().unwrap();
    let world = ClientWorld { scratch };
    let (code, report) = doctor(&world.scratch, &world.unguarded_client());
    assert_eq!(code, Some(1), "{report:#}");
    let open = check_statuses(&report).iter().filter(|standing| **standing == "open").count();
    // Every attempt is open, except the one that expects no approval. The missing installation is
    // open, too.
    assert_eq!(open, 12 + 1, "{report:#}");
}

#[test]
#[ignore = "needs the client: cargo xtask test --clients"]
fn the_canary_passes_with_the_guard_and_fails_without_it() {
    let client = InstalledClient::find(&CLIENT, Some(&client_program())).unwrap();
    let report = canary(&client, JACKLINE).unwrap();
    assert_eq!(report.status, CheckStatus::Closed, "{report:?}");
    let report = canary(&client, "/nowhere/jackline").unwrap();
    assert_ne!(report.status, CheckStatus::Closed, "{report:?}");
}

/// A doctor that is terminated or killed leaves no processes and no files.
#[test]
fn a_killed_doctor_leaves_no_client_and_no_directory() {
    for signal in ["-TERM", "-KILL"] {
        let scratch = ScratchHome::new().unwrap();
        let temporary = scratch.home().join("temporary");
        std::fs::create_dir(&temporary).unwrap();
        let pipe = scratch.root().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        // A client that keeps the pipe open as long as it runs.
        let text = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] && exec echo 2.1.325\n\
             exec > '{}'; sleep 20; echo still running\n",
            pipe.display()
        );
        let client = scratch.write_program("claude", &text).unwrap();
        let mut command = Command::new(JACKLINE);
        scratch.configure_command(&mut command);
        command
            .env("TMPDIR", &temporary)
            .args(["doctor", "claude", "--client-program"])
            .arg(client);
        let mut doctor = command.stderr(Stdio::null()).spawn().unwrap();
        let mut pipe = std::fs::File::open(pipe).unwrap();
        let killed = Command::new("kill").arg(signal).arg(doctor.id().to_string()).status();
        assert!(killed.unwrap().success() && !doctor.wait().unwrap().success());
        let mut output = Vec::new();
        assert_eq!(pipe.read_to_end(&mut output).unwrap(), 0, "the client must have ended");
        while std::fs::read_dir(&temporary).unwrap().next().is_some() {
            std::thread::yield_now();
        }
    }
}
