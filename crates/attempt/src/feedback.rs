//! What the generator is told when it is asked again: what was wrong with the
//! mechanism, never what the answer should be.

use serde::Serialize;

use crate::failure::FailureClass;
use crate::outcome::OutcomeError;
use crate::violation::Violation;

/// How much of a message goes into a prompt.
const MESSAGE_CHARS_MAX: usize = 600;

/// How many corrections stay listed.
const CORRECTIONS_MAX: usize = 12;

/// What the generator is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ask {
    /// Which attempt this is for, from one.
    pub attempt: u32,
    /// Why it is asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
    /// Everything that was corrected in this call so far, so that a later artifact does
    /// not fall back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub corrections: Vec<String>,
}

/// Why the generator is asked again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "lane", rename_all = "snake_case")]
pub enum Feedback {
    /// It gave nothing usable.
    Provider {
        /// What came.
        error_type: String,
        /// In words.
        error_message: String,
        /// What passes instead.
        required_correction: String,
        /// How often it may still be asked for this reason.
        remaining_provider_budget: u32,
    },
    /// A guardrail objects.
    Guardrail {
        /// All objections; the first leads.
        violations: Vec<Violation>,
        /// How often it may still be asked for this reason.
        remaining_guardrail_budget: u32,
    },
    /// The artifact failed while it ran.
    Execution {
        /// How.
        error_type: String,
        /// In words.
        error_message: String,
        /// What passes instead.
        required_correction: String,
        /// How often it may still be asked for this reason.
        remaining_execution_budget: u32,
    },
    /// The artifact says that it did not succeed.
    Outcome {
        /// Whose fault it is.
        failure_class: FailureClass,
        /// A word for it.
        error_type: String,
        /// In words.
        error_message: String,
        /// What passes instead.
        required_correction: String,
        /// How often it may still be asked for this reason.
        remaining_outcome_budget: u32,
    },
}

impl Feedback {
    pub(crate) fn provider(error_type: &str, message: &str, remaining: u32) -> Self {
        Self::Provider {
            error_type: error_type.to_owned(),
            error_message: cut(message, MESSAGE_CHARS_MAX),
            required_correction: "Answer with the artifact alone.".to_owned(),
            remaining_provider_budget: remaining,
        }
    }

    pub(crate) fn guardrail(violations: &[Violation], remaining: u32) -> Self {
        let mut violations = violations.to_vec();
        violations.truncate(CORRECTIONS_MAX);
        for violation in &mut violations {
            violation.message = cut(&violation.message, MESSAGE_CHARS_MAX);
        }
        Self::Guardrail { violations, remaining_guardrail_budget: remaining }
    }

    pub(crate) fn execution(error_type: &str, message: &str, remaining: u32) -> Self {
        Self::Execution {
            error_type: error_type.to_owned(),
            error_message: cut(message, MESSAGE_CHARS_MAX),
            required_correction: "Write a program that does not fail this way; where a tool can \
                                  fail, handle it and return error(type, message, retriable=...)."
                .to_owned(),
            remaining_execution_budget: remaining,
        }
    }

    pub(crate) fn outcome(error: &OutcomeError, class: FailureClass, remaining: u32) -> Self {
        Self::Outcome {
            failure_class: class,
            error_type: error.error_type.clone(),
            error_message: cut(&error.error_message, MESSAGE_CHARS_MAX),
            required_correction: "Reach the same goal another way: other tools, other arguments, \
                                  another order."
                .to_owned(),
            remaining_outcome_budget: remaining,
        }
    }

    /// What passes instead, each once.
    fn corrections(&self) -> Vec<&str> {
        match self {
            Self::Guardrail { violations, .. } => {
                violations.iter().map(|violation| violation.correction.as_str()).collect()
            }
            Self::Provider { required_correction, .. }
            | Self::Execution { required_correction, .. }
            | Self::Outcome { required_correction, .. } => vec![required_correction],
        }
    }
}

/// Remembers what was corrected; the oldest go first where there are too many.
pub(crate) fn remember(corrections: &mut Vec<String>, feedback: &Feedback) {
    for correction in feedback.corrections() {
        if !corrections.iter().any(|known| known == correction) {
            corrections.push(correction.to_owned());
        }
    }
    let too_many = corrections.len().saturating_sub(CORRECTIONS_MAX);
    corrections.drain(..too_many);
}

/// A text of at most so many characters.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    let head: String = text.chars().take(chars.saturating_sub(3)).collect();
    format!("{head}...")
}
