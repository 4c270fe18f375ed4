//! `jackline mcp wrap`: what passes, what does not, and what comes of it.

use std::fs;

use jackline_engine::{
    Arguments, EventKind, SessionId, SessionStarted, ToolFinished, ToolProposed,
};
use jackline_journal::Note;
use serde_json::{Value, json};

use crate::mcp_support::{Proxy, call, received, session, text};
use crate::support::World;

const RULES: &str = "
version: 1
name: test/mcp
mode: enforce
rules:
  - name: no-secrets
    tool: echo
    when: 'args.text == \"secret\"'
    deny: Secrets are not echoed. Echo something else.
    examples: { deny: [{ text: secret }], allow: [{ text: a }] }
  - name: large
    tool: pay
    when: 'args.amount > 1000'
    ask: Payments above 1000 need a person.
    examples: { ask: [{ amount: 5000 }], allow: [{ amount: 5 }] }
";

/// Lines as clients of both eras send them, none of which calls a tool.
const LINES: [&str; 9] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    r#"{"jsonrpc": "2.0", "method" : "notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":"\u0061b","method":"unknown/method","params":{"x":1.50,"y":[1,  2]}}"#,
    r#"{"params":{},"method":"ping","id":3.0,"jsonrpc":"2.0"}"#,
    r#"{"jsonrpc":"2.0","id":"from-server","result":{"role":"assistant","content":{"type":"text","text":"ö"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#,
    r#"[{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}, {"jsonrpc":"2.0","method":"n"}]"#,
    r#"{"jsonrpc":"2.0","id":9,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/windows\"}\r",
];

#[test]
fn what_is_no_call_passes_byte_for_byte_both_ways() {
    let world = World::new(RULES);
    let from_server = [
        r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{ "x" : 1.0 }}"#,
        r#"[ {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\u00e4"}} ]"#,
    ];
    let cases = format!(
        "*notifications/initialized*) printf '%s\\n' '{}' '{}' ;;",
        from_server[0], from_server[1]
    );
    let mut proxy = Proxy::start(&world, &cases);
    LINES.iter().for_each(|line| proxy.send(line));
    let got: Vec<String> = (0..6).map(|_| proxy.line()).collect();
    let odd = r#"{ "odd" : [1.0, "\u0061"] }"#;
    let result = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{odd}}}"#);
    let expected = [
        result("1"),
        from_server[0].to_owned(),
        from_server[1].to_owned(),
        result(r#""\u0061b""#),
        result("3.0"),
        result("9"),
    ];
    assert_eq!(got, expected);
    let left = proxy.leave();
    assert_eq!((left.code, left.lines.len()), (Some(0), 0), "{}", left.stderr);
    assert_eq!(received(&world), LINES.map(|line| format!("{line}\n")).concat());
    assert!(!world.home().join("sessions").exists(), "nobody called a tool");
}

