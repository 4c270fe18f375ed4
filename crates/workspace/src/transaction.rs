//! Attempts in a workspace: every change of their tools can be undone.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::error::{ToolError, ToolErrorCode};
use crate::jail::{ResolvedPath, WorkspacePath};
use crate::shell::LAYER_PREFIX;
use crate::tools::Workspace;
use crate::undo::{PathImage, UndoError, UndoReport, UndoTransaction};
use crate::write::temporary_name;

/// The running attempts, the innermost last. Each undo log contains all changes since its attempt
/// began, so undoing an outer attempt also undoes the inner ones.
#[derive(Debug, Default)]
pub(crate) struct OpenAttempts(Mutex<Vec<UndoTransaction>>);

impl OpenAttempts {
    fn lock(&self) -> MutexGuard<'_, Vec<UndoTransaction>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workspace {
    /// Starts an attempt and stores its undo log in a directory outside of the workspace. If
    /// another attempt is running, the new one is nested in it.
    pub fn begin_attempt(&self, directory: &Path) -> Result<(), UndoError> {
        let undo = UndoTransaction::begin(self.jail.real(), directory)?;
        self.attempts.lock().push(undo);
        Ok(())
    }

    /// Commits the innermost attempt. Its changes stay, unless an attempt around it is rolled back.
    pub fn commit_attempt(&self) -> Result<(), UndoError> {
        let innermost = self.attempts.lock().pop();
        innermost.map_or(Ok(()), UndoTransaction::commit)
    }

    /// Rolls back the innermost attempt: undoes its changes.
    pub fn roll_back_attempt(&self) -> Result<UndoReport, UndoError> {
        let innermost = self.attempts.lock().pop();
        innermost.map_or_else(|| Ok(UndoReport::default()), UndoTransaction::roll_back)
    }

    /// Resolves the path of a file to be written. Directories that it creates are recorded in the
    /// undo log first.
    pub(crate) fn resolve_for_write(
        &self,
        path: &WorkspacePath,
    ) -> Result<ResolvedPath, ToolError> {
        let mut failed = None;
        let place = self.jail.resolve_for_write(path, &mut |parent, name| {
            self.record_change_at(parent, name, path, &PathImage::Directory { mode: None }, None)
                .map_err(|error| {
                    failed = Some(error);
                    Errno::IO
                })
        });
        match (place, failed) {
            (Err(_), Some(error)) => Err(error),
            (place, _) => place.map_err(|errno| ToolError::from_errno(errno, path.as_str())),
        }
    }

    /// Records the current file, its new contents and the name of the temporary file in the undo
    /// log.
    pub(crate) fn record_write(
        &self,
        place: &ResolvedPath,
        path: &WorkspacePath,
        content: &[u8],
        temporary: &str,
    ) -> Result<(), ToolError> {
        let (parent, name) = (place.parent.as_fd(), place.name.as_os_str());
        self.record_change_at(parent, name, path, &PathImage::of_contents(content), Some(temporary))
    }

    fn record_change_at(
        &self,
        parent: BorrowedFd<'_>,
        name: &OsStr,
        path: &WorkspacePath,
        becomes: &PathImage,
        temporary: Option<&str>,
    ) -> Result<(), ToolError> {
        if self.attempts.lock().is_empty() {
            return Ok(());
        }
        let real = self.jail.real_relative_path(parent, &path.split().0).join(name);
        let real =
            real.to_str().ok_or_else(|| not_undoable(path.as_str(), "its path is not UTF-8"))?;
        self.record_change(real, becomes, temporary)
    }

    /// Records a change in the undo logs. The path is already the real path.
    pub(crate) fn record_change(
        &self,
        real: &str,
        becomes: &PathImage,
        temporary: Option<&str>,
    ) -> Result<(), ToolError> {
        for undo in self.attempts.lock().iter_mut() {
            undo.record_before(real, becomes.clone(), temporary)
                .map_err(|error| not_undoable(real, &error.to_string()))?;
        }
        Ok(())
    }

    /// The directory for the overlay layer of a command: next to the undo log of the innermost
    /// attempt.
    pub(crate) fn layer_directory(&self) -> Option<PathBuf> {
        let attempts = self.attempts.lock();
        attempts
            .last()
            .map(|undo| undo.directory().join(format!("{LAYER_PREFIX}{}", temporary_name())))
    }
}

fn not_undoable(path: &str, why: &str) -> ToolError {
    ToolError::new(ToolErrorCode::NotUndoable, format!("`{path}` was not written: {why}"))
        .with_path(path)
}
