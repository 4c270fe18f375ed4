//! `jackline mcp wrap` before servers that die, hang, and talk nonsense.

use std::fs;

use jackline_engine::{EventKind, Status, ToolFinished};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::mcp_support::{Proxy, call, received, session, text};
use crate::support::World;

const EMPTY: &str = "version: 1\nname: test/mcp\nmode: enforce\n";

const PING: &str = r#"{"jsonrpc":"2.0","id":90,"method":"ping"}"#;

/// How the calls of a session came back.
fn ended(world: &World) -> Vec<Status> {
    let session = session(world);
    world.prove(&session);
    let status = |kind: &EventKind| match kind {
        EventKind::ToolFinished(ToolFinished { status, .. }) => Some(*status),
        _ => None,
    };
    world.records(&session).iter().filter_map(|record| status(&record.event.kind)).collect()
}

fn kind(answer: &Value) -> &str {
    answer["error"]["data"]["kind"].as_str().unwrap_or_default()
}

#[test]
fn a_server_that_dies_is_named_with_its_last_words_now_and_later() {
    let world = World::new(EMPTY);
    let mut proxy = Proxy::start(&world, "*die*) echo 'out of cheese' >&2; exit 7 ;;");
    proxy.send(PING);
    proxy.line();
    proxy.send(&call(1, "die", "{}"));
    let gone: Value = serde_json::from_str(&proxy.line()).unwrap();
    assert_eq!((&gone["id"], kind(&gone)), (&json!(1), "server_gone"));
    assert_eq!(gone["error"]["data"]["how"], "it ended with exit status 7");
    assert_eq!(gone["error"]["data"]["stderr"], "out of cheese");
    assert!(gone["error"]["message"].as_str().unwrap().contains("out of cheese"), "{gone}");
    for line in [PING, &call(2, "echo", "{}")] {
        assert_eq!(kind(&proxy.ask(line)), "server_gone");
    }
    let left = proxy.leave();
    assert_eq!(left.code, Some(0));
    assert!(left.stderr.contains("out of cheese"), "what it says is passed on");
    assert_eq!(ended(&world), [Status::Crashed]);
}

#[test]
fn a_server_whose_children_live_on_is_dead_all_the_same() {
    let world = World::new(EMPTY);
    let mut proxy = Proxy::start(&world, "*die*) sleep 1000 & echo $! > child; exit 1 ;;");
    assert_eq!(kind(&proxy.call(1, "die", "{}")), "server_gone");
    proxy.leave();
    assert_is_gone(&world);
}

#[test]
fn a_server_that_cannot_be_started_is_said_at_once() {
    let world = World::new(EMPTY);
    let run = world.jackline(&["mcp", "wrap", "--", "/no/such/server"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("can't start `/no/such/server`"), "{run:?}");
}

#[test]
fn a_server_that_hangs_is_waited_for_so_long_and_its_late_answer_is_dropped() {
    let world = World::new(EMPTY);
    let cases = r#"*hang*) held=$id ;;
    *release*) text "$held" late; text "$id" released ;;"#;
    let mut proxy = Proxy::start_with(&world, &["--timeout", "1"], cases);
    let late = proxy.call(1, "hang", "{}");
    assert_eq!((&late["id"], kind(&late)), (&json!(1), "timeout"));
    let released = proxy.call(2, "release", "{}");
    assert_eq!((&released["id"], text(&released, 0)), (&json!(2), "released"));
    let left = proxy.leave();
    assert_eq!(left.lines, Vec::<String>::new());
    assert!(left.stderr.contains("an answer to 1 is dropped"), "{}", left.stderr);
    let cancelled =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"#;
    assert!(received(&world).contains(cancelled), "the server is told");
    assert_eq!(ended(&world), [Status::Timeout, Status::Ok]);
}

#[test]
fn a_server_that_reports_progress_has_its_time_again() {
    let world = World::new(EMPTY);
    let cases = r#"*slow*) for n in 1 2 3 4; do
        sleep 0.5; printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":%s}}\n' $n
    done; text "$id" done ;;"#;
    let mut proxy = Proxy::start_with(&world, &["--timeout", "1"], cases);
    let line = call(1, "slow", "{}")
        .replace(r#""params":{"#, r#""params":{"_meta":{"progressToken":"p"},"#);
    proxy.send(&line);
    let lines: Vec<Value> = (0..5).map(|_| serde_json::from_str(&proxy.line()).unwrap()).collect();
    assert_eq!(text(&lines[4], 0), "done");
    proxy.leave();
}

#[test]
fn a_call_that_the_client_takes_back_has_no_answer_any_more() {
    let world = World::new(EMPTY);
    let cases = r#"*slow*) held=$id ;;
    *notifications/cancelled*) text "$held" late ;;"#;
    let mut proxy = Proxy::start(&world, cases);
    proxy.send(&call(1, "slow", "{}"));
    proxy.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    assert_eq!(proxy.ask(PING)["id"], 90);
    assert_eq!(proxy.leave().lines, Vec::<String>::new());
    assert_eq!(ended(&world), [Status::Cancelled]);
}

#[test]
fn garbage_and_second_answers_never_reach_the_client() {
    let world = World::new(EMPTY);
    let cases = r#"*noise*) echo 'Listening on stdio...'; echo '{"jsonrpc":'; echo 3; echo '{}'; printf '\377\n\n'
        printf '{"jsonrpc":"2.0","id":1,"id":2,"result":{}}\n'
        text "$id" first; text "$id" second; answer 77 '{}' ;;
    *odd*) answer "$id" 3 ;;"#;
    let mut proxy = Proxy::start(&world, cases);
    assert_eq!(text(&proxy.call(1, "noise", "{}"), 0), "first");
    assert_eq!(kind(&proxy.call(2, "odd", "{}")), "result_unreadable");
    assert_eq!(proxy.ask(PING)["id"], 90);
    let left = proxy.leave();
    assert_eq!(left.lines, Vec::<String>::new());
    assert!(left.stderr.contains("no JSON-RPC message: Listening on stdio..."), "{}", left.stderr);
    assert!(left.stderr.contains("an answer to 77 is dropped"), "{}", left.stderr);
    assert_eq!(ended(&world), [Status::Ok, Status::Error]);
}

