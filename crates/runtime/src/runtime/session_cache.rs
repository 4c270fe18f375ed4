//! The sessions that are open, and the store that keeps their journals.

use std::sync::Arc;

use jackline_engine::SessionId;
use jackline_journal::{Retention, Store, StoreError};

use crate::definitions::Definitions;
use crate::live::Live;

/// How many sessions are kept open at once.
const OPEN_MAX: usize = 64;

/// A store, and the sessions of it that were used last.
pub(super) struct SessionCache {
    store: Arc<dyn Store>,
    /// The one that was used last stands at the end.
    open: Vec<(SessionId, Live)>,
    /// A new session was opened, so old ones may have to go.
    retention: Option<Retention>,
}

impl SessionCache {
    pub(super) fn on(store: Arc<dyn Store>) -> Self {
        Self { store, open: Vec::new(), retention: None }
    }

    pub(super) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes an open session out, for an event.
    pub(super) fn take(&mut self, id: &SessionId) -> Option<Live> {
        let at = self.open.iter().position(|(open, _)| open == id)?;
        Some(self.open.remove(at).1)
    }

    /// Keeps a session open, in the place of the one that was used longest ago.
    pub(super) fn keep(&mut self, id: SessionId, live: Live) {
        if self.open.len() >= OPEN_MAX {
            self.open.remove(0);
        }
        self.open.push((id, live));
    }

    pub(super) fn forget(&mut self) {
        self.open.clear();
    }

    /// A session that is open.
    pub(super) fn open_mut(&mut self, id: &SessionId) -> Option<&mut Live> {
        self.open.iter_mut().find(|(open, _)| open == id).map(|(_, live)| live)
    }

    /// A session that is kept open for the event that follows.
    pub(super) fn at_hand(&mut self, id: &SessionId, definitions: &Definitions) -> Option<&Live> {
        if self.open_mut(id).is_none() {
            let live = self.look(id, definitions)?;
            self.keep(id.clone(), live);
        }
        self.open_mut(id).map(|live| &*live)
    }

    /// A session as its journal tells it, where it has one.
    pub(super) fn look(&self, id: &SessionId, definitions: &Definitions) -> Option<Live> {
        let log = self.store.open(id).ok()?;
        let mut live = Live::load(log, id, definitions).ok()??;
        live.catch_up().ok()?;
        Some(live)
    }

    /// Saves the states that are behind their journals.
    pub(super) fn save_late(&mut self) -> Vec<Result<(), StoreError>> {
        let unsaved = self.open.iter_mut().filter(|(_, live)| live.unsaved);
        unsaved.map(|(_, live)| live.save_late()).collect()
    }

    pub(super) fn set_retention(&mut self, retention: Retention) {
        self.retention = Some(retention);
    }

    pub(super) fn take_retention(&mut self) -> Option<Retention> {
        self.retention.take()
    }
}
