//! Whether what the client and the server got says what was decided.
//!
//! A plain restatement of the contract, apart from the product's own: what may run
//! reaches the server as it was sent, what may not gets a result of our own with the
//! verdict's words, and what is said of a result follows it.

use jackline_engine::verdict::GuardName;
use jackline_engine::{Decision, Event, Verdict};
use serde_json::{Value, json};

use super::process::Heard;
use super::tell::text_item;

/// What an agent is told besides, where it has to wait for a person.
const WAITS: &str = "\n-> a person was told how to let exactly this call pass; go on with \
                     something else, or end the turn and say what waits";

/// The verdict of a record, which must be about an event.
pub(super) fn verdict_of(event: &Event, record: &Value) -> Result<Verdict, String> {
    let told = serde_json::to_value(event).map_err(|error| error.to_string())?;
    let recorded = record.get("event").unwrap_or(&Value::Null);
    // The proxy gives calls numbers of its own.
    for field in ["event", "session", "actor", "tool", "status", "background"] {
        if told.get(field) != recorded.get(field) {
            return Err(format!("`{field}` of the event is not as it was told: {recorded}"));
        }
    }
    let request = recorded.pointer("/meta/request");
    if request.is_some_and(|request| told.get("call") != Some(request)) {
        return Err(format!("another call is recorded: {recorded}"));
    }
    let verdict = record.get("verdict").cloned().unwrap_or_default();
    serde_json::from_value(verdict).map_err(|error| error.to_string())
}

/// What came of a call: nothing but what was decided.
pub(super) fn check_call(line: &str, heard: &Heard, verdict: &Verdict) -> Result<(), String> {
    let runs = verdict.enforced == Some(false)
        || matches!(verdict.decision, Decision::Allow | Decision::Rewrite);
    match heard {
        Heard::Server(got) if runs && got == line => Ok(()),
        Heard::Client(got) if !runs => {
            let fault = verdict.error.as_ref().map(|error| error.reason.as_str());
            let why = verdict.context.as_deref().or(fault).unwrap_or("refused by jackline");
            let waits = if verdict.decision == Decision::Ask { WAITS } else { "" };
            let refusal = json!({
                "content": [text_item(&format!("jackline: {why}{waits}"))], "isError": true,
            });
            same(&refusal, got)
        }
        other => {
            Err(format!("a call that {} led to {other:?}", if runs { "runs" } else { "does not" }))
        }
    }
}

/// What the client got for a result: it, and then what the guards say.
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
        content.ok_or("the server said nothing")?.extend(words);
        return same(&expected, got);
    }
    let shown = answer.pointer_mut("/result/content").and_then(Value::as_array_mut);
    let last = shown.and_then(Vec::pop);
    match words {
        Some(words) if last.as_ref() != Some(&words) => Err(format!("{words} is missing: {got}")),
        _ => Ok(()),
    }
}

/// The client was told that there is no result, and why.
pub(super) fn check_failure(kind: &str, got: &str) -> Result<(), String> {
    let answer: Value = serde_json::from_str(got).map_err(|error| error.to_string())?;
    match answer.pointer("/error/data/kind") {
        Some(told) if told == kind => Ok(()),
        _ => Err(format!("an error `{kind}` is expected, and the client got {got}")),
    }
}

/// What is owed to the client once an event was decided on.
pub(super) fn owes(verdict: &Verdict, result: bool) -> Option<String> {
    let concerns = !result
        || !verdict.feedback.is_empty()
        || verdict.violations.iter().any(|it| it.guard != GuardName::Protocol);
    verdict.context.clone().filter(|_| concerns)
}

fn same(expected: &Value, got: &str) -> Result<(), String> {
    let answer: Value = serde_json::from_str(got).map_err(|error| error.to_string())?;
    if answer.get("result") == Some(expected) {
        return Ok(());
    }
    Err(format!("the client must get {expected}, and got {got}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(decision: &str, enforced: bool) -> Verdict {
        let verdict = json!({"v": 1, "decision": decision, "enforced": enforced, "context": "why"});
        serde_json::from_value(verdict).unwrap()
    }

    fn refusal(text: &str) -> Heard {
        let result = json!({"content": [text_item(text)], "isError": true});
        Heard::Client(json!({"jsonrpc": "2.0", "id": "c", "result": result}).to_string())
    }

    #[test]
    fn a_refusal_has_the_words_of_the_verdict_and_the_server_gets_nothing() {
        for decision in ["deny", "pause", "stop"] {
            let verdict = verdict(decision, true);
            check_call("x", &refusal("jackline: why"), &verdict).unwrap();
            for heard in [refusal("jackline: because"), Heard::Server("x".to_owned())] {
                check_call("x", &heard, &verdict).unwrap_err();
            }
        }
        let asked = verdict("ask", true);
        check_call("x", &refusal("jackline: why"), &asked).unwrap_err();
        check_call("x", &refusal(&format!("jackline: why{WAITS}")), &asked).unwrap();
    }

    #[test]
    fn what_may_run_is_sent_as_it_is() {
        for verdict in [verdict("allow", true), verdict("deny", false)] {
            check_call("x", &Heard::Server("x".to_owned()), &verdict).unwrap();
            for heard in [refusal("jackline: why"), Heard::Server("y".to_owned())] {
                check_call("x", &heard, &verdict).unwrap_err();
            }
        }
    }

    #[test]
    fn what_the_guards_say_follows_the_result() {
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
