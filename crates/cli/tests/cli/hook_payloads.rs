//! Payloads that no client should send, and such that newer ones will.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Map, Value, json};

use crate::hook_support::{
    RULES, SESSION, all, bash, command, hear, heard, merge, payload, permission, tell,
};
use crate::support::{Run, World, feed};

/// Whatever was sent, this is no approval, and a text says why a gate is shut.
fn check(event: &str, run: &Run, sent: &str) {
    let sent = sent.chars().take(400).collect::<String>();
    match run.code {
        Some(0) => {
            assert_eq!(run.stderr, "", "{sent}");
            if !run.stdout.is_empty() {
                check_said(event, &run.stdout.parse().unwrap(), &sent);
            }
        }
        Some(2) => {
            assert_eq!(run.stdout, "", "{sent}");
            assert!(run.stderr.contains("broken, not the call"), "{sent}: {run:?}");
        }
        _ => panic!("{sent}: {run:?}"),
    }
}

/// Only words that object or inform, and for the event that was sent.
fn check_said(event: &str, said: &Value, sent: &str) {
    let said = said.as_object().unwrap();
    let known = ["hookSpecificOutput", "decision", "reason", "systemMessage"];
    assert!(said.keys().all(|key| known.contains(&key.as_str())), "{sent}: {said:?}");
    assert!(said.get("decision").is_none_or(|word| word == "block"), "{sent}: {said:?}");
    if let Some(specific) = said.get("hookSpecificOutput") {
        assert_eq!(specific["hookEventName"], event, "{sent}: {said:?}");
        let word = &specific["permissionDecision"];
        assert!(word.is_null() || word == "deny", "{sent}: {said:?}");
    }
}

/// What may stand where something else should.
fn odd_values() -> Vec<Option<Value>> {
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

/// Every field of every event is missing, empty, or something else.
#[test]
fn no_field_of_any_payload_can_open_a_gate() {
    let names: Vec<usize> = (0..all(&World::new("")).len()).collect();
    std::thread::scope(|scope| {
        for half in 0..2 {
            let names = &names;
            scope.spawn(move || {
                names.iter().filter(|name| *name % 2 == half).for_each(|name| vary(*name));
            });
        }
    });
}

fn vary(number: usize) {
    let world = World::new(RULES);
    let whole = all(&world)[number].as_object().unwrap().clone();
    let event = whole["hook_event_name"].as_str().unwrap().to_owned();
    for field in whole.keys() {
        for odd in odd_values() {
            let mut sent: Map<String, Value> = whole.clone();
            match odd {
                Some(value) => sent.insert(field.clone(), value),
                None => sent.remove(field),
            };
            if event == "PreToolUse" && field != "tool_input" && field != "tool_name" {
                // With everything else in order this is denied.
                sent.insert("tool_input".to_owned(), json!({"command": "git push -f"}));
            }
            let sent = Value::Object(sent);
            let run = tell(&world, &sent);
            check(&event, &run, &sent.to_string());
            check_gate(&event, field, &run, &sent);
        }
    }
    // Some events tell nothing that is written down.
    if world.journal(SESSION).exists() {
        world.prove(SESSION);
    }
}

/// The gate is shut where it would be, and where nobody can tell what is meant.
fn check_gate(event: &str, field: &str, run: &Run, sent: &Value) {
    if event != "PreToolUse" || run.code == Some(2) {
        return;
    }
    let known = sent.get("hook_event_name").and_then(Value::as_str) == Some("PreToolUse");
    let understood = sent["tool_input"].is_object()
        && sent["tool_name"].as_str().is_some_and(|name| !name.is_empty());
    let said = heard(run);
    if !known {
        assert_eq!((field, &said), ("hook_event_name", &Value::Null), "an unknown event: {sent}");
    } else if field != "tool_input" && field != "tool_name" || !understood {
        assert_eq!(permission(&said), Some("deny"), "{sent}: {said}");
    }
}

#[test]
fn what_is_newer_than_this_program_changes_no_decision() {
    let world = World::new(RULES);
    for mut payload in all(&world) {
        let newer = json!({"tomorrow": {"a": [1.5, null]}, "model": {"id": "m"}, "cost": 1e300});
        merge(&mut payload, newer);
        assert_eq!(hear(&world, &payload), Value::Null, "{payload}");
    }
    let mut denied = bash(&world, "c9", "git push -f");
    merge(&mut denied, json!({"tomorrow": "x".repeat(100_000), "tool_version": 3}));
    assert_eq!(permission(&hear(&world, &denied)), Some("deny"));
    let records = world.records(SESSION);
    let meta = records.last().unwrap().event.meta.clone().unwrap();
    assert_eq!(meta["odd"], json!({"tomorrow": {"bytes": 100_002}, "tool_version": 3}));
    world.prove(SESSION);
}

#[test]
fn events_that_nobody_knows_are_passed_over() {
    let world = World::new(RULES);
    for event in ["Notification", "Setup", "PermissionRequest", "pretooluse", "Tomorrow", "Ä"] {
        assert_eq!(hear(&world, &payload(&world, event, json!({}))), Value::Null);
    }
    assert!(!world.home().exists());
}

#[test]
fn what_is_no_json_object_is_refused_in_words() {
    let world = World::new(RULES);
    let good = bash(&world, "c1", "echo").to_string();
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
        let run = feed(&mut command(&world), input);
        let shown = input.escape_ascii().to_string();
        assert_eq!(run.code, Some(2), "{shown}: {run:?}");
        check("", &run, &shown);
        assert!(run.stderr.len() < 600, "{run:?}");
    }
}

