//! Tests of `jackline mcp wrap` with servers that crash, hang or send invalid messages.

use std::fs;

use jackline_engine::{CallStatus, EventKind, ToolFinished};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::mcp_support::{WrapProcess, call_request, only_session, result_text, server_input};
use crate::support::CliWorld;

const EMPTY: &str = "version: 1\nname: test/mcp\nmode: enforce\n";

const PING: &str = r#"{"jsonrpc":"2.0","id":90,"method":"ping"}"#;

/// Returns the status of each finished call of a session.
fn finished_statuses(world: &CliWorld) -> Vec<CallStatus> {
    let session = only_session(world);
    world.verify_and_replay(&session);
    let status = |kind: &EventKind| match kind {
        EventKind::ToolFinished(ToolFinished { status, .. }) => Some(*status),
        _ => None,
    };
    world.records(&session).iter().filter_map(|record| status(&record.event.kind)).collect()
}

fn error_kind(answer: &Value) -> &str {
    answer["error"]["data"]["kind"].as_str().unwrap_or_default()
}

#[test]
fn a_server_that_crashes_is_named_with_its_error_output_now_and_later() {
    let world = CliWorld::new(EMPTY);
    let mut proxy = WrapProcess::start(&world, "*die*) echo 'out of cheese' >&2; exit 7 ;;");
    proxy.send(PING);
    proxy.next_line();
    proxy.send(&call_request(1, "die", "{}"));
    let crashed: Value = serde_json::from_str(&proxy.next_line()).unwrap();
    assert_eq!((&crashed["id"], error_kind(&crashed)), (&json!(1), "server_gone"));
    assert_eq!(crashed["error"]["data"]["how"], "it exited with status 7");
    assert_eq!(crashed["error"]["data"]["stderr"], "out of cheese");
    assert!(crashed["error"]["message"].as_str().unwrap().contains("out of cheese"), "{crashed}");
    for line in [PING, &call_request(2, "echo", "{}")] {
        assert_eq!(error_kind(&proxy.request(line)), "server_gone");
    }
    let exit = proxy.disconnect();
    assert_eq!(exit.code, Some(0));
    assert!(exit.stderr.contains("out of cheese"), "the error output of the server is passed on");
    assert_eq!(finished_statuses(&world), [CallStatus::Crashed]);
}

#[test]
fn a_server_is_gone_even_if_its_children_still_run() {
    let world = CliWorld::new(EMPTY);
    let mut proxy = WrapProcess::start(&world, "*die*) sleep 1000 & echo $! > child; exit 1 ;;");
    assert_eq!(error_kind(&proxy.call_tool(1, "die", "{}")), "server_gone");
    proxy.disconnect();
    assert_is_gone(&world);
}

#[test]
fn a_server_that_cannot_be_started_is_reported_at_once() {
    let world = CliWorld::new(EMPTY);
    let run = world.jackline(&["mcp", "wrap", "--", "/no/such/server"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("can't start `/no/such/server`"), "{run:?}");
}

#[test]
fn a_server_that_hangs_is_timed_out_and_its_late_answer_is_dropped() {
    let world = CliWorld::new(EMPTY);
    let cases = r#"*hang*) first=$id ;;
    *release*) text "$first" late; text "$id" released ;;"#;
    let mut proxy = WrapProcess::start_with(&world, &["--timeout", "1"], cases);
    let late = proxy.call_tool(1, "hang", "{}");
    assert_eq!((&late["id"], error_kind(&late)), (&json!(1), "timeout"));
    let released = proxy.call_tool(2, "release", "{}");
    assert_eq!((&released["id"], result_text(&released, 0)), (&json!(2), "released"));
    let exit = proxy.disconnect();
    assert_eq!(exit.unread_lines, Vec::<String>::new());
    assert!(exit.stderr.contains("an answer to request 1 was dropped"), "{}", exit.stderr);
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"#;
    assert!(server_input(&world).contains(cancelled), "the server gets a cancellation");
    assert_eq!(finished_statuses(&world), [CallStatus::Timeout, CallStatus::Ok]);
}

