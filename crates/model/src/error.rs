//! Why a model did not answer, in kinds that one can act on.

use std::time::Duration;

/// Why a model did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// What happened, in words. Never a key.
    pub message: String,
    /// The status of the answer, where there was one.
    pub status: Option<u16>,
    /// How long the provider wants to be left alone.
    pub retry_after: Option<Duration>,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The provider has too much to do.
    Overload,
    /// Too many requests, or too many tokens, for now.
    RateLimit,
    /// What was paid for is used up until some time.
    PlanLimit,
    /// No key, or a wrong one.
    Auth,
    /// The provider has no such model.
    UnknownModel,
    /// The conversation does not fit any more.
    ContextLength,
    /// The request is wrong, and will be wrong again.
    BadRequest,
    /// The provider can't be reached, or the connection broke.
    Network,
    /// Nothing came in time.
    Timeout,
    /// What came is no answer.
    BadAnswer,
    /// Whoever asked did not want to hear more.
    Cancelled,
}

impl ErrorKind {
    /// A word for it, as records have it.
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

    /// Whether the same request may be answered later.
    pub fn is_passing(self) -> bool {
        matches!(
            self,
            Self::Overload | Self::RateLimit | Self::Network | Self::Timeout | Self::BadAnswer
        )
    }
}

impl ModelError {
    /// A failure that has no status.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), status: None, retry_after: None }
    }

    /// Whoever asked did not want to hear more.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the answer was not wanted any more")
    }
}
