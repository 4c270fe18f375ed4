//! A running session: its log, its state and its location.

use std::path::Path;
use std::sync::Arc;

use jackline_engine::definition::StoredDefinition;
use jackline_engine::{Definition, Digest, Session, SessionId, SessionLocation};
use jackline_journal::{
    JournalHead, JournalLine, JournalView, OpenedDefinition, OpeningRecord, ReloadedDefinition,
    SessionLog, Snapshot, StoreError, parse_record,
};
use serde::{Deserialize, Serialize};

use crate::definitions::Definitions;
use crate::session_definition::{DefinitionIdentity, SessionDefinition};
use crate::session_process::SessionProcessLock;

/// The saved state of a session, with the identity of its definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedSession {
    /// The session id.
    session: SessionId,
    /// The checksum of the definition in force.
    checksum: Digest,
    /// The digest of the stored form of the definition.
    definition: Digest,
    /// Whether a person reloaded the definition after the session was opened.
    is_reloaded: bool,
    /// The location of the session.
    place: SessionLocation,
    /// The engine's state.
    state: Vec<u8>,
}

impl SavedSession {
    /// Parses a state file; `None` if another version wrote it.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    /// The identity of the definition in force.
    fn identity(&self) -> DefinitionIdentity {
        let Self { checksum, definition, is_reloaded, .. } = self;
        DefinitionIdentity { checksum: *checksum, stored: *definition, is_reloaded: *is_reloaded }
    }

    /// Restores the saved session; `None` if this is not possible.
    pub(crate) fn restore(
        &self,
        load: impl FnOnce(&Digest) -> Result<Arc<Definition>, StoreError>,
    ) -> Result<Option<(Session, DefinitionIdentity)>, StoreError> {
        let (definition, place) = (load(&self.definition)?, Arc::new(self.place.clone()));
        let under = SessionDefinition { definition, place, identity: self.identity() };
        Ok(under.restore(&self.state)?.map(|session| (session, under.identity)))
    }

    /// The saved state beside a journal, with the head it belongs to; `None` if it can't be read
    /// here.
    pub(crate) fn of_view(view: &JournalView) -> Option<(JournalHead, Self)> {
        let (head, bytes) = view.saved_state()?;
        Some((head, Self::parse(bytes)?))
    }
}

/// A running session.
pub(crate) struct LiveSession {
    pub(crate) log: Box<dyn SessionLog>,
    pub(crate) id: SessionId,
    pub(crate) session: Session,
    /// The head that the state belongs to; `None` before the first record.
    pub(crate) head: Option<JournalHead>,
    pub(crate) definition_identity: DefinitionIdentity,
    /// The contents of the first record, until it is written.
    pub(crate) opening: Option<OpeningRecord>,
    /// Whether the saved state is older than this one.
    pub(crate) has_unsaved_state: bool,
    /// The lock that shows that this process works on the session.
    pub(crate) process_lock: Option<SessionProcessLock>,
}

impl LiveSession {
    /// A session with a journal, in the state after the record `head`.
    fn of_log(
        log: Box<dyn SessionLog>,
        id: &SessionId,
        (session, definition_identity): (Session, DefinitionIdentity),
        head: Option<JournalHead>,
    ) -> Self {
        let (opening, has_unsaved_state, process_lock) = (None, false, None);
        Self {
            log,
            id: id.clone(),
            session,
            head,
            definition_identity,
            opening,
            has_unsaved_state,
            process_lock,
        }
    }

    /// Loads a session that has a journal. The state may be outdated; it is brought up to date
    /// under the lock.
    pub(crate) fn load(
        mut log: Box<dyn SessionLog>,
        id: &SessionId,
        definitions: &Definitions,
    ) -> Result<Option<Self>, StoreError> {
        if let Some((head, bytes)) = log.load_state()?
            && let Some(saved) = SavedSession::parse(&bytes)
        {
            check_session_id(&saved.session, id)?;
            let load = |digest: &Digest| definitions.pinned_definition(digest, log.as_ref());
            if let Some((session, defined)) = saved.restore(load)? {
                return Ok(Some(Self::of_log(log, id, (session, defined), Some(head))));
            }
        }
        let Some(opened) = read_opened(log.as_mut())? else { return Ok(None) };
        check_session_id(&opened.session, id)?;
        let under = SessionDefinition::opened(&opened, |digest| {
            definitions.pinned_definition(digest, log.as_ref())
        })?;
        let defined = (under.new_session(), under.identity);
        let mut live = Self::of_log(log, id, defined, None);
        live.catch_up()?;
        Ok(Some(live))
    }

    /// Applies new records of the journal, and releases the lock again.
    pub(crate) fn catch_up(&mut self) -> Result<(), StoreError> {
        if self.head.is_some_and(|head| !self.log.is_behind(&head)) {
            return Ok(());
        }
        self.log.lock()?;
        let refreshed = self.refresh();
        self.log.unlock();
        refreshed
    }

