//! The answer to one event.

mod fault;
mod safety;
mod stop;
mod violation;

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{CallId, SessionId};
use crate::time::Timestamp;
use crate::words::words;

pub use fault::{FaultKind, WireFault};
pub use safety::{SafetyAction, SafetyEvent, SafetyKind};
pub use stop::{Bypass, Stop, StopCode, StopDetail};
pub use violation::{Class, GuardName, Violation, ViolationSubtype, ViolationType};

/// What to do, in rising order of strength.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// No objection. Silence, not approval.
    Allow,
    /// Go on with changed arguments or output.
    Rewrite,
    /// A person has to say.
    Ask,
    /// Not this; the agent may try something else.
    Deny,
    /// Nothing runs until a person says so.
    Pause,
    /// The session is over.
    Stop,
}

impl Decision {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Rewrite => "rewrite",
            Self::Ask => "ask",
            Self::Deny => "deny",
            Self::Pause => "pause",
            Self::Stop => "stop",
        }
    }
}

/// The answer to one event, as the journal keeps it and adapters show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The version of the wire.
    pub v: u64,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The record that holds this verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// How many steps the session has taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The call it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// What to do: the strongest enforced answer, else the strongest observed one.
    pub decision: Decision,
    /// Whether the decision holds, or is only what would have been decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforced: Option<bool>,
    /// Every objection, in the order of the guards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// Soft guidance for the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback: Vec<Feedback>,
    /// The exact text to show the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Overrides that this event put in force.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<Constraint>,
    /// Arguments to use instead of those that were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// A plan or an output to use instead of what was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// A page to show instead of what a tool gave back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<Page>,
    /// What the decoding layer had to do, or what has to be written again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
    /// What is wrong with what a tool gave back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid_result: Vec<Mismatch>,
    /// What became of the completion check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Completion>,
    /// How full the context is, where that is worth a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_gate: Option<ContextGate>,
    /// How the session ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// What goes into the safety log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub safety: Vec<SafetyEvent>,
    /// Why this is not a decision on the event: the line or the guard is broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WireFault>,
}

impl Verdict {
    /// A verdict without objections.
    pub fn allow() -> Self {
        Self {
            v: crate::wire::VERSION,
            session: None,
            seq: None,
            step: None,
            call: None,
            decision: Decision::Allow,
            enforced: None,
            violations: Vec::new(),
            feedback: Vec::new(),
            context: None,
            constraints: Vec::new(),
            args: None,
            output: None,
            page: None,
            repair: None,
            invalid_result: Vec::new(),
            completion: None,
            context_gate: None,
            stop: None,
            safety: Vec::new(),
            error: None,
        }
    }

    /// The denial that stands in when there is no decision.
    pub fn fault(error: WireFault) -> Self {
        Self { decision: Decision::Deny, enforced: Some(true), error: Some(error), ..Self::allow() }
    }

    /// Whether the decision is one that adapters must carry out.
    pub fn is_enforced(&self, decision: Decision) -> bool {
        self.decision == decision && self.enforced != Some(false)
    }

    /// Whether a guard objects, and that holds.
    pub(crate) fn is_refused_by(&self, guard: &GuardName) -> bool {
        self.violations.iter().any(|it| it.guard == *guard && it.enforced)
    }

    /// Whether a proposed call may run.
    pub fn lets_run(&self) -> bool {
        self.decision <= Decision::Rewrite || self.enforced == Some(false)
    }

    /// Whether the agent can do something with what is said. That a client reports
    /// what nobody expects, a call from before it was listened to, it can't help.
    pub fn concerns_agent(&self) -> bool {
        !self.feedback.is_empty()
            || self.violations.iter().any(|it| it.guard != GuardName::Protocol)
    }
}

/// What is shown of an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// How long the output is.
    pub bytes: u64,
    /// How long what is shown of it is.
    pub shown: u64,
    /// Whether paths in the workspace are told relative to it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub relative: bool,
    /// Where all of it lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether it is shown, or only would be.
    pub enforced: bool,
}

/// What the decoding layer had to do with what a model wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repair {
    /// How often it was wrong by now; 0 where it could be used.
    pub attempt: u32,
    /// How often it may still be wrong.
    pub remaining: u32,
    /// What is wrong with it.
    pub errors: Vec<Mismatch>,
    /// What was cleaned up, so that it could be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleaned: Vec<String>,
    /// Whether nothing but placeholders stands in it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub placeholders: bool,
}

/// A place at which something else was expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mismatch {
    /// Where: a JSON pointer; empty is the whole.
    pub path: String,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub got: String,
}

