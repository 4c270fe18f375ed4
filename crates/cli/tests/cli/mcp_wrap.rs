//! Tests of `jackline mcp wrap`: the messages that pass, the calls that are denied, and the records
//! of both.

use std::fs;

use jackline_engine::{
    Arguments, EventKind, SessionId, SessionStarted, ToolFinished, ToolProposed,
};
use jackline_journal::JournalNote;
use serde_json::{Value, json};

use crate::mcp_support::{WrapProcess, call_request, only_session, result_text, server_input};
use crate::support::CliWorld;

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

/// Messages of clients with and without a handshake. None of them calls a tool.
const OTHER_MESSAGES: [&str; 9] = [
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
fn a_message_that_is_not_a_call_passes_unchanged_in_both_directions() {
    let world = CliWorld::new(RULES);
    let from_server = [
        r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{ "x" : 1.0 }}"#,
        r#"[ {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\u00e4"}} ]"#,
    ];
    let cases = format!(
        "*notifications/initialized*) printf '%s\\n' '{}' '{}' ;;",
        from_server[0], from_server[1]
    );
    let mut proxy = WrapProcess::start(&world, &cases);
    OTHER_MESSAGES.iter().for_each(|line| proxy.send(line));
    let received_lines: Vec<String> = (0..6).map(|_| proxy.next_line()).collect();
    let unusual = r#"{ "odd" : [1.0, "\u0061"] }"#;
    let result = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{unusual}}}"#);
    let expected = [
        result("1"),
        from_server[0].to_owned(),
        from_server[1].to_owned(),
        result(r#""\u0061b""#),
        result("3.0"),
        result("9"),
    ];
    assert_eq!(received_lines, expected);
    let exit = proxy.disconnect();
    assert_eq!((exit.code, exit.unread_lines.len()), (Some(0), 0), "{}", exit.stderr);
    assert_eq!(server_input(&world), OTHER_MESSAGES.map(|line| format!("{line}\n")).concat());
    assert!(!world.home().join("sessions").exists(), "no tool was called");
}

