//! A session at work: its log, its state, and where it works.

use std::path::Path;
use std::sync::Arc;

use jackline_engine::{Definition, Digest, Place, Session, SessionId};
use jackline_journal::{Head, Line, Log, Opened, OpenedDefinition, StoreError, parse_record};
use serde::{Deserialize, Serialize};

use crate::definitions::Definitions;

/// What a saved state holds besides the engine's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// The session it belongs to.
    pub session: SessionId,
    /// The checksum of the pinned definition.
    pub definition: Digest,
    /// Where the agent works.
    pub place: Place,
    /// The engine's state.
    pub state: Vec<u8>,
}

/// A session at work.
pub(crate) struct Live {
    pub(crate) log: Box<dyn Log>,
    pub(crate) id: SessionId,
    pub(crate) session: Session,
    /// The head the session belongs to; none before the first record.
    pub(crate) head: Option<Head>,
    pub(crate) checksum: Digest,
    /// What the first record says, while it is not written.
    pub(crate) opening: Option<Opened>,
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
            && let Ok(saved) = postcard::from_bytes::<Saved>(&bytes)
        {
            is_of(&saved.session, id)?;
            let definition = definitions
                .pinned(&saved.definition, || read_opened(log.as_mut()).map(|o| o.definition))?;
            if let Some(session) = restore(definition, Arc::new(saved.place), &saved.state)? {
                return Ok(Some(Self {
                    log,
                    id: id.clone(),
                    session,
                    head: Some(head),
                    checksum: saved.definition,
                    opening: None,
                }));
            }
        }
        if log.first()?.is_none() {
            return Ok(None);
        }
        let opened = read_opened(log.as_mut())?;
        is_of(&opened.session, id)?;
        let OpenedDefinition { checksum, lowered } = opened.definition;
        let session = Session::new(Arc::new(lowered), Arc::new(opened.place));
        Ok(Some(Self { log, id: id.clone(), session, head: None, checksum, opening: None }))
    }

    /// Brings the session up to the end of its journal. Needs the lock.
    pub(crate) fn refresh(&mut self) -> Result<(), StoreError> {
        let head = self.log.head()?;
        if head == self.head {
            return Ok(());
        }
        if head.is_some() {
            // Somebody else wrote the first record meanwhile.
            self.opening = None;
        }
        let mut from = self.head.map_or(0, |head| head.bytes);
        if self.head.is_none() {
            from = self.rebuild()?;
        } else if let Some((saved_head, bytes)) = self.log.load_state()?
            && self.head.is_some_and(|head| head.seq < saved_head.seq)
            && let Ok(saved) = postcard::from_bytes::<Saved>(&bytes)
            && saved.definition == self.checksum
            && let Some(session) = self.restored(&saved.state)?
        {
            self.session = session;
            from = saved_head.bytes;
        }
        self.fold(from)?;
        self.head = head;
        Ok(())
    }

    /// Starts over from the latest snapshot in the journal, or from its
    /// beginning; gives the byte from which on records are to be folded.
    fn rebuild(&mut self) -> Result<u64, StoreError> {
        if let Some(line) = self.log.first()?
            && let Line::Opened(opened) = parse_record(&line)?
        {
            self.checksum = opened.definition.checksum;
            let lowered = Arc::new(opened.definition.lowered);
            self.session = Session::new(lowered, Arc::new(opened.place));
        }
        let Some(from) = self.log.latest_snapshot()? else { return Ok(0) };
        let mut restored = None;
        let (definition, place) = (self.session.definition(), self.session.place());
        let (definition, place) = (Arc::clone(definition), Arc::clone(place));
        self.log.read(from, &mut |line| {
            if restored.is_none()
                && let Line::Event(record) = parse_record(line)?
                && let Some(snapshot) = record.snapshot
            {
                restored = restore(Arc::clone(&definition), Arc::clone(&place), &snapshot)?;
            }
            Ok(())
        })?;
        Ok(restored.map_or(0, |session| {
            self.session = session;
            from
        }))
    }

    /// Applies every record from byte `from` on that the session has not seen.
    fn fold(&mut self, from: u64) -> Result<(), StoreError> {
        let session = &mut self.session;
        self.log.read(from, &mut |line| {
            if let Line::Event(record) = parse_record(line)?
                && record.seq > session.seq()
            {
                session.apply(&record.as_record());
            }
            Ok(())
        })
    }

    /// The same session with another state.
    fn restored(&self, state: &[u8]) -> Result<Option<Session>, StoreError> {
        let (definition, place) = (self.session.definition(), self.session.place());
        restore(Arc::clone(definition), Arc::clone(place), state)
    }

    /// The directory the agent works in.
    pub(crate) fn workspace(&self) -> Option<&Path> {
        self.session.place().workspace.as_deref().map(Path::new)
    }

    /// What is saved beside the journal.
    pub(crate) fn saved(&self) -> Vec<u8> {
        let saved = Saved {
            session: self.id.clone(),
            definition: self.checksum,
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

/// A state of a newer format shuts the gate; one that can't be read is made
/// again from the journal.
fn restore(
    definition: Arc<Definition>,
    place: Arc<Place>,
    state: &[u8],
) -> Result<Option<Session>, StoreError> {
    match Session::restore(definition, place, state) {
        Ok(session) => Ok(Some(session)),
        Err(jackline_engine::StateError::Newer(found)) => Err(StoreError::Newer {
            what: "the saved state",
            found: u32::from(found),
            known: u32::from(jackline_engine::STATE_FORMAT),
        }),
        Err(jackline_engine::StateError::Unreadable) => Ok(None),
    }
}

pub(crate) fn read_opened(log: &mut dyn Log) -> Result<Opened, StoreError> {
    let missing =
        || StoreError::Tampered { record: "0".to_owned(), reason: "it is missing".to_owned() };
    let line = log.first()?.ok_or_else(missing)?;
    match parse_record(&line)? {
        Line::Opened(opened) => Ok(*opened),
        Line::Event(_) => Err(missing()),
    }
}
