//! Tests with invalid payloads, and with payloads that a future client may send.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Map, Value, json};

use crate::hook_support::{
    RULES, SESSION, all_payloads, bash_proposed, hook_answer, hook_command, merge, parse_answer,
    payload, permission_decision, send_payload,
};
use crate::support::{CliOutput, CliWorld, run_with_input};

/// Checks that the answer is never an approval, and that a denial has a text with the reason.
fn check_no_approval(event: &str, run: &CliOutput, sent: &str) {
    let sent = sent.chars().take(400).collect::<String>();
    match run.code {
        Some(0) => {
            assert_eq!(run.stderr, "", "{sent}");
            if !run.stdout.is_empty() {
                check_answer_keys(event, &run.stdout.parse().unwrap(), &sent);
            }
        }
        Some(2) => {
            assert_eq!(run.stdout, "", "{sent}");
            assert!(run.stderr.contains("broken, not the call"), "{sent}: {run:?}");
        }
        _ => panic!("{sent}: {run:?}"),
    }
}

/// Checks that the answer only blocks or informs, and that it is for the event that was sent.
fn check_answer_keys(event: &str, answer: &Value, sent: &str) {
    let answer = answer.as_object().unwrap();
    let allowed_keys = ["hookSpecificOutput", "decision", "reason", "systemMessage"];
    assert!(answer.keys().all(|key| allowed_keys.contains(&key.as_str())), "{sent}: {answer:?}");
    assert!(
        answer.get("decision").is_none_or(|decision| decision == "block"),
        "{sent}: {answer:?}"
    );
    if let Some(specific) = answer.get("hookSpecificOutput") {
        assert_eq!(specific["hookEventName"], event, "{sent}: {answer:?}");
        let decision = &specific["permissionDecision"];
        assert!(decision.is_null() || decision == "deny", "{sent}: {answer:?}");
    }
}

/// Values of a wrong type or with unusual content.
fn unusual_values() -> Vec<Option<Value>> {
    vec![
        None,
        Some(Value::Null),
        Some(json!(-7)),
        Some(json!(true)),
        Some(json!("")),
        Some(json!("../../odd\u{0}\n")),
        Some(json!([1, {"a": []}])),
        Some(json!({"b": {"c": null}, "command": ["x"]})),
    ]
}

/// Each field of every event is removed, emptied or replaced by another value.
#[test]
fn no_field_of_any_payload_can_turn_a_denial_into_an_approval() {
    let names: Vec<usize> = (0..all_payloads(&CliWorld::new("")).len()).collect();
    std::thread::scope(|scope| {
        for half in 0..2 {
            let names = &names;
            scope.spawn(move || {
                names.iter().filter(|name| *name % 2 == half).for_each(|name| vary_payload(*name));
            });
        }
    });
}

fn vary_payload(number: usize) {
    let world = CliWorld::new(RULES);
    let whole = all_payloads(&world)[number].as_object().unwrap().clone();
    let event = whole["hook_event_name"].as_str().unwrap().to_owned();
    for field in whole.keys() {
        for replacement in unusual_values() {
            let mut sent: Map<String, Value> = whole.clone();
            match replacement {
                Some(value) => sent.insert(field.clone(), value),
                None => sent.remove(field),
            };
            if event == "PreToolUse" && field != "tool_input" && field != "tool_name" {
                // With valid other fields this call is denied.
                sent.insert("tool_input".to_owned(), json!({"command": "git push -f"}));
            }
            let sent = Value::Object(sent);
            let run = send_payload(&world, &sent);
            check_no_approval(&event, &run, &sent.to_string());
            check_denial(&event, field, &run, &sent);
        }
    }
    // Some events are not recorded.
    if world.journal_path(SESSION).exists() {
        world.verify_and_replay(SESSION);
    }
}

/// A call that would be denied is still denied, and so is a call that cannot be parsed.
fn check_denial(event: &str, field: &str, run: &CliOutput, sent: &Value) {
    if event != "PreToolUse" || run.code == Some(2) {
        return;
    }
    let is_proposal = sent.get("hook_event_name").and_then(Value::as_str) == Some("PreToolUse");
    let is_valid = sent["tool_input"].is_object()
        && sent["tool_name"].as_str().is_some_and(|name| !name.is_empty());
    let answer = parse_answer(run);
    if !is_proposal {
        assert_eq!((field, &answer), ("hook_event_name", &Value::Null), "an unknown event: {sent}");
    } else if field != "tool_input" && field != "tool_name" || !is_valid {
        assert_eq!(permission_decision(&answer), Some("deny"), "{sent}: {answer}");
    }
}

#[test]
fn unknown_fields_change_no_decision() {
    let world = CliWorld::new(RULES);
    for mut payload in all_payloads(&world) {
        let newer = json!({"tomorrow": {"a": [1.5, null]}, "model": {"id": "m"}, "cost": 1e300});
        merge(&mut payload, newer);
        assert_eq!(hook_answer(&world, &payload), Value::Null, "{payload}");
    }
    let mut denied = bash_proposed(&world, "c9", "git push -f");
    merge(&mut denied, json!({"tomorrow": "x".repeat(100_000), "tool_version": 3}));
    assert_eq!(permission_decision(&hook_answer(&world, &denied)), Some("deny"));
    let records = world.records(SESSION);
    let meta = records.last().unwrap().event.meta.clone().unwrap();
    assert_eq!(meta["odd"], json!({"tomorrow": {"bytes": 100_002}, "tool_version": 3}));
    world.verify_and_replay(SESSION);
}

