//! How far lines were shown that are too long for one page: who has seen all of the pieces
//! has seen the line.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use rustix::fs::Stat;

/// How many lines are remembered, the latest ones.
const LINES_MAX: usize = 1024;

/// A line of a file as it looked, and how much of it was shown from its beginning on.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    path: String,
    look: [i128; 6],
    line: u64,
    bytes: u64,
}

/// The lines of a workspace that were shown in pieces.
#[derive(Debug, Default)]
pub(crate) struct Pieces(Mutex<VecDeque<Piece>>);

/// A line of a file.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) path: &'a str,
    pub(super) look: &'a Stat,
    pub(super) line: u64,
}

impl Pieces {
    /// A line was shown from one byte to another, or to its end. Says whether all of it was
    /// shown by now, one piece after the other, and the file has not changed meanwhile.
    pub(super) fn shown(&self, of: Of<'_>, from: u64, to: Option<u64>) -> bool {
        let look = looks(of.look);
        let mut pieces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = pieces.iter().position(|piece| (&*piece.path, piece.line) == (of.path, of.line));
        let known = at.and_then(|at| pieces.remove(at)).filter(|piece| piece.look == look);
        let known = known.map_or(0, |piece| piece.bytes);
        let so_far = if from <= known { to.map(|to| to.max(known)) } else { Some(known) };
        if let Some(bytes) = so_far.filter(|bytes| *bytes > 0) {
            if pieces.len() >= LINES_MAX {
                pieces.pop_front();
            }
            pieces.push_back(Piece { path: of.path.to_owned(), look, line: of.line, bytes });
        }
        so_far.is_none()
    }
}

/// How a file looks from outside.
fn looks(look: &Stat) -> [i128; 6] {
    [
        look.st_dev.into(),
        look.st_ino.into(),
        look.st_size.into(),
        look.st_mtime.into(),
        look.st_mtime_nsec.into(),
        look.st_ctime.into(),
    ]
}
