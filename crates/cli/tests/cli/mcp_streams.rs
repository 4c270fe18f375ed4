//! `jackline mcp wrap` between two who do not read, or say only half of what they mean.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::mcp_support::{Proxy, call, text};
use crate::support::{JACKLINE, World};

const EMPTY: &str = "version: 1\nname: test/mcp\nmode: enforce\n";

/// More than a pipe holds, and than four of them do.
const MUCH: usize = 40;

#[test]
fn a_client_that_says_much_before_it_listens_hears_everything() {
    let world = World::new(EMPTY);
    let mut command = world.command(JACKLINE);
    // Whatever is said to it, it says again.
    command.args(["mcp", "wrap", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let long = "x".repeat(20_000);
    let message =
        |number| format!(r#"{{"jsonrpc":"2.0","method":"n/{number}","params":{{"t":"{long}"}}}}"#);
    let said: Vec<String> = (0..MUCH).map(message).collect();
    let mut stdin = child.stdin.take().unwrap();
    for line in &said {
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let heard: Vec<String> = lines.take(MUCH).map(Result::unwrap).collect();
    assert!(heard == said, "all of it, in the same order");
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_server_that_talks_instead_of_listening_is_heard_meanwhile() {
    let world = World::new(EMPTY);
    let loud = r#"*loud*)
        i=0
        while [ $i -lt 200 ]; do
            printf '{"jsonrpc":"2.0","method":"note","params":{"n":%d,"t":"%04000d"}}\n' $i 0
            i=$((i + 1))
        done
        text "$id" loud ;;"#;
    let mut proxy = Proxy::start(&world, loud);
    proxy.send(&call(1, "loud", "{}"));
    let long = "x".repeat(1 << 20);
    proxy.send(&call(2, "echo", &format!(r#"{{"text":"{long}"}}"#)));
    for number in 0..200 {
        let note: Value = serde_json::from_str(&proxy.line()).unwrap();
        assert_eq!(note["params"]["n"], number);
    }
    for said in ["loud", "said"] {
        assert_eq!(text(&serde_json::from_str(&proxy.line()).unwrap(), 0), said);
    }
    assert_eq!(proxy.leave().code, Some(0));
}

#[test]
fn half_a_line_keeps_nobody_waiting() {
    let world = World::new(EMPTY);
    let cases = r#"*half*) held=$id; printf '{"jsonrpc":"2.0",' ;;
    *rest*) printf '"id":%s,"result":{"content":[{"type":"text","text":"whole"}]}}\n' "$held" ;;"#;
    let mut proxy = Proxy::start(&world, cases);
    proxy.send(&call(1, "half", "{}"));
    proxy.send(r#"{"jsonrpc":"2.0","method":"rest"}"#);
    assert_eq!(text(&serde_json::from_str(&proxy.line()).unwrap(), 0), "whole");
    assert_eq!(proxy.leave().code, Some(0));
}

#[test]
fn a_client_that_never_listens_keeps_nothing_from_ending() {
    let world = World::new(EMPTY);
    let flood = r#"while :; do echo '{"jsonrpc":"2.0","method":"note"}'; done"#;
    let mut command = world.command(JACKLINE);
    command.args(["mcp", "wrap", "--", "sh", "-c", flood]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_child(&child);
    let memory = || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    std::thread::sleep(Duration::from_millis(700));
    let before = memory();
    std::thread::sleep(Duration::from_millis(700));
    assert!(memory() < before + 1024, "what nobody takes is not heard any more");
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn people_who_do_not_read_keep_nobody_waiting() {
    let world = World::new(EMPTY);
    let script = r#"while IFS= read -r line; do
        head -c 300000 /dev/zero | tr '\0' e >&2 &
        echo garbage
        id=${line#*\"id\":}; echo "{\"jsonrpc\":\"2.0\",\"id\":${id%%[,\}]*},\"result\":{}}"
    done"#;
    let mut command = world.command(JACKLINE);
    command.args(["mcp", "wrap", "--", "sh", "-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut stdin, stderr) = (child.stdin.take().unwrap(), child.stderr.take());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for id in 1..=20 {
        writeln!(stdin, r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).unwrap();
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["id"], id);
    }
    drop((stdin, stderr));
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_message_that_is_too_long_and_answers_nobody_fails_nobody() {
    let world = World::new(EMPTY);
    let cases = r#"*long*)
        printf '{"jsonrpc":"2.0","id":%s,"method":"sampling/createMessage","params":{"t":"' "$id"
        head -c 70000000 /dev/zero | tr '\0' x
        printf '"}}\n'
        text "$id" long ;;"#;
    let mut proxy = Proxy::start(&world, cases);
    let answer = proxy.call(1, "long", "{}");
    assert_eq!((&answer["id"], text(&answer, 0)), (&Value::from(1), "long"), "{answer}");
    assert!(proxy.leave().stderr.contains("the server sent a line of 700000"));
}
