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
    journal.for_each(|line| {
        if let Line::Event(record) = parse_record(line)? {
            session.apply(&record.as_record());
        }
        Ok::<(), StoreError>(())
    })?;
    Ok(session)
}
