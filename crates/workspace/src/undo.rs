//! What an attempt did to files, so that it can be undone.
//!
//! Before a file is touched for the first time, what it was is copied out of the
//! workspace and written down, durably. So is what it is going to be: after a crash, a
//! file that is neither was changed by somebody else, and is left alone.

mod back;
pub mod calls;
mod image;
mod log;
mod plan;
mod points;

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::OpenError;
use crate::jail::Jail;
use crate::shell::clear_left;
use back::{Back, Restored, Unsynced};
pub use image::Image;
use log::{Entry, Log};
pub use plan::{Plan, Step, Would, plan};
use points::{Point, Points};

/// How large a file may be to be kept; what is larger is not touched.
const KEPT_BYTES_MAX: u64 = 1 << 30;

/// How many files are put back at once. To have them on the disk takes about as long for one
/// as for many. But if all of them were made before the first takes its place, none
/// would get the number of a file that goes with that, and ext4 looks long for a number that
/// was not in use a minute ago, while it takes one that has just become free.
const AT_ONCE: usize = 128;

/// Why something can't be undone, or not be kept so that it can.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The workspace can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The log, or a copy, can't be written or read.
    #[error("{what} `{path}`: {source}")]
    Kept {
        /// What was done.
        what: &'static str,
        /// With what.
        path: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// There is something at a path that nobody can put back.
    #[error("`{path}` {why}, so it can't be put back, and is not touched")]
    NotKeepable {
        /// The path.
        path: String,
        /// What is there.
        why: &'static str,
    },
    /// The log is none of ours, or of another version.
    #[error("`{path}` is no undo log that this jackline knows")]
    Unknown {
        /// The log.
        path: String,
    },
    /// Some of it could not be undone.
    #[error("{}", unfinished(.0))]
    Unfinished(Box<Undone>),
}

/// What undoing came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// What is as it was again.
    pub restored: Vec<String>,
    /// What somebody else has changed meanwhile, and is left as it is.
    pub kept: Vec<String>,
    /// What is not as it was, and why.
    pub failed: Vec<(String, String)>,
}

fn unfinished(undone: &Undone) -> String {
    let each =
        |(path, why): &(String, String)| format!("`{path}` is as the attempt left it ({why})");
    undone.failed.iter().map(each).collect::<Vec<_>>().join("; ")
}

/// The undo log of one attempt, open.
#[derive(Debug)]
pub struct Undo {
    jail: Jail,
    directory: PathBuf,
    log: Log,
    touched: BTreeSet<String>,
}

impl Undo {
    /// Begins a log in a directory of its own, outside the workspace.
    pub fn begin(root: &Path, directory: &Path) -> Result<Self, UndoError> {
        let jail = Jail::open(root)?;
        let log = Log::create(directory, jail.real())?;
        Ok(Self { jail, directory: directory.to_owned(), log, touched: BTreeSet::new() })
    }

    /// Where it is kept.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Keeps what is at a path, and writes down what will be there, and the name of a
    /// file beside it that holds that first. Whoever changes the path does so
    /// afterwards. The path is the real one, relative to the workspace.
    pub fn before(
        &mut self,
        path: &str,
        becomes: Image,
        temporary: Option<&str>,
    ) -> Result<(), UndoError> {
        let mut entries = Vec::with_capacity(2);
        if !self.touched.contains(path) {
            let (copy, path) = (self.touched.len(), path.to_owned());
            entries.push(match image::short_text(&self.jail, &path) {
                Some((image, text)) => {
                    Entry::Before { path, image, copy, bytes: 0, text: Some(text) }
                }
                None => {
                    let place = self.directory.join(copy.to_string());
                    let image = image::keep(&self.jail, &path, &place)?;
                    Entry::Before { path, image, copy, bytes: 0, text: None }
                }
            });
        }
        let temporary = temporary.map(str::to_owned);
        entries.push(Entry::Becomes { path: path.to_owned(), image: becomes, temporary });
        self.log.lines(&entries)?;
        self.touched.insert(path.to_owned());
        Ok(())
    }