#[test]
fn unknown_events_are_ignored() {
    let world = CliWorld::new(RULES);
    for event in ["Notification", "Setup", "PermissionRequest", "pretooluse", "Tomorrow", "Ä"] {
        assert_eq!(hook_answer(&world, &payload(&world, event, json!({}))), Value::Null);
    }
    assert!(!world.home().exists());
}

#[test]
fn an_invalid_payload_is_refused_with_a_reason() {
    let world = CliWorld::new(RULES);
    let good = bash_proposed(&world, "c1", "echo").to_string();
    let twice = good.replacen('{', r#"{"tool_name":"Read","#, 1);
    let inside = good.replace(r#""command":"echo""#, r#""command":"echo","command":"x""#);
    let bom = [b"\xef\xbb\xbf", good.as_bytes()].concat();
    let latin = [b"{\"hook_event_name\":\"PreToolUse\",\"cwd\":\"\xe4\"}".as_slice()].concat();
    let deep = format!(
        r#"{{"hook_event_name":"PreToolUse","x":{}1{}}}"#,
        "[".repeat(1000),
        "]".repeat(1000)
    );
    let half = &good[..good.len() / 2];
    for input in [
        b"".as_slice(),
        b" \n",
        b"\0",
        &[0; 4096],
        b"null",
        b"[]",
        b"\"PreToolUse\"",
        b"{}",
        b"not json",
        half.as_bytes(),
        format!("{good}{good}").as_bytes(),
        format!("{good}\0").as_bytes(),
        twice.as_bytes(),
        inside.as_bytes(),
        &bom,
        &latin,
        deep.as_bytes(),
    ] {
        let run = run_with_input(&mut hook_command(&world), input);
        let shown = input.escape_ascii().to_string();
        assert_eq!(run.code, Some(2), "{shown}: {run:?}");
        check_no_approval("", &run, &shown);
        assert!(run.stderr.len() < 600, "{run:?}");
    }
}

/// The client may cut a text inside a surrogate pair.
#[test]
fn half_a_surrogate_pair_is_accepted() {
    let world = CliWorld::new(RULES);
    let denied =
        bash_proposed(&world, "c1", "git push -f #x").to_string().replace("#x", r"# \ud83d");
    let run = run_with_input(&mut hook_command(&world), denied.as_bytes());
    assert_eq!(permission_decision(&parse_answer(&run)), Some("deny"));
    world.verify_and_replay(SESSION);
}

#[test]
fn a_payload_over_the_limit_is_refused_and_a_long_one_is_not() {
    let world = CliWorld::new(RULES);
    let mut child = hook_command(&world)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let block = vec![b' '; 1 << 20];
    // The hook stops reading at the limit, so the last write may fail.
    let _ = (0..65).try_for_each(|_| stdin.write_all(&block));
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), b"".as_slice()));
    assert!(stderr.contains("longer than 67108864 bytes"), "{stderr}");

    let mut long = bash_proposed(&world, "c1", "git push -f");
    merge(
        &mut long,
        json!({"tool_input": {"command": format!("git push -f # {}", "x".repeat(3 << 20))}}),
    );
    assert_eq!(permission_decision(&hook_answer(&world, &long)), Some("deny"));
    world.verify_and_replay(SESSION);
}

#[test]
fn a_session_id_cannot_lead_out_of_the_journal_directory() {
    let world = CliWorld::new(RULES);
    let long = "x".repeat(4096);
    for id in ["../../../escape", "..", ".", "/etc/passwd", "a\0b", "ä/ö", "~", "_", "s\n", &long]
    {
        let mut payload = bash_proposed(&world, "c1", "git push -f");
        merge(&mut payload, json!({ "session_id": id }));
        assert_eq!(permission_decision(&hook_answer(&world, &payload)), Some("deny"), "{id:?}");
        world.verify_and_replay(world.journal_path(id).to_str().unwrap());
    }
    let outside: Vec<String> = world
        .file_tree()
        .into_iter()
        .filter(|path| {
            !path.starts_with("home/")
                && !["home", "work", "work/jackline.yaml"].contains(&path.as_str())
        })
        .collect();
    assert_eq!(outside, [""; 0]);
    // Without a valid id the call is denied, unless the transcript path contains the id.
    for (id, file) in
        [(json!(""), ""), (json!("x".repeat(4097)), "/nowhere/s.jsonl"), (json!(7), "/")]
    {
        let mut payload = bash_proposed(&world, "c1", "echo");
        merge(&mut payload, json!({"session_id": id, "transcript_path": file}));
        let answer = hook_answer(&world, &payload);
        let reason = answer.pointer("/hookSpecificOutput/permissionDecisionReason").unwrap();
        assert!(reason.as_str().unwrap().contains("no valid `session_id`"), "{answer}");
    }
    let mut nameless = bash_proposed(&world, "c1", "git push -f");
    merge(&mut nameless, json!({ "session_id": null }));
    assert_eq!(permission_decision(&hook_answer(&world, &nameless)), Some("deny"));
    world.verify_and_replay(SESSION);
}

#[test]
fn a_client_without_call_ids_is_supported() {
    let world = CliWorld::new(RULES);
    let without_call_id = |mut payload: Value| {
        payload.as_object_mut().unwrap().remove("tool_use_id");
        payload
    };
    for payload in all_payloads(&world) {
        assert_eq!(
            hook_answer(&world, &without_call_id(payload.clone())),
            Value::Null,
            "{payload}"
        );
    }
    let denied = without_call_id(bash_proposed(&world, "", "git push -f"));
    assert_eq!(permission_decision(&hook_answer(&world, &denied)), Some("deny"));
    world.verify_and_replay(SESSION);
}
