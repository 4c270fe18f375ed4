//! Whether what the hook printed says what was decided.
//!
//! A plain restatement of the contract, apart from the product's own: what may
//! run gets silence or context, what may not gets the client's own refusal with
//! the verdict's words, and nothing is ever approved.

use std::process::Output;

use jackline_engine::{Decision, Event, Verdict};
use serde_json::{Map, Value, json};

/// All that an answer may hold; each is one that the client lists.
const FIELDS: [&str; 5] =
    ["hookSpecificOutput", "decision", "reason", "systemMessage", "terminalSequence"];

/// What an agent is told besides, where it has to wait for a person.
const WAITS: &str = "\n-> a person was told how to let exactly this call pass; go on with \
                     something else, or end the turn and say what waits";

/// Compares what was printed with what was recorded, and gives back the verdict.
pub(super) fn check(
    hook: &str,
    event: &Event,
    printed: &Output,
    record: &Value,
) -> Result<Verdict, String> {
    let wrong = |problem: String| format!("{problem}\nthe hook {}\nof {record}", said(printed));
    is_told(event, record).map_err(wrong)?;
    let verdict = record.get("verdict").cloned().unwrap_or_default();
    let verdict: Verdict =
        serde_json::from_value(verdict).map_err(|error| wrong(error.to_string()))?;
    let answer = parse(printed).map_err(wrong)?;
    if let Some(field) = answer.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(wrong(format!("`{field}` is no part of an answer")));
    }
    for (field, allowed) in expected(hook, &verdict) {
        let actual = answer.get(field).unwrap_or(&Value::Null);
        if !allowed.contains(actual) {
            let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
            return Err(wrong(format!("`{field}` must be {}", allowed.join(" or "))));
        }
    }
    Ok(verdict)
}

/// What a process printed, for a failure.
pub(super) fn said(printed: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "printed `{}`, complained `{}`, ended with {}",
        text(&printed.stdout),
        text(&printed.stderr),
        printed.status
    )
}

/// Whether the event that was recorded is the one of the scenario.
fn is_told(event: &Event, record: &Value) -> Result<(), String> {
    let told = serde_json::to_value(event).map_err(|error| error.to_string())?;
    let recorded = record.get("event").unwrap_or(&Value::Null);
    for field in ["event", "session", "actor", "call", "tool", "status", "background"] {
        if told.get(field) != recorded.get(field) {
            return Err(format!("`{field}` of the event is not as it was told"));
        }
    }
    // The client says more of a result than a scenario has to.
    for field in ["exit_code", "seen"] {
        if told.get(field).is_some_and(|told| recorded.get(field) != Some(told)) {
            return Err(format!("`{field}` of the event is not as it was told"));
        }
    }
    Ok(())
}

/// At most one JSON object, from a process that is content.
fn parse(printed: &Output) -> Result<Map<String, Value>, String> {
    if printed.status.code() != Some(0) || !printed.stderr.is_empty() {
        return Err("the hook must end with 0, and complain of nothing".to_owned());
    }
    if printed.stdout.is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_slice(&printed.stdout) {
        Ok(Value::Object(answer)) if !answer.is_empty() => Ok(answer),
        _ => Err("an answer is one JSON object that says something".to_owned()),
    }
}

/// What the fields that act may be, `null` for absent.
fn expected(hook: &str, verdict: &Verdict) -> [(&'static str, Vec<Value>); 3] {
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
            // Nobody sits at the client, so a question is a refusal that says so.
            let waits = if verdict.decision == Ask { WAITS } else { "" };
            vec![json!({
                "hookEventName": hook,
                "permissionDecision": "deny",
                "permissionDecisionReason": context.map(|context| format!("{context}{waits}")),
            })]
        }
        "Stop" | "SubagentStop" | "SessionEnd" => vec![Value::Null],
        _ if blocked => vec![Value::Null],
        "PreToolUse" => vec![json!(added)],
        _ if !verdict.feedback.is_empty() => vec![json!(added)],
        // What the agent can do nothing about need not be shown to it.
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
    fn a_refusal_has_the_words_of_the_verdict() {
        for decision in ["deny", "pause", "stop"] {
            let verdict = json!({"v": 1, "decision": decision, "enforced": true, "context": "why"});
            checked("PreToolUse", &verdict, &refusal("why")).unwrap();
            for printed in ["", &refusal("because"), r#"{"systemMessage":"why"}"#] {
                checked("PreToolUse", &verdict, printed).unwrap_err();
            }
        }
    }

    #[test]
    fn what_may_run_gets_silence_or_context() {
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
    fn a_process_that_fails_has_said_nothing() {
        let event = parse_line(br#"{"event":"session_ended","session":"s"}"#, None).unwrap();
        let record = json!({"event": event, "verdict": {"v": 1, "decision": "allow"}});
        for (code, stderr) in [(2, ""), (0, "a warning")] {
            let status = ExitStatus::from_raw(code << 8);
            let (stdout, stderr) = (Vec::new(), stderr.as_bytes().to_vec());
            check("SessionEnd", &event, &Output { status, stdout, stderr }, &record).unwrap_err();
        }
    }
}