#[test]
fn a_line_of_100_mb_is_an_error_for_whoever_asked() {
    let world = World::new(EMPTY);
    let flood = "head -c 100000000 /dev/zero | tr '\\0' x";
    let cases = format!(
        r#"*first*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"content":[{{"type":"text","text":"' "$id"; {flood}; printf '"}}]}}}}\n' ;;
    *last*) printf '{{"result":{{"content":[{{"type":"text","text":"'; {flood}; printf '"}}]}},"jsonrpc":"2.0","id":%s}}\n' "$id" ;;
    *bare*) {flood}; echo ;;"#
    );
    let mut proxy = Proxy::start(&world, &cases);
    for (id, tool) in [(1, "first"), (2, "last"), (3, "bare")] {
        let answer = proxy.call(id, tool, "{}");
        assert_eq!((&answer["id"], kind(&answer)), (&json!(id), "result_too_long"));
    }
    let status = fs::read_to_string(format!("/proc/{}/status", proxy.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 200_000, "{peak} kB");
    assert_eq!(text(&proxy.call(4, "echo", "{}"), 0), "said");
    proxy.leave();
    assert_eq!(ended(&world), [Status::Error, Status::Error, Status::Error, Status::Ok]);
}

#[test]
fn a_server_that_does_not_read_is_given_up() {
    let world = World::new(EMPTY);
    let mut proxy = Proxy::start_with(&world, &["--timeout", "1"], "*stuck*) sleep 1000 ;;");
    proxy.send(&call(1, "stuck", "{}"));
    let long = "x".repeat(1 << 20);
    proxy.send(&call(2, "echo", &format!(r#"{{"text":"{long}"}}"#)));
    for _ in 0..2 {
        let answer: Value = serde_json::from_str(&proxy.line()).unwrap();
        assert!(["timeout", "server_gone"].contains(&kind(&answer)), "{answer}");
    }
    assert_eq!(kind(&proxy.ask(PING)), "server_gone");
    assert_eq!(proxy.leave().code, Some(0));
}

#[test]
fn a_request_with_an_id_that_nobody_can_repeat_is_refused_and_not_sent() {
    let world = World::new(EMPTY);
    let mut proxy = Proxy::start(&world, "");
    for (method, id) in [
        ("ping", "1e400"),
        ("tools/list", r#""\ud83d""#),
        ("tools/call", "1e400"),
        ("resources/list", "[1]"),
        ("ping", "true"),
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
        let answer = proxy.ask(&line);
        assert_eq!((kind(&answer), &answer["id"]), ("invalid_id", &Value::Null), "{answer}");
        assert_eq!(answer["error"]["code"], -32600);
    }
    assert_eq!(proxy.ask(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#)["id"], 1.5);
    assert_eq!(proxy.leave().code, Some(0));
    assert_eq!(received(&world).lines().count(), 1);
}

#[test]
fn an_id_that_is_in_use_is_not_used_again() {
    let world = World::new(EMPTY);
    let cases = r#"*slow*) held=$id ;;
    *release*) text "$held" done ;;"#;
    let mut proxy = Proxy::start(&world, cases);
    proxy.send(&call(1, "slow", "{}"));
    assert_eq!(kind(&proxy.call(1, "echo", "{}")), "id_in_use");
    proxy.send(r#"{"jsonrpc":"2.0","method":"release"}"#);
    assert_eq!(text(&serde_json::from_str(&proxy.line()).unwrap(), 0), "done");
    proxy.leave();
    assert_eq!(ended(&world), [Status::Cancelled, Status::Ok]);
}

#[test]
fn calls_in_parallel_each_get_their_own_answer() {
    let world = World::new(EMPTY);
    let mut proxy = Proxy::start(&world, r#"*'"tools/call"'*) text "$id" "call $id" ;;"#);
    (1..=200).for_each(|id| proxy.send(&call(id, "echo", &format!(r#"{{"n":{id}}}"#))));
    for _ in 1..=200 {
        let answer: Value = serde_json::from_str(&proxy.line()).unwrap();
        assert_eq!(text(&answer, 0), format!("call {}", answer["id"]));
    }
    assert_eq!(proxy.leave().lines.len(), 0);
    assert_eq!(ended(&world).len(), 200);
}

#[test]
fn a_client_that_leaves_takes_the_server_and_all_it_started_along() {
    let cases = "*busy*) trap '' TERM; sleep 1000 & echo $! > child; text \"$id\" busy; wait ;;";
    let world = World::new(EMPTY);
    let mut proxy = Proxy::start(&world, cases);
    assert_eq!(text(&proxy.call(1, "busy", "{}"), 0), "busy");
    assert_eq!(proxy.leave().code, Some(0));
    assert_is_gone(&world);

    let world = World::new(EMPTY);
    let mut proxy = Proxy::start(&world, cases);
    proxy.call(1, "busy", "{}");
    kill_process(Pid::from_raw(proxy.id().cast_signed()).unwrap(), Signal::TERM).unwrap();
    assert_eq!(proxy.end().code, Some(0));
    assert_is_gone(&world);
    world.prove(&session(&world));
}

fn assert_is_gone(world: &World) {
    let child = fs::read_to_string(world.work().join("child")).unwrap();
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
