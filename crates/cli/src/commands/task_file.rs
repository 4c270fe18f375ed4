//! Error messages about task files.

use jackline_task::LoadError;

use crate::terminal::sanitize;

/// The maximum length of an error message about a task.
pub(super) const ERROR_CHARS_MAX: usize = 20_000;

/// The error as a text that is safe for a terminal.
pub(super) fn describe_load_error(error: &LoadError) -> String {
    match error {
        LoadError::Read { .. } => error.to_string(),
        LoadError::Wrong(_) => {
            let text = error.to_string();
            let lines: Vec<String> =
                text.lines().map(|line| sanitize(line, ERROR_CHARS_MAX)).collect();
            format!("invalid task\n{}", lines.join("\n"))
        }
    }
}
