//! A workspace within an attempt: everything its tools write can be undone.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::error::{Code, ToolError};
use crate::jail::{Inside, Place};
use crate::shell::LAYER;
use crate::tools::Workspace;
use crate::undo::{Image, Undo, UndoError, Undone};
use crate::write::temporary_name;

/// The attempts that are under way, the innermost last. Each log tells of everything that
/// was done since it began, so that an outer attempt is undone with all that inner ones did.
#[derive(Debug, Default)]
pub(crate) struct Attempt(Mutex<Vec<Undo>>);

impl Attempt {
    fn lock(&self) -> MutexGuard<'_, Vec<Undo>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workspace {
    /// Begins an attempt, whose undo log is kept in a directory outside the workspace. Within
    /// one that is under way it is a part of that.
    pub fn begin(&self, directory: &Path) -> Result<(), UndoError> {
        let undo = Undo::begin(self.jail.real(), directory)?;
        self.attempt.lock().push(undo);
        Ok(())
    }

    /// What the innermost attempt wrote stays, unless one around it is undone.
    pub fn commit(&self) -> Result<(), UndoError> {
        let innermost = self.attempt.lock().pop();
        innermost.map_or(Ok(()), Undo::commit)
    }

    /// What the innermost attempt wrote is undone.
    pub fn roll_back(&self) -> Result<Undone, UndoError> {
        let innermost = self.attempt.lock().pop();
        innermost.map_or_else(|| Ok(Undone::default()), Undo::roll_back)
    }

    /// Where a file is to be put. Directories that are made on the way are written down
    /// before.
    pub(crate) fn place(&self, path: &Inside) -> Result<Place, ToolError> {
        let mut failed = None;
        let place = self.jail.place(path, &mut |parent, name| {
            self.keep(parent, name, path, &Image::Directory { mode: None }, None).map_err(|error| {
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
        self.keep(parent, name, path, &Image::of(content), Some(temporary))
    }

    fn keep(
        &self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        path: &Inside,
        becomes: &Image,
        temporary: Option<&str>,
    ) -> Result<(), ToolError> {
        if self.attempt.lock().is_empty() {
            return Ok(());
        }
        let real = self.jail.really(parent, &path.split().0).join(name);
        let real = real.to_str().ok_or_else(|| refused(path.as_str(), "its path is not UTF-8"))?;
        self.note(real, becomes, temporary)
    }

    /// The same for a path that is the real one already.
    pub(crate) fn note(
        &self,
        real: &str,
        becomes: &Image,
        temporary: Option<&str>,
    ) -> Result<(), ToolError> {
        for undo in self.attempt.lock().iter_mut() {
            undo.before(real, becomes.clone(), temporary)
                .map_err(|error| refused(real, &error.to_string()))?;
        }
        Ok(())
    }

    /// Where a layer for a command may lie: with the log of the innermost attempt.
    pub(crate) fn layer(&self) -> Option<PathBuf> {
        let attempts = self.attempt.lock();
        attempts.last().map(|undo| undo.directory().join(format!("{LAYER}{}", temporary_name())))
    }
}

fn refused(path: &str, why: &str) -> ToolError {
    ToolError::new(Code::NotUndoable, format!("`{path}` is not written: {why}")).at(path)
}
