//! Tests with small transcripts in the format of the client.

use serde_json::{Value, json};

use super::*;

/// A line with the fields that the client writes on every line.
fn line(mut value: Value) -> Value {
    let common = json!({"sessionId": "s-1", "cwd": "/project", "version": "2.1.325",
        "timestamp": "2026-01-31T12:00:00.000Z", "uuid": "u", "parentUuid": null});
    for (key, field) in common.as_object().unwrap() {
        if value.get(key).is_none() {
            value[key] = field.clone();
        }
    }
    value
}

fn says(content: &Value) -> Value {
    line(json!({"type": "user", "isSidechain": false,
        "message": {"role": "user", "content": content}}))
}

fn calls(id: &str, tool: &str, input: &Value) -> Value {
    line(json!({"type": "assistant", "isSidechain": false, "message": {
        "id": "m1", "model": "claude-x", "role": "assistant", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": id, "name": tool, "input": input}]}}))
}

fn returns(id: &str, content: &Value, is_error: bool, details: &Value) -> Value {
    let mut line = says(&json!([{"type": "tool_result", "tool_use_id": id, "content": content,
        "is_error": is_error}]));
    line["toolUseResult"] = details.clone();
    line
}

fn read_all(bytes: &[u8]) -> (Vec<Value>, SkippedLines) {
    let mut transcript = ClaudeTranscript::new(bytes, SessionId::parse("file").unwrap());
    let events = transcript.by_ref().map(|event| serde_json::to_value(event.unwrap()).unwrap());
    (events.collect(), transcript.skipped())
}

fn joined(lines: &[Value]) -> String {
    lines.iter().flat_map(|line| [line.to_string(), "\n".to_owned()]).collect()
}

/// The events of these lines, without the first event and without the common fields.
fn events(lines: &[Value]) -> Vec<Value> {
    let (mut events, skipped) = read_all(joined(lines).as_bytes());
    assert_eq!(skipped, SkippedLines::default());
    for event in &mut events {
        let event = event.as_object_mut().unwrap();
        assert_eq!(event.remove("session"), Some(json!("s-1")));
        assert_eq!(event.remove("at"), Some(json!("2026-01-31T12:00:00Z")));
    }
    assert_eq!(
        events.first(),
        Some(&json!({"event": "session_started", "workspace": "/project", "client": "claude"}))
    );
    events.split_off(1)
}

#[test]
fn calls_and_results_become_events() {
    let bash = json!({"command": "ls", "description": "d"});
    let reported = events(&[
        says(&json!("do it")),
        calls("c1", "Bash", &bash),
        returns(
            "c1",
            &json!("a\nb"),
            false,
            &json!({"stdout": "a\nb", "stderr": "",
            "interrupted": false, "isImage": false}),
        ),
        calls("c2", "Bash", &json!({"command": "exit 3"})),
        returns("c2", &json!("Exit code 3\nno"), true, &json!("Error: Exit code 3")),
        calls("c3", "Read", &json!({"file_path": "/project/a.txt", "offset": 5, "limit": 10})),
        returns(
            "c3",
            &json!("5\tx"),
            false,
            &json!({"type": "text", "file": {"filePath":
            "/project/a.txt", "content": "x", "numLines": 10, "startLine": 5, "totalLines": 50}}),
        ),
        calls("c4", "Agent", &json!({"prompt": "p"})),
        returns(
            "c4",
            &json!([{"type": "text", "text": "launched"}, {"type": "image"}]),
            false,
            &json!({"isAsync": true, "status": "async_launched"}),
        ),
    ]);
    assert_eq!(
        reported,
        [
            json!({"event": "prompt_submitted", "source": "human", "text": "do it"}),
            json!({"event": "tool_proposed", "call": "c1", "tool": "Bash", "args": bash, "cwd": "/project"}),
            json!({"event": "tool_finished", "call": "c1", "status": "ok", "result": "a\nb",
            "exit_code": 0}),
            json!({"event": "tool_proposed", "call": "c2", "tool": "Bash",
            "args": {"command": "exit 3"}, "cwd": "/project"}),
            json!({"event": "tool_finished", "call": "c2", "status": "error",
            "result": "Exit code 3\nno", "exit_code": 3}),
            json!({"event": "tool_proposed", "call": "c3", "tool": "Read",
            "args": {"file_path": "/project/a.txt", "offset": 5, "limit": 10}, "cwd": "/project"}),
            json!({"event": "tool_finished", "call": "c3", "status": "ok", "result": "5\tx",
            "seen": [{"path": "/project/a.txt", "from": 5, "to": 14, "of": 50}]}),
            json!({"event": "tool_proposed", "call": "c4", "tool": "Agent", "args": {"prompt": "p"},
            "cwd": "/project"}),
            json!({"event": "tool_finished", "call": "c4", "status": "ok", "result": "launched",
            "background": true}),
        ]
    );
}

#[test]
fn a_refused_or_interrupted_call_is_cancelled() {
    let mut denied = returns("c1", &json!("needs approval"), true, &json!("Error: needs approval"));
    denied["toolDenialKind"] = json!("user-rejected");
    let older = returns("c1", &json!("The user doesn't want to proceed"), true, &Value::Null);
    let interrupted = json!({"stdout": "a", "stderr": "", "interrupted": true});
    for line in [denied, older, returns("c1", &json!("a"), false, &interrupted)] {
        let reported = events(&[line]);
        assert_eq!(reported[0]["status"], json!("cancelled"));
        assert_eq!(reported[0].get("exit_code"), None);
    }
    // A command that found nothing did not exit with 0.
    let nothing = json!({"stdout": "", "returnCodeInterpretation": "No matches found"});
    let reported = events(&[returns("c1", &json!(""), false, &nothing)]);
    assert_eq!((&reported[0]["status"], reported[0].get("exit_code")), (&json!("ok"), None));
}

#[test]
fn prompts_of_the_client_are_not_prompts_of_a_person() {
    let mut meta = says(&json!("context"));
    meta["isMeta"] = json!(true);
    let mut summary = says(&json!("This session is being continued"));
    summary["isCompactSummary"] = json!(true);
    let queued = |prompt: &str| {
        line(json!({"type": "attachment",
            "attachment": {"type": "queued_command", "prompt": prompt}}))
    };
    let other = line(json!({"type": "attachment", "attachment": {"type": "date", "date": "x"}}));
    let reported = events(&[
        meta,
        summary,
        other,
        says(&json!("<command-name>/compact</command-name>")),
        says(&json!("<local-command-stdout>Compacted</local-command-stdout>")),
        says(&json!("\n<task-notification>\n<task-id>x</task-id>")),
        queued("<task-notification>…"),
        queued("and the tests"),
        says(&json!([{"type": "text", "text": "look"}, {"type": "image", "source": {}}])),
    ]);
    let sources: Vec<&str> =
        reported.iter().map(|event| event["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["harness", "harness", "harness", "harness", "human", "human"]);
    assert_eq!(reported[5]["text"], json!("look"));
}

#[test]
fn sub_agents_have_their_own_actor_ids() {
    let mut task = says(&json!("sub prompt"));
    let mut call = calls("c1", "Bash", &json!({"command": "ls"}));
    let mut result = returns("c1", &json!("a"), false, &Value::Null);
    for line in [&mut task, &mut call, &mut result] {
        line["isSidechain"] = json!(true);
        line["agentId"] = json!("a7309");
    }
    let reported = events(&[task, call, result]);
    assert!(reported.iter().all(|event| event["actor"] == json!("a7309")), "{reported:?}");
    assert_eq!(reported[0]["source"], json!("harness"));
}

#[test]
fn usage_is_reported_once_and_the_end_of_a_turn_with_the_next_entry() {
    let answer = |id: &str, stop: Value, text: &str| {
        line(json!({"type": "assistant", "message": {"id": id, "model": "claude-x",
            "stop_reason": stop, "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": 5, "cache_read_input_tokens": 6, "output_tokens": 7}}}))
    };
    let reported = events(&[
        answer("m1", json!("end_turn"), "a"),
        answer("m1", json!("end_turn"), "b"),
        says(&json!("go on")),
        answer("m2", json!("end_turn"), "c"),
    ]);
    let kinds: Vec<&str> = reported.iter().map(|event| event["event"].as_str().unwrap()).collect();
    let turn = ["usage_reported", "stop_proposed"];
    assert_eq!(kinds, [&turn[..], &["prompt_submitted"], &turn].concat());
    assert_eq!(
        reported[0],
        json!({"event": "usage_reported", "request": "m1", "model": "claude-x", "input": 5,
            "cache_read": 6, "output": 7})
    );
}

#[test]
fn a_compaction_reports_the_freed_tokens() {
    let boundary = |metadata: Value| {
        line(json!({"type": "system", "subtype": "compact_boundary", "content": "…",
            "compactMetadata": metadata}))
    };
    let reported = events(&[
        boundary(json!({"trigger": "auto", "preTokens": 150_000, "postTokens": 20_000})),
        boundary(json!({"preTokens": 10, "postTokens": 20})),
        boundary(json!("?")),
        line(json!({"type": "system", "subtype": "local_command", "content": "…"})),
    ]);
    let freed: Vec<&Value> = reported.iter().map(|event| &event["freed"]).collect();
    assert_eq!(freed, [&json!(130_000), &json!(0), &Value::Null]);
}

#[test]
fn unreadable_lines_are_counted_and_skipped() {
    let good = format!("{}\n", says(&json!("hello")));
    let odd = [
        json!({"type": "user"}),
        json!({"type": "user", "message": {"content": 7}}),
        json!({"type": "assistant", "message": []}),
        calls("", "Bash", &json!({})),
        calls("c1", &"x".repeat(200), &json!({})),
        says(&json!([{"type": "tool_result", "content": "of nothing"}])),
    ];
    let mut bytes = b"\xff\xfe\n\n   \nnot json\n[1,2]\n{\"type\":\"user\",".to_vec();
    bytes.push(b'\n');
    bytes.extend(joined(&odd).as_bytes());
    bytes.extend(b"{\"type\":\"user\",\"message\":{\"content\":\"\xff\"}}\n");
    bytes.extend(good.as_bytes());
    bytes.extend(b"{\"type\":\"assi");
    let (events, skipped) = read_all(&bytes);
    assert_eq!(skipped, SkippedLines { invalid: 5, too_long: 0, unexpected: 6 });
    let texts: Vec<&Value> = events.iter().filter_map(|event| event.get("text")).collect();
    assert_eq!(texts, [&json!("\u{fffd}"), &json!("hello")]);
    assert_eq!(events.last().unwrap()["session"], json!("file"));
}

#[test]
fn invalid_arguments_stay_text() {
    let deep = format!("{}1{}", "[".repeat(500), "]".repeat(500));
    let call = calls("c1", "T", &json!("DEEP")).to_string();
    let (events, skipped) = read_all(call.replace("\"DEEP\"", &deep).as_bytes());
    assert_eq!((skipped.unexpected, skipped.invalid), (0, 0));
    assert_eq!(events[1]["args_text"], json!(deep));
    let (events, _) = read_all(calls("c1", "T", &json!([1])).to_string().as_bytes());
    assert_eq!(events[1]["args_text"], json!("[1]"));
}

#[test]
fn an_endless_line_is_not_buffered() {
    /// `left` bytes without a newline, then the last lines.
    struct Endless {
        left: u64,
        last: io::Cursor<Vec<u8>>,
    }
    impl io::Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.left.min(into.len() as u64);
            if count == 0 {
                return self.last.read(into);
            }
            into.fill(b'x');
            self.left -= count;
            Ok(usize::try_from(count).unwrap())
        }
    }
    let last = io::Cursor::new(format!("\n{}\n", says(&json!("hello"))).into_bytes());
    let source = io::BufReader::with_capacity(1 << 20, Endless { left: 80 << 20, last });
    let mut transcript = ClaudeTranscript::new(source, SessionId::parse("file").unwrap());
    assert_eq!(transcript.by_ref().count(), 2);
    assert_eq!(transcript.skipped(), SkippedLines { invalid: 0, too_long: 1, unexpected: 0 });
    assert!(transcript.line.capacity() < 1 << 20);
}
