//! Remembers how far lines were shown that are too long for one page. An agent that was shown all
//! pieces of a line has read the line.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rustix::fs::Stat;

/// How many lines are remembered. The oldest ones are dropped.
const LINES_MAX: usize = 1024;

/// A long line in one version of a file, and how many of its first bytes were shown.
#[derive(Debug, PartialEq, Eq)]
struct PartialLine {
    path: String,
    stamp: [i128; 6],
    line: u64,
    bytes: u64,
}

/// The lines of a workspace that were shown only in part so far.
#[derive(Debug, Default)]
pub(crate) struct PartialLines(Mutex<VecDeque<PartialLine>>);

/// One line of a file.
#[derive(Clone, Copy)]
pub(super) struct LineKey<'a> {
    pub(super) path: &'a str,
    pub(super) stat: &'a Stat,
    pub(super) line: u64,
}

impl PartialLines {
    /// Records that a line was shown from one byte to another, or to its end. Returns whether all
    /// of the line was shown by now, piece after piece, without a change of the file.
    pub(super) fn record_shown(&self, of: LineKey<'_>, from: u64, to: Option<u64>) -> bool {
        let stamp = file_stamp(of.stat);
        let mut pieces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = pieces.iter().position(|piece| (&*piece.path, piece.line) == (of.path, of.line));
        let entry = at.and_then(|at| pieces.remove(at)).filter(|piece| piece.stamp == stamp);
        let shown_bytes = entry.map_or(0, |piece| piece.bytes);
        let so_far =
            if from <= shown_bytes { to.map(|to| to.max(shown_bytes)) } else { Some(shown_bytes) };
        if let Some(bytes) = so_far.filter(|bytes| *bytes > 0) {
            if pieces.len() >= LINES_MAX {
                pieces.pop_front();
            }
            pieces.push_back(PartialLine { path: of.path.to_owned(), stamp, line: of.line, bytes });
        }
        so_far.is_none()
    }
}

/// The file stamp: device, inode, size and times. A changed file has a different stamp.
fn file_stamp(stat: &Stat) -> [i128; 6] {
    [
        stat.st_dev.into(),
        stat.st_ino.into(),
        stat.st_size.into(),
        stat.st_mtime.into(),
        stat.st_mtime_nsec.into(),
        stat.st_ctime.into(),
    ]
}
