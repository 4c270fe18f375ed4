//! Errors of the workspace tools. Each error tells the caller what to do next.

use std::path::PathBuf;

use rustix::io::Errno;
use serde::Serialize;
use thiserror::Error;

use crate::guidance::Guidance;

/// The kind of a tool error, with a stable name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorCode {
    /// There is no tool with this name.
    UnknownTool,
    /// An argument is missing, unknown, or of the wrong kind.
    InvalidArguments,
    /// The path is empty, too long or contains a NUL byte.
    InvalidPath,
    /// The path leads out of the workspace.
    OutsideWorkspace,
    /// The file or directory does not exist.
    NotFound,
    /// The path is a directory, but the tool needs a file.
    IsDirectory,
    /// The path is not a directory, but the tool needs one.
    NotDirectory,
    /// The path is a pipe, socket or device.
    NotRegular,
    /// The symbolic links on the path form a loop.
    TooManyLinks,
    /// The operating system denied access.
    PermissionDenied,
    /// The file is not text.
    Binary,
    /// The file is not UTF-8, which editing requires.
    NotUtf8,
    /// The content is larger than the tool accepts.
    TooLarge,
    /// The requested line is too far into the file to be reached.
    OffsetTooFar,
    /// The regular expression is invalid or too large.
    InvalidPattern,
    /// The glob is invalid.
    InvalidGlob,
    /// The text to replace is not in the file.
    NoMatch,
    /// The text to replace occurs more than once in the file.
    AmbiguousMatch,
    /// The edit would change nothing.
    NoChange,
    /// Another process changed the file in the meantime.
    ChangedMeanwhile,
    /// The current file could not be restored later, so it was not changed.
    NotUndoable,
    /// The disk is full or read-only.
    NoSpace,
    /// The command could not be run.
    CommandNotRun,
    /// It is unknown what the command did.
    CommandLost,
    /// Any other error of the operating system.
    Io,
}

impl ToolErrorCode {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            ToolErrorCode::UnknownTool => "unknown_tool",
            ToolErrorCode::InvalidArguments => "invalid_arguments",
            ToolErrorCode::InvalidPath => "invalid_path",
            ToolErrorCode::OutsideWorkspace => "outside_workspace",
            ToolErrorCode::NotFound => "not_found",
            ToolErrorCode::IsDirectory => "is_directory",
            ToolErrorCode::NotDirectory => "not_directory",
            ToolErrorCode::NotRegular => "not_regular",
            ToolErrorCode::TooManyLinks => "too_many_links",
            ToolErrorCode::PermissionDenied => "permission_denied",
            ToolErrorCode::Binary => "binary",
            ToolErrorCode::NotUtf8 => "not_utf8",
            ToolErrorCode::TooLarge => "too_large",
            ToolErrorCode::OffsetTooFar => "offset_too_far",
            ToolErrorCode::InvalidPattern => "invalid_pattern",
            ToolErrorCode::InvalidGlob => "invalid_glob",
            ToolErrorCode::NoMatch => "no_match",
            ToolErrorCode::AmbiguousMatch => "ambiguous_match",
            ToolErrorCode::NoChange => "no_change",
            ToolErrorCode::ChangedMeanwhile => "changed_meanwhile",
            ToolErrorCode::NotUndoable => "not_undoable",
            ToolErrorCode::NoSpace => "no_space",
            ToolErrorCode::CommandNotRun => "command_not_run",
            ToolErrorCode::CommandLost => "command_lost",
            ToolErrorCode::Io => "io",
        }
    }
}

impl core::fmt::Display for ToolErrorCode {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(self.as_str())
    }
}

/// An error of a tool call.
#[derive(Debug, Clone, PartialEq, Error, Serialize)]
#[error("{message}")]
pub struct ToolError {
    /// The kind of error.
    pub code: ToolErrorCode,
    /// The message for the model.
    pub message: String,
    /// The path that the error is about, relative to the workspace if it is inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What the caller can do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guidance: Option<Box<Guidance>>,
}

impl ToolError {
    pub(crate) fn new(code: ToolErrorCode, message: impl Into<String>) -> ToolError {
        ToolError { code, message: message.into(), path: None, guidance: None }
    }

    pub(crate) fn with_path(self, path: impl Into<String>) -> ToolError {
        ToolError { path: Some(path.into()), ..self }
    }

    pub(crate) fn with_guidance(self, guidance: Guidance) -> ToolError {
        let guidance = (!guidance.text.is_empty()).then(|| Box::new(guidance));
        ToolError { guidance, ..self }
    }

    pub(crate) fn with_advice(self, text: impl Into<String>) -> ToolError {
        self.with_guidance(Guidance { text: text.into(), ..Guidance::default() })
    }

    /// Turns an operating system error on a workspace path into a tool error.
    pub(crate) fn from_errno(errno: Errno, path: &str) -> ToolError {
        let (code, message) = match errno {
            Errno::NOENT => (ToolErrorCode::NotFound, format!("`{path}` does not exist")),
            Errno::XDEV => return ToolError::outside_workspace(path),
            Errno::LOOP => {
                (ToolErrorCode::TooManyLinks, format!("`{path}` contains a loop of symbolic links"))
            }
            Errno::ACCESS | Errno::PERM => {
                (ToolErrorCode::PermissionDenied, format!("permission denied for `{path}`"))
            }
            Errno::ISDIR => (ToolErrorCode::IsDirectory, format!("`{path}` is a directory")),
            Errno::NOTDIR => (
                ToolErrorCode::NotDirectory,
                format!("`{path}`, or a part of it, is not a directory"),
            ),
            Errno::NXIO | Errno::NODEV => {
                (ToolErrorCode::NotRegular, format!("`{path}` is not a regular file"))
            }
            Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ => {
                (ToolErrorCode::InvalidPath, "the path is not valid".to_owned())
            }
            Errno::NOSPC | Errno::DQUOT | Errno::ROFS => (
                ToolErrorCode::NoSpace,
                format!("`{path}` can't be written: {}", errno_text(errno)),
            ),
            other => (ToolErrorCode::Io, format!("`{path}`: {}", errno_text(other))),
        };
        ToolError::new(code, message).with_path(path)
    }

    pub(crate) fn outside_workspace(path: &str) -> ToolError {
        ToolError::new(ToolErrorCode::OutsideWorkspace, format!("`{path}` is not in the workspace"))
            .with_path(path)
            .with_advice("Use a path inside the workspace; `list_dir` lists its files.")
    }

    /// The error as text for the agent: the message and what to do next.
    pub fn render_text(&self) -> String {
        match &self.guidance {
            Some(guidance) => format!("{}: {}\n{}", self.code, self.message, guidance.text),
            None => format!("{}: {}", self.code, self.message),
        }
    }
}

fn errno_text(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// Why a workspace could not be opened.
#[derive(Debug, Error)]
pub enum WorkspaceError {
    /// The directory can't be opened.
    #[error("can't use `{}` as the workspace: {source}", path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: OpenError,
    },
    /// The path is not UTF-8, but records store paths as text.
    #[error("can't use `{}` as the workspace: its path is not UTF-8", .0.display())]
    NotUtf8(PathBuf),
}

/// The error of a directory that can't be opened as a workspace.
#[derive(Debug, Error)]
#[error("`{path}` can't be opened as a workspace")]
pub struct OpenError {
    /// The directory.
    pub path: String,
    /// The cause.
    #[source]
    pub source: std::io::Error,
}
