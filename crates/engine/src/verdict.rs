//! The verdict: the answer to one event.

mod fault;
mod safety;
mod stop;
mod violation;

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::facts::OutputFact;
use crate::id::{CallId, SessionId};
use crate::time::Timestamp;
use crate::words::words;

pub use fault::{FaultKind, WireFault};
pub use safety::{SafetyAction, SafetyEvent, SafetyKind};
pub use stop::{BypassReason, SessionStop, StopCode, StopDetail};
pub use violation::{GuardName, Violation, ViolationClass, ViolationSubtype, ViolationType};

/// The decisions, from weakest to strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// No violation. This is not an approval.
    Allow,
    /// Continue with changed arguments or a changed output.
    Rewrite,
    /// A person must approve the call.
    Ask,
    /// The call is denied. The agent may try something else.
    Deny,
    /// No call may run until a person continues the session.
    Pause,
    /// The session ends or has ended.
    Stop,
}

impl Decision {
    /// The JSON word.
    pub fn as_str(self) -> &'static str {
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

/// The answer to one event, in the form of the journal and of adapters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    /// The version of the wire protocol.
    pub v: u64,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The record that contains this verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The number of steps of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// The call that the verdict is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// What to do: the strongest enforced decision, or otherwise the strongest observed one.
    pub decision: Decision,
    /// Whether the decision is enforced. If not, it is only recorded what would have been decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforced: Option<bool>,
    /// Every violation, in the order of the guards.
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
    /// The arguments to use instead of the proposed ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// The plan or output to use instead of the proposed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The page to show instead of the complete output of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<ShownPage>,
    /// What the decoding layer repaired, or what the agent has to write again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<RepairReport>,
    /// What is invalid in the result of a tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invalid_result: Vec<SchemaMismatch>,
    /// The result of the completion check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<CompletionResult>,
    /// How full the context is, if it needs attention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_gate: Option<ContextGate>,
    /// How the session ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<SessionStop>,
    /// The entries for the safety log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub safety: Vec<SafetyEvent>,
    /// Why this verdict is not a decision on the event: the line is invalid or the guard is broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WireFault>,
}

impl Verdict {
    /// A verdict without violations.
    pub fn allow() -> Self {
        Self {
            v: crate::wire::WIRE_VERSION,
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

    /// The denial that replaces a decision if there is none.
    pub fn from_fault(error: WireFault) -> Self {
        Self { decision: Decision::Deny, enforced: Some(true), error: Some(error), ..Self::allow() }
    }

    /// Whether this is the decision and adapters must carry it out.
    pub fn is_enforced(&self, decision: Decision) -> bool {
        self.decision == decision && self.enforced != Some(false)
    }

    /// Whether a guard reported a violation that is enforced.
    pub(crate) fn has_enforced_violation_of(&self, guard: &GuardName) -> bool {
        self.violations.iter().any(|it| it.guard == *guard && it.enforced)
    }

    /// Whether a proposed call may run.
    pub fn allows_run(&self) -> bool {
        self.decision <= Decision::Rewrite || self.enforced == Some(false)
    }

    /// Whether the agent can act on the content of the verdict. It can't act on a client's report
    /// about a call that the session does not know.
    pub fn concerns_agent(&self) -> bool {
        !self.feedback.is_empty()
            || self.violations.iter().any(|it| it.guard != GuardName::Protocol)
    }
}

/// The part of an output that is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShownPage {
    /// The length of the complete output.
    pub bytes: u64,
    /// The length of the shown part.
    pub shown: u64,
    /// How many lines are shown, if the part is the beginning of the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_shown: Option<u64>,
    /// How many lines of the output follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines_remaining: Option<u64>,
    /// Whether a part of the output is not shown.
    #[serde(default)]
    pub has_more: bool,
    /// The line with which the next page begins, counted from 1: in the file that was read, or in
    /// the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
    /// The byte of that line with which the next page begins, if it begins within the line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_line_offset: Option<u64>,
    /// Whether workspace paths are shown as relative paths.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub relative: bool,
    /// The file that contains the complete output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether the part replaces the output. If not, it is only recorded that it would.
    pub enforced: bool,
}

impl ShownPage {
    /// The page that an adapter offers. `has_more` says that it is only a part of the output.
    pub(crate) fn of(offered: &OutputFact, has_more: bool, enforced: bool) -> Self {
        let OutputFact { bytes, shown, lines, relative, file, fault: _ } = offered.clone();
        let next = lines.filter(|_| has_more);
        Self {
            bytes,
            shown,
            lines_shown: lines.map(|lines| lines.shown),
            lines_remaining: lines.map(|lines| lines.total.saturating_sub(lines.shown)),
            has_more,
            next_offset: next.map(|lines| lines.next_line()),
            next_line_offset: next.and_then(|lines| lines.line_offset),
            relative,
            file,
            enforced,
        }
    }
}

/// What the decoding layer did with the output of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepairReport {
    /// How often it was invalid so far; 0 if it was usable.
    pub attempt: u32,
    /// How often it may still be invalid.
    pub remaining: u32,
    /// What is invalid.
    pub errors: Vec<SchemaMismatch>,
    /// What was cleaned up to make it usable.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleaned: Vec<String>,
    /// Whether it contains only placeholders.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub placeholders: bool,
}

