//! A session at work: its log, its state, and where it works.

use std::path::Path;
use std::sync::Arc;

use jackline_engine::{Digest, Place, Session, SessionId};
use jackline_journal::{Head, Line, Log, Opened, StoreError, parse_record};
use serde::{Deserialize, Serialize};

use crate::defined::{Defined, Under};
use crate::definitions::Definitions;

/// What a saved state holds besides the engine's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// The session it belongs to.
    pub session: SessionId,
    /// The checksum of the definition in force.
    pub definition: Digest,
    /// Where the agent works.
    pub place: Place,
    /// The engine's state.
    pub state: Vec<u8>,
    /// Where the record begins that holds the definition.
    pub defined_at: u64,
}

impl Saved {
    /// The definition in force, by name.
    fn defined(&self) -> Defined {
        Defined { checksum: self.definition, at: self.defined_at }
    }

    /// What the session runs under, unless the journal does not say so.
    fn under(
        &self,
        log: &mut dyn Log,
        definitions: &Definitions,
    ) -> Result<Option<Under>, StoreError> {
        let recorded = || {
            let opened = read_opened(log)?;
            let under = Under::defined_at(self.defined_at, &opened, |at| log.line_at(at))?;
            let under = under.filter(|under| under.defined == self.defined());
            Ok::<_, StoreError>(under.map(|under| Arc::unwrap_or_clone(under.definition)))
        };
        let definition = definitions.pinned(&self.definition, recorded)?;
        let place = Arc::new(self.place.clone());
        let defined = self.defined();
        Ok(definition.map(|definition| Under { definition, place, defined }))
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
            && let Ok(saved) = postcard::from_bytes::<Saved>(&bytes)
        {
            is_of(&saved.session, id)?;
            if let Some(under) = saved.under(log.as_mut(), definitions)?
                && let Some(session) = under.restore(&saved.state)?
            {
                let (head, defined) = (Some(head), under.defined);
                return Ok(Some(Self {
                    log,
                    id: id.clone(),
                    session,
                    head,
                    defined,
                    opening: None,
                    unsaved: false,
                }));
            }
        }
        if log.line_at(0)?.is_none() {
            return Ok(None);
        }
        let opened = read_opened(log.as_mut())?;
        is_of(&opened.session, id)?;
        let under = Under::opened(&opened);
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
            // Somebody else wrote the first record meanwhile.
            self.opening = None;
        }
        let mut from = self.head.map_or(0, |head| head.bytes);
        if self.head.is_none() {
            from = self.rebuild()?;
        } else if let Some((saved_head, bytes)) = self.log.load_state()?
            && self.head.is_some_and(|head| head.seq < saved_head.seq)
            && let Ok(saved) = postcard::from_bytes::<Saved>(&bytes)
            && saved.defined() == self.defined
            && let Some(session) = self.under().restore(&saved.state)?
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
        let opened = read_opened(self.log.as_mut())?;
        let under = Under::opened(&opened);
        (self.session, self.defined) = (under.begin(), under.defined);
        let Some(from) = self.log.latest_snapshot()? else { return Ok(0) };
        let Some(line) = self.log.line_at(from)? else { return Ok(0) };
        if let Line::Event(record) = parse_record(&line)?
            && let Some(snapshot) = record.snapshot
            && let Some(under) =
                Under::defined_at(snapshot.defined_at, &opened, |at| self.log.line_at(at))?
            && let Some(session) = under.restore(&snapshot.state)?
        {
            (self.session, self.defined) = (session, under.defined);
            return Ok(from);
        }
        Ok(0)
    }

    /// Applies every record from byte `from` on that the session has not seen.
    fn fold(&mut self, from: u64) -> Result<(), StoreError> {
        let Self { log, session, defined, .. } = self;
        let mut at = from;
        log.read(from, &mut |line| {
            if let Line::Event(record) = parse_record(line)?
                && record.seq > session.seq()
            {
                *defined = defined.after(&record.as_record(), at);
                session.apply(&record.as_record());
            }
            at += line.len() as u64 + 1;
            Ok(())
        })
    }

    /// What the session runs under.
    fn under(&self) -> Under {
        let (definition, place) = (self.session.definition(), self.session.place());
        let (definition, place) = (Arc::clone(definition), Arc::clone(place));
        Under { definition, place, defined: self.defined }
    }

    /// The directory the agent works in.
    pub(crate) fn workspace(&self) -> Option<&Path> {
        self.session.place().workspace.as_deref().map(Path::new)
    }

    /// Saves the state, so that nobody has to read the journal for it. Needs the lock.
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
        let saved = Saved {
            session: self.id.clone(),
            definition: self.defined.checksum,
            place: (**self.session.place()).clone(),
            state: self.session.snapshot(),
            defined_at: self.defined.at,
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

pub(crate) fn read_opened(log: &mut dyn Log) -> Result<Opened, StoreError> {
    let missing =
        || StoreError::Tampered { record: "0".to_owned(), reason: "it is missing".to_owned() };
    let line = log.line_at(0)?.ok_or_else(missing)?;
    match parse_record(&line)? {
        Line::Opened(opened) => Ok(*opened),
        Line::Event(_) => Err(missing()),
    }
}
