//! How much of a tool's answer an agent is shown.
//!
//! Whoever runs a tool, or shows what it gave back, keeps to these; the engine
//! itself only says when an output is shown as a page.

use serde::{Deserialize, Serialize};

/// The bounds of what tools answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Io {
    /// Of a page of a file.
    pub read_file: ReadFileIo,
    /// Of any other answer.
    pub output: OutputIo,
    /// Of a command.
    pub shell: ShellIo,
}

/// How much of a file is read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadFileIo {
    /// How many lines a page has at most.
    pub max_lines: u32,
    /// How many bytes a page has at most.
    pub max_bytes: u32,
    /// Where a line is cut.
    pub max_line_bytes: u32,
}

impl Default for ReadFileIo {
    fn default() -> Self {
        Self { max_lines: 500, max_bytes: 262_144, max_line_bytes: 2000 }
    }
}

/// How much of an answer is shown at once, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputIo {
    /// How many bytes it has at most.
    pub max_bytes: u32,
    /// Whether what a client's own shell printed names paths within the workspace
    /// relative to it.
    pub relative_paths: bool,
}

impl Default for OutputIo {
    fn default() -> Self {
        Self { max_bytes: 65_536, relative_paths: true }
    }
}

/// How long a command may run, and what is kept of what it prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellIo {
    /// When it is ended.
    pub seconds: u32,
    /// How many bytes are kept, half from the beginning and half from the end.
    pub output_bytes: u32,
}

impl Default for ShellIo {
    fn default() -> Self {
        Self { seconds: 120, output_bytes: 32_768 }
    }
}