#[test]
fn a_progress_report_restarts_the_timeout() {
    let world = CliWorld::new(EMPTY);
    let cases = r#"*slow*) for n in 1 2 3 4; do
        sleep 0.5; printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":%s}}\n' $n
    done; text "$id" done ;;"#;
    let mut proxy = WrapProcess::start_with(&world, &["--timeout", "1"], cases);
    let line = call_request(1, "slow", "{}")
        .replace(r#""params":{"#, r#""params":{"_meta":{"progressToken":"p"},"#);
    proxy.send(&line);
    let lines: Vec<Value> =
        (0..5).map(|_| serde_json::from_str(&proxy.next_line()).unwrap()).collect();
    assert_eq!(result_text(&lines[4], 0), "done");
    proxy.disconnect();
}

#[test]
fn a_cancelled_call_gets_no_answer() {
    let world = CliWorld::new(EMPTY);
    let cases = r#"*slow*) first=$id ;;
    *notifications/cancelled*) text "$first" late ;;"#;
    let mut proxy = WrapProcess::start(&world, cases);
    proxy.send(&call_request(1, "slow", "{}"));
    proxy.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    assert_eq!(proxy.request(PING)["id"], 90);
    assert_eq!(proxy.disconnect().unread_lines, Vec::<String>::new());
    assert_eq!(finished_statuses(&world), [CallStatus::Cancelled]);
}

#[test]
fn invalid_messages_and_second_answers_do_not_reach_the_client() {
    let world = CliWorld::new(EMPTY);
    let cases = r#"*noise*) echo 'Listening on stdio...'; echo '{"jsonrpc":'; echo 3; echo '{}'; printf '\377\n\n'
        printf '{"jsonrpc":"2.0","id":1,"id":2,"result":{}}\n'
        text "$id" first; text "$id" second; answer 77 '{}' ;;
    *odd*) answer "$id" 3 ;;"#;
    let mut proxy = WrapProcess::start(&world, cases);
    assert_eq!(result_text(&proxy.call_tool(1, "noise", "{}"), 0), "first");
    assert_eq!(error_kind(&proxy.call_tool(2, "odd", "{}")), "result_unreadable");
    assert_eq!(proxy.request(PING)["id"], 90);
    let exit = proxy.disconnect();
    assert_eq!(exit.unread_lines, Vec::<String>::new());
    assert!(
        exit.stderr.contains("not a JSON-RPC message: Listening on stdio..."),
        "{}",
        exit.stderr
    );
    assert!(exit.stderr.contains("an answer to request 77 was dropped"), "{}", exit.stderr);
    assert_eq!(finished_statuses(&world), [CallStatus::Ok, CallStatus::Error]);
}

#[test]
fn a_line_of_100_mb_is_an_error_for_the_request() {
    let world = CliWorld::new(EMPTY);
    let flood = "head -c 100000000 /dev/zero | tr '\\0' x";
    let cases = format!(
        r#"*first*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"content":[{{"type":"text","text":"' "$id"; {flood}; printf '"}}]}}}}\n' ;;
    *last*) printf '{{"result":{{"content":[{{"type":"text","text":"'; {flood}; printf '"}}]}},"jsonrpc":"2.0","id":%s}}\n' "$id" ;;
    *bare*) {flood}; echo ;;"#
    );
    let mut proxy = WrapProcess::start(&world, &cases);
    for (id, tool) in [(1, "first"), (2, "last"), (3, "bare")] {
        let answer = proxy.call_tool(id, tool, "{}");
        assert_eq!((&answer["id"], error_kind(&answer)), (&json!(id), "result_too_long"));
    }
    let status = fs::read_to_string(format!("/proc/{}/status", proxy.process_id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 200_000, "{peak} kB");
    assert_eq!(result_text(&proxy.call_tool(4, "echo", "{}"), 0), "said");
    proxy.disconnect();
    assert_eq!(
        finished_statuses(&world),
        [CallStatus::Error, CallStatus::Error, CallStatus::Error, CallStatus::Ok]
    );
}

