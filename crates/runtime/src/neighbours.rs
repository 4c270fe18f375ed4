//! The other sessions of a workspace: whether one of them may have been at work
//! on its files. This is asked where a report has vanished, and not at every gate.

use std::path::Path;

use jackline_engine::{SessionId, Timestamp};
use jackline_journal::{Reading, SessionEntry, SessionFilter, Store};

use crate::inspect::session_of;
use jackline_host::clock;

/// A session that was silent for longer has no call under way any more.
const SILENT_MS: i64 = 24 * 3_600_000;

/// How many sessions are looked into; where there are more, one of them counts as
/// at work.
const LOOKED_INTO_MAX: usize = 64;

/// A workspace, as one of its sessions sees it.
#[derive(Clone, Copy)]
pub(crate) struct Neighbours<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) workspace: &'a Path,
    pub(crate) own: &'a SessionId,
}

impl Neighbours<'_> {
    /// Which other session may have been at work after some time, in words.
    pub(crate) fn at_work_after(self, time: Timestamp) -> Option<String> {
        let silent = clock::now().wall.as_ms().saturating_sub(SILENT_MS);
        let since = Some(Timestamp::from_ms(silent.min(time.as_ms())));
        let Ok(entries) = self.store.list(&SessionFilter { since }) else {
            return Some("the other sessions of this workspace can't be looked at".to_owned());
        };
        let is_other = |entry: &SessionEntry| {
            entry.works_in(self.workspace) && entry.opened().is_ok_and(|it| it.session != *self.own)
        };
        let others: Vec<SessionEntry> = entries.into_iter().filter(is_other).collect();
        if others.len() > LOOKED_INTO_MAX {
            return Some("too many sessions are at work in this workspace".to_owned());
        }
        let worked = |entry: &&SessionEntry| {
            // One that can't be read is shut, and runs nothing.
            let view = self.store.view(entry, Reading::Consistent);
            let session = view.and_then(|view| session_of(entry, &view));
            session.is_ok_and(|session| session.worked_after(time))
        };
        let name = &others.iter().find(worked)?.name;
        Some(format!("the session `{name}` of this workspace was at work meanwhile"))
    }
}
