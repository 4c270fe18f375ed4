//! Turns verdicts into hook answers of Claude Code.
//!
//! `allow` prints nothing. An answer without an objection is not an approval, so the client still
//! asks its user where it would have asked. We use only fields that the client documents. We never
//! use `continue: false`, because it lets the tool run and ends the session.

use jackline_engine::verdict::{CompletionResult, ViolationSubtype};
use jackline_engine::{Decision, Verdict, Violation};
use jackline_runtime::WAITS_FOR_PERSON_TEXT;
use serde_json::{Map, Value, json};

use super::hooks::ClaudeHook;
use crate::dialect::{AnswerTexts, AskRoute, HookReply};

/// The answer if the guard failed and there is no decision. Gates stay closed, and the text says
/// that the guard is broken and the call is not.
pub(super) fn render_fault(hook: ClaudeHook, stop_blocked: bool, text: &str) -> HookReply {
    let mut map = Map::new();
    match hook {
        ClaudeHook::PreToolUse => deny_call(&mut map, text),
        // Block at most once. The client counts blocks and then overrides its hooks, and the agent
        // can't repair the guard.
        ClaudeHook::Stop if !stop_blocked => add_block(&mut map, text),
        // The guard could not check these settings, and they may lack the guard.
        ClaudeHook::ConfigChange => add_block(&mut map, text),
        ClaudeHook::Other => return HookReply::refusal(text),
        _ => {}
    }
    if hook != ClaudeHook::SessionEnd {
        add_system_message(&mut map, text);
    }
    HookReply::from_map(map)
}

/// The answer to a verdict.
pub(super) fn render_verdict(hook: ClaudeHook, verdict: &Verdict, texts: AnswerTexts) -> HookReply {
    let asking = texts.ask_route;
    let mut map = Map::new();
    let verdict_text =
        verdict.context.clone().filter(|_| hook.is_gate() || verdict.concerns_agent());
    let context: Vec<String> = texts.agent.into_iter().chain(verdict_text).collect();
    let context = (!context.is_empty()).then(|| context.join("\n\n"));
    let context = context.as_deref();
    let enforced = verdict.enforced != Some(false);
    match hook {
        ClaudeHook::PreToolUse if verdict.allows_run() => add_context(&mut map, hook, context),
        ClaudeHook::PreToolUse
            if verdict.decision == Decision::Ask && asking == AskRoute::AskInClient =>
        {
            add_permission_decision(
                &mut map,
                "ask",
                context.unwrap_or("a rule requires approval by a person"),
            );
        }
        ClaudeHook::PreToolUse if verdict.decision == Decision::Ask => {
            let why = context.unwrap_or("a rule requires approval by a person");
            deny_call(&mut map, &format!("{why}\n-> {WAITS_FOR_PERSON_TEXT}"));
        }
        ClaudeHook::PreToolUse => deny_call(&mut map, context.unwrap_or("refused by jackline")),
        ClaudeHook::Stop | ClaudeHook::SubagentStop
            if enforced && verdict.decision == Decision::Deny =>
        {
            add_block(&mut map, context.unwrap_or("the task is not done yet"));
        }
        ClaudeHook::UserPromptSubmit if enforced && verdict.decision >= Decision::Deny => {
            add_block(&mut map, context.unwrap_or("the session has ended"));
        }
        ClaudeHook::SessionStart
        | ClaudeHook::UserPromptSubmit
        | ClaudeHook::PostToolUse
        | ClaudeHook::PostToolUseFailure
        | ClaudeHook::SubagentStart => add_context(&mut map, hook, context),
        _ => {}
    }
    if let Some(output) = texts.replaced_output.filter(|_| hook == ClaudeHook::PostToolUse) {
        add_hook_output(&mut map, hook, "updatedToolOutput", output);
    }
    let mut person = texts.person;
    if hook == ClaudeHook::SessionStart && enforced && verdict.decision >= Decision::Deny {
        // This hook can't refuse anything, but the person must know: the session has ended, or it
        // belongs to another directory.
        person.extend(verdict.context.as_ref().map(|context| format!("jackline: {context}")));
    }
    if verdict.decision == Decision::Allow {
        let concerns_person = |it: &&Violation| {
            hook == ClaudeHook::UserPromptSubmit
                || it.subtype == ViolationSubtype::ChangedDuringCall
        };
        let told = verdict.violations.iter().filter(|it| it.enforced).filter(concerns_person);
        person.extend(told.map(describe_correction));
    }
    if matches!(hook, ClaudeHook::Stop) && !map.contains_key("decision") {
        person.extend(describe_unfinished_turn(verdict.completion.as_ref()));
    }
    if !person.is_empty() {
        add_system_message(&mut map, &person.join("\n"));
    }
    if let Some(sequence) = texts.terminal {
        map.insert("terminalSequence".to_owned(), json!(sequence));
    }
    HookReply::from_map(map)
}

