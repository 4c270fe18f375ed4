//! A workspace within an attempt: everything its tools write can be undone.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::error::{Code, ToolError};
use crate::jail::{Inside, Place};
use crate::tools::Workspace;
use crate::undo::{Image, Undo, UndoError, Undone};

/// The attempt that is under way, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Attempt(Mutex<Option<Undo>>);

impl Attempt {
    fn lock(&self) -> MutexGuard<'_, Option<Undo>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workspace {
    /// Begins an attempt, whose undo log is kept in a directory outside the workspace. One
    /// that is under way is left as it is, and stays open.
    pub fn begin(&self, directory: &Path) -> Result<(), UndoError> {
        *self.attempt.lock() = Some(Undo::begin(self.jail.real(), directory)?);
        Ok(())
    }

    /// What the attempt wrote stays.
    pub fn commit(&self) -> Result<(), UndoError> {
        self.attempt.lock().take().map_or(Ok(()), Undo::commit)
    }

    /// What the attempt wrote is undone.
    pub fn roll_back(&self) -> Result<Undone, UndoError> {
        self.attempt.lock().take().map_or_else(|| Ok(Undone::default()), Undo::roll_back)
    }

    /// Where a file is to be put. Directories that are made on the way are written down
    /// before.
    pub(crate) fn place(&self, path: &Inside) -> Result<Place, ToolError> {
        let mut failed = None;
        let place = self.jail.place(path, &mut |parent, name| {
            self.keep(parent, name, path, Image::Directory { mode: None }, None).map_err(|error| {
                failed = Some(error);
                Errno::IO
            })
        });
        match (place, failed) {
            (Err(_), Some(error)) => Err(error),
            (place, _) => place.map_err(|errno| ToolError::system(errno, path.as_str())),
        }
    }

    /// Writes down what a file was and what it will be, and what it is written in first.
    pub(crate) fn touch(
        &self,
        place: &Place,
        path: &Inside,
        content: &[u8],
        temporary: &str,
    ) -> Result<(), ToolError> {
        let (parent, name) = (place.parent.as_fd(), place.name.as_os_str());
        self.keep(parent, name, path, Image::of(content), Some(temporary))
    }

    fn keep(
        &self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        path: &Inside,
        becomes: Image,
        temporary: Option<&str>,
    ) -> Result<(), ToolError> {
        let mut attempt = self.attempt.lock();
        let Some(undo) = attempt.as_mut() else { return Ok(()) };
        let real = self.jail.really(parent, &path.split().0).join(name);
        let refused = |why: String| {
            let message = format!("`{}` is not written: {why}", path.as_str());
            ToolError::new(Code::NotUndoable, message).at(path.as_str())
        };
        let real = real.to_str().ok_or_else(|| refused("its path is not UTF-8".to_owned()))?;
        undo.before(real, becomes, temporary).map_err(|error| refused(error.to_string()))
    }
}
