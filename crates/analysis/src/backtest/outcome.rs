//! The result of a backtest run.

use std::collections::{BTreeMap, BTreeSet};

use jackline_engine::verdict::{SafetyEvent, SafetyKind, SessionStop};
use jackline_engine::{
    CallId, Decision, Event, EventKind, ToolFinished, ToolName, ToolProposed, Violation,
};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::violation_source;

/// The largest number of calls without a result that are stored.
const OPEN_CALLS_MAX: usize = 1024;

/// The result of a backtest run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BacktestOutcome {
    /// The first call at which the agent would have been warned about a loop.
    pub soft: Option<u64>,
    /// The first call at which a loop would have paused the session.
    pub hard: Option<u64>,
    /// The first rule or guard behind a call that would not have run, or behind a loop.
    pub rule: Option<String>,
    /// The calls that would have been denied, by their numbers from 0.
    pub denied: Vec<u64>,
    /// The calls for which a person would have been asked.
    pub asked: Vec<u64>,
    /// The stop code with which the session would have been stopped.
    #[serde(serialize_with = "serialize_stop")]
    pub stop: Option<SessionStop>,
    /// Guards and rules with undecidable results.
    pub undecidable: BTreeSet<String>,
    /// The number of calls.
    #[serde(skip)]
    pub calls: u64,
    #[serde(skip)]
    open: BTreeMap<CallId, BacktestCall>,
}

/// A call in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BacktestCall {
    /// Its number, from 0.
    pub index: u64,
    /// The tool.
    pub tool: ToolName,
}

/// A detected loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BacktestLoop {
    /// The rule that detected it.
    pub rule: String,
    /// Whether it would have paused the session, and not only caused a warning.
    pub hard: bool,
}

impl BacktestOutcome {
    /// The call to which an event belongs.
    pub(super) fn call_of(&mut self, event: &Event) -> Option<BacktestCall> {
        match &event.kind {
            EventKind::ToolProposed(ToolProposed { call, tool, .. }) => {
                let proposed = BacktestCall { index: self.calls, tool: tool.clone() };
                self.calls += 1;
                if let Some(call) = call {
                    self.open.insert(call.clone(), proposed.clone());
                    if self.open.len() > OPEN_CALLS_MAX {
                        self.open.pop_first();
                    }
                }
                Some(proposed)
            }
            EventKind::ToolFinished(ToolFinished { call, of, .. }) => match (call, of) {
                (Some(call), _) => self.open.remove(call),
                // Without ids, a result can't be distinguished from that of another call of the
                // same tool. The latest call is a good approximation.
                (None, Some(of)) => {
                    let index = self.calls.saturating_sub(1);
                    Some(BacktestCall { index, tool: of.tool.clone() })
                }
                (None, None) => None,
            },
            _ => None,
        }
    }

    /// Counts the decision on a proposed call.
    pub(super) fn count_decision(
        &mut self,
        index: u64,
        decision: Decision,
        by: Option<&Violation>,
    ) {
        match decision {
            Decision::Allow | Decision::Rewrite => return,
            Decision::Ask => self.asked.push(index),
            Decision::Deny | Decision::Pause | Decision::Stop => self.denied.push(index),
        }
        if self.rule.is_none() {
            self.rule = by.map(violation_source);
        }
    }

    /// Counts the loops at a call. A hard loop also counts as a soft one.
    pub(super) fn count_loops(&mut self, index: u64, found: &[BacktestLoop]) {
        for one in found {
            self.soft.get_or_insert(index);
            if one.hard {
                self.hard.get_or_insert(index);
            }
            if self.rule.is_none() {
                self.rule = Some(one.rule.clone());
            }
        }
    }
}

/// The loops among the safety events.
pub(super) fn loops_in(safety: &[SafetyEvent]) -> Vec<BacktestLoop> {
    let level = |kind| match kind {
        SafetyKind::SoftLoop => Some(false),
        SafetyKind::HardLoop | SafetyKind::InfiniteLoop => Some(true),
        _ => None,
    };
    let found = safety.iter().filter_map(|event| {
        let hard = level(event.kind)?;
        let rule = match event.details.get("rule") {
            Some(Value::String(rule)) => format!("loops/{rule}"),
            _ => "loops".to_owned(),
        };
        Some(BacktestLoop { rule, hard })
    });
    found.collect()
}

#[expect(clippy::ref_option, reason = "serde requires this signature")]
fn serialize_stop<S: Serializer>(
    stop: &Option<SessionStop>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    stop.as_ref().map(ToString::to_string).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackline_engine::Timestamp;
    use jackline_engine::verdict::SafetyAction;

    fn safety(kind: SafetyKind, rule: &str) -> SafetyEvent {
        SafetyEvent {
            timestamp: Timestamp::from_ms(0),
            kind,
            details: BTreeMap::from([("rule".to_owned(), Value::from(rule))]),
            action_taken: SafetyAction::ContinuedMonitoring,
        }
    }

    /// The result of a run with these safety events, each at its call.
    fn after(found: &[(u64, SafetyKind, &str)]) -> BacktestOutcome {
        let mut outcome = BacktestOutcome::default();
        for (index, kind, rule) in found {
            outcome.count_loops(*index, &loops_in(&[safety(*kind, rule)]));
        }
        outcome
    }

    #[test]
    fn the_first_loop_of_each_level_counts() {
        let outcome = after(&[
            (1, SafetyKind::DirtyBitViolation, "other"),
            (2, SafetyKind::SoftLoop, "repeat"),
            (3, SafetyKind::SoftLoop, "cycle"),
            (4, SafetyKind::HardLoop, "cycle"),
            (9, SafetyKind::InfiniteLoop, "repeat"),
        ]);
        assert_eq!((outcome.soft, outcome.hard), (Some(2), Some(4)));
        assert_eq!(outcome.rule.as_deref(), Some("loops/repeat"));
    }

    #[test]
    fn a_hard_loop_also_counts_as_soft() {
        for kind in [SafetyKind::HardLoop, SafetyKind::InfiniteLoop] {
            let outcome = after(&[(4, kind, "cycle"), (5, SafetyKind::SoftLoop, "repeat")]);
            assert_eq!((outcome.soft, outcome.hard), (Some(4), Some(4)));
        }
    }

    #[test]
    fn the_json_has_every_field() {
        let outcome = after(&[(4, SafetyKind::HardLoop, "cycle")]);
        assert_eq!(
            serde_json::to_string(&outcome).unwrap(),
            "{\"soft\":4,\"hard\":4,\"rule\":\"loops/cycle\",\"denied\":[],\"asked\":[],\
             \"stop\":null,\"undecidable\":[]}"
        );
    }
}
