//! What the generator gets when it is asked again. Feedback describes what was wrong with the
//! mechanism, never what the answer should be.

use serde::Serialize;

use crate::attempt_violation::AttemptViolation;
use crate::failure::FailureClass;
use crate::outcome::OutcomeError;

/// The longest message in a prompt, in characters.
const MESSAGE_CHARS_MAX: usize = 600;

/// The number of corrections that stay listed.
const CORRECTIONS_MAX: usize = 12;

/// One request to the generator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GenerationRequest {
    /// The attempt this request belongs to, counted from one.
    pub attempt: u32,
    /// Why the generator is asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<GenerationFeedback>,
    /// All corrections of this call so far, so that a later artifact does not repeat an old
    /// mistake.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub corrections: Vec<String>,
}

/// Why the generator is asked again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "lane", rename_all = "snake_case")]
pub enum GenerationFeedback {
    /// The generator returned no usable artifact.
    Provider {
        /// The error type.
        error_type: String,
        /// The error in words.
        error_message: String,
        /// What would be accepted instead.
        required_correction: String,
        /// The remaining retries of this lane.
        remaining_provider_budget: u32,
    },
    /// A guardrail raised violations.
    Guardrail {
        /// All violations; the first one leads.
        violations: Vec<AttemptViolation>,
        /// The remaining retries of this lane.
        remaining_guardrail_budget: u32,
    },
    /// The artifact failed while it ran.
    Execution {
        /// The error type.
        error_type: String,
        /// The error in words.
        error_message: String,
        /// What would be accepted instead.
        required_correction: String,
        /// The remaining retries of this lane.
        remaining_execution_budget: u32,
    },
    /// The artifact returned an error.
    Outcome {
        /// What caused the failure.
        failure_class: FailureClass,
        /// The error type.
        error_type: String,
        /// The error in words.
        error_message: String,
        /// What would be accepted instead.
        required_correction: String,
        /// The remaining retries of this lane.
        remaining_outcome_budget: u32,
    },
}

impl GenerationFeedback {
    pub(crate) fn provider(error_type: &str, message: &str, remaining: u32) -> Self {
        Self::Provider {
            error_type: error_type.to_owned(),
            error_message: shortened(message, MESSAGE_CHARS_MAX),
            required_correction: "Answer with the artifact alone.".to_owned(),
            remaining_provider_budget: remaining,
        }
    }

    pub(crate) fn guardrail(violations: &[AttemptViolation], remaining: u32) -> Self {
        let mut violations = violations.to_vec();
        violations.truncate(CORRECTIONS_MAX);
        for violation in &mut violations {
            violation.message = shortened(&violation.message, MESSAGE_CHARS_MAX);
        }
        Self::Guardrail { violations, remaining_guardrail_budget: remaining }
    }

    pub(crate) fn execution(error_type: &str, message: &str, remaining: u32) -> Self {
        Self::Execution {
            error_type: error_type.to_owned(),
            error_message: shortened(message, MESSAGE_CHARS_MAX),
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
            error_message: shortened(&error.error_message, MESSAGE_CHARS_MAX),
            required_correction: "Reach the same goal another way: other tools, other arguments, \
                                  another order."
                .to_owned(),
            remaining_outcome_budget: remaining,
        }
    }

    /// The corrections in this feedback.
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

/// Adds the corrections of `feedback` without duplicates. The oldest ones are dropped where there
/// are too many.
pub(crate) fn add_corrections(corrections: &mut Vec<String>, feedback: &GenerationFeedback) {
    for correction in feedback.corrections() {
        if !corrections.iter().any(|old| old == correction) {
            corrections.push(correction.to_owned());
        }
    }
    let too_many = corrections.len().saturating_sub(CORRECTIONS_MAX);
    corrections.drain(..too_many);
}

/// Shortens a text to at most `chars` characters.
pub(crate) fn shortened(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    let head: String = text.chars().take(chars.saturating_sub(3)).collect();
    format!("{head}...")
}
