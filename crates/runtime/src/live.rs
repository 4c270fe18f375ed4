//! A session at work: its log, its state, and where it works.

use std::path::Path;
use std::sync::Arc;

use jackline_engine::definition::StoredDefinition;
use jackline_engine::{Definition, Digest, Place, Session, SessionId};
use jackline_journal::{
    Head, JournalView, Line, Log, Opened, OpenedDefinition, ReloadedDefinition, Snapshot,
    StoreError, parse_record,
};
use serde::{Deserialize, Serialize};

use crate::defined::{Defined, Under};
use crate::definitions::Definitions;

/// What a saved state holds besides the engine's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedSession {
    /// The session it belongs to.
    session: SessionId,
    /// The checksum of the definition in force.
    checksum: Digest,
    /// The digest of its stored form.
    definition: Digest,
    /// Whether a person has put it in force since the session was opened.
    is_reloaded: bool,
    /// Where the agent works.
    place: Place,
    /// The engine's state.
    state: Vec<u8>,
}

impl SavedSession {
    /// Reads what a state file holds; nothing where another version wrote it.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        postcard::from_bytes(bytes).ok()
    }

    /// The definition in force, by name.
    fn defined(&self) -> Defined {
        let Self { checksum, definition, is_reloaded, .. } = self;
        Defined { checksum: *checksum, stored: *definition, is_reloaded: *is_reloaded }
    }

    /// The session as it was saved, unless that can't be restored here.
    pub(crate) fn restore(
        &self,
        load: impl FnOnce(&Digest) -> Result<Arc<Definition>, StoreError>,
    ) -> Result<Option<(Session, Defined)>, StoreError> {
        let (definition, place) = (load(&self.definition)?, Arc::new(self.place.clone()));
        let under = Under { definition, place, defined: self.defined() };
        Ok(under.restore(&self.state)?.map(|session| (session, under.defined)))
    }

    /// The session of a journal that was saved beside it; nothing where that can't be read here.
    pub(crate) fn of_view(view: &JournalView) -> Option<(Head, Self)> {
        let (head, bytes) = view.saved_state()?;
        Some((head, Self::parse(bytes)?))
    }
}

/// A session at work.
pub(crate) struct Live {
    pub(crate) log: Box<dyn Log>,
    pub(crate) id: SessionId,
    pub(crate) session: Session,
    /// The head the session belongs to; none before the first record.
    pub(crate) head: Option<Head>,
    pub(crate) defined: Defined,
    /// What the first record says, while it is not written.
    pub(crate) opening: Option<Opened>,
    /// Whether the saved state is behind this one.
    pub(crate) unsaved: bool,
}

impl Live {
    /// Brings a session back that has a journal. The state may be behind; it is
    /// brought up to date under the lock.
    pub(crate) fn load(
        mut log: Box<dyn Log>,
        id: &SessionId,
        definitions: &Definitions,
    ) -> Result<Option<Self>, StoreError> {
        if let Some((head, bytes)) = log.load_state()?
            && let Some(saved) = SavedSession::parse(&bytes)
        {
            is_of(&saved.session, id)?;
            let load = |digest: &Digest| definitions.pinned(digest, log.as_ref());
            if let Some((session, defined)) = saved.restore(load)? {
                let (id, head) = (id.clone(), Some(head));
                let (opening, unsaved) = (None, false);
                return Ok(Some(Self { log, id, session, head, defined, opening, unsaved }));
            }
        }
        let Some(opened) = read_opened(log.as_mut())? else { return Ok(None) };
        is_of(&opened.session, id)?;
        let under = Under::opened(&opened, |digest| definitions.pinned(digest, log.as_ref()))?;
        let (session, defined) = (under.begin(), under.defined);
        let (head, opening, unsaved) = (None, None, false);
        let mut live = Self { log, id: id.clone(), session, head, defined, opening, unsaved };
        live.catch_up()?;
        Ok(Some(live))
    }

    /// Brings the session up to the end of its journal, and lets others in again.
    pub(crate) fn catch_up(&mut self) -> Result<(), StoreError> {
        if self.head.is_some_and(|head| !self.log.is_behind(&head)) {
            return Ok(());
        }
        self.log.lock()?;
        let refreshed = self.refresh();
        self.log.unlock();
        refreshed
    }

    /// Brings the session up to the end of its journal. Needs the lock.
    pub(crate) fn refresh(&mut self) -> Result<(), StoreError> {
        let head = self.log.head()?;
        if head == self.head {
            return Ok(());
        }
        if head.is_some() {
            // Another process wrote the first record meanwhile.
            self.opening = None;
        }
        if self.head.is_none() {
            self.rebuild()?;
        } else {
            let saved = self.log.load_state()?;
            if let Some((saved_head, bytes)) = saved
                && self.head.is_some_and(|head| head.seq < saved_head.seq)
                && let Some(saved) = SavedSession::parse(&bytes)
                && saved.defined() == self.defined
                && let Some(session) = self.under().restore(&saved.state)?
            {
                self.session = session;
            }
            self.fold(self.session.seq() + 1)?;
        }
        self.head = head;
        Ok(())
    }

