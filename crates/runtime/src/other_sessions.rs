//! Whether another session of the workspace may have changed its files. The runtime checks this
//! only when a report has disappeared.

use std::path::Path;

use jackline_engine::{SessionId, Timestamp};
use jackline_journal::{ReadMode, SessionEntry, SessionFilter, Store};

use crate::inspect::load_session_from;
use jackline_host::clock;

/// A session that was silent for longer has no running call.
const ACTIVE_AGE_MS_MAX: i64 = 24 * 3_600_000;

/// The largest number of sessions that are checked. If there are more, one of them counts as
/// active.
const CHECKED_SESSIONS_MAX: usize = 64;

/// The other sessions of a workspace.
#[derive(Clone, Copy)]
pub(crate) struct OtherSessions<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) workspace: &'a Path,
    pub(crate) current: &'a SessionId,
}

impl OtherSessions<'_> {
    /// Describes another session that may have been active after a time, if there is one.
    pub(crate) fn active_after(self, time: Timestamp) -> Option<String> {
        let silent = clock::now().wall.as_ms().saturating_sub(ACTIVE_AGE_MS_MAX);
        let since = Some(Timestamp::from_ms(silent.min(time.as_ms())));
        let Ok(entries) = self.store.list(&SessionFilter { since }) else {
            return Some("the other sessions of this workspace can't be read".to_owned());
        };
        let is_other = |entry: &SessionEntry| {
            entry.is_workspace_of(self.workspace)
                && entry.opening().is_ok_and(|it| it.session != *self.current)
        };
        let others: Vec<SessionEntry> = entries.into_iter().filter(is_other).collect();
        if others.len() > CHECKED_SESSIONS_MAX {
            return Some("too many sessions are active in this workspace".to_owned());
        }
        let worked = |entry: &&SessionEntry| {
            // A session that can't be read is blocked, so it runs no calls.
            let view = self.store.view(entry, ReadMode::Consistent);
            let session = view.and_then(|view| load_session_from(entry, &view));
            session.is_ok_and(|session| session.may_have_worked_after(time))
        };
        let name = &others.iter().find(worked)?.name;
        Some(format!("the session `{name}` of this workspace was active meanwhile"))
    }
}
