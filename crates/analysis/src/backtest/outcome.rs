//! What would have become of a run.

use std::collections::{BTreeMap, BTreeSet};

use jackline_engine::verdict::{SafetyEvent, SafetyKind, Stop};
use jackline_engine::{
    CallId, Decision, Event, EventKind, ToolFinished, ToolName, ToolProposed, Violation,
};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::name_of;

/// How many calls that never came back are remembered.
const OPEN_MAX: usize = 1024;

/// What would have become of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BacktestOutcome {
    /// The first call at which the agent would have been told that it loops.
    pub soft: Option<u64>,
    /// The first call at which a loop would have been held.
    pub hard: Option<u64>,
    /// What spoke first: the rule or guard behind a call that would not have
    /// run, or the rule by which a loop was found.
    pub rule: Option<String>,
    /// The calls that would have been denied, by their numbers from 0.
    pub denied: Vec<u64>,
    /// The calls about which a person would have been asked.
    pub asked: Vec<u64>,
    /// The code with which the session would have been stopped.
    #[serde(serialize_with = "in_words")]
    pub stop: Option<Stop>,
    /// Guards and rules of which not everything can be said.
    pub undecidable: BTreeSet<String>,
    /// How many calls there were.
    #[serde(skip)]
    pub calls: u64,
    #[serde(skip)]
    open: BTreeMap<CallId, Call>,
}

/// A call, by its number in its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// From 0.
    pub index: u64,
    /// What was called.
    pub tool: ToolName,
}

/// A loop that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLoop {
    /// By which rule.
    pub rule: String,
    /// Whether it would have been held, and not only told.
    pub hard: bool,
}

impl BacktestOutcome {
    /// The call that an event is about.
    pub(super) fn call(&mut self, event: &Event) -> Option<Call> {
        match &event.kind {
            EventKind::ToolProposed(ToolProposed { call, tool, .. }) => {
                let proposed = Call { index: self.calls, tool: tool.clone() };
                self.calls += 1;
                if let Some(call) = call {
                    self.open.insert(call.clone(), proposed.clone());
                    if self.open.len() > OPEN_MAX {
                        self.open.pop_first();
                    }
                }
                Some(proposed)
            }
            EventKind::ToolFinished(ToolFinished { call, of, .. }) => match (call, of) {
                (Some(call), _) => self.open.remove(call),
                // Without ids a result can't be told from that of another call
                // of the same tool; the latest call is near enough.
                (None, Some(of)) => {
                    let index = self.calls.saturating_sub(1);
                    Some(Call { index, tool: of.tool.clone() })
                }
                (None, None) => None,
            },
            _ => None,
        }
    }

    /// Counts what would have been said about a proposed call.
    pub(super) fn proposed(&mut self, index: u64, decision: Decision, by: Option<&Violation>) {
        match decision {
            Decision::Allow | Decision::Rewrite => return,
            Decision::Ask => self.asked.push(index),
            Decision::Deny | Decision::Pause | Decision::Stop => self.denied.push(index),
        }
        if self.rule.is_none() {
            self.rule = by.map(name_of);
        }
    }

    /// Counts loops that were found at a call. One that is held was there to be
    /// told about, too.
    pub(super) fn loops(&mut self, index: u64, found: &[FoundLoop]) {
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

/// The loops among what goes into the safety log.
pub(super) fn loops_in(safety: &[SafetyEvent]) -> Vec<FoundLoop> {
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
        Some(FoundLoop { rule, hard })
    });
    found.collect()
}

#[expect(clippy::ref_option, reason = "serde calls it with this")]
fn in_words<S: Serializer>(stop: &Option<Stop>, serializer: S) -> Result<S::Ok, S::Error> {
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

    /// The outcome of a run in which these were found, each at its call.
    fn after(found: &[(u64, SafetyKind, &str)]) -> BacktestOutcome {
        let mut outcome = BacktestOutcome::default();
        for (index, kind, rule) in found {
            outcome.loops(*index, &loops_in(&[safety(*kind, rule)]));
        }
        outcome
    }

    #[test]
    fn the_first_of_each_level_counts() {
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
    fn what_is_hard_is_soft_by_then() {
        for kind in [SafetyKind::HardLoop, SafetyKind::InfiniteLoop] {
            let outcome = after(&[(4, kind, "cycle"), (5, SafetyKind::SoftLoop, "repeat")]);
            assert_eq!((outcome.soft, outcome.hard), (Some(4), Some(4)));
        }
    }

    #[test]
    fn a_line_for_programs_has_every_field() {
        let outcome = after(&[(4, SafetyKind::HardLoop, "cycle")]);
        assert_eq!(
            serde_json::to_string(&outcome).unwrap(),
            "{\"soft\":4,\"hard\":4,\"rule\":\"loops/cycle\",\"denied\":[],\"asked\":[],\
             \"stop\":null,\"undecidable\":[]}"
        );
    }
}