/// The client cuts texts by halves of characters.
#[test]
fn half_a_character_is_no_fault() {
    let world = World::new(RULES);
    let denied = bash(&world, "c1", "git push -f #x").to_string().replace("#x", r"# \ud83d");
    let run = feed(&mut command(&world), denied.as_bytes());
    assert_eq!(permission(&heard(&run)), Some("deny"));
    world.prove(SESSION);
}

#[test]
fn a_payload_that_is_too_long_is_refused_and_a_long_one_is_not() {
    let world = World::new(RULES);
    let mut child = command(&world)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let block = vec![b' '; 1 << 20];
    // Whoever has read enough does not read on.
    let _ = (0..65).try_for_each(|_| stdin.write_all(&block));
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), b"".as_slice()));
    assert!(stderr.contains("longer than 67108864 bytes"), "{stderr}");

    let mut long = bash(&world, "c1", "git push -f");
    merge(
        &mut long,
        json!({"tool_input": {"command": format!("git push -f # {}", "x".repeat(3 << 20))}}),
    );
    assert_eq!(permission(&hear(&world, &long)), Some("deny"));
    world.prove(SESSION);
}

#[test]
fn a_session_id_leads_nowhere_but_to_its_journal() {
    let world = World::new(RULES);
    let long = "x".repeat(4096);
    for id in ["../../../escape", "..", ".", "/etc/passwd", "a\0b", "ä/ö", "~", "_", "s\n", &long]
    {
        let mut payload = bash(&world, "c1", "git push -f");
        merge(&mut payload, json!({ "session_id": id }));
        assert_eq!(permission(&hear(&world, &payload)), Some("deny"), "{id:?}");
        world.prove(world.journal(id).to_str().unwrap());
    }
    let outside: Vec<String> = world
        .tree()
        .into_iter()
        .filter(|path| {
            !path.starts_with("home/")
                && !["home", "work", "work/jackline.yaml"].contains(&path.as_str())
        })
        .collect();
    assert_eq!(outside, [""; 0]);
    // Without a usable one there is nothing to guard by, unless the transcript tells.
    for (id, file) in
        [(json!(""), ""), (json!("x".repeat(4097)), "/nowhere/s.jsonl"), (json!(7), "/")]
    {
        let mut payload = bash(&world, "c1", "echo");
        merge(&mut payload, json!({"session_id": id, "transcript_path": file}));
        let said = hear(&world, &payload);
        let reason = said.pointer("/hookSpecificOutput/permissionDecisionReason").unwrap();
        assert!(reason.as_str().unwrap().contains("no usable `session_id`"), "{said}");
    }
    let mut nameless = bash(&world, "c1", "git push -f");
    merge(&mut nameless, json!({ "session_id": null }));
    assert_eq!(permission(&hear(&world, &nameless)), Some("deny"));
    world.prove(SESSION);
}

#[test]
fn a_client_that_gives_its_calls_no_ids_is_understood() {
    let world = World::new(RULES);
    let without = |mut payload: Value| {
        payload.as_object_mut().unwrap().remove("tool_use_id");
        payload
    };
    for payload in all(&world) {
        assert_eq!(hear(&world, &without(payload.clone())), Value::Null, "{payload}");
    }
    let denied = without(bash(&world, "", "git push -f"));
    assert_eq!(permission(&hear(&world, &denied)), Some("deny"));
    world.prove(SESSION);
}
