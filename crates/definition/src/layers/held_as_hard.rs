//! Whatever a lower layer says, an agent is held no later than it would be by
//! the higher layers alone.
//!
//! What a value is stricter than shows in what the engine does with it: two
//! sessions are told the same events, one under the higher layer alone, one
//! under both. Where their answers first differ, that of both is the stronger.
//! After that their agents would do different things, so nothing is compared.

mod any;
mod stories;

use std::collections::BTreeMap;
use std::sync::Arc;

use jackline_engine::verdict::{Bypass, Completion, GuardName};
use jackline_engine::wire::parse_line;
use jackline_engine::{
    CallId, Decision, Definition, Event, EventKind, Facts, Mode, Now, Record, Session, Timestamp,
    ToolFinished, ToolProposed, Verdict, observe,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::combine;
use super::tests::{managed, repository, user};
use crate::examples::fact;
use crate::sections::rules::ExampleWorld;
use any::{Case, a_case};

/// A tool that nobody describes but the lower layer.
const STRANGE: &str = "mcp_x";

/// What stands for something that no other call has.
const NEW: &str = "new";

/// What an agent and those around it do.
#[derive(Debug, Clone)]
enum Move {
    /// A call, and how it came back.
    Call {
        tool: &'static str,
        args: Value,
        result: &'static str,
        exit_code: i64,
    },
    /// Several calls before any came back.
    Batch(Vec<Move>),
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

/// The events of a story, one after the other.
fn events(client: &str, moves: &[Move]) -> Vec<Event> {
    let mut lines = vec![json!({ "event": "session_started", "client": client })];
    let mut number = 0;
    for next in moves {
        match next {
            Move::Batch(calls) => {
                let both: Vec<_> = calls.iter().map(|call| lines_of(call, &mut number)).collect();
                lines.extend(both.iter().filter_map(|lines| lines.first()).cloned());
                lines.extend(both.iter().filter_map(|lines| lines.get(1)).cloned());
            }
            next => lines.extend(lines_of(next, &mut number)),
        }
    }
    let event = |(at, mut line): (i64, Value)| {
        line["session"] = json!("s");
        line["at"] = json!(Timestamp::from_ms(1_769_860_800_000 + at * 400).to_string());
        parse_line(line.to_string().as_bytes(), None).unwrap()
    };
    (0..).zip(lines).map(event).collect()
}

fn lines_of(next: &Move, number: &mut u64) -> Vec<Value> {
    *number += 1;
    let call = format!("c{number}");
    match next {
        Move::Call { tool, args, result, exit_code } => vec![
            json!({ "event": "tool_proposed", "call": call, "tool": tool,
                    "args": renewed(args, &call) }),
            json!({ "event": "tool_finished", "call": call, "result": result,
                    "status": if *exit_code == 0 { "ok" } else { "error" },
                    "exit_code": exit_code }),
        ],
        Move::Batch(_) => vec![],
        Move::Usage { used, model, window } => vec![json!({
            "event": "usage_reported", "request": call, "model": model, "input": used,
            "output": 1, "window": window,
        })],
        Move::Iteration { phase, failed, changed } => vec![json!({
            "event": "iteration_ended", "phase": phase, "files_changed": changed,
            "tests": { "passed": 1, "failed": failed },
        })],
        Move::Compaction { freed } => {
            vec![json!({ "event": "compaction_finished", "freed": freed })]
        }
        Move::Stop => vec![json!({ "event": "stop_proposed" })],
        Move::Prompt => vec![json!({ "event": "prompt_submitted", "source": "human" })],
    }
}

fn renewed(args: &Value, call: &str) -> Value {
    let mut args = args.clone();
    if args["nonce"] == NEW {
        args["nonce"] = json!(call);
    }
    args
}

fn decide(session: &mut Session, event: &Event) -> Verdict {
    let mut facts = Facts::at(Now::wall(event.at.unwrap()));
    facts.observed = observe(event);
    let verdict = session.ground().understand(event, |understood| {
        session.gather_known(understood, &mut facts, |query| fact(query, &ExampleWorld::default()));
        session.decide_on(understood, &facts)
    });
    let seq = session.seq() + 1;
    session.apply(&Record { seq, event, facts: &facts, verdict: &verdict });
    verdict
}

/// What holds of an answer.
fn holds(verdict: &Verdict) -> Decision {
    if verdict.enforced == Some(false) { Decision::Allow } else { verdict.decision }
}

/// Whether a stop passes because nothing more runs: that holds harder than any check.
fn ends(verdict: &Verdict) -> bool {
    matches!(
        verdict.completion,
        Some(
            Completion::Bypassed { reason: Bypass::Budget | Bypass::Deadline }
                | Completion::Unverified { .. }
        )
    )
}

/// Whether a limit holds the agent, whatever else does.
fn is_used_up(verdict: &Verdict) -> bool {
    verdict.violations.iter().any(|found| found.enforced && found.guard == GuardName::Limits)
}

/// How often soft limits have spoken, by what they are about.
fn count_warnings(verdict: &Verdict, warnings: &mut BTreeMap<String, usize>) {
    let said = verdict.feedback.iter().filter(|said| said.provider == "Budget");
    for observed in said.flat_map(|said| &said.observations) {
        *warnings.entry(observed.category.clone()).or_default() += 1;
    }
}

/// Tells both sessions a story, and says where the agent is held less by both.
fn held_less(high: &Definition, both: &Definition, events: &[Event]) -> Result<(), String> {
    let session =
        |definition: &Definition| Session::new(Arc::new(definition.clone()), Arc::default());
    let (mut alone, mut together) = (session(high), session(both));
    let (mut warned_alone, mut warned_together) = (BTreeMap::new(), BTreeMap::new());
    let mut refused: Vec<&CallId> = Vec::new();
    for (number, event) in events.iter().enumerate() {
        // What was not let run does not come back.
        if matches!(&event.kind, EventKind::ToolFinished(ToolFinished { call: Some(call), .. }) if refused.contains(&call))
        {
            continue;
        }
        let (one, other) = (decide(&mut alone, event), decide(&mut together, event));
        if holds(&other) < holds(&one) && !ends(&other) {
            let (one, other) = (one.violations, other.violations);
            return Err(format!("event {number}, {event:?}: alone {one:?}, both {other:?}"));
        }
        if holds(&other) > holds(&one) || ends(&other) || is_used_up(&other) {
            return Ok(());
        }
        if let EventKind::ToolProposed(ToolProposed { call: Some(call), .. }) = &event.kind
            && holds(&one) > Decision::Allow
        {
            refused.push(call);
        }
        count_warnings(&one, &mut warned_alone);
        count_warnings(&other, &mut warned_together);
        // Nobody hears what only observes; and a price ends what has none.
        let heard = |what: &&String| high.mode == Mode::Enforce && *what != "unpriced";
        for (what, times) in warned_alone.iter().filter(|(what, _)| heard(what)) {
            if warned_together.get(what).is_none_or(|often| often < times) {
                return Err(format!("event {number}: `{what}` is warned of less often"));
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn an_untrusted_repository_lets_nobody_go_further(case in a_case()) {
        let Case { high, low, client, moves } = case;
        let alone = combine(vec![user(high.clone())], false).definition;
        let both = combine(vec![user(high), repository(low)], false).definition;
        prop_assert_eq!(held_less(&alone, &both, &events(client, &moves)), Ok(()));
    }

    #[test]
    fn nobody_goes_further_than_the_owner_of_the_machine_lets_them(
        case in a_case(),
        other in a_case(),
    ) {
        let Case { high, low, client, moves } = case;
        let alone = combine(vec![managed(high.clone())], false).definition;
        let layers = vec![managed(high), user(other.low), repository(low)];
        let both = combine(layers, true).definition;
        prop_assert_eq!(held_less(&alone, &both, &events(client, &moves)), Ok(()));
    }
}
