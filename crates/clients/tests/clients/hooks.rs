//! Tests the hook server with a client that is not built in.

use serde_json::{Value, json};

use crate::world::{HookOutput, ToyWorkspace};

const RULES: &str = "\
version: 1
mode: enforce
unknown_tools: allow
rules:
  - { name: never, tool: exec, command: git push, deny: Never., examples: { deny: [git push] } }
  - { name: look, tool: exec, command: make deploy, ask: Look., examples: { ask: [make deploy] } }
";

/// A tool call, as the toy client reports it.
fn call(tool: &str, line: &str) -> Vec<u8> {
    let args = json!({ "command": line });
    let id = format!("{tool} {line}");
    json!({ "at": "call", "session": "s", "id": id, "tool": tool, "args": args })
        .to_string()
        .into_bytes()
}

fn bash(line: &str) -> Vec<u8> {
    call("Bash", line)
}

/// The reason of a denial, in the format of the toy client.
fn denial(answer: &HookOutput) -> String {
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""), "{answer:?}");
    assert_eq!(answer.json["answer"], "no", "{answer:?}");
    answer.json["why"].as_str().unwrap().to_owned()
}

fn check_broken(reason: &str, why: &str) {
    assert!(reason.contains("the guard, is broken, not the call"), "{reason}");
    assert!(reason.contains(why), "{reason}");
}

#[test]
fn an_allowed_call_gets_an_empty_answer_and_a_denied_call_a_reason() {
    let world = ToyWorkspace::new(RULES);
    let start = json!({ "at": "start", "session": "s" }).to_string();
    assert_eq!(world.send(start.as_bytes()).json, Value::Null);
    let allowed = world.send(&bash("ls"));
    assert_eq!((allowed.json, allowed.code), (Value::Null, Some(0)));
    assert!(denial(&world.send(&bash("git push"))).contains("Never."));
    let journal = world.journal("s");
    assert!(journal.contains("\"client\":\"toy\""), "{journal}");
    assert_eq!(journal.matches("tool_proposed").count(), 2, "{journal}");
}

#[test]
fn a_question_is_a_denial_and_the_person_gets_the_code() {
    let world = ToyWorkspace::new(RULES);
    let answer = world.send(&bash("make deploy"));
    assert!(denial(&answer).contains("Look."));
    let person = answer.json["person"].to_string();
    assert!(person.contains("`jackline allow jl-"), "{person}");
}

#[test]
fn an_unreadable_payload_is_refused_by_exit_status() {
    let world = ToyWorkspace::new(RULES);
    for (payload, why) in [("not json", "is not JSON"), ("[]", "not a JSON object"), ("{}", "`at`")]
    {
        let answer = world.send(payload.as_bytes());
        assert_eq!((&answer.json, answer.code), (&Value::Null, Some(2)), "{payload}");
        check_broken(&answer.stderr, why);
    }
    let without_session = json!({ "at": "call", "tool": "Bash", "args": {} }).to_string();
    check_broken(&denial(&world.send(without_session.as_bytes())), "no valid `session`");
    let newer = world.send(br#"{"at": "tomorrow"}"#);
    assert_eq!((newer.json, newer.code), (Value::Null, Some(0)));
}

#[test]
fn a_panic_of_a_dialect_is_a_denial_and_is_recorded_with_the_next_event() {
    let world = ToyWorkspace::new(RULES);
    check_broken(&denial(&world.send(&call("crash", "x"))), "an internal fault");
    assert_eq!(world.send(&bash("ls")).json, Value::Null);
    let journal = world.journal("s");
    assert!(journal.contains("an internal fault"), "{journal}");
}

#[test]
fn a_hanging_dialect_is_answered_at_the_deadline() {
    let world = ToyWorkspace::new(RULES);
    let answer = world.send_within(&call("hang", "x"), 20);
    check_broken(&denial(&answer), "it found no answer within");
    assert_eq!(world.send(&bash("ls")).json, Value::Null);
    let journal = world.journal("s");
    assert!(journal.contains("it found no answer within"), "{journal}");
}

#[test]
fn an_unchecked_stop_that_can_not_be_blocked_is_unverified() {
    let world = ToyWorkspace::new("version: [");
    let stop = json!({ "at": "stop", "session": "s" }).to_string();
    assert_eq!(world.send(stop.as_bytes()).json, Value::Null);
    std::fs::write(world.work().join("jackline.yaml"), RULES).unwrap();
    assert_eq!(world.send(&bash("ls")).json, Value::Null);
    let journal = world.journal("s");
    assert!(journal.contains(r#""result":"unverified""#), "{journal}");
}