#[test]
fn a_call_is_decided_on_and_what_is_refused_never_reaches_the_server() {
    let world = World::new(RULES);
    let mut proxy = Proxy::start_with(&world, &["--parent", "the-client"], "");
    let spaced = r#"{"jsonrpc":"2.0", "id":7 ,"method":"tools/call","params":{"arguments":{"text":"a"},"name":"echo","_meta":{"k":1}}}"#;
    proxy.send(spaced);
    assert_eq!(
        proxy.line(),
        r#"{"jsonrpc":"2.0","id":7 ,"result":{"content":[{"type":"text","text":"said"}]}}"#
    );
    let refused = proxy.call(2, "echo", r#"{"text":"secret"}"#);
    assert_eq!(refused["result"]["isError"], true);
    assert_eq!(
        text(&refused, 0),
        "jackline: Secrets are not echoed. Echo something else. (rule `no-secrets`)"
    );
    let twice = proxy.call(3, "echo", r#"{"text":"a","text":"secret"}"#);
    assert_eq!(twice["result"]["isError"], true, "{twice}");
    assert!(text(&twice, 0).contains("expected each key once"), "{twice}");
    assert!(!text(&twice, 0).contains("the guard is broken"), "{twice}");
    for params in [
        r#"{"name":"echo","arguments":{"text":"a"},"arguments":{"text":"secret"}}"#,
        r#"{"name":"say","name":"echo","arguments":{"text":"secret"}}"#,
        r#"{"name":7,"arguments":{}}"#,
        r#"["echo",{"text":"secret"}]"#,
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{params}}}"#);
        let error = proxy.ask(&line)["error"].clone();
        assert_eq!(
            (&error["code"], &error["data"]["kind"]),
            (&json!(-32602), &json!("invalid_params"))
        );
        assert!(error["message"].as_str().unwrap().contains("holds a key twice"), "{error}");
    }
    let unnamed = proxy.ask(r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{}}"#);
    assert_eq!(unnamed["result"]["isError"], true);
    let unanswerable =
        proxy.ask(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}"#);
    assert_eq!(unanswerable["error"]["data"]["kind"], "call_without_id");
    let hidden = proxy.ask(r#"{"jsonrpc":"2.0","id":5,"method":"ping","method":"tools/call"}"#);
    assert_eq!(hidden["error"]["data"]["kind"], "no_message");
    assert_eq!(proxy.leave().code, Some(0));
    assert_eq!(received(&world), format!("{spaced}\n"));

    let session = session(&world);
    world.prove(&session);
    let records = world.records(&session);
    let EventKind::SessionStarted(SessionStarted { client, parent, workspace, .. }) =
        &records[0].event.kind
    else {
        panic!("{:?}", records[0].event)
    };
    assert_eq!(client.as_deref(), Some("mcp"));
    assert_eq!(parent.as_ref().map(SessionId::as_str), Some("the-client"));
    assert_eq!(workspace.as_deref(), world.work().to_str());
    let EventKind::ToolProposed(ToolProposed { tool, args, .. }) = &records[1].event.kind else {
        panic!()
    };
    assert_eq!((tool.as_str(), args), ("echo", &Arguments::Parsed(json!({"text": "a"}))));
}

#[test]
fn the_session_of_the_client_is_the_one_that_people_mean() {
    let world = World::new(RULES);
    let started =
        json!({"event": "session_started", "session": "the-client", "workspace": world.work()});
    let call = json!({"event": "tool_proposed", "session": "the-client", "call": "c1", "tool": "t", "args": {}});
    world.stdio(&[started.to_string(), call.to_string()]);
    let (client, person) = ("CLAUDE_CODE_SESSION_ID", "JACKLINE_PARENT");
    for said in [&[(client, "the-client")][..], &[(client, "x"), (person, "the-client")]] {
        let mut proxy = Proxy::start_by(&world, said);
        proxy.call(1, "echo", r#"{"text":"a"}"#);
        proxy.leave();
    }
    let status = world.jackline(&["status", "--json"]).stdout;
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["session"], "the-client", "although the proxies were busy later");
    let parts = status["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 2);
    let text = world.jackline(&["status"]).stdout;
    assert!(text.contains("mcp-") && text.contains("calls 1: 1 ok"), "{text}");
    let part = world.jackline(&["status", parts[0].as_str().unwrap()]).stdout;
    assert!(part.contains("part of") && part.contains("the-client"), "{part}");
    let all = world.jackline(&["status", "--all"]).stdout;
    let names: Vec<&str> =
        all.lines().skip(1).map(|line| line.split("  ").next().unwrap()).collect();
    assert_eq!(names[0].trim(), "the-client", "{all}");
    assert!(all.lines().skip(2).all(|line| line.starts_with("  mcp-")), "{all}");
}

#[test]
fn a_session_that_is_under_way_is_joined_and_neither_begun_nor_ended() {
    let world = World::new(RULES);
    let event = |event: Value| {
        let mut event = event;
        event["session"] = json!("harness");
        event.to_string()
    };
    let began = json!({"event": "session_started", "client": "mine", "role": "tester"});
    let call = json!({"event": "tool_proposed", "call": "c1", "tool": "t", "args": {}});
    world.stdio(&[event(began), event(call)]);
    for _ in 0..2 {
        let mut proxy = Proxy::start_with(&world, &["--session", "harness"], "");
        assert_eq!(text(&proxy.call(1, "echo", r#"{"text":"a"}"#), 0), "said");
        proxy.leave();
    }
    world.prove("harness");
    let records = world.records("harness");
    let kinds: Vec<&str> = records.iter().map(|record| record.event.kind.name()).collect();
    let (proposed, finished) = ("tool_proposed", "tool_finished");
    let expected = ["session_started", proposed, proposed, finished, proposed, finished];
    assert_eq!(kinds, expected);
    let calls = records.iter().filter_map(|record| match &record.event.kind {
        EventKind::ToolProposed(ToolProposed { call, .. }) => {
            call.as_ref().map(|call| call.as_str().to_owned())
        }
        _ => None,
    });
    let calls: Vec<String> = calls.collect();
    let own = |call: &str| call.starts_with("mcp-") && call.ends_with("-1");
    assert!(calls[0] == "c1" && own(&calls[1]) && own(&calls[2]), "{calls:?}");
    assert_ne!(calls[1], calls[2], "no name is given twice");
    let ended = json!({"event": "session_ended"});
    world.stdio(&[event(ended)]);
    let mut proxy = Proxy::start_with(&world, &["--session", "harness"], "");
    assert_eq!(text(&proxy.call(1, "echo", r#"{"text":"a"}"#), 0), "said", "it comes back");
    proxy.leave();
    let records = world.records("harness");
    assert_eq!(records.last().unwrap().event.kind.name(), "session_ended");
    let bad = world.jackline(&["mcp", "wrap", "--session", "", "--", "true"]);
    assert!(bad.code == Some(2) && bad.stderr.contains("--session"), "{}", bad.stderr);
}

#[test]
fn all_who_speak_in_a_session_at_once_have_names_of_their_own_for_calls() {
    let world = World::new(RULES);
    let propose = |call: &str| json!({"event": "tool_proposed", "session": "harness", "call": call, "tool": "t", "args": { "n": call }});
    let began = json!({"event": "session_started", "session": "harness"});
    world.stdio(&[began.to_string(), propose("c1").to_string()]);
    let options = ["--session", "harness"];
    let mut proxies = [0, 1].map(|_| Proxy::start_with(&world, &options, r#"*'"wait"'*) ;;"#));
    for (who, proxy) in proxies.iter_mut().enumerate() {
        // It stays open, and the next one shows that it was let run.
        proxy.send(&call(1, "wait", &json!({ "who": who }).to_string()));
        let said = proxy.call(2, "echo", &json!({ "text": who.to_string() }).to_string());
        assert_eq!(text(&said, 0), "said", "{said}");
    }
    let verdicts = world.stdio(&[propose("c2").to_string(), propose("c3").to_string()]).verdicts();
    assert!(verdicts.iter().all(|verdict| verdict["decision"] == "allow"), "{verdicts:?}");
    assert_eq!(proxies.map(|proxy| proxy.leave().code), [Some(0); 2]);
    assert_eq!(received(&world).matches(r#""wait""#).count(), 2);
    world.prove("harness");
}

#[test]
fn a_message_that_is_too_long_is_called_that() {
    let world = World::new(RULES);
    let mut proxy = Proxy::start(&world, "");
    let long = call(7, "echo", &json!({ "text": "x".repeat(64 << 20) }).to_string());
    let answer = proxy.ask(&long);
    assert_eq!(
        (&answer["id"], &answer["error"]["code"], &answer["error"]["data"]["kind"]),
        (&json!(7), &json!(-32600), &json!("message_too_long"))
    );
    let message = answer["error"]["message"].as_str().unwrap();
    let figures = format!("{} bytes; at most {} are read", long.len(), 64 << 20);
    assert!(message.contains(&figures), "{message}");
    assert_eq!(text(&proxy.call(8, "echo", r#"{"text":"a"}"#), 0), "said");
    proxy.leave();
}

#[test]
fn a_call_that_needs_a_person_is_refused_until_one_has_said_yes() {
    let world = World::new(RULES);
    let mut proxy = Proxy::start(&world, "");
    let asked = proxy.call(1, "pay", r#"{"amount":5000}"#);
    assert_eq!(asked["result"]["isError"], true);
    assert!(text(&asked, 0).contains("Payments above 1000 need a person"), "{asked}");
    assert!(text(&asked, 0).contains("a person was told"), "{asked}");
    let pending = world.jackline(&["pending"]);
    let code = pending.stdout.split_whitespace().find(|word| word.starts_with("jl-")).unwrap();
    assert!(!text(&asked, 0).contains(code), "the agent can't use it, and should not try");
    let allowed = world.jackline(&["allow", code]);
    assert_eq!(allowed.code, Some(0));
    assert!(!allowed.stdout.contains("has ended"), "{}", allowed.stdout);
    let passed = proxy.call(2, "pay", r#"{"amount":5000}"#);
    assert_eq!(text(&passed, 0), "said");
    let left = proxy.leave();
    assert!(left.stderr.contains(&format!("`jackline allow {code}`")), "{}", left.stderr);
    world.prove(&session(&world));
}

#[test]
fn what_a_proxy_has_asked_waits_only_while_it_is_there_and_again_when_it_comes_back() {
    let world = World::new(RULES);
    let start = || Proxy::start_with(&world, &["--session", "teller"], "");
    let said = |args: &[&str]| world.jackline(args).stdout;
    let mut proxy = start();
    proxy.call(1, "pay", r#"{"amount":5000}"#);
    assert!(said(&["pending"]).contains("jl-") && said(&["status"]).contains("waits for you"));
    assert!(said(&["watch", "--once"]).contains("1 waits for you"));
    proxy.leave();

    let pending = said(&["pending"]);
    assert!(pending.starts_with("nothing waits for a person\n"), "{pending}");
    assert!(pending.contains("1 question of a session that has ended is left"), "{pending}");
    assert_eq!(said(&["pending", "--json"]), "");
    let status = said(&["status"]);
    assert!(!status.contains("waits for you"), "{status}");
    assert!(status.contains("`jackline pending --all`"), "{status}");
    assert!(!said(&["watch", "--once"]).contains("for you"));
    let all = said(&["pending", "--all"]);
    assert!(all.contains("session teller, which has ended"), "{all}");
    let asked: Value = serde_json::from_str(&said(&["pending", "--all", "--json"])).unwrap();
    assert_eq!(asked["ended"], true);

    // It comes back with what it had asked, and with the answer that it was given meanwhile.
    let mut proxy = start();
    assert_eq!(text(&proxy.call(1, "say", "{}"), 0), "said");
    assert!(said(&["pending"]).contains("jl-"));
    proxy.leave();
    let allowed = world.jackline(&["allow", asked["code"].as_str().unwrap()]);
    assert_eq!(allowed.code, Some(0));
    for says in ["session teller has ended", "`--session teller`", "once the session is back"] {
        assert!(allowed.stdout.contains(says), "{}", allowed.stdout);
    }
    assert!(!allowed.stdout.contains("tell it to go on"), "{}", allowed.stdout);
    let mut proxy = start();
    assert_eq!(text(&proxy.call(1, "pay", r#"{"amount":5000}"#), 0), "said");
    proxy.leave();
    world.prove("teller");
}

#[test]
fn a_session_that_is_paused_or_stopped_runs_no_call() {
    let world = World::new(RULES);
    let mut proxy = Proxy::start(&world, "");
    assert_eq!(text(&proxy.call(1, "say", "{}"), 0), "said");
    assert_eq!(world.jackline(&["pause", "--why", "lunch"]).code, Some(0));
    let held = proxy.call(2, "say", "{}");
    assert!(held["result"]["isError"] == true && text(&held, 0).contains("paused"), "{held}");
    assert_eq!(world.jackline(&["resume", "--why", "back"]).code, Some(0));
    assert_eq!(text(&proxy.call(3, "say", "{}"), 0), "said");
    assert_eq!(world.jackline(&["stop", "--why", "enough"]).code, Some(0));
    let over = proxy.call(4, "say", "{}");
    assert!(over["result"]["isError"] == true, "{over}");
    proxy.leave();
    assert_eq!(received(&world).lines().count(), 2);
    world.prove(&session(&world));
}

#[test]
fn a_guard_that_is_broken_says_so_and_lets_nothing_run() {
    let world = World::new("version: 1\nname: test/mcp\nrules: 3\n");
    let mut proxy = Proxy::start(&world, "");
    let broken = proxy.call(1, "echo", "{}");
    assert_eq!(broken["result"]["isError"], true);
    assert!(text(&broken, 0).contains("the guard is broken, not the call"), "{broken}");
    assert_eq!(proxy.ask(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#)["id"], 2);
    assert_eq!(proxy.leave().code, Some(0));
    assert!(!received(&world).contains("tools/call"));
}

#[test]
fn feedback_is_a_further_item_of_the_result() {
    let world = World::new(
        "version: 1\nname: test/mcp\nmode: enforce\nfeedback:\n  - static: Mind the gap.\n    every_n_calls: 2\n",
    );
    let mut proxy = Proxy::start(&world, "");
    let first = proxy.call(1, "echo", "{}");
    let second = proxy.call(2, "echo", "{}");
    let items = |answer: &Value| answer["result"]["content"].as_array().unwrap().len();
    assert_eq!((items(&first), items(&second)), (1, 2), "{second}");
    assert_eq!(text(&second, 0), "said");
    assert!(text(&second, 1).contains("Mind the gap."), "{second}");
    proxy.leave();
    world.prove(&session(&world));
}

#[test]
fn feedback_is_said_in_the_fields_where_the_tool_promises_none() {
    let world = World::new(
        "version: 1\nname: test/mcp\nmode: enforce\nfeedback:\n  - static: Mind the gap.\n    every_n_calls: 1\n",
    );
    let closed = r#"{"type":"object","additionalProperties":false}"#;
    let cases = format!(
        r#"*'"tools/list"'*) answer "$id" '{{"tools":[{{"name":"free"}},{{"name":"strict","outputSchema":{closed}}}]}}' ;;
    *'"tools/call"'*) answer "$id" '{{"content":[],"structuredContent":{{"n":1}}}}' ;;"#
    );
    let mut proxy = Proxy::start(&world, &cases);
    proxy.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let free = proxy.call(2, "free", "{}")["result"].clone();
    assert_eq!(free["structuredContent"]["feedback"], free["content"][0]["text"], "{free}");
    assert!(free["content"][0]["text"].as_str().unwrap().contains("Mind the gap."));
    let strict = proxy.call(3, "strict", r#"{"a":1}"#)["result"].clone();
    assert_eq!(strict["structuredContent"], json!({ "n": 1 }));
    assert!(strict["content"][0]["text"].as_str().unwrap().contains("Mind the gap."));
    proxy.leave();
    world.prove(&session(&world));
}

#[test]
fn what_only_the_fields_of_a_result_say_is_told_to_the_guards_too() {
    let world = World::new(RULES);
    let secret = format!("ghp_{}", "a1".repeat(18));
    let cases = format!(
        r#"*'"twice"'*) answer "$id" '{{"content":[{{"type":"text","text":"{{\"log\":\"2 failed\"}}"}}],"structuredContent":{{"log":"2 failed"}}}}' ;;
    *'"tools/call"'*) answer "$id" '{{"content":[{{"type":"text","text":"fine"}}],"structuredContent":{{"log":"2 failed","key":"{secret}"}}}}' ;;"#
    );
    let mut proxy = Proxy::start(&world, &cases);
    proxy.call(1, "twice", "{}");
    let answer = proxy.call(2, "other", "{}")["result"].clone();
    assert_eq!(answer["structuredContent"]["log"], "2 failed", "as the server sent it");
    proxy.leave();
    let session = session(&world);
    world.prove(&session);
    let results: Vec<String> = world
        .records(&session)
        .iter()
        .filter_map(|record| match &record.event.kind {
            EventKind::ToolFinished(ToolFinished { result, .. }) => {
                Some(result.as_ref()?.head().to_owned())
            }
            _ => None,
        })
        .collect();
    assert_eq!(results[0], r#"{"log":"2 failed"}"#, "said twice, told once");
    assert!(results[1].starts_with("fine\n{\"log\":\"2 failed\",\"key\":"), "{results:?}");
    assert!(!results[1].contains(&secret), "{results:?}");
}

#[test]
fn arguments_that_would_have_to_be_mended_are_refused_since_the_server_gets_them_as_they_are() {
    let world = World::new(
        "version: 1\nname: test/mcp\nmode: enforce\ntools:\n  echo:\n    schema:\n      type: object\n      properties: { filter: { type: object } }\n",
    );
    let mut proxy = Proxy::start(&world, "");
    let wrapped = proxy.call(1, "echo", r#"{"filter":"{\"a\":1}"}"#);
    assert!(text(&wrapped, 0).contains("`/filter`: expected object"), "{wrapped}");
    let text_only = proxy.call(2, "echo", r#""{\"filter\":{\"a\":1}}""#);
    assert_eq!(text_only["result"]["isError"], true, "{text_only}");
    assert_eq!(text(&proxy.call(3, "echo", r#"{"filter":{"a":1}}"#), 0), "said");
    proxy.leave();
    assert_eq!(received(&world).lines().count(), 1);
    world.prove(&session(&world));
}

#[test]
fn a_number_that_cannot_be_kept_is_not_judged_as_another() {
    let world = World::new(RULES);
    let mut proxy = Proxy::start(&world, "");
    let refused = proxy.call(1, "pay", r#"{"amount":18446744073709551617}"#);
    assert!(text(&refused, 0).contains("can't be used"), "{refused}");
    assert_eq!(text(&proxy.call(2, "pay", r#"{"amount":5.5}"#), 0), "said");
    proxy.leave();
    assert_eq!(received(&world).lines().count(), 1);
}

#[test]
fn tools_that_are_described_otherwise_are_reported() {
    let world = World::new(RULES);
    let cases = r#"*'"again"'*) answer "$id" '{"tools":[{"name":"echo","description":"sends it away"}]}' ;;"#;
    let list = |id: u32, cursor: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{"cursor":"{cursor}"}}}}"#
        )
    };
    let mut proxy = Proxy::start(&world, cases);
    let names = |answer: &Value| {
        let tools = answer["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&proxy.ask(&list(1, "x"))), ["echo", "jackline_page"]);
    assert!(proxy.leave().stderr.is_empty());
    let mut proxy = Proxy::start(&world, cases);
    assert_eq!(names(&proxy.ask(&list(1, "again"))), ["echo", "jackline_page"]);
    let left = proxy.leave();
    assert!(left.stderr.contains("`echo`"), "{}", left.stderr);
    let records = world.records(&session(&world));
    assert_eq!(records[0].notes, [Note::ToolsChanged { tools: vec!["echo".to_owned()] }]);
    world.prove(&session(&world));
}

#[test]
fn batches_are_judged_message_by_message() {
    let world = World::new(RULES);
    let cases = r#"'['*) answer 1 '{"content":[{"type":"text","text":"x"}]}'; printf '[{"jsonrpc":"2.0","id":3,"result":{}},{"jsonrpc":"2.0","id":3,"result":{"second":1}}]\n' ;;"#;
    let mut proxy = Proxy::start(&world, cases);
    let ping = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
    let (fine, secret) = (call(1, "say", "{}"), call(2, "echo", r#"{"text":"secret"}"#));
    proxy.send(&format!("[{fine}, {secret}, {ping}]"));
    let mut lines: Vec<Value> =
        (0..3).map(|_| serde_json::from_str(&proxy.line()).unwrap()).collect();
    lines.sort_by_key(ToString::to_string);
    assert_eq!(lines[0][0]["id"], 2);
    assert_eq!(lines[0][0]["result"]["isError"], true);
    assert_eq!(lines[1], json!([{"jsonrpc":"2.0","id":3,"result":{}}]));
    assert_eq!(lines[2]["id"], 1);
    proxy.leave();
    assert_eq!(received(&world), format!("[{fine},{ping}]\n"));
    world.prove(&session(&world));
}

/// A call of a client that shakes no hands.
fn stateless(id: u64, tool: &str, arguments: &str) -> String {
    call(id, tool, arguments).replace(
        r#""params":{"#,
        r#""params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"#,
    )
}

#[test]
fn the_protocol_without_a_handshake_gets_its_own_words() {
    let world = World::new(RULES);
    let mut proxy = Proxy::start(&world, "");
    let line = stateless(1, "echo", r#"{"text":"secret"}"#);
    assert_eq!(proxy.ask(&line)["result"]["resultType"], "complete");
    proxy.leave();
    assert!(fs::read_to_string(world.work().join("received")).is_err(), "nothing was sent");
}

#[test]
fn calls_and_pages_need_no_handshake() {
    let world = World::new(RULES);
    let whole = "a line\n".repeat(20_000);
    let result = json!({
        "resultType": "complete", "content": [{ "type": "text", "text": whole }],
    });
    fs::write(world.work().join("result.json"), result.to_string()).unwrap();
    let cases = r#"*'"show"'*) printf '{"jsonrpc":"2.0","id":%s,"result":' "$id"; cat result.json; printf '}\n' ;;"#;
    let mut proxy = Proxy::start(&world, cases);
    let said = proxy.ask(&stateless(1, "echo", r#"{"text":"a"}"#));
    assert_eq!(text(&said, 0), "said");
    let first = proxy.ask(&stateless(2, "show", "{}"));
    assert_eq!(first["result"]["resultType"], "complete");
    assert_eq!(first["result"]["content"][2]["type"], "resource_link", "it is new enough");
    let cursor = &first["result"]["_meta"]["jackline/page"]["next_cursor"];
    let second =
        proxy.ask(&stateless(3, "jackline_page", &json!({ "cursor": cursor }).to_string()));
    assert_eq!(second["result"]["resultType"], "complete");
    assert!(whole.starts_with(&format!("{}{}", text(&first, 0), text(&second, 0))));
    proxy.leave();
    world.prove(&session(&world));
}
