//! From verdicts to the client's words.
//!
//! Allow is silence: no objection is no approval, so the client's own
//! questions to its person stay. Only fields that the client lists are used,
//! and never `continue: false`, which lets the tool run and ends the session.

use jackline_engine::{Completion, Decision, Verdict, Violation};
use jackline_runtime::Answer;
use serde_json::{Map, Value, json};

use super::payload::Hook;
use super::translate::Asking;

/// The exit status that the client takes for a refusal, whatever was printed.
const LAST_RESORT: u8 = 2;

/// What the agent is told where nobody can be asked at once.
const WAITS: &str = "a person was told how to let exactly this call pass; go on with something \
                     else, or end the turn and say what waits";

/// What the process prints, and how it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// At most one JSON object.
    pub stdout: String,
    /// For the last resort.
    pub stderr: String,
    /// The exit status.
    pub exit: u8,
}

/// What is said to whom about one hook.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// To the person.
    pub(crate) person: Vec<String>,
    /// To the agent, besides what the verdict says.
    pub(crate) agent: Option<String>,
    /// A notification for the person's terminal.
    pub(crate) terminal: Option<String>,
    /// What the agent is shown instead of what the tool gave back.
    pub(crate) output: Option<Value>,
}

impl Words {
    /// Keeps what an answer says to the person.
    pub(crate) fn hear(&mut self, answer: &Answer) {
        self.person.extend(answer.warnings.iter().map(|it| format!("jackline: {it}")));
    }
}

impl Reply {
    /// No objection.
    pub(crate) fn silence() -> Self {
        Self::default()
    }

    /// The last resort: nobody knows what was asked.
    pub(crate) fn shut(text: &str) -> Self {
        Self { stdout: String::new(), stderr: format!("{text}\n"), exit: LAST_RESORT }
    }

    fn json(map: Map<String, Value>) -> Self {
        if map.is_empty() {
            return Self::silence();
        }
        Self { stdout: Value::Object(map).to_string(), ..Self::default() }
    }
}

/// The answer where there is no decision: gates stay shut, and the text says
/// that the guard is broken, not the call.
pub(crate) fn broken(hook: Hook, stop_blocked: bool, text: &str) -> Reply {
    let mut map = Map::new();
    match hook {
        Hook::PreToolUse => refuse(&mut map, text),
        // Once: the client counts blocks until it overrides its hooks, and an
        // agent that can do nothing about it should not be kept busy.
        Hook::Stop if !stop_blocked => block(&mut map, text),
        // What nobody looked at may be settings without the guard.
        Hook::ConfigChange => block(&mut map, text),
        Hook::Other => return Reply::shut(text),
        _ => {}
    }
    if hook != Hook::SessionEnd {
        say(&mut map, text);
    }
    Reply::json(map)
}

/// The answer to a verdict.
pub(crate) fn render(hook: Hook, verdict: &Verdict, asking: Asking, words: Words) -> Reply {
    let mut map = Map::new();
    let said = verdict.context.clone().filter(|_| hook.is_gate() || verdict.concerns_agent());
    let context: Vec<String> = words.agent.into_iter().chain(said).collect();
    let context = (!context.is_empty()).then(|| context.join("\n\n"));
    let context = context.as_deref();
    let enforced = verdict.enforced != Some(false);
    match hook {
        Hook::PreToolUse if verdict.lets_run() => add_context(&mut map, hook, context),
        Hook::PreToolUse if verdict.decision == Decision::Ask && asking == Asking::Client => {
            decide(&mut map, "ask", context.unwrap_or("a rule wants a person to look at this"));
        }
        Hook::PreToolUse if verdict.decision == Decision::Ask => {
            let why = context.unwrap_or("a rule wants a person to look at this");
            refuse(&mut map, &format!("{why}\n-> {WAITS}"));
        }
        Hook::PreToolUse => refuse(&mut map, context.unwrap_or("refused by jackline")),
        Hook::Stop | Hook::SubagentStop if enforced && verdict.decision == Decision::Deny => {
            block(&mut map, context.unwrap_or("not done yet"));
        }
        Hook::UserPromptSubmit if enforced && verdict.decision >= Decision::Deny => {
            block(&mut map, context.unwrap_or("the session is over"));
        }
        Hook::SessionStart
        | Hook::UserPromptSubmit
        | Hook::PostToolUse
        | Hook::PostToolUseFailure
        | Hook::SubagentStart => add_context(&mut map, hook, context),
        _ => {}
    }
    if let Some(output) = words.output.filter(|_| hook == Hook::PostToolUse) {
        add_specific(&mut map, hook, "updatedToolOutput", output);
    }
    let mut person = words.person;
    if hook == Hook::SessionStart && enforced && verdict.decision >= Decision::Deny {
        // Nothing can be refused here, and the person should know: the session
        // is over, or belongs to another directory.
        person.extend(verdict.context.as_ref().map(|context| format!("jackline: {context}")));
    }
    if hook == Hook::UserPromptSubmit && verdict.decision == Decision::Allow {
        person.extend(verdict.violations.iter().filter(|it| it.enforced).map(put_right));
    }
    if matches!(hook, Hook::Stop) && !map.contains_key("decision") {
        person.extend(not_done(verdict.completion.as_ref()));
    }
    if !person.is_empty() {
        say(&mut map, &person.join("\n"));
    }
    if let Some(sequence) = words.terminal {
        map.insert("terminalSequence".to_owned(), json!(sequence));
    }
    Reply::json(map)
}