/// Tells the person what the guard corrected since their last prompt.
fn describe_correction(violation: &Violation) -> String {
    let next = violation.correction.iter().map(|correction| format!("; {correction}"));
    format!("jackline: {}{}", violation.message, next.collect::<String>())
}

/// Blocks the action in progress with a reason: a turn of a paused or stopped session, or new
/// settings.
pub(super) fn render_block(reason: &str) -> HookReply {
    let mut map = Map::new();
    add_block(&mut map, reason);
    add_system_message(&mut map, reason);
    HookReply::from_map(map)
}

/// Explains to the person why a turn ended although the task is not done.
fn describe_unfinished_turn(completion: Option<&CompletionResult>) -> Option<String> {
    let why = match completion? {
        CompletionResult::Complete | CompletionResult::Incomplete { .. } => return None,
        CompletionResult::Bypassed { reason } => {
            let what = match reason {
                jackline_engine::verdict::BypassReason::Deadline => "the deadline",
                jackline_engine::verdict::BypassReason::Budget => "a budget",
                jackline_engine::verdict::BypassReason::Context => "the context window",
            };
            format!("completion check skipped: {what} is used up")
        }
        CompletionResult::Capped { rounds, feedback } => {
            format!("gave up after {rounds} blocked stops; still missing: {feedback}")
        }
        CompletionResult::Unverified { reason } => format!("unverified: {reason}"),
    };
    Some(format!("jackline: the turn ended, but the task is not done ({why})"))
}

fn deny_call(map: &mut Map<String, Value>, reason: &str) {
    add_permission_decision(map, "deny", reason);
}

fn add_permission_decision(map: &mut Map<String, Value>, decision: &str, reason: &str) {
    let specific = json!({
        "hookEventName": ClaudeHook::PreToolUse.name(),
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    });
    map.insert("hookSpecificOutput".to_owned(), specific);
}

fn add_block(map: &mut Map<String, Value>, reason: &str) {
    map.insert("decision".to_owned(), json!("block"));
    map.insert("reason".to_owned(), json!(reason));
}

fn add_context(map: &mut Map<String, Value>, hook: ClaudeHook, context: Option<&str>) {
    let Some(context) = context else { return };
    add_hook_output(map, hook, "additionalContext", json!(context));
}

