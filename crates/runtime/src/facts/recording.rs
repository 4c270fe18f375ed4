//! Recorded facts as a source.

use std::sync::{Arc, Mutex};

use jackline_engine::{Fact, Facts, Query};

use super::{FactContext, FactDeadline, FactError, FactSource};

/// Answers with the facts of a record, so that an event is decided as it was then, without its
/// machine. Facts that were not queried then are unknown.
///
/// Clones share the loaded record. A caller keeps one clone, gives another to a runtime, and
/// [loads](Self::load) the facts of each event before it sends the event.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    facts: Arc<Mutex<Option<Facts>>>,
}

impl Recording {
    /// Sets the facts to answer with.
    pub fn load(&self, facts: Facts) {
        if let Ok(mut loaded) = self.facts.lock() {
            *loaded = Some(facts);
        }
    }
}

impl FactSource for Recording {
    fn answer(
        &mut self,
        _: &FactContext<'_>,
        queries: &[Query],
        _deadline: FactDeadline,
    ) -> Result<Vec<Fact>, FactError> {
        let loaded = self.facts.lock().map_err(|error| FactError::Failed(error.to_string()))?;
        let missing = || FactError::Failed("no record is loaded".to_owned());
        let facts = loaded.as_ref().ok_or_else(missing)?;
        Ok(queries.iter().map(|query| facts.recorded_answer(query)).collect())
    }
}
