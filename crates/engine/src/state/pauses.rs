//! What holds a session: a person, a guard, or a person where a guard held it before.
//!
//! Each hold has its own word. A person who pauses a session that is stuck puts their word
//! over the blocker; lifting the one leaves the other as it is.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};

use serde::{Deserialize, Serialize};

use crate::event::Action;

/// A pause, by a person or by a guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Paused {
    pub(crate) by: Option<String>,
    pub(crate) why: Option<String>,
    pub(crate) cause: Cause,
    /// The blocker that held the session before, and still does beneath this.
    // INVARIANT: it is stuck, and has nothing beneath itself.
    pub(crate) over: Option<Box<Paused>>,
}

/// What a session is paused for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Cause {
    /// A person wants it.
    Person,
    /// A protected file was changed.
    Protected,
    /// The agent goes in circles; a blocker report says how.
    Loop,
    /// Iterations bring nothing; a blocker report says so.
    NoProgress,
    /// The iterations are used up; a checkpoint waits to be acknowledged.
    Checkpoint,
}

impl Cause {
    /// The word in `status`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Protected => "protected",
            Self::Loop => "loop",
            Self::NoProgress => "no_progress",
            Self::Checkpoint => "checkpoint",
        }
    }

    /// Whether the agent gets nowhere, so that a blocker has to be cleared.
    pub(crate) fn is_stuck(self) -> bool {
        matches!(self, Self::Loop | Self::NoProgress)
    }
}

impl Paused {
    /// A pause that a person wants.
    pub(crate) fn by_person(by: Option<String>, why: Option<String>) -> Self {
        Self { by, why, cause: Cause::Person, over: None }
    }

    /// A pause that no person has asked for.
    pub(crate) fn by_guard(cause: Cause, why: String) -> Self {
        Self { by: Some("jackline".to_string()), why: Some(why), cause, over: None }
    }

    /// This pause over what held the session before, which stays beneath if it is a blocker.
    pub(crate) fn put_over(self, before: Option<Self>) -> Self {
        let over = before.filter(|before| before.cause.is_stuck()).map(Box::new);
        Self { over, ..self }
    }

    /// Whether there is a blocker to clear, also beneath a person's word.
    pub(crate) fn is_blocked(&self) -> bool {
        self.cause.is_stuck() || self.over.is_some()
    }

    /// What is left of it after a person's word.
    pub(crate) fn after(self, action: Action) -> Option<Self> {
        match action {
            // Whatever was put there last is lifted.
            Action::Resume => self.over.map(|beneath| *beneath),
            Action::ClearBlocker if self.cause.is_stuck() => None,
            Action::ClearBlocker => Some(Self { over: None, ..self }),
            Action::Acknowledge if self.cause == Cause::Checkpoint => None,
            _ => Some(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocker() -> Paused {
        Paused::by_guard(Cause::Loop, "it goes in circles".to_string())
    }

    fn person() -> Paused {
        Paused::by_person(Some("dana".to_string()), None)
    }

    #[test]
    fn each_word_lifts_what_it_is_about() {
        let both = || person().put_over(Some(blocker()));
        assert_eq!(both().after(Action::Resume), Some(blocker()));
        assert_eq!(both().after(Action::ClearBlocker), Some(person()));
        assert_eq!(both().after(Action::Acknowledge), Some(both()));
        assert_eq!(blocker().after(Action::Resume), None);
        assert_eq!(blocker().after(Action::ClearBlocker), None);
        assert_eq!(blocker().after(Action::Acknowledge), Some(blocker()));
        assert_eq!(person().after(Action::Resume), None);
    }
}
