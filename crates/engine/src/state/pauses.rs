//! The pause of a session: by a person, by a guard, or by a person in addition to a guard.
//!
//! Each kind of pause has its own command that ends it. A person may pause a session that is
//! already stuck or waits at a checkpoint. Ending one of the two pauses leaves the other in force.

use alloc::boxed::Box;
use alloc::string::{String, ToString as _};

use serde::{Deserialize, Serialize};

use crate::event::ControlAction;
use crate::words::words;

/// A pause, by a person or by a guard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PauseState {
    pub(crate) by: Option<String>,
    pub(crate) why: Option<String>,
    pub(crate) cause: PauseCause,
    /// The blocker or checkpoint that paused the session before, and is still in force.
    // INVARIANT: its cause can lie beneath a person's pause, and it has nothing beneath itself.
    pub(crate) beneath: Option<Box<PauseState>>,
}

words! {
    /// Why a session is paused.
    PauseCause {
        /// A person paused it.
        Person = "person",
        /// A protected file was changed.
        Protected = "protected",
        /// The agent is in a loop. A blocker report describes it.
        Loop = "loop",
        /// The iterations make no progress. A blocker report says so.
        NoProgress = "no_progress",
        /// The agent stopped several times and did nothing in between. A blocker report says so.
        StopEvents = "stop_events",
        /// The completion check failed too often. A blocker report says so.
        Verification = "verification",
        /// The context of this model is full again after each compaction. A blocker report says so.
        Context = "context",
        /// A check could not be run, so that a person has to repair it. A blocker report says so.
        BrokenCheck = "broken_check",
        /// The allowed iterations are used up. A checkpoint waits for acknowledgement.
        Checkpoint = "checkpoint",
    }
}

impl PauseCause {
    /// Whether the agent is stuck, so that a person has to clear a blocker.
    pub fn is_stuck(self) -> bool {
        self.takes_next_model() || self == Self::BrokenCheck
    }

    /// Whether the instruction of an advisor may end it.
    pub fn takes_advice(self) -> bool {
        matches!(self, Self::Loop | Self::NoProgress | Self::StopEvents | Self::Verification)
    }

    /// Whether the next model may end it.
    pub fn takes_next_model(self) -> bool {
        self.takes_advice() || self == Self::Context
    }

    /// Whether a person's pause can be added on top of it. This is possible because another command
    /// ends it, so that both can be in force at once.
    pub(crate) fn can_lie_beneath(self) -> bool {
        self.is_stuck() || self == Self::Checkpoint
    }

    /// Whether this action ends it.
    fn is_ended_by(self, action: ControlAction) -> bool {
        match action {
            ControlAction::ClearBlocker => self.is_stuck(),
            ControlAction::Acknowledge => self == Self::Checkpoint,
            _ => false,
        }
    }
}

impl PauseState {
    /// A pause that a person requested.
    pub(crate) fn by_person(by: Option<String>, why: Option<String>) -> Self {
        Self { by, why, cause: PauseCause::Person, beneath: None }
    }

    /// A pause that a guard requested.
    pub(crate) fn by_guard(cause: PauseCause, why: String) -> Self {
        Self { by: Some("jackline".to_string()), why: Some(why), cause, beneath: None }
    }

    /// Adds this pause on top of the previous one, which stays in force beneath if it can.
    pub(crate) fn on_top_of(self, before: Option<Self>) -> Self {
        let over = before.filter(|before| before.cause.can_lie_beneath()).map(Box::new);
        Self { beneath: over, ..self }
    }

    /// Whether this action ends it, or the pause beneath it.
    pub(crate) fn is_waiting_for(&self, action: ControlAction) -> bool {
        let beneath = self.beneath.as_ref().is_some_and(|it| it.cause.is_ended_by(action));
        self.cause.is_ended_by(action) || beneath
    }

    /// The remaining pause after a person's action.
    pub(crate) fn after_action(self, action: ControlAction) -> Option<Self> {
        match action {
            // The most recent pause ends.
            ControlAction::Resume => self.beneath.map(|beneath| *beneath),
            _ if self.cause.is_ended_by(action) => None,
            _ if self.is_waiting_for(action) => Some(Self { beneath: None, ..self }),
            _ => Some(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocker() -> PauseState {
        PauseState::by_guard(PauseCause::Loop, "it goes in circles".to_string())
    }

    fn person() -> PauseState {
        PauseState::by_person(Some("dana".to_string()), None)
    }

    #[test]
    fn each_action_ends_only_its_own_pause() {
        let both = || person().on_top_of(Some(blocker()));
        assert_eq!(both().after_action(ControlAction::Resume), Some(blocker()));
        assert_eq!(both().after_action(ControlAction::ClearBlocker), Some(person()));
        assert_eq!(both().after_action(ControlAction::Acknowledge), Some(both()));
        assert_eq!(blocker().after_action(ControlAction::Resume), None);
        assert_eq!(blocker().after_action(ControlAction::ClearBlocker), None);
        assert_eq!(blocker().after_action(ControlAction::Acknowledge), Some(blocker()));
        assert_eq!(person().after_action(ControlAction::Resume), None);
    }

    #[test]
    fn a_checkpoint_lies_beneath_a_persons_pause_as_a_blocker_does() {
        let checkpoint = || PauseState::by_guard(PauseCause::Checkpoint, "the cap".to_string());
        let both = || person().on_top_of(Some(checkpoint()));
        assert_eq!(both().after_action(ControlAction::Resume), Some(checkpoint()));
        assert_eq!(both().after_action(ControlAction::Acknowledge), Some(person()));
        assert_eq!(both().after_action(ControlAction::ClearBlocker), Some(both()));
        assert_eq!(checkpoint().after_action(ControlAction::Acknowledge), None);
        assert!(
            both().is_waiting_for(ControlAction::Acknowledge)
                && !both().is_waiting_for(ControlAction::ClearBlocker)
        );
        // A person's pause is not added on top of another person's pause.
        assert_eq!(person().on_top_of(Some(person())), person());
    }
}
