//! Checks whether the messages to the client and the server express the verdict.
//!
//! This restates the contract independently of the product. A call that may run reaches the server
//! unchanged. A call that may not run gets a result of the proxy with the text of the verdict.
//! Texts of the guards about a result follow it.

use jackline_engine::{Decision, Event, Verdict};
use serde_json::{Value, json};

use super::proxy_process::ProxyMessage;
use crate::scripted_peers::text_item;

/// The additional text for an agent that must wait for a person.
const WAITS_TEXT: &str = "\n-> a person was notified how to allow exactly this call; continue with \
                     something else, or end the turn and report which call waits";

/// The verdict of a record, which must belong to the event.
pub(super) fn verdict_of(event: &Event, record: &Value) -> Result<Verdict, String> {
    let sent = serde_json::to_value(event).map_err(|error| error.to_string())?;
    let recorded = record.get("event").unwrap_or(&Value::Null);
    // The proxy gives calls its own numbers.
    for field in ["event", "session", "actor", "tool", "status", "background"] {
        if sent.get(field) != recorded.get(field) {
            return Err(format!("`{field}` of the recorded event differs: {recorded}"));
        }
    }
    let request = recorded.pointer("/meta/request");
    if request.is_some_and(|request| sent.get("call") != Some(request)) {
        return Err(format!("another call is recorded: {recorded}"));
    }
    let verdict = record.get("verdict").cloned().unwrap_or_default();
    serde_json::from_value(verdict).map_err(|error| error.to_string())
}

/// Checks that the message for a call follows from its verdict.
pub(super) fn check_call(
    line: &str,
    heard: &ProxyMessage,
    verdict: &Verdict,
) -> Result<(), String> {
    let runs = verdict.enforced == Some(false)
        || matches!(verdict.decision, Decision::Allow | Decision::Rewrite);
    match heard {
        ProxyMessage::Server(got) if runs && got == line => Ok(()),
        ProxyMessage::Client(got) if !runs => {
            let fault = verdict.error.as_ref().map(|error| error.reason.as_str());
            let why = verdict.context.as_deref().or(fault).unwrap_or("refused by jackline");
            let waits = if verdict.decision == Decision::Ask { WAITS_TEXT } else { "" };
            let refusal = json!({
                "content": [text_item(&format!("jackline: {why}{waits}"))], "isError": true,
            });
            check_result_equals(&refusal, got)
        }
        other => Err(format!(
            "a call that {} gave {other:?}",
            if runs { "may run" } else { "may not run" }
        )),
    }
}

/// Checks that the client got the result of the server, followed by the texts of the guards.
pub(super) fn check_result(
    sent: &Value,
    got: &str,
    owed: &[String],
    verdict: &Verdict,
) -> Result<(), String> {
    let mut expected = sent.clone();
    let mut answer: Value = serde_json::from_str(got).map_err(|error| error.to_string())?;
    let words = (!owed.is_empty()).then(|| text_item(&owed.join("\n\n")));
    if verdict.page.is_none() {
        let content = expected.get_mut("content").and_then(Value::as_array_mut);
        content.ok_or("the result of the server has no content")?.extend(words);
        return check_result_equals(&expected, got);
    }
    let shown = answer.pointer_mut("/result/content").and_then(Value::as_array_mut);
    let last = shown.and_then(Vec::pop);
    match words {
        Some(words) if last.as_ref() != Some(&words) => Err(format!("{words} is missing: {got}")),
        _ => Ok(()),
    }
}

/// Checks that the client got an error of this kind instead of a result.
pub(super) fn check_failure(kind: &str, got: &str) -> Result<(), String> {
    let answer: Value = serde_json::from_str(got).map_err(|error| error.to_string())?;
    match answer.pointer("/error/data/kind") {
        Some(told) if told == kind => Ok(()),
        _ => Err(format!("the client must get the error `{kind}`, but got {got}")),
    }
}

fn check_result_equals(expected: &Value, got: &str) -> Result<(), String> {
    let answer: Value = serde_json::from_str(got).map_err(|error| error.to_string())?;
    if answer.get("result") == Some(expected) {
        return Ok(());
    }
    Err(format!("the client must get {expected}, but got {got}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(decision: &str, enforced: bool) -> Verdict {
        let verdict = json!({"v": 1, "decision": decision, "enforced": enforced, "context": "why"});
        serde_json::from_value(verdict).unwrap()
    }

    fn refusal(text: &str) -> ProxyMessage {
        let result = json!({"content": [text_item(text)], "isError": true});
        ProxyMessage::Client(json!({"jsonrpc": "2.0", "id": "c", "result": result}).to_string())
    }

    #[test]
    fn a_refusal_has_the_text_of_the_verdict_and_the_server_gets_nothing() {
        for decision in ["deny", "pause", "stop"] {
            let verdict = verdict(decision, true);
            check_call("x", &refusal("jackline: why"), &verdict).unwrap();
            for heard in [refusal("jackline: because"), ProxyMessage::Server("x".to_owned())] {
                check_call("x", &heard, &verdict).unwrap_err();
            }
        }
        let asked = verdict("ask", true);
        check_call("x", &refusal("jackline: why"), &asked).unwrap_err();
        check_call("x", &refusal(&format!("jackline: why{WAITS_TEXT}")), &asked).unwrap();
    }

    #[test]
    fn an_allowed_call_is_sent_unchanged() {
        for verdict in [verdict("allow", true), verdict("deny", false)] {
            check_call("x", &ProxyMessage::Server("x".to_owned()), &verdict).unwrap();
            for heard in [refusal("jackline: why"), ProxyMessage::Server("y".to_owned())] {
                check_call("x", &heard, &verdict).unwrap_err();
            }
        }
    }

    #[test]
    fn the_texts_of_the_guards_follow_the_result() {
        let sent = json!({"content": [text_item("said")]});
        let allow = verdict("allow", true);
        let line = |items: Value| json!({"id": "c", "result": {"content": items}}).to_string();
        let plain = line(json!([text_item("said")]));
        let added = line(json!([text_item("said"), text_item("a\n\nb")]));
        let owed = ["a".to_owned(), "b".to_owned()];
        check_result(&sent, &plain, &[], &allow).unwrap();
        check_result(&sent, &added, &owed, &allow).unwrap();
        check_result(&sent, &added, &[], &allow).unwrap_err();
        check_result(&sent, &plain, &owed, &allow).unwrap_err();
    }
}
