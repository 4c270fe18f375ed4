//! A session's state for those who only look.

use std::sync::Arc;

use jackline_engine::Session;
use jackline_journal::{FileStore, JournalFile, Line, Log as _, StoreError, parse_record};

use crate::live::Saved;
use crate::sessions::Found;

/// The session as its journal leaves it: from the saved state where that is
/// current, else by folding the journal.
pub fn inspect(store: &FileStore, found: &Found) -> Result<Session, StoreError> {
    let opened = found.opened()?;
    let definition = Arc::new(opened.definition.lowered.clone());
    let place = Arc::new(opened.place.clone());
    let journal = JournalFile::open(&found.journal)?;
    if let Some(directory) = found.journal.parent()
        && let Some((head, bytes)) = store.log_at(directory).load_state()?
        && head.bytes == journal.bytes()
        && let Ok(saved) = postcard::from_bytes::<Saved>(&bytes)
        && let Ok(session) =
            Session::restore(Arc::clone(&definition), Arc::clone(&place), &saved.state)
    {
        return Ok(session);
    }
    let mut session = Session::new(definition, place);
    journal.for_each(|line| fold(&mut session, line))?;
    Ok(session)
}

/// The session of a journal that was looked at in passing: from the saved state
/// and the records behind it, else by folding all of them. What somebody is
/// writing at this moment is seen the next time.
pub fn glance(found: &Found, journal: &JournalFile) -> Result<Session, StoreError> {
    let opened = found.opened()?;
    let definition = Arc::new(opened.definition.lowered.clone());
    let place = Arc::new(opened.place.clone());
    if let Some((head, bytes)) = journal.saved_state()
        && head.bytes <= journal.bytes()
        && let Ok(saved) = postcard::from_bytes::<Saved>(bytes)
        && let Ok(mut session) =
            Session::restore(Arc::clone(&definition), Arc::clone(&place), &saved.state)
    {
        journal.for_each_after(&head, |line| fold(&mut session, line))?;
        return Ok(session);
    }
    let mut session = Session::new(definition, place);
    journal.for_each(|line| fold(&mut session, line))?;
    Ok(session)
}

fn fold(session: &mut Session, line: &[u8]) -> Result<(), StoreError> {
    if let Line::Event(record) = parse_record(line)? {
        session.apply(&record.as_record());
    }
    Ok(())
}