/// What the guard has put right since the person was last heard.
fn put_right(violation: &Violation) -> String {
    let next = violation.correction.iter().map(|correction| format!("; {correction}"));
    format!("jackline: {}{}", violation.message, next.collect::<String>())
}

/// Holds up what is about to happen: the run, where the session was stopped or
/// paused and no call will pass, or new settings.
pub(crate) fn hold(reason: &str) -> Reply {
    let mut map = Map::new();
    block(&mut map, reason);
    say(&mut map, reason);
    Reply::json(map)
}

/// A turn that ended, and not as done.
fn not_done(completion: Option<&Completion>) -> Option<String> {
    let why = match completion? {
        Completion::Complete | Completion::Incomplete { .. } => return None,
        Completion::Bypassed { reason } => {
            let what = match reason {
                jackline_engine::Bypass::Deadline => "the deadline",
                jackline_engine::Bypass::Budget => "a budget",
                jackline_engine::Bypass::Context => "the context window",
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
        "hookEventName": Hook::PreToolUse.name(),
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    });
    map.insert("hookSpecificOutput".to_owned(), specific);
}

fn block(map: &mut Map<String, Value>, reason: &str) {
    map.insert("decision".to_owned(), json!("block"));
    map.insert("reason".to_owned(), json!(reason));
}

fn add_context(map: &mut Map<String, Value>, hook: Hook, context: Option<&str>) {
    let Some(context) = context else { return };
    add_specific(map, hook, "additionalContext", json!(context));
}

/// Adds what only this hook understands.
fn add_specific(map: &mut Map<String, Value>, hook: Hook, field: &str, value: Value) {
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
    use jackline_engine::{Class, GuardName, Violation, ViolationSubtype, ViolationType};

    use super::*;

    fn verdict(decision: Decision, enforced: bool) -> Verdict {
        let context = Some("why".to_owned());
        Verdict { decision, enforced: Some(enforced), context, ..Verdict::allow() }
    }

    fn shown(hook: Hook, verdict: &Verdict, asking: Asking) -> Value {
        let reply = render(hook, verdict, asking, Words::default());
        assert_eq!((reply.exit, reply.stderr.as_str()), (0, ""));
        if reply.stdout.is_empty() { Value::Null } else { reply.stdout.parse().unwrap() }
    }

    #[test]
    fn allow_is_silence_on_every_hook() {
        for hook in Hook::ALL {
            assert_eq!(shown(*hook, &Verdict::allow(), Asking::Client), Value::Null);
        }
    }

    #[test]
    fn no_verdict_becomes_an_approval() {
        use Decision::{Allow, Ask, Deny, Pause, Rewrite, Stop};
        for hook in Hook::ALL {
            for decision in [Allow, Rewrite, Ask, Deny, Pause, Stop] {
                for enforced in [true, false] {
                    for asking in [Asking::Client, Asking::Nobody] {
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
            let said = shown(Hook::PreToolUse, &verdict(decision, false), Asking::Nobody);
            assert_eq!(said.pointer("/hookSpecificOutput/permissionDecision"), None);
        }
    }

    #[test]
    fn nobody_to_ask_is_a_denial() {
        let asked = verdict(Decision::Ask, true);
        let pointer = "/hookSpecificOutput/permissionDecision";
        let of = |asking| shown(Hook::PreToolUse, &asked, asking).pointer(pointer).cloned();
        assert_eq!(of(Asking::Client), Some(json!("ask")));
        assert_eq!(of(Asking::Nobody), Some(json!("deny")));
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
            for hook in [Hook::PostToolUse, Hook::PostToolUseFailure] {
                let said = shown(hook, &verdict, Asking::Client);
                let specific = json!({"hookEventName": hook.name(), "additionalContext": "why"});
                assert_eq!(said, json!({ "hookSpecificOutput": specific }));
            }
            // Nothing keeps a paused agent from ending its turn.
            assert_eq!(shown(Hook::Stop, &verdict, Asking::Client), Value::Null);
        }
    }

    #[test]
    fn a_broken_guard_shuts_the_gate_and_holds_up_a_stop_once() {
        let gate: Value = broken(Hook::PreToolUse, false, "t").stdout.parse().unwrap();
        assert_eq!(gate.pointer("/hookSpecificOutput/permissionDecision"), Some(&json!("deny")));
        let first: Value = broken(Hook::Stop, false, "t").stdout.parse().unwrap();
        assert_eq!(first.get("decision"), Some(&json!("block")));
        let again: Value = broken(Hook::Stop, true, "t").stdout.parse().unwrap();
        assert_eq!(again, json!({"systemMessage": "t"}));
        let settings: Value = broken(Hook::ConfigChange, false, "t").stdout.parse().unwrap();
        assert_eq!(settings.get("decision"), Some(&json!("block")));
        assert_eq!(broken(Hook::Other, false, "t").exit, LAST_RESORT);
        assert_eq!(broken(Hook::SessionEnd, false, "t"), Reply::silence());
    }
}
