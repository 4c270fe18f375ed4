//! From verdicts to the client's words.
//!
//! Allow is silence: no objection is no approval, so the client's own
//! questions to its person stay. Only fields that the client lists are used,
//! and never `continue: false`, which lets the tool run and ends the session.

use jackline_engine::verdict::Completion;
use jackline_engine::{Decision, Verdict, Violation};
use jackline_runtime::WAITS_FOR_PERSON;
use serde_json::{Map, Value, json};

use super::hooks::ClaudeHook;
use crate::dialect::{AnswerTexts, AskRoute, HookReply};

/// The answer where there is no decision: gates stay shut, and the text says
/// that the guard is broken, not the call.
pub(super) fn broken(hook: ClaudeHook, stop_blocked: bool, text: &str) -> HookReply {
    let mut map = Map::new();
    match hook {
        ClaudeHook::PreToolUse => refuse(&mut map, text),
        // Once: the client counts blocks until it overrides its hooks, and an
        // agent that can do nothing about it should not be kept busy.
        ClaudeHook::Stop if !stop_blocked => block(&mut map, text),
        // What nobody looked at may be settings without the guard.
        ClaudeHook::ConfigChange => block(&mut map, text),
        ClaudeHook::Other => return HookReply::refusal(text),
        _ => {}
    }
    if hook != ClaudeHook::SessionEnd {
        say(&mut map, text);
    }
    HookReply::json(map)
}

/// The answer to a verdict.
pub(super) fn render(hook: ClaudeHook, verdict: &Verdict, texts: AnswerTexts) -> HookReply {
    let asking = texts.asking;
    let mut map = Map::new();
    let said = verdict.context.clone().filter(|_| hook.is_gate() || verdict.concerns_agent());
    let context: Vec<String> = texts.agent.into_iter().chain(said).collect();
    let context = (!context.is_empty()).then(|| context.join("\n\n"));
    let context = context.as_deref();
    let enforced = verdict.enforced != Some(false);
    match hook {
        ClaudeHook::PreToolUse if verdict.lets_run() => add_context(&mut map, hook, context),
        ClaudeHook::PreToolUse
            if verdict.decision == Decision::Ask && asking == AskRoute::Client =>
        {
            decide(&mut map, "ask", context.unwrap_or("a rule wants a person to look at this"));
        }
        ClaudeHook::PreToolUse if verdict.decision == Decision::Ask => {
            let why = context.unwrap_or("a rule wants a person to look at this");
            refuse(&mut map, &format!("{why}\n-> {WAITS_FOR_PERSON}"));
        }
        ClaudeHook::PreToolUse => refuse(&mut map, context.unwrap_or("refused by jackline")),
        ClaudeHook::Stop | ClaudeHook::SubagentStop
            if enforced && verdict.decision == Decision::Deny =>
        {
            block(&mut map, context.unwrap_or("not done yet"));
        }
        ClaudeHook::UserPromptSubmit if enforced && verdict.decision >= Decision::Deny => {
            block(&mut map, context.unwrap_or("the session is over"));
        }
        ClaudeHook::SessionStart
        | ClaudeHook::UserPromptSubmit
        | ClaudeHook::PostToolUse
        | ClaudeHook::PostToolUseFailure
        | ClaudeHook::SubagentStart => add_context(&mut map, hook, context),
        _ => {}
    }
    if let Some(output) = texts.output.filter(|_| hook == ClaudeHook::PostToolUse) {
        add_specific(&mut map, hook, "updatedToolOutput", output);
    }
    let mut person = texts.person;
    if hook == ClaudeHook::SessionStart && enforced && verdict.decision >= Decision::Deny {
        // Nothing can be refused here, and the person should know: the session
        // is over, or belongs to another directory.
        person.extend(verdict.context.as_ref().map(|context| format!("jackline: {context}")));
    }
    if hook == ClaudeHook::UserPromptSubmit && verdict.decision == Decision::Allow {
        person.extend(verdict.violations.iter().filter(|it| it.enforced).map(put_right));
    }
    if matches!(hook, ClaudeHook::Stop) && !map.contains_key("decision") {
        person.extend(not_done(verdict.completion.as_ref()));
    }
    if !person.is_empty() {
        say(&mut map, &person.join("\n"));
    }
    if let Some(sequence) = texts.terminal {
        map.insert("terminalSequence".to_owned(), json!(sequence));
    }
    HookReply::json(map)
}