/// Adds a field to `hookSpecificOutput`.
fn add_hook_output(map: &mut Map<String, Value>, hook: ClaudeHook, field: &str, value: Value) {
    let fields = map.entry("hookSpecificOutput");
    let fields = fields.or_insert_with(|| json!({ "hookEventName": hook.name() }));
    if let Some(fields) = fields.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

/// Shows a text to the person. The model does not see it.
fn add_system_message(map: &mut Map<String, Value>, text: &str) {
    map.insert("systemMessage".to_owned(), json!(text));
}

#[cfg(test)]
mod tests {
    use jackline_engine::Violation;
    use jackline_engine::verdict::{GuardName, ViolationClass, ViolationType};

    use super::*;
    use crate::dialect::REFUSAL_EXIT;

    fn verdict(decision: Decision, enforced: bool) -> Verdict {
        let context = Some("why".to_owned());
        Verdict { decision, enforced: Some(enforced), context, ..Verdict::allow() }
    }

    fn shown(hook: ClaudeHook, verdict: &Verdict, asking: AskRoute) -> Value {
        let reply = render_verdict(
            hook,
            verdict,
            AnswerTexts { ask_route: asking, ..AnswerTexts::default() },
        );
        assert_eq!((reply.exit, reply.stderr.as_str()), (0, ""));
        if reply.stdout.is_empty() { Value::Null } else { reply.stdout.parse().unwrap() }
    }

    #[test]
    fn allow_is_silence_on_every_hook() {
        for hook in ClaudeHook::ALL {
            assert_eq!(shown(*hook, &Verdict::allow(), AskRoute::AskInClient), Value::Null);
        }
    }

    #[test]
    fn no_verdict_becomes_an_approval() {
        use Decision::{Allow, Ask, Deny, Pause, Rewrite, Stop};
        for hook in ClaudeHook::ALL {
            for decision in [Allow, Rewrite, Ask, Deny, Pause, Stop] {
                for enforced in [true, false] {
                    for asking in [AskRoute::AskInClient, AskRoute::ShowCommand] {
                        let answer = shown(*hook, &verdict(decision, enforced), asking).to_string();
                        for word in ["\"allow\"", "\"approve\"", "\"defer\"", "\"continue\""] {
                            assert!(!answer.contains(word), "{answer}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_verdict_that_is_not_enforced_lets_the_call_run() {
        for decision in [Decision::Ask, Decision::Deny, Decision::Stop] {
            let answer =
                shown(ClaudeHook::PreToolUse, &verdict(decision, false), AskRoute::ShowCommand);
            assert_eq!(answer.pointer("/hookSpecificOutput/permissionDecision"), None);
        }
    }

    #[test]
    fn a_question_without_a_person_to_ask_is_a_denial() {
        let ask_verdict = verdict(Decision::Ask, true);
        let pointer = "/hookSpecificOutput/permissionDecision";
        let decision =
            |asking| shown(ClaudeHook::PreToolUse, &ask_verdict, asking).pointer(pointer).cloned();
        assert_eq!(decision(AskRoute::AskInClient), Some(json!("ask")));
        assert_eq!(decision(AskRoute::ShowCommand), Some(json!("deny")));
    }

    #[test]
    fn a_pause_caused_by_a_result_is_shown_to_the_agent() {
        for decision in [Decision::Pause, Decision::Stop] {
            let violation = Violation {
                id: "v1.1".to_owned(),
                guard: GuardName::Loops,
                kind: ViolationType::Loop,
                subtype: ViolationSubtype::Repeat,
                class: ViolationClass::Recoverable,
                message: "why".to_owned(),
                location: None,
                correction: None,
                decision,
                enforced: true,
            };
            let verdict = Verdict { violations: vec![violation], ..verdict(decision, true) };
            for hook in [ClaudeHook::PostToolUse, ClaudeHook::PostToolUseFailure] {
                let answer = shown(hook, &verdict, AskRoute::AskInClient);
                let specific = json!({"hookEventName": hook.name(), "additionalContext": "why"});
                assert_eq!(answer, json!({ "hookSpecificOutput": specific }));
            }
            // A paused agent may always end its turn.
            assert_eq!(shown(ClaudeHook::Stop, &verdict, AskRoute::AskInClient), Value::Null);
        }
    }

    #[test]
    fn a_broken_guard_closes_the_gate_and_blocks_a_stop_once() {
        let gate: Value = render_fault(ClaudeHook::PreToolUse, false, "t").stdout.parse().unwrap();
        assert_eq!(gate.pointer("/hookSpecificOutput/permissionDecision"), Some(&json!("deny")));
        let first: Value = render_fault(ClaudeHook::Stop, false, "t").stdout.parse().unwrap();
        assert_eq!(first.get("decision"), Some(&json!("block")));
        let again: Value = render_fault(ClaudeHook::Stop, true, "t").stdout.parse().unwrap();
        assert_eq!(again, json!({"systemMessage": "t"}));
        let settings: Value =
            render_fault(ClaudeHook::ConfigChange, false, "t").stdout.parse().unwrap();
        assert_eq!(settings.get("decision"), Some(&json!("block")));
        assert_eq!(render_fault(ClaudeHook::Other, false, "t").exit, REFUSAL_EXIT);
        assert_eq!(render_fault(ClaudeHook::SessionEnd, false, "t"), HookReply::empty());
    }
}
