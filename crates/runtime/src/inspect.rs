//! Reads a session's state without changing it.

use jackline_engine::Session;
use jackline_journal::{JournalLine, JournalView, ReadMode, SessionEntry, Store, StoreError};

use crate::live_session::SavedSession;
use crate::session_definition::SessionDefinition;

/// The session as its journal describes it: the saved state plus the later records, or else all
/// records.
pub fn load_session(store: &dyn Store, entry: &SessionEntry) -> Result<Session, StoreError> {
    load_session_from(entry, &store.view(entry, ReadMode::Consistent)?)
}

/// The session of a journal that is already open. A record that another process writes at this
/// moment may be missing.
pub fn load_session_from(
    entry: &SessionEntry,
    journal: &JournalView,
) -> Result<Session, StoreError> {
    let load = |digest: &_| journal.definition(digest);
    if let Some((head, saved)) = SavedSession::of_view(journal)
        // If the saved state has a newer format, this folds all records: reading does not close the
        // gate.
        && let Ok(Some((mut session, _))) = saved.restore(load)
    {
        journal.read_from(head.seq + 1, |line| fold(&mut session, journal, line))?;
        return Ok(session);
    }
    let mut session = SessionDefinition::opened(entry.opening()?, load)?.new_session();
    journal.for_each(|line| fold(&mut session, journal, line))?;
    Ok(session)
}

fn fold(session: &mut Session, journal: &JournalView, line: &[u8]) -> Result<(), StoreError> {
    if let JournalLine::Event(record) = journal.parse(line)? {
        session.apply(&record.as_record());
    }
    Ok(())
}