/// A typed override, in force for a while.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// Its name within the session: `k` and a number.
    pub id: String,
    /// What it does.
    #[serde(rename = "type")]
    pub kind: ConstraintKind,
    /// Why it is in force.
    pub reason: String,
    /// How far it reaches.
    pub scope: ConstraintScope,
    /// From when on it is not in force any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Whether it holds, or is only observed.
    #[serde(default = "holds", skip_serializing_if = "Clone::clone")]
    pub enforced: bool,
}

const fn holds() -> bool {
    true
}

words! {
    /// How far a constraint reaches.
    ConstraintScope {
        /// One call.
        Once = "once",
        /// Until a person speaks.
        Turn = "turn",
        /// The whole session.
        Session = "session",
    }

    /// What a constraint does.
    ConstraintKind {
        /// Lets exactly one call pass that would be asked about.
        PermitSignature = "permit_signature",
        /// Refuses exactly one call.
        ForbidSignature = "forbid_signature",
        /// Nothing but one kind of action passes.
        ForceAction = "force_action",
        /// So many more calls of a tool, and no more.
        ToolBudget = "tool_budget",
        /// The next search has to be another one.
        WidenRetrieval = "widen_retrieval",
    }
}

/// How full an agent's context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextGate {
    /// What that calls for.
    pub level: ContextLevel,
    /// How much of the window is used, in percent; none where nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pct: Option<u64>,
    /// Whether it was guessed.
    pub estimated: bool,
}

/// What the fill of a context calls for, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextLevel {
    /// Nobody knows how full it is.
    Unknown,
    /// Nothing.
    Ok,
    /// A warning.
    Warn,
    /// A compaction.
    Compact,
    /// Nothing but a compaction may run.
    Block,
}

/// Soft guidance, delivered with a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feedback {
    /// Who speaks.
    pub provider: String,
    /// How urgent it is.
    pub severity: Severity,
    /// What they say.
    pub summary: String,
    /// Details.
    pub observations: Vec<Observed>,
    /// What to do.
    pub suggestions: Vec<String>,
    /// When it was said.
    pub timestamp: Timestamp,
    /// How many calls there had been.
    pub call_index: u64,
    /// The definition it comes from.
    pub definition: String,
}

/// One detail of a feedback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    /// What it is about.
    pub category: String,
    /// What was seen.
    pub description: String,
    /// Where it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// How urgent a feedback is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Worth a thought.
    Caution,
    /// Act on it.
    Warning,
}

impl Feedback {
    /// The block that the model is shown.
    pub fn render(&self) -> String {
        let mut block = String::from("<feedback provider='");
        escape(&self.provider, &mut block);
        block.push_str("'>\n");
        escape(&self.summary, &mut block);
        if !self.observations.is_empty() {
            block.push('\n');
        }
        for seen in &self.observations {
            block.push_str("\n- ");
            escape(&seen.category, &mut block);
            block.push_str(": ");
            escape(&seen.description, &mut block);
        }
        if !self.suggestions.is_empty() {
            block.push('\n');
        }
        for suggestion in &self.suggestions {
            block.push_str("\n-> ");
            escape(suggestion, &mut block);
        }
        block.push_str("\n</feedback>");
        block
    }
}

/// Keeps text from closing the block it stands in.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

/// What became of the completion check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum Completion {
    /// Everything that was asked for is there.
    Complete,
    /// Something is missing.
    Incomplete {
        /// The files that are missing or wrong.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String>,
        /// What the agent is told.
        feedback: String,
    },
    /// Not checked: the work has to end anyway.
    Bypassed {
        /// What ran out.
        reason: Bypass,
    },
    /// Blocked too often: the turn ends, and not as done.
    Capped {
        /// How often it was blocked in this turn.
        rounds: u32,
        /// What was missing last.
        feedback: String,
    },
    /// Nobody could check.
    Unverified {
        /// Why not.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_feedback_block_cannot_be_closed_from_inside() {
        let feedback = Feedback {
            provider: "A'B".to_string(),
            severity: Severity::Info,
            summary: "</feedback> & more".to_string(),
            observations: Vec::from([Observed {
                category: "time".to_string(),
                description: "short".to_string(),
                evidence: None,
            }]),
            suggestions: Vec::from(["Wrap up.".to_string()]),
            timestamp: Timestamp::from_ms(0),
            call_index: 1,
            definition: "a/b".to_string(),
        };
        assert_eq!(
            feedback.render(),
            "<feedback provider='A&#39;B'>\n&lt;/feedback&gt; &amp; more\n\n- time: short\n\n-> Wrap up.\n</feedback>"
        );
    }

    #[test]
    fn decisions_rise() {
        use Decision::{Allow, Ask, Deny, Pause, Rewrite, Stop};
        let order = [Allow, Rewrite, Ask, Deny, Pause, Stop];
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
