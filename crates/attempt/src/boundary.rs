//! The border between a call and the caller at depth 0: no internal text crosses it.
//!
//! Internal and public outcomes are different types, so a leak of internal text is a compile
//! error. [`egress`] is the only conversion.

use jackline_engine::verdict::ViolationClass;
use serde::Serialize;
use serde_json::Value;

use crate::outcome::OutcomeError;

/// The name of the rule that makes outcomes public.
pub const NORMALIZATION_POLICY: &str = "guardrail_exhaustion_boundary_v1";

/// The public message after retries.
const TEXT_AFTER_RETRIES: &str = "This request couldn't be completed after multiple attempts.";

/// The public message where nothing was retried.
const TEXT_WITHOUT_RETRY: &str = "This request couldn't be completed.";

/// The public error type of every internal failure.
const NOT_COMPLETED: &str = "request_not_completed";

/// How a call ended, with all details. Parent calls and logs get this.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum InternalOutcome {
    /// The call succeeded.
    Ok {
        /// The answer.
        value: Value,
        /// Where the answer comes from.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        sources: Vec<Value>,
    },
    /// The artifact returned an error of its own. Its text is meant for the caller.
    Error(OutcomeError),
    /// The call failed internally. The text of the error must not become public.
    #[serde(rename = "error")]
    InternalError {
        /// What happened.
        #[serde(flatten)]
        error: OutcomeError,
        /// Whether another try could have helped.
        guardrail_class: ViolationClass,
        /// The exact violation subtype, or the type of the last failure.
        guardrail_subtype: String,
        /// The number of retries, over all lanes.
        retries: u32,
    },
}

impl InternalOutcome {
    /// Whether the call succeeded.
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok { .. })
    }

    /// The error, where the call failed.
    pub fn error(&self) -> Option<&OutcomeError> {
        match self {
            Self::Ok { .. } => None,
            Self::Error(error) | Self::InternalError { error, .. } => Some(error),
        }
    }
}

/// Whether a call returned an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PublicStatus {
    /// The call returned an answer.
    Ok,
    /// The call failed.
    Error,
}

/// How a call ended, as the caller sees it. No field carries internal text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublicOutcome {
    /// Whether the call returned an answer.
    pub status: PublicStatus,
    /// The answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Where the answer comes from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Value>,
    /// The error type, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// The error in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Whether another request may help.
    pub retriable: bool,
    /// Whether a general error replaces the internal one.
    pub normalized: bool,
    /// The rule that replaced it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalization_policy: Option<&'static str>,
}

/// What [`egress`] replaced, for the log. The public outcome must not show which violation it
/// stands for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Normalization {
    /// Always true.
    pub normalized: bool,
    /// The rule that replaced the outcome.
    pub normalization_policy: &'static str,
    /// Whether another try could have helped.
    pub guardrail_class: ViolationClass,
    /// The exact violation subtype.
    pub guardrail_subtype: String,
    /// The number of retries.
    pub guardrail_recovery_attempts: u32,
}

/// Converts an internal outcome into the public one, at depth 0. The internal outcome stays
/// unchanged, for the log.
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
        InternalOutcome::InternalError { guardrail_class, guardrail_subtype, retries, .. } => {
            let message = if *retries > 0 { TEXT_AFTER_RETRIES } else { TEXT_WITHOUT_RETRY };
            let public = PublicOutcome {
                status: PublicStatus::Error,
                value: None,
                sources: Vec::new(),
                error_type: Some(NOT_COMPLETED.to_owned()),
                error_message: Some(message.to_owned()),
                retriable: false,
                normalized: true,
                normalization_policy: Some(NORMALIZATION_POLICY),
            };
            let normalization = Normalization {
                normalized: true,
                normalization_policy: NORMALIZATION_POLICY,
                guardrail_class: *guardrail_class,
                guardrail_subtype: guardrail_subtype.clone(),
                guardrail_recovery_attempts: *retries,
            };
            (public, Some(normalization))
        }
    }
}
