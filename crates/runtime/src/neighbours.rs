//! The other sessions of a workspace: whether one of them may have been at work
//! on its files. This is asked where a report has vanished, and not at every gate.

use std::path::Path;

use jackline_engine::{SessionId, Timestamp};
use jackline_journal::{FileStore, JournalFile};

use crate::clock;
use crate::inspect::glance;
use crate::sessions::{Found, Sessions};

/// A session that was silent for longer has no call under way any more.
const SILENT_MS: i64 = 24 * 3_600_000;

/// How many sessions are looked into; where there are more, one of them counts as
/// at work.
const LOOKED_INTO_MAX: usize = 64;

/// A workspace, as one of its sessions sees it.
#[derive(Clone, Copy)]
pub(crate) struct Neighbours<'a> {
    pub(crate) home: &'a Path,
    pub(crate) workspace: &'a Path,
    pub(crate) own: &'a SessionId,
}

impl Neighbours<'_> {
    /// Which other session may have been at work after some time, in words.
    pub(crate) fn at_work_after(self, time: Timestamp) -> Option<String> {
        let silent = clock::now().wall.as_ms().saturating_sub(SILENT_MS);
        let recent = Timestamp::from_ms(silent.min(time.as_ms()));
        let sessions = Sessions::new(FileStore::new(self.home.to_owned(), 0));
        let Ok(found) = sessions.since(recent) else {
            return Some("the other sessions of this workspace can't be looked at".to_owned());
        };
        let is_other = |found: &Found| {
            found.works_in(self.workspace) && found.opened().is_ok_and(|it| it.session != *self.own)
        };
        let others: Vec<Found> = found.into_iter().filter(is_other).collect();
        if others.len() > LOOKED_INTO_MAX {
            return Some("too many sessions are at work in this workspace".to_owned());
        }
        let worked = |found: &&Found| {
            // One that can't be read is shut, and runs nothing.
            let session = JournalFile::open(&found.journal).and_then(|it| glance(found, &it));
            session.is_ok_and(|session| session.worked_after(time))
        };
        let name = &others.iter().find(worked)?.name;
        Some(format!("the session `{name}` of this workspace was at work meanwhile"))
    }
}
