//! The border between a call and the caller at depth 0: no internal text crosses it.
//!
//! Internal and public outcomes are different types, so a leak of internal text is a compile
//! error. [`egress`] is the only conversion.

use jackline_engine::verdict::{ViolationClass, ViolationSubtype};
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

/// The public subtype that stands for every rule of the definition.
pub const RULE_SUBTYPE: &str = "rule";

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
        /// The violation that ended the call, if a guardrail ended it.
        #[serde(flatten)]
        guardrail: Option<GuardrailCause>,
        /// The number of retries after violations.
        guardrail_recovery_attempts: u32,
        /// The number of retries for any reason.
        retries: u32,
    },
}

/// The violation that ended a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuardrailCause {
    /// Whether another try could have helped.
    #[serde(rename = "guardrail_class")]
    pub class: ViolationClass,
    /// The exact violation subtype: a word of Jackline, or the name of a rule of the definition. In
    /// a public outcome it is a word of Jackline, or [`RULE_SUBTYPE`].
    #[serde(rename = "guardrail_subtype")]
    pub subtype: String,
}

impl GuardrailCause {
    /// The cause without internal text. The name of a rule is text of the definition.
    fn to_public(&self) -> Self {
        let subtype = match ViolationSubtype::parse(&self.subtype) {
            ViolationSubtype::Other(_) => RULE_SUBTYPE.to_owned(),
            word => word.to_string(),
        };
        Self { class: self.class, subtype }
    }
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

    /// The texts that must not become public. Types and subtypes are words of Jackline, or of a
    /// definition, and callers may branch on them.
    pub fn internal_texts(&self) -> Vec<&str> {
        let Self::InternalError { error, .. } = self else { return Vec::new() };
        let mut texts = vec![error.error_message.as_str()];
        let is_text = |key: &str| !key.ends_with("_type") && !key.ends_with("_subtype");
        let details = error.metadata.iter().filter(|(key, _)| is_text(key));
        texts.extend(details.filter_map(|(_, value)| value.as_str()));
        texts
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
    /// The violation that it stands for, if a guardrail ended the call.
    #[serde(flatten)]
    pub guardrail: Option<GuardrailCause>,
    /// The number of retries after violations, if a general error replaces the internal one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guardrail_recovery_attempts: Option<u32>,
}

/// Converts an internal outcome into the public one, at depth 0. This is the only conversion. The
/// internal outcome stays unchanged, for the log.
pub fn egress(outcome: &InternalOutcome) -> PublicOutcome {
    let error = |error_type: &str, message: &str, retriable: bool| PublicOutcome {
        status: PublicStatus::Error,
        value: None,
        sources: Vec::new(),
        error_type: Some(error_type.to_owned()),
        error_message: Some(message.to_owned()),
        retriable,
        normalized: false,
        normalization_policy: None,
        guardrail: None,
        guardrail_recovery_attempts: None,
    };
    match outcome {
        InternalOutcome::Ok { value, sources } => PublicOutcome {
            status: PublicStatus::Ok,
            value: Some(value.clone()),
            sources: sources.clone(),
            error_type: None,
            error_message: None,
            retriable: false,
            normalized: false,
            normalization_policy: None,
            guardrail: None,
            guardrail_recovery_attempts: None,
        },
        InternalOutcome::Error(raw) => error(&raw.error_type, &raw.error_message, raw.retriable),
        InternalOutcome::InternalError {
            error: raw,
            guardrail,
            guardrail_recovery_attempts,
            retries,
        } => {
            let message = if *retries > 0 { TEXT_AFTER_RETRIES } else { TEXT_WITHOUT_RETRY };
            PublicOutcome {
                normalized: true,
                normalization_policy: Some(NORMALIZATION_POLICY),
                guardrail: guardrail.as_ref().map(GuardrailCause::to_public),
                guardrail_recovery_attempts: Some(*guardrail_recovery_attempts),
                ..error(NOT_COMPLETED, message, raw.retriable)
            }
        }
    }
}

/// The public outcome of a task that could not start.
pub fn not_started_outcome() -> PublicOutcome {
    egress(&InternalOutcome::InternalError {
        error: OutcomeError::new("not_started", "the task could not start", false),
        guardrail: None,
        guardrail_recovery_attempts: 0,
        retries: 0,
    })
}