#[test]
fn a_denied_call_does_not_reach_the_server() {
    let world = CliWorld::new(RULES);
    let mut proxy = WrapProcess::start_with(&world, &["--parent", "the-client"], "");
    let spaced = r#"{"jsonrpc":"2.0", "id":7 ,"method":"tools/call","params":{"arguments":{"text":"a"},"name":"echo","_meta":{"k":1}}}"#;
    proxy.send(spaced);
    assert_eq!(
        proxy.next_line(),
        r#"{"jsonrpc":"2.0","id":7 ,"result":{"content":[{"type":"text","text":"said"}]}}"#
    );
    let refused = proxy.call_tool(2, "echo", r#"{"text":"secret"}"#);
    assert_eq!(refused["result"]["isError"], true);
    assert_eq!(
        result_text(&refused, 0),
        "jackline: Secrets are not echoed. Echo something else. (rule `no-secrets`)"
    );
    let twice = proxy.call_tool(3, "echo", r#"{"text":"a","text":"secret"}"#);
    assert_eq!(twice["result"]["isError"], true, "{twice}");
    assert!(result_text(&twice, 0).contains("expected each key once"), "{twice}");
    assert!(!result_text(&twice, 0).contains("the guard is broken"), "{twice}");
    for params in [
        r#"{"name":"echo","arguments":{"text":"a"},"arguments":{"text":"secret"}}"#,
        r#"{"name":"say","name":"echo","arguments":{"text":"secret"}}"#,
        r#"{"name":7,"arguments":{}}"#,
        r#"["echo",{"text":"secret"}]"#,
    ] {
        let line = format!(r#"{{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{params}}}"#);
        let error = proxy.request(&line)["error"].clone();
        assert_eq!(
            (&error["code"], &error["data"]["kind"]),
            (&json!(-32602), &json!("invalid_params"))
        );
        assert!(error["message"].as_str().unwrap().contains("contains a key twice"), "{error}");
    }
    let unnamed = proxy.request(r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{}}"#);
    assert_eq!(unnamed["result"]["isError"], true);
    let unanswerable =
        proxy.request(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}"#);
    assert_eq!(unanswerable["error"]["data"]["kind"], "call_without_id");
    let hidden = proxy.request(r#"{"jsonrpc":"2.0","id":5,"method":"ping","method":"tools/call"}"#);
    assert_eq!(hidden["error"]["data"]["kind"], "no_message");
    assert_eq!(proxy.disconnect().code, Some(0));
    assert_eq!(server_input(&world), format!("{spaced}\n"));

    let session = only_session(&world);
    world.verify_and_replay(&session);
    let records = world.records(&session);
    let EventKind::SessionStarted(SessionStarted { client, parent, workspace, .. }) =
        &records[0].event.kind
    else {
        panic!("{:?}", records[0].event)
    };
    assert_eq!(client.as_deref(), Some("mcp"));
    assert_eq!(parent.as_ref().map(SessionId::as_str), Some("the-client"));
    assert_eq!(workspace.as_deref(), world.workspace().to_str());
    let EventKind::ToolProposed(ToolProposed { tool, args, .. }) = &records[1].event.kind else {
        panic!()
    };
    assert_eq!((tool.as_str(), args), ("echo", &Arguments::Parsed(json!({"text": "a"}))));
}

#[test]
fn status_shows_the_session_of_the_client_with_its_proxies_as_parts() {
    let world = CliWorld::new(RULES);
    let started = json!({"event": "session_started", "session": "the-client", "workspace": world.workspace()});
    let call = json!({"event": "tool_proposed", "session": "the-client", "call": "c1", "tool": "t", "args": {}});
    world.stdio(&[started.to_string(), call.to_string()]);
    let (client, person) = ("CLAUDE_CODE_SESSION_ID", "JACKLINE_PARENT");
    for variables in [&[(client, "the-client")][..], &[(client, "x"), (person, "the-client")]] {
        let mut proxy = WrapProcess::start_with_variables(&world, variables);
        proxy.call_tool(1, "echo", r#"{"text":"a"}"#);
        proxy.disconnect();
    }
    let status = world.jackline(&["status", "--json"]).stdout;
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["session"], "the-client", "although the proxies were active later");
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
fn a_running_session_is_joined_and_neither_started_nor_ended() {
    let world = CliWorld::new(RULES);
    let event = |event: Value| {
        let mut event = event;
        event["session"] = json!("harness");
        event.to_string()
    };
    let started = json!({"event": "session_started", "client": "mine", "role": "tester"});
    let call = json!({"event": "tool_proposed", "call": "c1", "tool": "t", "args": {}});
    world.stdio(&[event(started), event(call)]);
    for _ in 0..2 {
        let mut proxy = WrapProcess::start_with(&world, &["--session", "harness"], "");
        assert_eq!(result_text(&proxy.call_tool(1, "echo", r#"{"text":"a"}"#), 0), "said");
        proxy.disconnect();
    }
    world.verify_and_replay("harness");
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
    let is_of_proxy = |call: &str| call.starts_with("mcp-") && call.ends_with("-1");
    assert!(calls[0] == "c1" && is_of_proxy(&calls[1]) && is_of_proxy(&calls[2]), "{calls:?}");
    assert_ne!(calls[1], calls[2], "every call id must be unique");
    let ended = json!({"event": "session_ended"});
    world.stdio(&[event(ended)]);
    let mut proxy = WrapProcess::start_with(&world, &["--session", "harness"], "");
    assert_eq!(
        result_text(&proxy.call_tool(1, "echo", r#"{"text":"a"}"#), 0),
        "said",
        "the session continues"
    );
    proxy.disconnect();
    let records = world.records("harness");
    assert_eq!(records.last().unwrap().event.kind.name(), "session_ended");
    let bad = world.jackline(&["mcp", "wrap", "--session", "", "--", "true"]);
    assert!(bad.code == Some(2) && bad.stderr.contains("--session"), "{}", bad.stderr);
}

#[test]
fn processes_in_one_session_use_different_call_ids() {
    let world = CliWorld::new(RULES);
    let propose = |call: &str| json!({"event": "tool_proposed", "session": "harness", "call": call, "tool": "t", "args": { "n": call }});
    let started = json!({"event": "session_started", "session": "harness"});
    world.stdio(&[started.to_string(), propose("c1").to_string()]);
    let options = ["--session", "harness"];
    let mut proxies =
        [0, 1].map(|_| WrapProcess::start_with(&world, &options, r#"*'"wait"'*) ;;"#));
    for (number, proxy) in proxies.iter_mut().enumerate() {
        // This call stays open. The next call shows that the proxy forwarded it.
        proxy.send(&call_request(1, "wait", &json!({ "who": number }).to_string()));
        let answer = proxy.call_tool(2, "echo", &json!({ "text": number.to_string() }).to_string());
        assert_eq!(result_text(&answer, 0), "said", "{answer}");
    }
    let verdicts =
        world.stdio(&[propose("c2").to_string(), propose("c3").to_string()]).json_lines();
    assert!(verdicts.iter().all(|verdict| verdict["decision"] == "allow"), "{verdicts:?}");
    assert_eq!(proxies.map(|proxy| proxy.disconnect().code), [Some(0); 2]);
    assert_eq!(server_input(&world).matches(r#""wait""#).count(), 2);
    world.verify_and_replay("harness");
}

#[test]
fn a_message_that_is_too_long_is_reported_as_such() {
    let world = CliWorld::new(RULES);
    let mut proxy = WrapProcess::start(&world, "");
    let long = call_request(7, "echo", &json!({ "text": "x".repeat(64 << 20) }).to_string());
    let answer = proxy.request(&long);
    assert_eq!(
        (&answer["id"], &answer["error"]["code"], &answer["error"]["data"]["kind"]),
        (&json!(7), &json!(-32600), &json!("message_too_long"))
    );
    let message = answer["error"]["message"].as_str().unwrap();
    let sizes = format!("{} bytes, but the limit is {}", long.len(), 64 << 20);
    assert!(message.contains(&sizes), "{message}");
    assert_eq!(result_text(&proxy.call_tool(8, "echo", r#"{"text":"a"}"#), 0), "said");
    proxy.disconnect();
}

#[test]
fn a_call_that_needs_an_approval_is_refused_until_a_person_allows_it() {
    let world = CliWorld::new(RULES);
    let mut proxy = WrapProcess::start(&world, "");
    let refused = proxy.call_tool(1, "pay", r#"{"amount":5000}"#);
    assert_eq!(refused["result"]["isError"], true);
    assert!(result_text(&refused, 0).contains("Payments above 1000 need a person"), "{refused}");
    assert!(result_text(&refused, 0).contains("a person was notified"), "{refused}");
    let pending = world.jackline(&["pending"]);
    let code = pending.stdout.split_whitespace().find(|word| word.starts_with("jl-")).unwrap();
    assert!(!result_text(&refused, 0).contains(code), "the agent must not read the code");
    let allowed = world.jackline(&["allow", code]);
    assert_eq!(allowed.code, Some(0));
    assert!(!allowed.stdout.contains("has ended"), "{}", allowed.stdout);
    let passed = proxy.call_tool(2, "pay", r#"{"amount":5000}"#);
    assert_eq!(result_text(&passed, 0), "said");
    let exit = proxy.disconnect();
    assert!(exit.stderr.contains(&format!("`jackline allow {code}`")), "{}", exit.stderr);
    world.verify_and_replay(&only_session(&world));
}

#[test]
fn a_question_of_a_proxy_is_open_only_while_the_session_is_active() {
    let world = CliWorld::new(RULES);
    let start = || WrapProcess::start_with(&world, &["--session", "teller"], "");
    let output = |args: &[&str]| world.jackline(args).stdout;
    let mut proxy = start();
    proxy.call_tool(1, "pay", r#"{"amount":5000}"#);
    assert!(output(&["pending"]).contains("jl-") && output(&["status"]).contains("waits for you"));
    assert!(output(&["watch", "--once"]).contains("1 waits for you"));
    proxy.disconnect();

    let pending = output(&["pending"]);
    assert!(
        pending.starts_with("no running session in this directory waits for you; "),
        "{pending}"
    );
    assert!(pending.contains("1 open question of an ended session"), "{pending}");
    assert_eq!(output(&["pending", "--json"]), "");
    let status = output(&["status"]);
    assert!(!status.contains("waits for you"), "{status}");
    assert!(status.contains("`jackline pending --all`"), "{status}");
    assert!(!output(&["watch", "--once"]).contains("for you"));
    let all = output(&["pending", "--all"]);
    assert!(all.contains("session teller, which has ended"), "{all}");
    let question: Value = serde_json::from_str(&output(&["pending", "--all", "--json"])).unwrap();
    assert_eq!(question["ended"], true);

    // The resumed session has the old question, and the answer that a person gave meanwhile.
    let mut proxy = start();
    assert_eq!(result_text(&proxy.call_tool(1, "say", "{}"), 0), "said");
    assert!(output(&["pending"]).contains("jl-"));
    proxy.disconnect();
    let allowed = world.jackline(&["allow", question["code"].as_str().unwrap()]);
    assert_eq!(allowed.code, Some(0));
    for fragment in ["session teller has ended", "--session teller`", "when the session continues"]
    {
        assert!(allowed.stdout.contains(fragment), "{}", allowed.stdout);
    }
    assert!(!allowed.stdout.contains("tell it to continue"), "{}", allowed.stdout);
    let mut proxy = start();
    assert_eq!(result_text(&proxy.call_tool(1, "pay", r#"{"amount":5000}"#), 0), "said");
    proxy.disconnect();
    world.verify_and_replay("teller");
}

#[test]
fn a_paused_or_stopped_session_runs_no_call() {
    let world = CliWorld::new(RULES);
    let mut proxy = WrapProcess::start(&world, "");
    assert_eq!(result_text(&proxy.call_tool(1, "say", "{}"), 0), "said");
    assert_eq!(world.jackline(&["pause", "--why", "lunch"]).code, Some(0));
    let paused = proxy.call_tool(2, "say", "{}");
    assert!(
        paused["result"]["isError"] == true && result_text(&paused, 0).contains("paused"),
        "{paused}"
    );
    assert_eq!(world.jackline(&["resume", "--why", "back"]).code, Some(0));
    assert_eq!(result_text(&proxy.call_tool(3, "say", "{}"), 0), "said");
    assert_eq!(world.jackline(&["stop", "--why", "enough"]).code, Some(0));
    let stopped = proxy.call_tool(4, "say", "{}");
    assert!(stopped["result"]["isError"] == true, "{stopped}");
    proxy.disconnect();
    assert_eq!(server_input(&world).lines().count(), 2);
    world.verify_and_replay(&only_session(&world));
}

#[test]
fn a_broken_guard_is_reported_and_no_call_runs() {
    let world = CliWorld::new("version: 1\nname: test/mcp\nrules: 3\n");
    let mut proxy = WrapProcess::start(&world, "");
    let broken = proxy.call_tool(1, "echo", "{}");
    assert_eq!(broken["result"]["isError"], true);
    assert!(result_text(&broken, 0).contains("the guard is broken, not the call"), "{broken}");
    assert_eq!(proxy.request(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#)["id"], 2);
    assert_eq!(proxy.disconnect().code, Some(0));
    assert!(!server_input(&world).contains("tools/call"));
}

#[test]
fn feedback_is_added_as_an_item_of_the_result() {
    let world = CliWorld::new(
        "version: 1\nname: test/mcp\nmode: enforce\nfeedback:\n  - static: Mind the gap.\n    every_n_calls: 2\n",
    );
    let mut proxy = WrapProcess::start(&world, "");
    let first = proxy.call_tool(1, "echo", "{}");
    let second = proxy.call_tool(2, "echo", "{}");
    let items = |answer: &Value| answer["result"]["content"].as_array().unwrap().len();
    assert_eq!((items(&first), items(&second)), (1, 2), "{second}");
    assert_eq!(result_text(&second, 0), "said");
    assert!(result_text(&second, 1).contains("Mind the gap."), "{second}");
    proxy.disconnect();
    world.verify_and_replay(&only_session(&world));
}

#[test]
fn feedback_is_added_to_structured_content_if_the_schema_allows_it() {
    let world = CliWorld::new(
        "version: 1\nname: test/mcp\nmode: enforce\nfeedback:\n  - static: Mind the gap.\n    every_n_calls: 1\n",
    );
    let closed = r#"{"type":"object","additionalProperties":false}"#;
    let cases = format!(
        r#"*'"tools/list"'*) answer "$id" '{{"tools":[{{"name":"free"}},{{"name":"strict","outputSchema":{closed}}}]}}' ;;
    *'"tools/call"'*) answer "$id" '{{"content":[],"structuredContent":{{"n":1}}}}' ;;"#
    );
    let mut proxy = WrapProcess::start(&world, &cases);
    proxy.request(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    let free = proxy.call_tool(2, "free", "{}")["result"].clone();
    assert_eq!(free["structuredContent"]["feedback"], free["content"][0]["text"], "{free}");
    assert!(free["content"][0]["text"].as_str().unwrap().contains("Mind the gap."));
    let strict = proxy.call_tool(3, "strict", r#"{"a":1}"#)["result"].clone();
    assert_eq!(strict["structuredContent"], json!({ "n": 1 }));
    assert!(strict["content"][0]["text"].as_str().unwrap().contains("Mind the gap."));
    proxy.disconnect();
    world.verify_and_replay(&only_session(&world));
}

#[test]
fn structured_content_is_recorded_for_the_guards_too() {
    let world = CliWorld::new(RULES);
    let secret = format!("ghp_{}", "a1".repeat(18));
    let cases = format!(
        r#"*'"twice"'*) answer "$id" '{{"content":[{{"type":"text","text":"{{\"log\":\"2 failed\"}}"}}],"structuredContent":{{"log":"2 failed"}}}}' ;;
    *'"tools/call"'*) answer "$id" '{{"content":[{{"type":"text","text":"fine"}}],"structuredContent":{{"log":"2 failed","key":"{secret}"}}}}' ;;"#
    );
    let mut proxy = WrapProcess::start(&world, &cases);
    proxy.call_tool(1, "twice", "{}");
    let answer = proxy.call_tool(2, "other", "{}")["result"].clone();
    assert_eq!(answer["structuredContent"]["log"], "2 failed", "the answer must be unchanged");
    proxy.disconnect();
    let session = only_session(&world);
    world.verify_and_replay(&session);
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
    assert_eq!(results[0], r#"{"log":"2 failed"}"#, "equal text and fields must be recorded once");
    assert!(results[1].starts_with("fine\n{\"log\":\"2 failed\",\"key\":"), "{results:?}");
    assert!(!results[1].contains(&secret), "{results:?}");
}

#[test]
fn arguments_that_need_a_repair_are_refused_because_the_server_gets_them_unchanged() {
    let world = CliWorld::new(
        "version: 1\nname: test/mcp\nmode: enforce\ntools:\n  echo:\n    schema:\n      type: object\n      properties: { filter: { type: object } }\n",
    );
    let mut proxy = WrapProcess::start(&world, "");
    let wrapped = proxy.call_tool(1, "echo", r#"{"filter":"{\"a\":1}"}"#);
    assert!(result_text(&wrapped, 0).contains("`/filter`: expected object"), "{wrapped}");
    let text_only = proxy.call_tool(2, "echo", r#""{\"filter\":{\"a\":1}}""#);
    assert_eq!(text_only["result"]["isError"], true, "{text_only}");
    assert_eq!(result_text(&proxy.call_tool(3, "echo", r#"{"filter":{"a":1}}"#), 0), "said");
    proxy.disconnect();
    assert_eq!(server_input(&world).lines().count(), 1);
    world.verify_and_replay(&only_session(&world));
}

#[test]
fn a_number_that_cannot_be_stored_exactly_is_refused() {
    let world = CliWorld::new(RULES);
    let mut proxy = WrapProcess::start(&world, "");
    let refused = proxy.call_tool(1, "pay", r#"{"amount":18446744073709551617}"#);
    assert!(result_text(&refused, 0).contains("can't be used"), "{refused}");
    assert_eq!(result_text(&proxy.call_tool(2, "pay", r#"{"amount":5.5}"#), 0), "said");
    proxy.disconnect();
    assert_eq!(server_input(&world).lines().count(), 1);
}

#[test]
fn a_changed_tool_description_is_reported() {
    let world = CliWorld::new(RULES);
    let cases = r#"*'"again"'*) answer "$id" '{"tools":[{"name":"echo","description":"sends it away"}]}' ;;"#;
    let list = |id: u32, cursor: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{"cursor":"{cursor}"}}}}"#
        )
    };
    let mut proxy = WrapProcess::start(&world, cases);
    let names = |answer: &Value| {
        let tools = answer["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&proxy.request(&list(1, "x"))), ["echo", "jackline_page"]);
    assert!(proxy.disconnect().stderr.is_empty());
    let mut proxy = WrapProcess::start(&world, cases);
    assert_eq!(names(&proxy.request(&list(1, "again"))), ["echo", "jackline_page"]);
    let exit = proxy.disconnect();
    assert!(exit.stderr.contains("`echo`"), "{}", exit.stderr);
    let records = world.records(&only_session(&world));
    assert_eq!(records[0].notes, [JournalNote::ToolsChanged { tools: vec!["echo".to_owned()] }]);
    world.verify_and_replay(&only_session(&world));
}

#[test]
fn each_message_of_a_batch_is_decided_separately() {
    let world = CliWorld::new(RULES);
    let cases = r#"'['*) answer 1 '{"content":[{"type":"text","text":"x"}]}'; printf '[{"jsonrpc":"2.0","id":3,"result":{}},{"jsonrpc":"2.0","id":3,"result":{"second":1}}]\n' ;;"#;
    let mut proxy = WrapProcess::start(&world, cases);
    let ping = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
    let (fine, secret) =
        (call_request(1, "say", "{}"), call_request(2, "echo", r#"{"text":"secret"}"#));
    proxy.send(&format!("[{fine}, {secret}, {ping}]"));
    let mut lines: Vec<Value> =
        (0..3).map(|_| serde_json::from_str(&proxy.next_line()).unwrap()).collect();
    lines.sort_by_key(ToString::to_string);
    assert_eq!(lines[0][0]["id"], 2);
    assert_eq!(lines[0][0]["result"]["isError"], true);
    assert_eq!(lines[1], json!([{"jsonrpc":"2.0","id":3,"result":{}}]));
    assert_eq!(lines[2]["id"], 1);
    proxy.disconnect();
    assert_eq!(server_input(&world), format!("[{fine},{ping}]\n"));
    world.verify_and_replay(&only_session(&world));
}

/// A call of a client that sends no handshake.
fn stateless_call(id: u64, tool: &str, arguments: &str) -> String {
    call_request(id, tool, arguments).replace(
        r#""params":{"#,
        r#""params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"#,
    )
}

#[test]
fn a_stateless_request_gets_an_answer_of_its_protocol_version() {
    let world = CliWorld::new(RULES);
    let mut proxy = WrapProcess::start(&world, "");
    let line = stateless_call(1, "echo", r#"{"text":"secret"}"#);
    assert_eq!(proxy.request(&line)["result"]["resultType"], "complete");
    proxy.disconnect();
    assert!(fs::read_to_string(world.workspace().join("received")).is_err(), "nothing was sent");
}

#[test]
fn calls_and_pages_need_no_handshake() {
    let world = CliWorld::new(RULES);
    let whole = "a line\n".repeat(20_000);
    let result = json!({
        "resultType": "complete", "content": [{ "type": "text", "text": whole }],
    });
    fs::write(world.workspace().join("result.json"), result.to_string()).unwrap();
    let cases = r#"*'"show"'*) printf '{"jsonrpc":"2.0","id":%s,"result":' "$id"; cat result.json; printf '}\n' ;;"#;
    let mut proxy = WrapProcess::start(&world, cases);
    let answer = proxy.request(&stateless_call(1, "echo", r#"{"text":"a"}"#));
    assert_eq!(result_text(&answer, 0), "said");
    let first = proxy.request(&stateless_call(2, "show", "{}"));
    assert_eq!(first["result"]["resultType"], "complete");
    assert_eq!(
        first["result"]["content"][2]["type"], "resource_link",
        "this protocol version has resource links"
    );
    let cursor = &first["result"]["_meta"]["jackline/page"]["next_cursor"];
    let second = proxy.request(&stateless_call(
        3,
        "jackline_page",
        &json!({ "cursor": cursor }).to_string(),
    ));
    assert_eq!(second["result"]["resultType"], "complete");
    assert!(whole.starts_with(&format!("{}{}", result_text(&first, 0), result_text(&second, 0))));
    proxy.disconnect();
    world.verify_and_replay(&only_session(&world));
}
