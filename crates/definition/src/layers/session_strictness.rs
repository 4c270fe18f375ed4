//! Tests that a lower layer never lets an agent go further than the higher layers alone.
//!
//! The engine decides which of two definitions is stricter: two sessions receive the same events,
//! one under the higher layer alone, one under both layers. At the first difference, the verdict of
//! both layers together must be the stronger one. After that the agents would act differently, so
//! the test stops comparing.

mod random_cases;
mod stories;

use std::collections::BTreeMap;
use std::sync::Arc;

use jackline_engine::verdict::{BypassReason, CompletionResult, GuardName};
use jackline_engine::wire::parse_line;
use jackline_engine::{
    CallId, Decision, Definition, Event, EventKind, Facts, Mode, Now, Record, Session, Timestamp,
    ToolFinished, ToolProposed, Verdict, observe,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::combine;
use super::tests::{managed, repository, user};
use crate::examples::answer_query;
use crate::sections::rules::ExampleWorld;
use random_cases::{LayerCase, a_case};

/// A tool that only the lower layer declares.
const UNDECLARED_TOOL: &str = "mcp_x";

/// A placeholder that is replaced by a different value in each call.
const UNIQUE_PER_CALL: &str = "new";

/// One step of a story: an action of the agent, the client or the person.
#[derive(Debug, Clone)]
enum StoryMove {
    /// A call with its result.
    Call {
        tool: &'static str,
        args: Value,
        result: &'static str,
        exit_code: i64,
    },
    /// Several calls that start before the first result.
    Batch(Vec<StoryMove>),
    Usage {
        used: u64,
        model: &'static str,
        window: Option<u64>,
    },
    Iteration {
        phase: &'static str,
        failed: u64,
        changed: u64,
    },
    Compaction {
        freed: Option<u64>,
    },
    Stop,
    Prompt,
}

/// Converts a story to a list of events.
fn events(client: &str, moves: &[StoryMove]) -> Vec<Event> {
    let mut lines = vec![json!({ "event": "session_started", "client": client })];
    let mut number = 0;
    for next in moves {
        match next {
            StoryMove::Batch(calls) => {
                let both: Vec<_> =
                    calls.iter().map(|call| event_lines(call, &mut number)).collect();
                lines.extend(both.iter().filter_map(|lines| lines.first()).cloned());
                lines.extend(both.iter().filter_map(|lines| lines.get(1)).cloned());
            }
            next => lines.extend(event_lines(next, &mut number)),
        }
    }
    let event = |(at, mut line): (i64, Value)| {
        line["session"] = json!("s");
        line["at"] = json!(Timestamp::from_ms(1_769_860_800_000 + at * 400).to_string());
        parse_line(line.to_string().as_bytes(), None).unwrap()
    };
    (0..).zip(lines).map(event).collect()
}

fn event_lines(next: &StoryMove, number: &mut u64) -> Vec<Value> {
    *number += 1;
    let call = format!("c{number}");
    match next {
        StoryMove::Call { tool, args, result, exit_code } => vec![
            json!({ "event": "tool_proposed", "call": call, "tool": tool,
                    "args": with_unique_nonce(args, &call) }),
            json!({ "event": "tool_finished", "call": call, "result": result,
                    "status": if *exit_code == 0 { "ok" } else { "error" },
                    "exit_code": exit_code }),
        ],
        StoryMove::Batch(_) => vec![],
        StoryMove::Usage { used, model, window } => vec![json!({
            "event": "usage_reported", "request": call, "model": model, "input": used,
            "output": 1, "window": window,
        })],
        StoryMove::Iteration { phase, failed, changed } => vec![json!({
            "event": "iteration_ended", "phase": phase, "files_changed": changed,
            "tests": { "passed": 1, "failed": failed },
        })],
        StoryMove::Compaction { freed } => {
            vec![json!({ "event": "compaction_finished", "freed": freed })]
        }
        StoryMove::Stop => vec![json!({ "event": "stop_proposed" })],
        StoryMove::Prompt => vec![json!({ "event": "prompt_submitted", "source": "human" })],
    }
}

fn with_unique_nonce(args: &Value, call: &str) -> Value {
    let mut args = args.clone();
    if args["nonce"] == UNIQUE_PER_CALL {
        args["nonce"] = json!(call);
    }
    args
}

fn decide(session: &mut Session, event: &Event) -> Verdict {
    let mut facts = Facts::at(Now::wall(event.at.unwrap()));
    facts.observed = observe(event);
    let verdict = session.event_interpreter().with_interpreted(event, |understood| {
        session.gather_facts(understood, &mut facts, |query| {
            answer_query(query, &ExampleWorld::default())
        });
        session.decide_interpreted(understood, &facts)
    });
    let seq = session.seq() + 1;
    session.apply(&Record { seq, event, facts: &facts, verdict: &verdict });
    verdict
}

/// Returns the decision that is enforced.
fn effective_decision(verdict: &Verdict) -> Decision {
    if verdict.enforced == Some(false) { Decision::Allow } else { verdict.decision }
}

/// Whether a stop is allowed because the session ends. That is stricter than any check.
fn ends_session(verdict: &Verdict) -> bool {
    matches!(
        verdict.completion,
        Some(
            CompletionResult::Bypassed { reason: BypassReason::Budget | BypassReason::Deadline }
                | CompletionResult::Unverified { .. }
        )
    )
}

/// Whether a limit restricts the agent, independent of other guards.
fn is_limit_reached(verdict: &Verdict) -> bool {
    verdict.violations.iter().any(|it| it.enforced && it.guard == GuardName::Limits)
}

/// Counts the warnings of soft limits by category.
fn count_warnings(verdict: &Verdict, warnings: &mut BTreeMap<String, usize>) {
    let feedback = verdict.feedback.iter().filter(|it| it.provider == "Budget");
    for observed in feedback.flat_map(|it| &it.observations) {
        *warnings.entry(observed.category.clone()).or_default() += 1;
    }
}

/// Plays a story in both sessions. Returns an error if both layers together are weaker.
fn check_not_weaker(high: &Definition, both: &Definition, events: &[Event]) -> Result<(), String> {
    let session =
        |definition: &Definition| Session::new(Arc::new(definition.clone()), Arc::default());
    let (mut alone, mut together) = (session(high), session(both));
    let (mut warned_alone, mut warned_together) = (BTreeMap::new(), BTreeMap::new());
    let mut refused: Vec<&CallId> = Vec::new();
    for (number, event) in events.iter().enumerate() {
        // A refused call has no result.
        if matches!(&event.kind, EventKind::ToolFinished(ToolFinished { call: Some(call), .. }) if refused.contains(&call))
        {
            continue;
        }
        let (one, other) = (decide(&mut alone, event), decide(&mut together, event));
        if effective_decision(&other) < effective_decision(&one) && !ends_session(&other) {
            let (one, other) = (one.violations, other.violations);
            return Err(format!("event {number}, {event:?}: alone {one:?}, both {other:?}"));
        }
        if effective_decision(&other) > effective_decision(&one)
            || ends_session(&other)
            || is_limit_reached(&other)
        {
            return Ok(());
        }
        if let EventKind::ToolProposed(ToolProposed { call: Some(call), .. }) = &event.kind
            && effective_decision(&one) > Decision::Allow
        {
            refused.push(call);
        }
        count_warnings(&one, &mut warned_alone);
        count_warnings(&other, &mut warned_together);
        // Warnings in mode `observe` are not shown, and a price of the lower layer ends the warning
        // about a model without a price.
        let is_shown = |what: &&String| high.mode == Mode::Enforce && *what != "unpriced";
        for (what, times) in warned_alone.iter().filter(|(what, _)| is_shown(what)) {
            if warned_together.get(what).is_none_or(|often| often < times) {
                return Err(format!("event {number}: fewer warnings about `{what}`"));
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn an_untrusted_repository_lets_no_agent_go_further(case in a_case()) {
        let LayerCase { high, low, client, moves } = case;
        let alone = combine(vec![user(high.clone())], false).definition;
        let both = combine(vec![user(high), repository(low)], false).definition;
        prop_assert_eq!(check_not_weaker(&alone, &both, &events(client, &moves)), Ok(()));
    }

    #[test]
    fn no_agent_goes_further_than_the_owner_of_the_machine_allows(
        case in a_case(),
        other in a_case(),
    ) {
        let LayerCase { high, low, client, moves } = case;
        let alone = combine(vec![managed(high.clone())], false).definition;
        let layers = vec![managed(high), user(other.low), repository(low)];
        let both = combine(layers, true).definition;
        prop_assert_eq!(check_not_weaker(&alone, &both, &events(client, &moves)), Ok(()));
    }
}
