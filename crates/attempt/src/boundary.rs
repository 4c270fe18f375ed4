//! The border to whoever asked: nothing of the inside crosses it.
//!
//! What is inside has another type than what is outside, so a raw text that gets out is
//! an error of the compiler. There is one way out, [`egress`].

use jackline_engine::verdict::Class;
use serde::Serialize;
use serde_json::Value;

use crate::outcome::OutcomeError;

/// The rule by which outcomes are made public.
pub const POLICY: &str = "guardrail_exhaustion_boundary_v1";

/// What whoever asked is told after retries.
const AFTER_RETRIES: &str = "This request couldn't be completed after multiple attempts.";

/// What whoever asked is told where nothing was retried.
const AT_ONCE: &str = "This request couldn't be completed.";

/// The public word for everything that went wrong inside.
const NOT_COMPLETED: &str = "request_not_completed";

/// How a call ended, with everything. Parents get this, and logs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum InternalOutcome {
    /// It was done.
    Ok {
        /// The answer.
        value: Value,
        /// Where it is from.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        sources: Vec<Value>,
    },
    /// The artifact said so itself, in words that are meant for whoever asked.
    Error(OutcomeError),
    /// The inside failed, in words that are not.
    #[serde(rename = "error")]
    Inside {
        /// What happened.
        #[serde(flatten)]
        error: OutcomeError,
        /// Whether trying otherwise could have helped.
        guardrail_class: Class,
        /// The exact objection, or the type of what failed last.
        guardrail_subtype: String,
        /// How often it was tried again, for whatever reason.
        retries: u32,
    },
}

impl InternalOutcome {
    /// Whether it was done.
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok { .. })
    }

    /// The error, if it is one.
    pub fn error(&self) -> Option<&OutcomeError> {
        match self {
            Self::Ok { .. } => None,
            Self::Error(error) | Self::Inside { error, .. } => Some(error),
        }
    }
}

/// Whether a call gave an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PublicStatus {
    /// It gave one.
    Ok,
    /// It failed.
    Error,
}

/// How a call ended, for whoever asked. No text of the inside is a field of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublicOutcome {
    /// Whether there is an answer.
    pub status: PublicStatus,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Where it is from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Value>,
    /// A word for the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// The error in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Whether asking again may help.
    pub retriable: bool,
    /// Whether this stands for something else.
    pub normalized: bool,
    /// By which rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalization_policy: Option<&'static str>,
}

/// What was made public otherwise than it was, for the log: which objection it stands
/// for must not be told from the outside.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Normalization {
    /// Always true.
    pub normalized: bool,
    /// By which rule.
    pub normalization_policy: &'static str,
    /// Whether trying otherwise could have helped.
    pub guardrail_class: Class,
    /// The exact objection.
    pub guardrail_subtype: String,
    /// How often it was tried again.
    pub guardrail_recovery_attempts: u32,
}

/// The one way out of depth 0. What is inside is left as it is, for the log.
pub fn egress(outcome: &InternalOutcome) -> (PublicOutcome, Option<Normalization>) {
    match outcome {
        InternalOutcome::Ok { value, sources } => {
            let public = PublicOutcome {
                status: PublicStatus::Ok,
                value: Some(value.clone()),
                sources: sources.clone(),
                error_type: None,
                error_message: None,
                retriable: false,
                normalized: false,
                normalization_policy: None,
            };
            (public, None)
        }
        InternalOutcome::Error(error) => {
            let public = PublicOutcome {
                status: PublicStatus::Error,
                value: None,
                sources: Vec::new(),
                error_type: Some(error.error_type.clone()),
                error_message: Some(error.error_message.clone()),
                retriable: error.retriable,
                normalized: false,
                normalization_policy: None,
            };
            (public, None)
        }
        InternalOutcome::Inside { guardrail_class, guardrail_subtype, retries, .. } => {
            let message = if *retries > 0 { AFTER_RETRIES } else { AT_ONCE };
            let public = PublicOutcome {
                status: PublicStatus::Error,
                value: None,
                sources: Vec::new(),
                error_type: Some(NOT_COMPLETED.to_owned()),
                error_message: Some(message.to_owned()),
                retriable: false,
                normalized: true,
                normalization_policy: Some(POLICY),
            };
            let normalization = Normalization {
                normalized: true,
                normalization_policy: POLICY,
                guardrail_class: *guardrail_class,
                guardrail_subtype: guardrail_subtype.clone(),
                guardrail_recovery_attempts: *retries,
            };
            (public, Some(normalization))
        }
    }
}
