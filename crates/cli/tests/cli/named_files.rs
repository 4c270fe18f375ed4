//! Tests of commands that a person gives the path of something that is not a regular file.

use std::fs;
use std::process::Command;

use crate::support::CliWorld;

/// Creates a named pipe. A program that opens it to read waits for a writer.
fn create_pipe(world: &CliWorld, name: &str) {
    let path = world.workspace().join(name);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn assert_refused(world: &CliWorld, args: &[&str], path: &str, is: &str) {
    let run = world.jackline(args);
    assert_eq!(run.code, Some(2), "{args:?}: {run:?}");
    // Some commands show the whole path.
    let text = format!("it is {is}; give the path of a regular file instead");
    for part in [&format!("{path}`"), &text] {
        assert!(run.stderr.contains(part), "{part}: {args:?}: {run:?}");
    }
}

#[test]
fn a_pipe_is_refused_at_once_and_named() {
    let world = CliWorld::new("version: 1\n");
    create_pipe(&world, "pipe");
    for args in [
        &["check", "pipe"][..],
        &["check", "-d", "pipe"],
        &["check", "--effective", "pipe"],
        &["observe", "-d", "pipe"],
        &["explain", "-d", "pipe", "ls"],
        &["stdio", "-d", "pipe"],
        &["mcp", "serve", "-d", "pipe"],
        &["mcp", "wrap", "-d", "pipe", "--", "true"],
        &["backtest", "pipe"],
        &["backtest", "-d", "pipe", "."],
        &["attempt", "pipe"],
        &["run", "pipe"],
        &["verify", "pipe"],
        &["replay", "pipe"],
        &["export", "pipe"],
        &["verify", "--attestation", "x", "--public-key", "pipe"],
        &["trust", "pipe"],
    ] {
        assert_refused(&world, args, "pipe", "a pipe");
    }
}

#[test]
fn a_directory_is_refused_and_named() {
    let world = CliWorld::new("version: 1\n");
    fs::create_dir(world.workspace().join("rules")).unwrap();
    for args in [
        &["check", "rules"][..],
        &["check", "-d", "rules"],
        &["check", "--effective", "rules"],
        &["observe", "-d", "rules"],
        &["explain", "-d", "rules", "ls"],
        &["stdio", "-d", "rules"],
        &["backtest", "-d", "rules", "."],
        &["verify", "rules"],
        &["replay", "rules"],
        &["trust", "rules"],
    ] {
        assert_refused(&world, args, "rules", "a directory");
    }
}
