//! Checks whether the output of the hook expresses the verdict.
//!
//! This restates the contract independently of the product. A call that may run gets no output or
//! only context. A call that may not run gets the client's own refusal with the text of the
//! verdict. No call is ever approved.

use std::process::Output;

use jackline_engine::{Decision, Event, Verdict};
use serde_json::{Map, Value, json};

use super::asks_person;

/// All fields that an answer may have. The client documents each of them.
const FIELDS: [&str; 5] =
    ["hookSpecificOutput", "decision", "reason", "systemMessage", "terminalSequence"];

/// The additional text for an agent that must wait for a person.
const WAITS_TEXT: &str = "\n-> a person was notified how to allow exactly this call; continue with \
                     something else, or end the turn and report which call waits";

/// Compares the output with the record, and returns the verdict.
pub(super) fn check(
    hook: &str,
    event: &Event,
    printed: &Output,
    record: &Value,
) -> Result<Verdict, String> {
    let wrong =
        |problem: String| format!("{problem}\nthe hook {}\nof {record}", describe_output(printed));
    check_event(event, record).map_err(wrong)?;
    let verdict = record.get("verdict").cloned().unwrap_or_default();
    let verdict: Verdict =
        serde_json::from_value(verdict).map_err(|error| wrong(error.to_string()))?;
    let mut answer = parse(printed).map_err(wrong)?;
    if verdict.page.as_ref().is_some_and(|page| page.enforced) {
        take_page(&mut answer).map_err(wrong)?;
    }
    if let Some(field) = answer.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(wrong(format!("`{field}` is not a field of an answer")));
    }
    for (field, allowed) in expected(hook, &verdict, asks_person(event)) {
        let actual = answer.get(field).unwrap_or(&Value::Null);
        if !allowed.contains(actual) {
            let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
            return Err(wrong(format!("`{field}` must be {}", allowed.join(" or "))));
        }
    }
    Ok(verdict)
}

/// The output of a process, for an error message.
pub(super) fn describe_output(printed: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "printed `{}` and the error output `{}`, and ended with {}",
        text(&printed.stdout),
        text(&printed.stderr),
        printed.status
    )
}

/// Checks that the recorded event is the event of the scenario.
fn check_event(event: &Event, record: &Value) -> Result<(), String> {
    let sent = serde_json::to_value(event).map_err(|error| error.to_string())?;
    let recorded = record.get("event").unwrap_or(&Value::Null);
    for field in
        ["event", "session", "actor", "call", "tool", "status", "background", "asks_person"]
    {
        if sent.get(field) != recorded.get(field) {
            return Err(format!("`{field}` of the recorded event differs"));
        }
    }
    // The client may report more about a result than the scenario.
    for field in ["exit_code", "seen"] {
        if sent.get(field).is_some_and(|sent| recorded.get(field) != Some(sent)) {
            return Err(format!("`{field}` of the recorded event differs"));
        }
    }
    Ok(())
}

/// Parses at most one JSON object from a successful process.
fn parse(printed: &Output) -> Result<Map<String, Value>, String> {
    if printed.status.code() != Some(0) || !printed.stderr.is_empty() {
        return Err("the hook must exit with 0 and print no error output".to_owned());
    }
    if printed.stdout.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(&printed.stdout) {
        Ok(Value::Object(answer)) if !answer.is_empty() => Ok(answer),
        _ => Err("an answer must be one JSON object that is not empty".to_owned()),
    }
}

/// Takes the page that replaces the output of a tool.
fn take_page(answer: &mut Map<String, Value>) -> Result<(), String> {
    let specific = answer.get_mut("hookSpecificOutput").and_then(Value::as_object_mut);
    let specific = specific.ok_or("the answer must have the page of the verdict")?;
    specific.remove("updatedToolOutput").ok_or("the answer must replace the output")?;
    if specific.len() == 1 {
        answer.remove("hookSpecificOutput");
    }
    Ok(())
}