/// What the guard has put right since the person was last heard.
fn put_right(violation: &Violation) -> String {
    let next = violation.correction.iter().map(|correction| format!("; {correction}"));
    format!("jackline: {}{}", violation.message, next.collect::<String>())
}

/// Holds up what is about to happen: the run, where the session was stopped or
/// paused and no call will pass, or new settings.
pub(super) fn hold(reason: &str) -> HookReply {
    let mut map = Map::new();
    block(&mut map, reason);
    say(&mut map, reason);
    HookReply::json(map)
}

/// A turn that ended, and not as done.
fn not_done(completion: Option<&Completion>) -> Option<String> {
    let why = match completion? {
        Completion::Complete | Completion::Incomplete { .. } => return None,
        Completion::Bypassed { reason } => {
            let what = match reason {
                jackline_engine::verdict::Bypass::Deadline => "the deadline",
                jackline_engine::verdict::Bypass::Budget => "a budget",
                jackline_engine::verdict::Bypass::Context => "the context window",
            };
            format!("bypassed: {what} is exhausted, and nothing was checked")
        }
        Completion::Capped { rounds, feedback } => {
            format!("capped after {rounds} blocked stops; still missing: {feedback}")
        }
        Completion::Unverified { reason } => format!("unverified: {reason}"),
    };
    Some(format!("jackline: the turn ended, and not as done ({why})"))
}

fn refuse(map: &mut Map<String, Value>, reason: &str) {
    decide(map, "deny", reason);
}

fn decide(map: &mut Map<String, Value>, decision: &str, reason: &str) {
    let specific = json!({
        "hookEventName": ClaudeHook::PreToolUse.name(),
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    });
    map.insert("hookSpecificOutput".to_owned(), specific);
}

fn block(map: &mut Map<String, Value>, reason: &str) {
    map.insert("decision".to_owned(), json!("block"));
    map.insert("reason".to_owned(), json!(reason));
}

fn add_context(map: &mut Map<String, Value>, hook: ClaudeHook, context: Option<&str>) {
    let Some(context) = context else { return };
    add_specific(map, hook, "additionalContext", json!(context));
}