    /// Starts over from the latest snapshot in the journal, or from its beginning.
    fn rebuild(&mut self) -> Result<(), StoreError> {
        let definitions = self.log.definitions();
        let opened = read_opened(self.log.as_mut())?.ok_or_else(no_opening)?;
        let under = Under::opened(&opened, |digest| definitions.load(digest))?;
        (self.session, self.defined) = (under.begin(), under.defined);
        if let Some(seq) = self.log.latest_snapshot()? {
            let mut restored = None;
            self.log.read(seq, &mut |line| {
                if restored.is_none()
                    && let Line::Event(record) = parse_record(line)?
                    && let Some(snapshot) = record.snapshot
                {
                    let under = match &snapshot.reloaded {
                        Some(reloaded) => Under::reloaded(reloaded, |it| definitions.load(it))?,
                        None => Under::opened(&opened, |digest| definitions.load(digest))?,
                    };
                    let session = under.restore(&snapshot.state)?;
                    restored = session.map(|session| (session, under.defined));
                }
                Ok(())
            })?;
            if let Some((session, defined)) = restored {
                (self.session, self.defined) = (session, defined);
            }
        }
        self.fold(self.session.seq() + 1)
    }

    /// Applies every record from a number on that the session has not seen.
    fn fold(&mut self, from: u64) -> Result<(), StoreError> {
        let definitions = self.log.definitions();
        let Self { log, session, defined, .. } = self;
        log.read(from, &mut |line| {
            if let Line::Event(mut record) = parse_record(line)?
                && record.seq > session.seq()
            {
                record.load(|digest| definitions.load(digest))?;
                *defined = defined.after(&record.as_record());
                session.apply(&record.as_record());
            }
            Ok(())
        })
    }

    /// What the session runs under.
    fn under(&self) -> Under {
        let (definition, place) = (self.session.definition(), self.session.place());
        let (definition, place) = (Arc::clone(definition), Arc::clone(place));
        Under { definition, place, defined: self.defined }
    }

    /// A snapshot of a session, for a record of its journal.
    pub(crate) fn snapshot(session: &Session, defined: &Defined) -> Snapshot {
        let reloaded = defined.is_reloaded.then(|| {
            let definition = Arc::clone(session.definition());
            let lowered = StoredDefinition::with_digest(defined.stored, definition);
            let definition = OpenedDefinition { checksum: defined.checksum, lowered };
            ReloadedDefinition { place: (**session.place()).clone(), definition }
        });
        Snapshot { state: session.snapshot(), reloaded }
    }

    /// The directory the agent works in.
    pub(crate) fn workspace(&self) -> Option<&Path> {
        self.session.place().workspace.as_deref().map(Path::new)
    }

    /// Saves the state, so that no process has to read the journal for it. Needs the lock.
    pub(crate) fn save(&mut self) -> Result<(), StoreError> {
        self.unsaved = false;
        let Some(head) = self.head else { return Ok(()) };
        self.log.save_state(&head, &self.saved())
    }

    /// The same without the lock, some time after the record; a state that others have
    /// gone on from is theirs to save.
    pub(crate) fn save_late(&mut self) -> Result<(), StoreError> {
        self.unsaved = false;
        self.log.lock()?;
        let newest = self.head.is_some_and(|head| !self.log.is_behind(&head));
        let saved = if newest { self.save() } else { Ok(()) };
        self.log.unlock();
        saved
    }

    /// What is saved beside the journal.
    fn saved(&self) -> Vec<u8> {
        let saved = SavedSession {
            session: self.id.clone(),
            checksum: self.defined.checksum,
            definition: self.defined.stored,
            is_reloaded: self.defined.is_reloaded,
            place: (**self.session.place()).clone(),
            state: self.session.snapshot(),
        };
        postcard::to_allocvec(&saved).unwrap_or_default()
    }
}

/// The journal of another session, in this one's place, is not this one's.
fn is_of(found: &SessionId, id: &SessionId) -> Result<(), StoreError> {
    if found == id {
        return Ok(());
    }
    let reason = format!("it opens the session `{found}`");
    Err(StoreError::Tampered { record: "0".to_owned(), reason })
}

fn no_opening() -> StoreError {
    StoreError::Tampered { record: "0".to_owned(), reason: "it is missing".to_owned() }
}

/// What a session was opened with; none where it has no journal.
fn read_opened(log: &mut dyn Log) -> Result<Option<Opened>, StoreError> {
    let Some(line) = log.first_record()? else { return Ok(None) };
    match parse_record(&line)? {
        Line::Opened(opened) => Ok(Some(*opened)),
        Line::Event(_) => Err(no_opening()),
    }
}
