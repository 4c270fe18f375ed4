//! What holds a session: a person, a guard, or a person where a guard held it before.
//!
//! Each hold has its own word. A person who pauses a session that is stuck, or waits at a
//! checkpoint, puts their word over that; lifting the one leaves the other as it is.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};

use serde::{Deserialize, Serialize};

use crate::event::Action;
use crate::words::words;

/// A pause, by a person or by a guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Paused {
    pub(crate) by: Option<String>,
    pub(crate) why: Option<String>,
    pub(crate) cause: PauseCause,
    /// The blocker or checkpoint that held the session before, and still does beneath this.
    // INVARIANT: it can lie beneath, and has nothing beneath itself.
    pub(crate) over: Option<Box<Paused>>,
}

words! {
    /// What a session is paused for.
    PauseCause {
        /// A person wants it.
        Person = "person",
        /// A protected file was changed.
        Protected = "protected",
        /// The agent goes in circles; a blocker report says how.
        Loop = "loop",
        /// Iterations bring nothing; a blocker report says so.
        NoProgress = "no_progress",
        /// The iterations are used up; a checkpoint waits to be acknowledged.
        Checkpoint = "checkpoint",
    }
}

impl PauseCause {
    /// Whether the agent gets nowhere, so that a blocker has to be cleared.
    pub fn is_stuck(self) -> bool {
        matches!(self, Self::Loop | Self::NoProgress)
    }

    /// Whether a person's pause goes over it. It has a word of its own that lifts it, so
    /// that both can hold at once.
    pub(crate) fn lies_beneath(self) -> bool {
        self.is_stuck() || self == Self::Checkpoint
    }

    /// Whether this is the word that it waits for.
    fn is_lifted_by(self, action: Action) -> bool {
        match action {
            Action::ClearBlocker => self.is_stuck(),
            Action::Acknowledge => self == Self::Checkpoint,
            _ => false,
        }
    }
}

impl Paused {
    /// A pause that a person wants.
    pub(crate) fn by_person(by: Option<String>, why: Option<String>) -> Self {
        Self { by, why, cause: PauseCause::Person, over: None }
    }

    /// A pause that no person has asked for.
    pub(crate) fn by_guard(cause: PauseCause, why: String) -> Self {
        Self { by: Some("jackline".to_string()), why: Some(why), cause, over: None }
    }

    /// This pause over what held the session before, which stays beneath if it can.
    pub(crate) fn put_over(self, before: Option<Self>) -> Self {
        let over = before.filter(|before| before.cause.lies_beneath()).map(Box::new);
        Self { over, ..self }
    }

    /// Whether it waits for this word, also beneath a person's.
    pub(crate) fn waits_for(&self, action: Action) -> bool {
        let beneath = self.over.as_ref().is_some_and(|it| it.cause.is_lifted_by(action));
        self.cause.is_lifted_by(action) || beneath
    }

    /// What is left of it after a person's word.
    pub(crate) fn after(self, action: Action) -> Option<Self> {
        match action {
            // Whatever was put there last is lifted.
            Action::Resume => self.over.map(|beneath| *beneath),
            _ if self.cause.is_lifted_by(action) => None,
            _ if self.waits_for(action) => Some(Self { over: None, ..self }),
            _ => Some(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocker() -> Paused {
        Paused::by_guard(PauseCause::Loop, "it goes in circles".to_string())
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

    #[test]
    fn a_checkpoint_lies_beneath_a_persons_pause_as_a_blocker_does() {
        let checkpoint = || Paused::by_guard(PauseCause::Checkpoint, "the cap".to_string());
        let both = || person().put_over(Some(checkpoint()));
        assert_eq!(both().after(Action::Resume), Some(checkpoint()));
        assert_eq!(both().after(Action::Acknowledge), Some(person()));
        assert_eq!(both().after(Action::ClearBlocker), Some(both()));
        assert_eq!(checkpoint().after(Action::Acknowledge), None);
        assert!(both().waits_for(Action::Acknowledge) && !both().waits_for(Action::ClearBlocker));
        // Nothing is put over another person's word.
        assert_eq!(person().put_over(Some(person())), person());
    }
}