    /// Applies new records of the journal. Needs the lock.
    pub(crate) fn refresh(&mut self) -> Result<(), StoreError> {
        let head = self.log.head()?;
        if head == self.head {
            return Ok(());
        }
        if head.is_some() {
            // Another process has written the first record meanwhile.
            self.opening = None;
        }
        if self.head.is_none() {
            self.rebuild()?;
        } else {
            let saved = self.log.load_state()?;
            if let Some((saved_head, bytes)) = saved
                && self.head.is_some_and(|head| head.seq < saved_head.seq)
                && let Some(saved) = SavedSession::parse(&bytes)
                && saved.identity() == self.definition_identity
                && let Some(session) = self.session_definition().restore(&saved.state)?
            {
                self.session = session;
            }
            self.fold(self.session.seq() + 1)?;
        }
        self.head = head;
        Ok(())
    }

    /// Rebuilds the session from the latest snapshot in the journal, or from the first record.
    fn rebuild(&mut self) -> Result<(), StoreError> {
        let definitions = self.log.definitions();
        let opened = read_opened(self.log.as_mut())?.ok_or_else(missing_opening)?;
        let under = SessionDefinition::opened(&opened, |digest| definitions.load(digest))?;
        (self.session, self.definition_identity) = (under.new_session(), under.identity);
        if let Some(seq) = self.log.latest_snapshot()? {
            let mut restored = None;
            self.log.read(seq, &mut |line| {
                if restored.is_none()
                    && let JournalLine::Event(record) = parse_record(line)?
                    && let Some(snapshot) = record.snapshot
                {
                    let under = match &snapshot.reloaded {
                        Some(reloaded) => {
                            SessionDefinition::reloaded(reloaded, |it| definitions.load(it))?
                        }
                        None => {
                            SessionDefinition::opened(&opened, |digest| definitions.load(digest))?
                        }
                    };
                    let session = under.restore(&snapshot.state)?;
                    restored = session.map(|session| (session, under.identity));
                }
                Ok(())
            })?;
            if let Some((session, defined)) = restored {
                (self.session, self.definition_identity) = (session, defined);
            }
        }
        self.fold(self.session.seq() + 1)
    }

    /// Applies every new record from a number on.
    fn fold(&mut self, from: u64) -> Result<(), StoreError> {
        let definitions = self.log.definitions();
        let Self { log, session, definition_identity: defined, .. } = self;
        log.read(from, &mut |line| {
            if let JournalLine::Event(mut record) = parse_record(line)?
                && record.seq > session.seq()
            {
                record.load_definitions(|digest| definitions.load(digest))?;
                *defined = defined.after(&record.as_record());
                session.apply(&record.as_record());
            }
            Ok(())
        })
    }

    /// The definition and location of the session.
    fn session_definition(&self) -> SessionDefinition {
        let (definition, place) = (self.session.definition(), self.session.location());
        let (definition, place) = (Arc::clone(definition), Arc::clone(place));
        SessionDefinition { definition, place, identity: self.definition_identity }
    }

    /// A snapshot of a session, for a record of its journal.
    pub(crate) fn snapshot(session: &Session, defined: &DefinitionIdentity) -> Snapshot {
        let reloaded = defined.is_reloaded.then(|| {
            let definition = Arc::clone(session.definition());
            let lowered = StoredDefinition::with_digest(defined.stored, definition);
            let definition = OpenedDefinition { checksum: defined.checksum, lowered };
            ReloadedDefinition { place: (**session.location()).clone(), definition }
        });
        Snapshot { state: session.snapshot(), reloaded }
    }

    /// The directory in which the agent works.
    pub(crate) fn workspace(&self) -> Option<&Path> {
        self.session.location().workspace.as_deref().map(Path::new)
    }

    /// Saves the state, so that the next process need not read the journal. Needs the lock.
    pub(crate) fn save(&mut self) -> Result<(), StoreError> {
        self.has_unsaved_state = false;
        let Some(head) = self.head else { return Ok(()) };
        self.log.save_state(&head, &self.saved_state())
    }

    /// Takes the lock and saves the state, some time after the record. If another process has added
    /// records, that process saves the state.
    pub(crate) fn save_late(&mut self) -> Result<(), StoreError> {
        self.has_unsaved_state = false;
        self.log.lock()?;
        let newest = self.head.is_some_and(|head| !self.log.is_behind(&head));
        let saved = if newest { self.save() } else { Ok(()) };
        self.log.unlock();
        saved
    }

    /// The contents of the state file.
    fn saved_state(&self) -> Vec<u8> {
        let saved = SavedSession {
            session: self.id.clone(),
            checksum: self.definition_identity.checksum,
            definition: self.definition_identity.stored,
            is_reloaded: self.definition_identity.is_reloaded,
            place: (**self.session.location()).clone(),
            state: self.session.snapshot(),
        };
        postcard::to_allocvec(&saved).unwrap_or_default()
    }
}

/// Fails if a journal belongs to another session.
fn check_session_id(found: &SessionId, id: &SessionId) -> Result<(), StoreError> {
    if found == id {
        return Ok(());
    }
    let reason = format!("it belongs to the session `{found}`");
    Err(StoreError::Tampered { record: "0".to_owned(), reason })
}

fn missing_opening() -> StoreError {
    StoreError::Tampered { record: "0".to_owned(), reason: "it is missing".to_owned() }
}

/// The first record of a session; `None` if it has no journal.
fn read_opened(log: &mut dyn SessionLog) -> Result<Option<OpeningRecord>, StoreError> {
    let Some(line) = log.first_record()? else { return Ok(None) };
    match parse_record(&line)? {
        JournalLine::Opened(opened) => Ok(Some(*opened)),
        JournalLine::Event(_) => Err(missing_opening()),
    }
}