/// Adds what only this hook understands.
fn add_specific(map: &mut Map<String, Value>, hook: ClaudeHook, field: &str, value: Value) {
    let fields = map.entry("hookSpecificOutput");
    let fields = fields.or_insert_with(|| json!({ "hookEventName": hook.name() }));
    if let Some(fields) = fields.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

/// What the person is shown, and the model is not.
fn say(map: &mut Map<String, Value>, text: &str) {
    map.insert("systemMessage".to_owned(), json!(text));
}

#[cfg(test)]
mod tests {
    use jackline_engine::Violation;
    use jackline_engine::verdict::{Class, GuardName, ViolationSubtype, ViolationType};

    use super::*;
    use crate::dialect::REFUSAL_EXIT;

    fn verdict(decision: Decision, enforced: bool) -> Verdict {
        let context = Some("why".to_owned());
        Verdict { decision, enforced: Some(enforced), context, ..Verdict::allow() }
    }

    fn shown(hook: ClaudeHook, verdict: &Verdict, asking: AskRoute) -> Value {
        let reply = render(hook, verdict, AnswerTexts { asking, ..AnswerTexts::default() });
        assert_eq!((reply.exit, reply.stderr.as_str()), (0, ""));
        if reply.stdout.is_empty() { Value::Null } else { reply.stdout.parse().unwrap() }
    }

    #[test]
    fn allow_is_silence_on_every_hook() {
        for hook in ClaudeHook::ALL {
            assert_eq!(shown(*hook, &Verdict::allow(), AskRoute::Client), Value::Null);
        }
    }

    #[test]
    fn no_verdict_becomes_an_approval() {
        use Decision::{Allow, Ask, Deny, Pause, Rewrite, Stop};
        for hook in ClaudeHook::ALL {
            for decision in [Allow, Rewrite, Ask, Deny, Pause, Stop] {
                for enforced in [true, false] {
                    for asking in [AskRoute::Client, AskRoute::Command] {
                        let said = shown(*hook, &verdict(decision, enforced), asking).to_string();
                        for word in ["\"allow\"", "\"approve\"", "\"defer\"", "\"continue\""] {
                            assert!(!said.contains(word), "{said}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_only_observed_lets_the_call_run() {
        for decision in [Decision::Ask, Decision::Deny, Decision::Stop] {
            let said = shown(ClaudeHook::PreToolUse, &verdict(decision, false), AskRoute::Command);
            assert_eq!(said.pointer("/hookSpecificOutput/permissionDecision"), None);
        }
    }

    #[test]
    fn nobody_to_ask_is_a_denial() {
        let asked = verdict(Decision::Ask, true);
        let pointer = "/hookSpecificOutput/permissionDecision";
        let of = |asking| shown(ClaudeHook::PreToolUse, &asked, asking).pointer(pointer).cloned();
        assert_eq!(of(AskRoute::Client), Some(json!("ask")));
        assert_eq!(of(AskRoute::Command), Some(json!("deny")));
    }

    #[test]
    fn a_pause_that_a_result_brings_about_is_told_to_the_agent() {
        for decision in [Decision::Pause, Decision::Stop] {
            let held = Violation {
                id: "v1.1".to_owned(),
                guard: GuardName::Loops,
                kind: ViolationType::Loop,
                subtype: ViolationSubtype::Repeat,
                class: Class::Recoverable,
                message: "why".to_owned(),
                location: None,
                correction: None,
                decision,
                enforced: true,
            };
            let verdict = Verdict { violations: vec![held], ..verdict(decision, true) };
            for hook in [ClaudeHook::PostToolUse, ClaudeHook::PostToolUseFailure] {
                let said = shown(hook, &verdict, AskRoute::Client);
                let specific = json!({"hookEventName": hook.name(), "additionalContext": "why"});
                assert_eq!(said, json!({ "hookSpecificOutput": specific }));
            }
            // Nothing keeps a paused agent from ending its turn.
            assert_eq!(shown(ClaudeHook::Stop, &verdict, AskRoute::Client), Value::Null);
        }
    }

    #[test]
    fn a_broken_guard_shuts_the_gate_and_holds_up_a_stop_once() {
        let gate: Value = broken(ClaudeHook::PreToolUse, false, "t").stdout.parse().unwrap();
        assert_eq!(gate.pointer("/hookSpecificOutput/permissionDecision"), Some(&json!("deny")));
        let first: Value = broken(ClaudeHook::Stop, false, "t").stdout.parse().unwrap();
        assert_eq!(first.get("decision"), Some(&json!("block")));
        let again: Value = broken(ClaudeHook::Stop, true, "t").stdout.parse().unwrap();
        assert_eq!(again, json!({"systemMessage": "t"}));
        let settings: Value = broken(ClaudeHook::ConfigChange, false, "t").stdout.parse().unwrap();
        assert_eq!(settings.get("decision"), Some(&json!("block")));
        assert_eq!(broken(ClaudeHook::Other, false, "t").exit, REFUSAL_EXIT);
        assert_eq!(broken(ClaudeHook::SessionEnd, false, "t"), HookReply::silence());
    }
}