/// The allowed values of the fields with an effect; `null` means missing.
fn expected(hook: &str, verdict: &Verdict, asks_person: bool) -> [(&'static str, Vec<Value>); 3] {
    use Decision::{Ask, Deny, Pause, Stop};
    let context = verdict.context.as_deref();
    let refusals: &[Decision] = match hook {
        "PreToolUse" => &[Ask, Deny, Pause, Stop],
        "Stop" | "SubagentStop" => &[Deny],
        "UserPromptSubmit" => &[Deny, Pause, Stop],
        _ => &[],
    };
    let refused = verdict.enforced != Some(false) && refusals.contains(&verdict.decision);
    let blocked = refused && hook != "PreToolUse";
    let added = context.map(|it| json!({"hookEventName": hook, "additionalContext": it}));
    let specific = match hook {
        "PreToolUse" if refused => {
            // If no person is at the client, a question becomes a refusal with an explanation.
            let is_question = verdict.decision == Ask && asks_person;
            let waits = if verdict.decision == Ask && !asks_person { WAITS_TEXT } else { "" };
            vec![json!({
                "hookEventName": hook,
                "permissionDecision": if is_question { "ask" } else { "deny" },
                "permissionDecisionReason": context.map(|context| format!("{context}{waits}")),
            })]
        }
        "Stop" | "SubagentStop" | "SessionEnd" => vec![Value::Null],
        _ if blocked => vec![Value::Null],
        "PreToolUse" => vec![json!(added)],
        _ if !verdict.feedback.is_empty() => vec![json!(added)],
        // A text that the agent can't act on need not be shown to it.
        _ => vec![json!(added), Value::Null],
    };
    let decision = blocked.then_some("block");
    let reason = context.filter(|_| blocked);
    [
        ("hookSpecificOutput", specific),
        ("decision", vec![json!(decision)]),
        ("reason", vec![json!(reason)]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use jackline_engine::wire::parse_line;

    fn checked(hook: &str, verdict: &Value, printed: &str) -> Result<Verdict, String> {
        let event = parse_line(br#"{"event":"session_ended","session":"s"}"#, None).unwrap();
        let record = json!({"event": event, "verdict": verdict});
        let stdout = printed.as_bytes().to_vec();
        let printed = Output { status: ExitStatus::from_raw(0), stdout, stderr: Vec::new() };
        check(hook, &event, &printed, &record)
    }

    fn refusal(reason: &str) -> String {
        json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }})
        .to_string()
    }

    #[test]
    fn a_refusal_has_the_text_of_the_verdict() {
        for decision in ["deny", "pause", "stop"] {
            let verdict = json!({"v": 1, "decision": decision, "enforced": true, "context": "why"});
            checked("PreToolUse", &verdict, &refusal("why")).unwrap();
            for printed in ["", &refusal("because"), r#"{"systemMessage":"why"}"#] {
                checked("PreToolUse", &verdict, printed).unwrap_err();
            }
        }
    }

    #[test]
    fn an_allowed_call_gets_no_output_or_only_context() {
        let silent = json!({"v": 1, "decision": "allow"});
        checked("PreToolUse", &silent, "").unwrap();
        let observed = json!({"v": 1, "decision": "deny", "enforced": false});
        checked("PreToolUse", &observed, "").unwrap();
        for printed in [
            refusal("why").as_str(),
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}"#,
            r#"{"decision":"approve"}"#,
            r#"{"continue":false}"#,
            "{}",
            "{}{}",
            "fine",
        ] {
            checked("PreToolUse", &silent, printed).unwrap_err();
            checked("PreToolUse", &observed, printed).unwrap_err();
        }
    }

    #[test]
    fn a_stop_is_blocked_by_a_denial_and_by_nothing_else() {
        let block = r#"{"decision":"block","reason":"not yet"}"#;
        for (decision, enforced, blocks) in
            [("deny", true, true), ("deny", false, false), ("pause", true, false)]
        {
            let verdict =
                json!({"v": 1, "decision": decision, "enforced": enforced, "context": "not yet"});
            assert_eq!(checked("Stop", &verdict, block).is_ok(), blocks);
            assert_eq!(checked("Stop", &verdict, "").is_ok(), !blocks);
        }
    }

    #[test]
    fn a_failed_process_gives_no_verdict() {
        let event = parse_line(br#"{"event":"session_ended","session":"s"}"#, None).unwrap();
        let record = json!({"event": event, "verdict": {"v": 1, "decision": "allow"}});
        for (code, stderr) in [(2, ""), (0, "a warning")] {
            let status = ExitStatus::from_raw(code << 8);
            let (stdout, stderr) = (Vec::new(), stderr.as_bytes().to_vec());
            check("SessionEnd", &event, &Output { status, stdout, stderr }, &record).unwrap_err();
        }
    }
}
