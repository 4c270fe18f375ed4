//! The agent and its sub-agents, the ones seen last.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::guards::context::Fill;
use crate::guards::loops::Looping;
use crate::id::ActorId;

/// How many actors are kept; `main` always is.
const ACTORS_MAX: usize = 32;

/// The actors of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Actors(Vec<Actor>);

/// One actor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Actor {
    pub(crate) id: ActorId,
    pub(crate) last_seq: u64,
    pub(crate) calls: u64,
    pub(crate) looping: Looping,
    pub(crate) fill: Fill,
}

impl Actors {
    /// The actor of an event, made if it is new; the one unseen longest gives way.
    pub(crate) fn touch(&mut self, id: &ActorId, seq: u64) -> Option<&mut Actor> {
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
            self.0.push(Actor {
                id: id.clone(),
                last_seq: seq,
                calls: 0,
                looping: Looping::default(),
                fill: Fill::default(),
            });
        }
        let actor = self.0.iter_mut().find(|actor| actor.id == *id)?;
        actor.last_seq = seq;
        Some(actor)
    }

    /// An actor that is known.
    pub(crate) fn get(&self, id: &ActorId) -> Option<&Actor> {
        self.0.iter().find(|actor| actor.id == *id)
    }

    /// The same, to add to it.
    pub(crate) fn get_mut(&mut self, id: &ActorId) -> Option<&mut Actor> {
        self.0.iter_mut().find(|actor| actor.id == *id)
    }

    /// Whom a person speaks to: everybody, through the main agent.
    pub(crate) fn of_person(&mut self, id: &ActorId) -> impl Iterator<Item = &mut Actor> {
        self.0.iter_mut().filter(|actor| id.is_main() || actor.id == *id)
    }

    /// How full an actor's context is.
    pub(crate) fn fill(&self, id: &ActorId) -> Fill {
        let known = self.0.iter().find(|actor| actor.id == *id);
        known.map_or_else(Fill::default, |actor| actor.fill.clone())
    }

    pub(crate) fn set_fill(&mut self, id: &ActorId, fill: Fill) {
        if let Some(actor) = self.0.iter_mut().find(|actor| actor.id == *id) {
            actor.fill = fill;
        }
    }

    /// Forgets what compactions came to.
    pub(crate) fn reset_fills(&mut self) {
        self.0.iter_mut().for_each(|actor| actor.fill.reset());
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Actor> {
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
        actors.touch(&ActorId::main(), 1);
        for n in 0..100 {
            actors.touch(&ActorId::parse(format!("sub{n}")).unwrap(), n + 2);
        }
        assert_eq!(actors.iter().count(), ACTORS_MAX);
        assert!(actors.iter().any(|actor| actor.id.is_main()));
        assert!(actors.iter().any(|actor| actor.id.as_str() == "sub99"));
        assert!(!actors.iter().any(|actor| actor.id.as_str() == "sub0"));
    }
}
