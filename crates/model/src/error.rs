//! Errors of models, with kinds that tell the caller what to do.

use std::time::Duration;

/// Why a model did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The kind of failure.
    pub kind: ModelErrorKind,
    /// A description of the failure. It never contains a key.
    pub message: String,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
}

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// The provider is overloaded.
    Overload,
    /// Too many requests or tokens per time.
    RateLimit,
    /// The quota of the plan is used up until some time.
    PlanLimit,
    /// The key is missing or wrong.
    Auth,
    /// The provider has no such model.
    UnknownModel,
    /// The conversation is longer than the context window.
    ContextLength,
    /// The request is invalid and would fail again.
    BadRequest,
    /// The provider can't be reached, or the connection broke.
    Network,
    /// Nothing arrived before the timeout.
    Timeout,
    /// The response is not a valid answer.
    BadAnswer,
    /// The caller stopped the answer.
    Cancelled,
}

impl ModelErrorKind {
    /// The word for it in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Overload => "overload",
            Self::RateLimit => "rate_limit",
            Self::PlanLimit => "plan_limit",
            Self::Auth => "auth",
            Self::UnknownModel => "unknown_model",
            Self::ContextLength => "context_length",
            Self::BadRequest => "bad_request",
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::BadAnswer => "bad_answer",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the same request may succeed later.
    pub fn is_temporary(self) -> bool {
        matches!(
            self,
            Self::Overload | Self::RateLimit | Self::Network | Self::Timeout | Self::BadAnswer
        )
    }
}

impl ModelError {
    /// An error without a status.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), status: None, retry_after: None }
    }

    /// The error after the caller stopped the answer.
    pub fn cancelled() -> Self {
        Self::new(ModelErrorKind::Cancelled, "the request was cancelled")
    }
}
