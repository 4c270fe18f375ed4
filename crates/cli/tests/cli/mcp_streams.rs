//! Tests of `jackline mcp wrap` with clients and servers that do not read, or that send partial
//! messages.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::mcp_support::{WrapProcess, call_request, result_text};
use crate::support::{CliWorld, JACKLINE};

const EMPTY: &str = "version: 1\nname: test/mcp\nmode: enforce\n";

/// With these messages, more data than the pipes can buffer is in flight.
const MESSAGES: usize = 40;

#[test]
fn a_client_that_sends_much_before_it_reads_gets_every_answer() {
    let world = CliWorld::new(EMPTY);
    let mut command = world.command(JACKLINE);
    // `cat` sends every message back.
    command.args(["mcp", "wrap", "--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let long = "x".repeat(20_000);
    let message =
        |number| format!(r#"{{"jsonrpc":"2.0","method":"n/{number}","params":{{"t":"{long}"}}}}"#);
    let sent: Vec<String> = (0..MESSAGES).map(message).collect();
    let mut stdin = child.stdin.take().unwrap();
    for line in &sent {
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let received: Vec<String> = lines.take(MESSAGES).map(Result::unwrap).collect();
    assert!(received == sent, "every message must come back in the same order");
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_server_that_writes_instead_of_reading_is_read_meanwhile() {
    let world = CliWorld::new(EMPTY);
    let loud = r#"*loud*)
        i=0
        while [ $i -lt 200 ]; do
            printf '{"jsonrpc":"2.0","method":"note","params":{"n":%d,"t":"%04000d"}}\n' $i 0
            i=$((i + 1))
        done
        text "$id" loud ;;"#;
    let mut proxy = WrapProcess::start(&world, loud);
    proxy.send(&call_request(1, "loud", "{}"));
    let long = "x".repeat(1 << 20);
    proxy.send(&call_request(2, "echo", &format!(r#"{{"text":"{long}"}}"#)));
    for number in 0..200 {
        let note: Value = serde_json::from_str(&proxy.next_line()).unwrap();
        assert_eq!(note["params"]["n"], number);
    }
    for expected in ["loud", "said"] {
        assert_eq!(result_text(&serde_json::from_str(&proxy.next_line()).unwrap(), 0), expected);
    }
    assert_eq!(proxy.disconnect().code, Some(0));
}

#[test]
fn an_incomplete_line_delays_no_other_message() {
    let world = CliWorld::new(EMPTY);
    let cases = r#"*half*) first=$id; printf '{"jsonrpc":"2.0",' ;;
    *rest*) printf '"id":%s,"result":{"content":[{"type":"text","text":"whole"}]}}\n' "$first" ;;"#;
    let mut proxy = WrapProcess::start(&world, cases);
    proxy.send(&call_request(1, "half", "{}"));
    proxy.send(r#"{"jsonrpc":"2.0","method":"rest"}"#);
    assert_eq!(result_text(&serde_json::from_str(&proxy.next_line()).unwrap(), 0), "whole");
    assert_eq!(proxy.disconnect().code, Some(0));
}

#[test]
fn a_client_that_never_reads_does_not_prevent_the_exit() {
    let world = CliWorld::new(EMPTY);
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
    assert!(memory() < before + 1024, "the proxy must stop reading when nothing takes its output");
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_error_output_that_is_not_read_delays_no_message() {
    let world = CliWorld::new(EMPTY);
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
fn a_message_that_is_too_long_and_no_answer_fails_no_request() {
    let world = CliWorld::new(EMPTY);
    let cases = r#"*long*)
        printf '{"jsonrpc":"2.0","id":%s,"method":"sampling/createMessage","params":{"t":"' "$id"
        head -c 70000000 /dev/zero | tr '\0' x
        printf '"}}\n'
        text "$id" long ;;"#;
    let mut proxy = WrapProcess::start(&world, cases);
    let answer = proxy.call_tool(1, "long", "{}");
    assert_eq!((&answer["id"], result_text(&answer, 0)), (&Value::from(1), "long"), "{answer}");
    assert!(proxy.disconnect().stderr.contains("the server sent a line of 700000"));
}
