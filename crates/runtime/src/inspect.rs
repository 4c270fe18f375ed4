//! A session's state for those who only look.

use jackline_engine::Session;
use jackline_journal::{FileStore, JournalFile, Line, Log as _, StoreError, parse_record};

use crate::defined::Under;
use crate::live::Saved;
use crate::sessions::Found;

/// The session as its journal leaves it: from the saved state where that is
/// current, else by folding the journal.
pub fn inspect(store: &FileStore, found: &Found) -> Result<Session, StoreError> {
    let journal = JournalFile::open(&found.journal)?;
    if let Some(directory) = found.journal.parent()
        && let Some((head, bytes)) = store.log_at(directory).load_state()?
        && head.bytes == journal.bytes()
        && let Some(session) = restored(found, &journal, &bytes)?
    {
        return Ok(session);
    }
    folded(found, &journal)
}

/// The session of a journal that was looked at in passing: from the saved state
/// and the records behind it, else by folding all of them. What somebody is
/// writing at this moment is seen the next time.
pub fn glance(found: &Found, journal: &JournalFile) -> Result<Session, StoreError> {
    if let Some((head, bytes)) = journal.saved_state()
        && head.bytes <= journal.bytes()
        && let Some(mut session) = restored(found, journal, bytes)?
    {
        journal.for_each_after(&head, |line| fold(&mut session, line))?;
        return Ok(session);
    }
    folded(found, journal)
}

/// The session of a saved state, if that can be read here.
fn restored(
    found: &Found,
    journal: &JournalFile,
    saved: &[u8],
) -> Result<Option<Session>, StoreError> {
    let Ok(saved) = postcard::from_bytes::<Saved>(saved) else { return Ok(None) };
    let opened = found.opened()?;
    let under = Under::defined_at(saved.defined_at, opened, |at| journal.line_at(at))?;
    // One that is too new is folded: whoever only looks shuts no gate.
    Ok(under.and_then(|under| under.restore(&saved.state).ok().flatten()))
}

fn folded(found: &Found, journal: &JournalFile) -> Result<Session, StoreError> {
    let mut session = Under::opened(found.opened()?).begin();
    journal.for_each(|line| fold(&mut session, line))?;
    Ok(session)
}

fn fold(session: &mut Session, line: &[u8]) -> Result<(), StoreError> {
    if let Line::Event(record) = parse_record(line)? {
        session.apply(&record.as_record());
    }
    Ok(())
}
