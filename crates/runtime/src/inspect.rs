//! A session's state for those who only look.

use jackline_engine::Session;
use jackline_journal::{JournalView, Line, Reading, SessionEntry, Store, StoreError};

use crate::defined::Under;
use crate::live::SavedSession;

/// The session as its journal leaves it: from the saved state and the records behind it, else by
/// folding all of them.
pub fn inspect(store: &dyn Store, entry: &SessionEntry) -> Result<Session, StoreError> {
    session_of(entry, &store.view(entry, Reading::Consistent)?)
}

/// The session of a journal that is at hand. What another process is writing at this moment may be
/// left out.
pub fn session_of(entry: &SessionEntry, journal: &JournalView) -> Result<Session, StoreError> {
    let load = |digest: &_| journal.definition(digest);
    if let Some((head, saved)) = SavedSession::of_view(journal)
        // Where the saved state is too new, the records are folded: a reader shuts no gate.
        && let Ok(Some((mut session, _))) = saved.restore(load)
    {
        journal.read_from(head.seq + 1, |line| fold(&mut session, journal, line))?;
        return Ok(session);
    }
    let mut session = Under::opened(entry.opened()?, load)?.begin();
    journal.for_each(|line| fold(&mut session, journal, line))?;
    Ok(session)
}

fn fold(session: &mut Session, journal: &JournalView, line: &[u8]) -> Result<(), StoreError> {
    if let Line::Event(record) = journal.parse(line)? {
        session.apply(&record.as_record());
    }
    Ok(())
}