#[test]
fn a_server_that_does_not_read_its_input_is_given_up() {
    let world = CliWorld::new(EMPTY);
    let mut proxy = WrapProcess::start_with(&world, &["--timeout", "1"], "*stuck*) sleep 1000 ;;");
    proxy.send(&call_request(1, "stuck", "{}"));
    let long = "x".repeat(1 << 20);
    proxy.send(&call_request(2, "echo", &format!(r#"{{"text":"{long}"}}"#)));
    for _ in 0..2 {
        let answer: Value = serde_json::from_str(&proxy.next_line()).unwrap();
        assert!(["timeout", "server_gone"].contains(&error_kind(&answer)), "{answer}");
    }
    assert_eq!(error_kind(&proxy.request(PING)), "server_gone");
    assert_eq!(proxy.disconnect().code, Some(0));
}

#[test]
fn a_request_with_an_unusable_id_is_refused_and_not_sent() {
    let world = CliWorld::new(EMPTY);
    let mut proxy = WrapProcess::start(&world, "");
    for (method, id) in [
        ("ping", "1e400"),
        ("tools/list", r#""\ud83d""#),
        ("tools/call", "1e400"),
        ("resources/list", "[1]"),
        ("ping", "true"),
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
        let answer = proxy.request(&line);
        assert_eq!((error_kind(&answer), &answer["id"]), ("invalid_id", &Value::Null), "{answer}");
        assert_eq!(answer["error"]["code"], -32600);
    }
    assert_eq!(proxy.request(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#)["id"], 1.5);
    assert_eq!(proxy.disconnect().code, Some(0));
    assert_eq!(server_input(&world).lines().count(), 1);
}

#[test]
fn a_request_id_that_is_in_use_is_refused() {
    let world = CliWorld::new(EMPTY);
    let cases = r#"*slow*) first=$id ;;
    *release*) text "$first" done ;;"#;
    let mut proxy = WrapProcess::start(&world, cases);
    proxy.send(&call_request(1, "slow", "{}"));
    assert_eq!(error_kind(&proxy.call_tool(1, "echo", "{}")), "id_in_use");
    proxy.send(r#"{"jsonrpc":"2.0","method":"release"}"#);
    assert_eq!(result_text(&serde_json::from_str(&proxy.next_line()).unwrap(), 0), "done");
    proxy.disconnect();
    assert_eq!(finished_statuses(&world), [CallStatus::Cancelled, CallStatus::Ok]);
}

#[test]
fn parallel_calls_get_their_own_answers() {
    let world = CliWorld::new(EMPTY);
    let mut proxy = WrapProcess::start(&world, r#"*'"tools/call"'*) text "$id" "call $id" ;;"#);
    (1..=200).for_each(|id| proxy.send(&call_request(id, "echo", &format!(r#"{{"n":{id}}}"#))));
    for _ in 1..=200 {
        let answer: Value = serde_json::from_str(&proxy.next_line()).unwrap();
        assert_eq!(result_text(&answer, 0), format!("call {}", answer["id"]));
    }
    assert_eq!(proxy.disconnect().unread_lines.len(), 0);
    assert_eq!(finished_statuses(&world).len(), 200);
}

#[test]
fn a_client_that_disconnects_ends_the_server_and_its_children() {
    let cases = "*busy*) trap '' TERM; sleep 1000 & echo $! > child; text \"$id\" busy; wait ;;";
    let world = CliWorld::new(EMPTY);
    let mut proxy = WrapProcess::start(&world, cases);
    assert_eq!(result_text(&proxy.call_tool(1, "busy", "{}"), 0), "busy");
    assert_eq!(proxy.disconnect().code, Some(0));
    assert_is_gone(&world);

    let world = CliWorld::new(EMPTY);
    let mut proxy = WrapProcess::start(&world, cases);
    proxy.call_tool(1, "busy", "{}");
    kill_process(Pid::from_raw(proxy.process_id().cast_signed()).unwrap(), Signal::TERM).unwrap();
    assert_eq!(proxy.wait().code, Some(0));
    assert_is_gone(&world);
    world.verify_and_replay(&only_session(&world));
}

fn assert_is_gone(world: &CliWorld) {
    let child = fs::read_to_string(world.workspace().join("child")).unwrap();
    let pid = Pid::from_raw(child.trim().parse().unwrap()).unwrap();
    let is_gone = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        test_kill_process(pid).is_err() || stat.map_or(true, |stat| stat.contains(") Z "))
    };
    assert!((0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        is_gone()
    }));
}