/// A position with an unexpected value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaMismatch {
    /// The JSON pointer of the position; empty for the whole document.
    pub path: String,
    /// The expected value.
    pub expected: String,
    /// The actual value.
    pub got: String,
}

/// A typed override, in force for some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constraint {
    /// Its id within the session: `k` and a number.
    pub id: String,
    /// The kind of override.
    #[serde(rename = "type")]
    pub kind: ConstraintKind,
    /// Why it is in force.
    pub reason: String,
    /// How long it is in force.
    pub scope: ConstraintScope,
    /// When it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Whether it is enforced or only observed.
    #[serde(default = "default_enforced", skip_serializing_if = "Clone::clone")]
    pub enforced: bool,
}

const fn default_enforced() -> bool {
    true
}

words! {
    /// How long a constraint is in force.
    ConstraintScope {
        /// For one call.
        Once = "once",
        /// Until the next prompt of a person.
        Turn = "turn",
        /// For the whole session.
        Session = "session",
    }

    /// The kinds of constraints.
    ConstraintKind {
        /// Permits exactly one call that would otherwise need approval.
        PermitSignature = "permit_signature",
        /// Forbids exactly one call.
        ForbidSignature = "forbid_signature",
        /// Permits only one kind of action.
        ForceAction = "force_action",
        /// Limits the remaining calls of a tool.
        ToolBudget = "tool_budget",
        /// Requires that the next search is a different one.
        WidenRetrieval = "widen_retrieval",
    }
}

/// How full an agent's context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextGate {
    /// The level that results from it.
    pub level: ContextLevel,
    /// The used part of the context window in percent; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pct: Option<u64>,
    /// Whether the numbers are an estimate.
    pub estimated: bool,
}

/// The levels of a context's fill, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextLevel {
    /// The fill is not known.
    Unknown,
    /// There is enough room.
    Ok,
    /// The agent is warned.
    Warn,
    /// The agent should compact the context.
    Compact,
    /// Only a compaction may run.
    Block,
}

/// Soft guidance, delivered with a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feedback {
    /// The provider of the guidance.
    pub provider: String,
    /// How urgent it is.
    pub severity: Severity,
    /// The message.
    pub summary: String,
    /// Details.
    pub observations: Vec<FeedbackObservation>,
    /// What to do.
    pub suggestions: Vec<String>,
    /// When it was created.
    pub timestamp: Timestamp,
    /// The number of calls before it.
    pub call_index: u64,
    /// The definition it comes from.
    pub definition: String,
}

/// One detail of a feedback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackObservation {
    /// The subject.
    pub category: String,
    /// What was observed.
    pub description: String,
    /// The evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// How urgent a feedback is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// For information.
    Info,
    /// To be considered.
    Caution,
    /// To be acted on.
    Warning,
}

impl Feedback {
    /// The text block that the model receives.
    pub fn render(&self) -> String {
        let mut block = String::from("<feedback provider='");
        escape_attribute_into(&self.provider, &mut block);
        block.push_str("'>\n");
        escape_into(&self.summary, &mut block);
        if !self.observations.is_empty() {
            block.push('\n');
        }
        for observation in &self.observations {
            block.push_str("\n- ");
            escape_into(&observation.category, &mut block);
            block.push_str(": ");
            escape_into(&observation.description, &mut block);
        }
        if !self.suggestions.is_empty() {
            block.push('\n');
        }
        for suggestion in &self.suggestions {
            block.push_str("\n-> ");
            escape_into(suggestion, &mut block);
        }
        block.push_str("\n</feedback>");
        block
    }
}

/// Escapes a name, so that it can't close the quotes around it.
fn escape_attribute_into(name: &str, out: &mut String) {
    let mut parts = name.split('\'');
    escape_into(parts.next().unwrap_or_default(), out);
    for part in parts {
        out.push_str("&#39;");
        escape_into(part, out);
    }
}

/// Escapes a text, so that it can't close the block around it. Quotes are not escaped, because they
/// end nothing there.
fn escape_into(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
}

/// The result of the completion check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum CompletionResult {
    /// All requirements are met.
    Complete,
    /// A requirement is not met.
    Incomplete {
        /// The files that are missing or wrong.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String>,
        /// The message for the agent.
        feedback: String,
    },
    /// The check was skipped, because the work has to end anyway.
    Bypassed {
        /// Which allowance is used up.
        reason: BypassReason,
    },
    /// The stop was blocked too often. The turn ends, but not as complete.
    Capped {
        /// How often it was blocked in this turn.
        rounds: u32,
        /// The requirements that were not met last.
        feedback: String,
    },
    /// The check could not run.
    Unverified {
        /// The reason.
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
            summary: "</feedback> & don't".to_string(),
            observations: Vec::from([FeedbackObservation {
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
            "<feedback provider='A&#39;B'>\n&lt;/feedback&gt; &amp; don't\n\n- time: short\n\n-> Wrap up.\n</feedback>"
        );
    }

    #[test]
    fn decisions_rise() {
        use Decision::{Allow, Ask, Deny, Pause, Rewrite, Stop};
        let order = [Allow, Rewrite, Ask, Deny, Pause, Stop];
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