    /// Writes down what a path became, where that was not known before.
    pub fn after(&mut self, path: &str) -> Result<(), UndoError> {
        let image = image::look(&self.jail, path)?;
        self.log.append(&Entry::Becomes { path: path.to_owned(), image, temporary: None })
    }

    /// What the attempt did stays. It can still be undone by whoever wants to.
    pub fn commit(mut self) -> Result<(), UndoError> {
        image::sync_parents(&self.jail, self.touched.iter().map(String::as_str))?;
        self.log.append(&Entry::Committed)?;
        self.log.end();
        Ok(())
    }

    /// Undoes everything.
    pub fn roll_back(self) -> Result<Undone, UndoError> {
        let directory = self.directory.clone();
        drop(self);
        roll_back(&directory)
    }
}

/// How a log was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// In the middle: its attempt is neither done nor undone.
    Open,
    /// Its attempt is done.
    Committed,
    /// Its attempt is undone.
    RolledBack,
}

/// How the log in a directory was left.
pub fn left(directory: &Path) -> Result<Left, UndoError> {
    Ok(match Log::read(directory)?.entries.last() {
        Some(Entry::Committed) => Left::Committed,
        Some(Entry::RolledBack) => Left::RolledBack,
        _ => Left::Open,
    })
}

/// Undoes everything that the log in a directory tells of. What was undone before is
/// found undone, so a rollback that was cut off is finished by another one.
pub fn roll_back(directory: &Path) -> Result<Undone, UndoError> {
    let told = Log::read(directory)?;
    let jail = Jail::open(&told.root)?;
    // What can't be written down in the end is not begun.
    let mut log = Log::go_on(directory, &told)?;
    let points = Points::of(&told.entries);
    for (path, name) in &points.temporaries {
        image::remove_beside(&jail, path, name);
    }
    points.order.iter().for_each(|point| back::open_up(&jail, point));
    // What was made last is taken away first, so directories are empty when they go.
    let points: Vec<&Point<'_>> = points.order.iter().rev().collect();
    let mut undone = Undone::default();
    for points in points.chunks(AT_ONCE) {
        let mut backs: Vec<Back<'_>> =
            points.iter().map(|point| Back::new(&jail, directory, point)).collect();
        let mut unsynced = Unsynced::default();
        backs.iter_mut().for_each(|back| back.prepare(&mut unsynced));
        unsynced.sync().map_err(|errno| kept("syncing", &told.root)(errno.into()))?;
        for (point, back) in points.iter().zip(backs) {
            let path = point.path;
            match back.restore() {
                Ok(Restored::Already) => {}
                Ok(Restored::Now) => undone.restored.push(path.to_owned()),
                Ok(Restored::Not) => {
                    keep_copy(directory, point)?;
                    undone.kept.push(path.to_owned());
                }
                Err(error) => undone.failed.push((path.to_owned(), error.to_string())),
            }
        }
    }
    if !undone.failed.is_empty() {
        return Err(UndoError::Unfinished(Box::new(undone)));
    }
    image::sync_parents(&jail, points.iter().map(|point| point.path))?;
    log.append(&Entry::RolledBack)?;
    clear_left(directory);
    Ok(undone)
}

/// What was not put back stays to be had, beside the log.
fn keep_copy(directory: &Path, point: &Point<'_>) -> Result<(), UndoError> {
    let Some(text) = point.text else { return Ok(()) };
    let copy = directory.join(point.copy.to_string());
    let mut options = OpenOptions::new();
    let opened = options.write(true).create(true).truncate(true).mode(0o600).open(&copy);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(kept("writing", &copy))
}

/// Says with what something failed.
fn kept(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> UndoError {
    move |source| UndoError::Kept { what, path: path.display().to_string(), source }
}
