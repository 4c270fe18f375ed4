//! The agent and its most recent sub-agents.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::guards::context::ContextFill;
use crate::guards::loops::LoopState;
use crate::id::ActorId;

/// How many actors are stored. `main` is never removed.
const ACTORS_MAX: usize = 32;

/// The actors of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Actors(Vec<ActorState>);

/// One actor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ActorState {
    pub(crate) id: ActorId,
    pub(crate) last_seq: u64,
    pub(crate) calls: u64,
    pub(crate) looping: LoopState,
    pub(crate) fill: ContextFill,
}

impl Actors {
    /// The actor of an event. A new actor is added; if the table is full, the least recently active
    /// actor is removed.
    pub(crate) fn get_or_insert(&mut self, id: &ActorId, seq: u64) -> Option<&mut ActorState> {
        if !self.0.iter().any(|actor| actor.id == *id) {
            if self.0.len() >= ACTORS_MAX {
                let oldest = self
                    .0
                    .iter()
                    .enumerate()
                    .filter(|(_, actor)| !actor.id.is_main())
                    .min_by_key(|(_, actor)| actor.last_seq)
                    .map(|(at, _)| at);
                oldest.map(|at| self.0.swap_remove(at));
            }
            self.0.push(ActorState {
                id: id.clone(),
                last_seq: seq,
                calls: 0,
                looping: LoopState::default(),
                fill: ContextFill::default(),
            });
        }
        let actor = self.0.iter_mut().find(|actor| actor.id == *id)?;
        actor.last_seq = seq;
        Some(actor)
    }

    /// An actor, if it is stored.
    pub(crate) fn get(&self, id: &ActorId) -> Option<&ActorState> {
        self.0.iter().find(|actor| actor.id == *id)
    }

    /// The same, mutable.
    pub(crate) fn get_mut(&mut self, id: &ActorId) -> Option<&mut ActorState> {
        self.0.iter_mut().find(|actor| actor.id == *id)
    }

    /// The actors that a prompt reaches: all of them if it goes to the main agent.
    pub(crate) fn reached_by_prompt(
        &mut self,
        id: &ActorId,
    ) -> impl Iterator<Item = &mut ActorState> {
        self.0.iter_mut().filter(|actor| id.is_main() || actor.id == *id)
    }

    /// The context fill of an actor.
    pub(crate) fn fill(&self, id: &ActorId) -> ContextFill {
        let actor = self.0.iter().find(|actor| actor.id == *id);
        actor.map_or_else(ContextFill::default, |actor| actor.fill.clone())
    }

    pub(crate) fn set_fill(&mut self, id: &ActorId, fill: ContextFill) {
        if let Some(actor) = self.0.iter_mut().find(|actor| actor.id == *id) {
            actor.fill = fill;
        }
    }

    /// Resets the results of compactions.
    pub(crate) fn reset_fills(&mut self) {
        self.0.iter_mut().for_each(|actor| actor.fill.reset());
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ActorState> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn the_table_is_bounded_and_keeps_main() {
        let mut actors = Actors::default();
        actors.get_or_insert(&ActorId::main(), 1);
        for n in 0..100 {
            actors.get_or_insert(&ActorId::parse(format!("sub{n}")).unwrap(), n + 2);
        }
        assert_eq!(actors.iter().count(), ACTORS_MAX);
        assert!(actors.iter().any(|actor| actor.id.is_main()));
        assert!(actors.iter().any(|actor| actor.id.as_str() == "sub99"));
        assert!(!actors.iter().any(|actor| actor.id.as_str() == "sub0"));
    }
}
