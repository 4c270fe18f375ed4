//! Why a tool did not do what it was asked for, in a form that leads on.

use std::path::PathBuf;

use rustix::io::Errno;
use serde::Serialize;
use thiserror::Error;

use crate::guidance::Guidance;

/// What went wrong, by a name that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// No tool has this name.
    UnknownTool,
    /// An argument is missing, unknown, or of the wrong kind.
    InvalidArguments,
    /// A path that can't be one.
    InvalidPath,
    /// The path leads out of the workspace.
    OutsideWorkspace,
    /// Nothing is there.
    NotFound,
    /// A directory, where a file was asked for.
    IsDirectory,
    /// Not a directory, where one was asked for.
    NotDirectory,
    /// A pipe, socket or device.
    NotRegular,
    /// Links that lead to each other.
    TooManyLinks,
    /// The operating system refuses.
    PermissionDenied,
    /// A file with bytes that are no text.
    Binary,
    /// A file that is no UTF-8, where only that can be edited.
    NotUtf8,
    /// More than the tool takes.
    TooLarge,
    /// A line so far into a file that nobody counts up to it.
    OffsetTooFar,
    /// A regular expression that is none, or too large.
    InvalidPattern,
    /// A glob that is none.
    InvalidGlob,
    /// The text to replace is not in the file.
    NoMatch,
    /// The text to replace is in the file more than once.
    AmbiguousMatch,
    /// The edit would change nothing.
    NoChange,
    /// Somebody else changed the file in the meantime.
    ChangedMeanwhile,
    /// What is there could not be put back again.
    NotUndoable,
    /// The disk is full, or may not be written.
    NoSpace,
    /// The command could not be run.
    CommandNotRun,
    /// Nobody knows what came of the command.
    CommandLost,
    /// Anything else the operating system says.
    Io,
}

impl Code {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::UnknownTool => "unknown_tool",
            Code::InvalidArguments => "invalid_arguments",
            Code::InvalidPath => "invalid_path",
            Code::OutsideWorkspace => "outside_workspace",
            Code::NotFound => "not_found",
            Code::IsDirectory => "is_directory",
            Code::NotDirectory => "not_directory",
            Code::NotRegular => "not_regular",
            Code::TooManyLinks => "too_many_links",
            Code::PermissionDenied => "permission_denied",
            Code::Binary => "binary",
            Code::NotUtf8 => "not_utf8",
            Code::TooLarge => "too_large",
            Code::OffsetTooFar => "offset_too_far",
            Code::InvalidPattern => "invalid_pattern",
            Code::InvalidGlob => "invalid_glob",
            Code::NoMatch => "no_match",
            Code::AmbiguousMatch => "ambiguous_match",
            Code::NoChange => "no_change",
            Code::ChangedMeanwhile => "changed_meanwhile",
            Code::NotUndoable => "not_undoable",
            Code::NoSpace => "no_space",
            Code::CommandNotRun => "command_not_run",
            Code::CommandLost => "command_lost",
            Code::Io => "io",
        }
    }
}

impl core::fmt::Display for Code {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(self.as_str())
    }
}

/// A call that a tool could not answer.
#[derive(Debug, Clone, PartialEq, Error, Serialize)]
#[error("{message}")]
pub struct ToolError {
    /// What went wrong.
    pub code: Code,
    /// The same in words.
    pub message: String,
    /// What it is about, relative to the workspace if it is inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Where to go from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guidance: Option<Box<Guidance>>,
}

impl ToolError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> ToolError {
        ToolError { code, message: message.into(), path: None, guidance: None }
    }

    pub(crate) fn at(self, path: impl Into<String>) -> ToolError {
        ToolError { path: Some(path.into()), ..self }
    }

    pub(crate) fn with(self, guidance: Guidance) -> ToolError {
        let guidance = (!guidance.text.is_empty()).then(|| Box::new(guidance));
        ToolError { guidance, ..self }
    }

    pub(crate) fn advice(self, text: impl Into<String>) -> ToolError {
        self.with(Guidance { text: text.into(), ..Guidance::default() })
    }

    /// What the operating system said about a path of the workspace.
    pub(crate) fn system(errno: Errno, path: &str) -> ToolError {
        let (code, message) = match errno {
            Errno::NOENT => (Code::NotFound, format!("`{path}` does not exist")),
            Errno::XDEV => return ToolError::outside(path),
            Errno::LOOP => (Code::TooManyLinks, format!("`{path}` is a circle of links")),
            Errno::ACCESS | Errno::PERM => {
                (Code::PermissionDenied, format!("no permission for `{path}`"))
            }
            Errno::ISDIR => (Code::IsDirectory, format!("`{path}` is a directory")),
            Errno::NOTDIR => {
                (Code::NotDirectory, format!("`{path}`, or a part of it, is not a directory"))
            }
            Errno::NXIO | Errno::NODEV => {
                (Code::NotRegular, format!("`{path}` is not a regular file"))
            }
            Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ => {
                (Code::InvalidPath, "this can't be a path".to_owned())
            }
            Errno::NOSPC | Errno::DQUOT | Errno::ROFS => {
                (Code::NoSpace, format!("`{path}` can't be written: {}", said(errno)))
            }
            other => (Code::Io, format!("`{path}`: {}", said(other))),
        };
        ToolError::new(code, message).at(path)
    }

    pub(crate) fn outside(path: &str) -> ToolError {
        ToolError::new(Code::OutsideWorkspace, format!("`{path}` is not in the workspace"))
            .at(path)
            .advice("Only paths in the workspace can be used; `list_dir` shows what is there.")
    }

    /// The error as an agent reads it: what, and where to go from here.
    pub fn text(&self) -> String {
        match &self.guidance {
            Some(guidance) => format!("{}: {}\n{}", self.code, self.message, guidance.text),
            None => format!("{}: {}", self.code, self.message),
        }
    }
}

fn said(errno: Errno) -> String {
    let text = std::io::Error::from(errno).to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}

/// Why work in a directory was not begun.
#[derive(Debug, Error)]
pub enum WorkspaceError {
    /// It can't be opened.
    #[error("can't work in `{}`: {source}", path.display())]
    Open {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: OpenError,
    },
    /// Its path is not text, and records are.
    #[error("can't work in `{}`: its path is not UTF-8", .0.display())]
    NotUtf8(PathBuf),
}

/// A directory that can't be a workspace.
#[derive(Debug, Error)]
#[error("`{path}` can't be opened as a workspace")]
pub struct OpenError {
    /// The directory.
    pub path: String,
    /// Why not.
    #[source]
    pub source: std::io::Error,
}
