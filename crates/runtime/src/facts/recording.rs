//! Facts that were recorded, as a source.

use std::sync::{Arc, Mutex};

use jackline_engine::{Fact, Facts, Query};

use super::{Deadline, FactError, FactSource, Scene};

/// Answers with what a record holds, so that an event is decided as it was then, without the
/// machine it happened on. What was not asked then is unknown.
///
/// Clones share the record at hand: a caller keeps one, gives another to a runtime, and
/// [loads](Self::load) the facts of each event before it sends the event.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    facts: Arc<Mutex<Option<Facts>>>,
}

impl Recording {
    /// Answers with the facts of this record from now on.
    pub fn load(&self, facts: Facts) {
        if let Ok(mut loaded) = self.facts.lock() {
            *loaded = Some(facts);
        }
    }
}

impl FactSource for Recording {
    fn answer(
        &mut self,
        _: &Scene<'_>,
        queries: &[Query],
        _deadline: Deadline,
    ) -> Result<Vec<Fact>, FactError> {
        let loaded = self.facts.lock().map_err(|error| FactError::Failed(error.to_string()))?;
        let missing = || FactError::Failed("no record is loaded".to_owned());
        let facts = loaded.as_ref().ok_or_else(missing)?;
        Ok(queries.iter().map(|query| facts.recall(query)).collect())
    }
}
