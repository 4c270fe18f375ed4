//! Limits for the output of tools that an agent receives.
//!
//! The code that runs a tool or shows its output applies these limits. The engine itself only
//! decides whether an output is shown as a page.

use serde::{Deserialize, Serialize};

/// The limits for the output of tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoLimits {
    /// The limits for a page of a file.
    pub read_file: ReadFileLimits,
    /// The limits for any other output.
    pub output: OutputLimits,
    /// The limits for commands.
    pub shell: ShellOutputLimits,
}

/// How much of a file is read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadFileLimits {
    /// The maximum number of lines of a page.
    pub max_lines: u32,
    /// The maximum number of bytes of a page.
    pub max_bytes: u32,
    /// Longer lines are cut at this number of bytes.
    pub max_line_bytes: u32,
}

impl Default for ReadFileLimits {
    fn default() -> Self {
        Self { max_lines: 500, max_bytes: 262_144, max_line_bytes: 2000 }
    }
}

/// How much of an output is shown at once, and in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputLimits {
    /// The maximum number of bytes.
    pub max_bytes: u32,
    /// Whether workspace paths in the output of a client's own shell are shown relative to the
    /// workspace.
    pub relative_paths: bool,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self { max_bytes: 65_536, relative_paths: true }
    }
}

/// The timeout of a command, and how much of its output is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellOutputLimits {
    /// The timeout in seconds.
    pub seconds: u32,
    /// The number of bytes that are stored, half from the beginning and half from the end.
    pub output_bytes: u32,
}

impl Default for ShellOutputLimits {
    fn default() -> Self {
        Self { seconds: 120, output_bytes: 32_768 }
    }
}
