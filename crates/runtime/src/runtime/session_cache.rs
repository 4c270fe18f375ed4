//! The open sessions, and the store with their journals.

use std::sync::Arc;

use jackline_engine::SessionId;
use jackline_journal::{Retention, Store, StoreError};

use crate::definitions::Definitions;
use crate::live_session::LiveSession;

/// The largest number of sessions that are open at the same time.
const OPEN_MAX: usize = 64;

/// A store, and its most recently used sessions.
pub(super) struct SessionCache {
    store: Arc<dyn Store>,
    /// The open sessions, the most recently used one last.
    open: Vec<(SessionId, LiveSession)>,
    /// Set when a new session was opened, so that old sessions may have to be removed.
    retention: Option<Retention>,
}

impl SessionCache {
    pub(super) fn with_store(store: Arc<dyn Store>) -> Self {
        Self { store, open: Vec::new(), retention: None }
    }

    pub(super) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Removes an open session from the cache, to handle an event.
    pub(super) fn take(&mut self, id: &SessionId) -> Option<LiveSession> {
        let at = self.open.iter().position(|(open, _)| open == id)?;
        Some(self.open.remove(at).1)
    }

    /// Adds a session. If the cache is full, the least recently used session is removed.
    pub(super) fn insert(&mut self, id: SessionId, live: LiveSession) {
        if self.open.len() >= OPEN_MAX {
            self.open.remove(0);
        }
        self.open.push((id, live));
    }

    pub(super) fn forget(&mut self) {
        self.open.clear();
    }

    /// An open session.
    pub(super) fn open_mut(&mut self, id: &SessionId) -> Option<&mut LiveSession> {
        self.open.iter_mut().find(|(open, _)| open == id).map(|(_, live)| live)
    }

    /// A session that stays open for the next event; it is opened if necessary.
    pub(super) fn get_or_open(
        &mut self,
        id: &SessionId,
        definitions: &Definitions,
    ) -> Option<&LiveSession> {
        if self.open_mut(id).is_none() {
            let live = self.load(id, definitions)?;
            self.insert(id.clone(), live);
        }
        self.open_mut(id).map(|live| &*live)
    }

    /// Loads a session from its journal without keeping it open; `None` if it has no journal.
    pub(super) fn load(&self, id: &SessionId, definitions: &Definitions) -> Option<LiveSession> {
        let log = self.store.open(id).ok()?;
        let mut live = LiveSession::load(log, id, definitions).ok()??;
        live.catch_up().ok()?;
        Some(live)
    }

    /// Saves all states that are older than their journals.
    pub(super) fn save_deferred(&mut self) -> Vec<Result<(), StoreError>> {
        let unsaved = self.open.iter_mut().filter(|(_, live)| live.has_unsaved_state);
        unsaved.map(|(_, live)| live.save_late()).collect()
    }

    pub(super) fn set_retention(&mut self, retention: Retention) {
        self.retention = Some(retention);
    }

    pub(super) fn take_retention(&mut self) -> Option<Retention> {
        self.retention.take()
    }
}
