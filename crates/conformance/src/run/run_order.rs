//! Whether a run reports the events of a scenario, in this order.
//!
//! A run asks its model for one answer after the other. So a run has one call at a time, and no
//! calls while its session is paused. After a refused stop, the run itself ends the iteration, and
//! after an allowed one its session.

use std::collections::{BTreeMap, BTreeSet};

use jackline_engine::event::{IterationEnded, PromptSource};
use jackline_engine::tool::PAGE_TURN_TOOL;
use jackline_engine::{Event, EventKind, SessionEnded, SessionId, StopProposed, ToolProposed};
use jackline_runtime::surfaces::SurfaceCapability as Capability;
use serde_json::Value;

use crate::clock::depends_on_time;
use crate::event_sender::parse_client_event_at;
use crate::scenario::{Scenario, ScenarioAction};
use crate::scripted_peers::is_refusal;
use crate::unplayable::Unplayable;

/// The directory of the control files.
const CONTROL_DIRECTORY: &str = ".jackline/";

/// The reason that a run gives for each stop.
const STOP_REASON: &str = "end_turn";

/// What a run does next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum RunState {
    /// It has not started.
    #[default]
    New,
    /// It asks its model.
    Asking,
    /// A tool runs.
    Calling,
    /// A stop was refused, so it ends the iteration.
    StopRefused,
    /// A stop was allowed, so it ends the session.
    Stopped,
    /// The session is paused or has ended.
    Over,
}

impl RunState {
    /// Whether the run goes to its next event without waiting for its model or a tool.
    fn is_driven_by_run(self) -> bool {
        matches!(self, Self::StopRefused | Self::Stopped)
    }
}

/// Checks that a run reports the events of a scenario in this order.
pub(super) fn check_order(scenario: &Scenario) -> Result<(), Unplayable> {
    if depends_on_time(scenario) {
        return Err(Capability::EventTimes.into());
    }
    let mut states: BTreeMap<SessionId, RunState> = BTreeMap::new();
    let mut calls = BTreeSet::new();
    for step in &scenario.steps {
        let (line, expect) = match &step.act {
            ScenarioAction::Send { line, expect } => (line, expect),
            ScenarioAction::Restart => return Err(Capability::AnyOrder.into()),
            ScenarioAction::Approve(_) => return Err(Capability::AnySessionId.into()),
            // The run looks for these files while it asks its model.
            ScenarioAction::Write(files)
                if files.keys().any(|path| path.starts_with(CONTROL_DIRECTORY)) =>
            {
                return Err(Capability::AnyOrder.into());
            }
            // After a stop, the run continues by itself, so a change of a file might come too late.
            _ if states.values().any(|state| state.is_driven_by_run()) => {
                return Err(Capability::AnyOrder.into());
            }
            _ => continue,
        };
        let event = parse_client_event_at(step, line)?;
        if event.id.is_some() {
            return Err(Capability::EventIds.into());
        }
        if event.meta.is_some() {
            return Err(Capability::EventMeta.into());
        }
        if !event.actor.is_main() {
            return Err(Capability::SeeSubAgents.into());
        }
        if let EventKind::ToolProposed(ToolProposed { call: Some(call), .. }) = &event.kind
            && !calls.insert((event.session.clone(), call.clone()))
        {
            return Err(Capability::RepeatedCallIds.into());
        }
        let state = states.entry(event.session.clone()).or_default();
        *state = next_state(*state, &event, expect)?;
    }
    let has_run = states.values().any(|state| *state != RunState::New);
    if has_run { Ok(()) } else { Err(Unplayable::NoEvents) }
}

fn next_state(state: RunState, event: &Event, expect: &Value) -> Result<RunState, Unplayable> {
    let can_ask = match state {
        RunState::New | RunState::Asking => Ok(()),
        RunState::Calling | RunState::StopRefused | RunState::Over => Err(Capability::AnyOrder),
        RunState::Stopped => Err(Capability::OverlappingEnds),
    };
    match &event.kind {
        EventKind::ToolProposed(proposed) => {
            check_call(proposed)?;
            can_ask?;
            Ok(if is_held(expect) {
                RunState::Over
            } else if is_refusal(expect) {
                RunState::Asking
            } else {
                RunState::Calling
            })
        }
        EventKind::ToolFinished(_) if state == RunState::Calling => {
            Ok(if is_held(expect) { RunState::Over } else { RunState::Asking })
        }
        EventKind::ToolFinished(_) => Err(Capability::StrayResults.into()),
        EventKind::StopProposed(stop) => {
            can_ask?;
            let reason = stop.reason.as_deref();
            let plain = StopProposed { reason: None, output: None, ..stop.clone() }
                == StopProposed::default();
            if !plain || reason.is_some_and(|reason| reason != STOP_REASON) {
                return Err(Capability::AnyOrder.into());
            }
            Ok(if is_held(expect) {
                RunState::Over
            } else if is_refusal(expect) {
                RunState::StopRefused
            } else {
                RunState::Stopped
            })
        }
        EventKind::PromptSubmitted(prompt) => {
            let is_task = prompt.source == PromptSource::Human && prompt.text.is_some();
            match state {
                RunState::New if is_task && !is_refusal(expect) => Ok(RunState::Asking),
                _ => Err(Capability::SeePrompt.into()),
            }
        }
        EventKind::IterationEnded(ended) => {
            if state != RunState::StopRefused || *ended != IterationEnded::default() {
                return Err(Capability::AnyOrder.into());
            }
            Ok(if is_held(expect) { RunState::Over } else { RunState::Asking })
        }
        EventKind::SessionEnded(SessionEnded { failure: None }) if state == RunState::Stopped => {
            Ok(RunState::Over)
        }
        EventKind::SessionEnded(_) => Err(Capability::OverlappingEnds.into()),
        EventKind::SessionStarted(_) => Err(Capability::OwnFirstRecord.into()),
        EventKind::PlanProposed(_) => Err(Capability::SeePlan.into()),
        EventKind::OutputProposed(_) => Err(Capability::SeeOutput.into()),
        // The run reports these itself, when they happen.
        _ => Err(Capability::AnyOrder.into()),
    }
}

fn check_call(proposed: &ToolProposed) -> Result<(), Unplayable> {
    let needed = if proposed.call.is_none() {
        Capability::CallsWithoutIds
    } else if proposed.cwd.is_some() {
        Capability::SeeDirectory
    } else if proposed.asks_person {
        Capability::AskPerson
    } else if proposed.tool.as_str() == PAGE_TURN_TOOL {
        Capability::AnyTool
    } else {
        return Ok(());
    };
    Err(needed.into())
}

/// Whether the session is expected to be paused or stopped after an event.
fn is_held(expect: &Value) -> bool {
    let decision = expect.get("decision").and_then(Value::as_str);
    is_refusal(expect) && matches!(decision, Some("pause" | "stop"))
}
