//! Tests of workers that are missing, lost or faulty.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use jackline_attempt::ArtifactFault;
use jackline_sandbox_host::Sandbox;
use serde_json::json;
use tempfile::TempDir;

use crate::world::SandboxWorld;

/// A shell script in the place of a worker.
fn fake_worker(script: &str) -> (TempDir, SandboxWorld) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("worker");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    (directory, SandboxWorld::with(Sandbox { path: Some(path) }))
}

const READY: &str = "echo '{\"ready\":{\"version\":1}}'";

#[test]
fn the_error_for_a_missing_worker_names_the_command_that_builds_it() {
    for sandbox in [Sandbox { path: Some("/nowhere/jackline-sandbox".into()) }, Sandbox::default()]
    {
        let world = SandboxWorld::with(sandbox.clone());
        // The tests have no worker beside them, but there may be one in `PATH`.
        let Err(ArtifactFault::Refused(violations)) = world.run("ok(1)") else {
            assert_eq!(sandbox, Sandbox::default());
            continue;
        };
        assert_eq!(violations[0].subtype.as_str(), "dependency_unavailable");
        let says = &violations[0].message;
        assert!(says.contains("`cargo build --release -p jackline-sandbox`"), "{says}");
        assert_eq!(world.validate("ok(1)"), ["dependency_unavailable"]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_worker_has_limited_itself_before_its_first_message() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_jackline-sandbox"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "{\"ready\":{\"version\":1}}\n");
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    for (what, most) in [
        ("Max address space", "1073741824"),
        ("Max open files", "3"),
        ("Max file size", "0"),
        ("Max core file size", "0"),
        ("Max processes", "0"),
    ] {
        let row = limits.lines().find(|line| line.starts_with(what)).unwrap();
        let soft_and_hard = format!("{most} {most}");
        let words = row[what.len()..].split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        assert_eq!(words, soft_and_hard, "{row}");
    }
    // The worker ends when its host ends.
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn one_worker_runs_many_programs_and_none_sees_another() {
    let world = SandboxWorld::new();
    for n in 0..50 {
        let source = format!("x{n} = {n}\nimport json\nok(tool('add')(a={n}, b=0))");
        assert_eq!(world.answer(&source), json!(n));
    }
    let (error_type, message) = world.fault("ok(x3)");
    assert_eq!(error_type, "execution");
    assert!(message.starts_with("NameError"), "{message}");
}

#[test]
fn a_silent_worker_is_ended() {
    let (_directory, mut world) = fake_worker(&format!("{READY}; exec sleep 1000"));
    world.limits.deadline_ms = 300;
    assert_eq!(world.fault("ok(1)").0, "timeout");
    assert_eq!(world.validate("ok(1)"), ["forbidden_construct"]);
    // The same holds while it does not read: this program is longer than a pipe buffer.
    world.limits.source_bytes_max = 32 << 20;
    assert_eq!(world.fault(&"x = 1\n".repeat(1 << 20)).0, "timeout");
}

#[test]
fn a_worker_that_breaks_the_protocol_is_dropped() {
    for (script, error_type) in [
        (format!("{READY}; read line; echo garbage"), "worker_crash"),
        (format!("{READY}; read line; echo '{{\"ready\":{{\"version\":1}}}}'"), "worker_crash"),
        (format!("{READY}; read line; echo '{{\"ended\":{{}}}}'"), "worker_crash"),
        (format!("{READY}; read line; exit 3"), "worker_crash"),
        (format!("{READY}; read line; exit 65"), "memory"),
        (format!("{READY}; read line; kill -XCPU $$"), "timeout"),
        (format!("{READY}; read line; kill -SEGV $$"), "worker_crash"),
        (
            format!(
                "{READY}; read line; echo '{}'",
                r#"{"ended":{"end":{"handed_on":7},"at":null,"printed":"","printed_bytes":0,"context":null}}"#
            ),
            "worker_crash",
        ),
    ] {
        let (_directory, world) = fake_worker(&script);
        let fault = world.fault("ok(1)");
        assert_eq!(fault.0, error_type, "{script}: {}", fault.1);
    }
    let (_directory, world) = fake_worker(&format!("{READY}; exec tr '\\0' x 3<&0 < /dev/zero"));
    let (error_type, message) = world.fault("ok(1)");
    assert_eq!(error_type, "worker_crash");
    assert!(message.contains("bytes at once"), "{message}");
}

#[test]
fn a_worker_that_calls_without_end_is_dropped() {
    let asks = r#"{"wants":{"tool":{"name":"echo","arguments":{}}}}"#;
    let (_directory, mut world) =
        fake_worker(&format!("{READY}; while read line; do echo '{asks}'; done"));
    world.limits.calls_max = 7;
    assert_eq!(world.fault("ok(1)").0, "worker_crash");
    assert_eq!(world.called().len(), 7);
}

#[test]
fn a_worker_of_another_build_is_not_used() {
    for script in ["echo '{\"ready\":{\"version\":0}}'; read line", "exit 1", "echo hello"] {
        let (_directory, world) = fake_worker(script);
        let Err(ArtifactFault::Refused(violations)) = world.run("ok(1)") else {
            panic!("{script}")
        };
        assert_eq!(violations[0].subtype.as_str(), "dependency_unavailable");
    }
}
