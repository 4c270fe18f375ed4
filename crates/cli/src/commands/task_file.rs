//! Says what is wrong with a task file.

use jackline_task::LoadError;

use crate::terminal::plain;

/// How much of what is wrong with a task is shown.
pub(super) const WRONG_CHARS_MAX: usize = 20_000;

/// The error in a form that is safe on a terminal.
pub(super) fn load_error(error: &LoadError) -> String {
    match error {
        LoadError::Read { .. } => error.to_string(),
        LoadError::Wrong(_) => {
            let text = error.to_string();
            let lines: Vec<String> =
                text.lines().map(|line| plain(line, WRONG_CHARS_MAX)).collect();
            format!("the task is wrong\n{}", lines.join("\n"))
        }
    }
}
