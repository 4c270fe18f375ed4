//! The messages to the model when its output cannot be used.

use crate::limits::REQUEST_BYTES_MAX;
use crate::outcome::{CutOffDocument, DecodeMismatch, InvalidDocument, InvalidReason};

/// The last sentence of most requests.
const WRITE_AGAIN: &str = "Write the whole JSON document again, corrected, and nothing else.";

pub(crate) fn render_invalid(invalid: &InvalidDocument) -> String {
    let errors: Vec<String> = invalid.errors.iter().map(render_error).collect();
    let more = match invalid.errors_omitted {
        0 => String::new(),
        more => format!("- and {more} more\n"),
    };
    let mut text =
        format!("The output cannot be used: {}.\n{}{more}", invalid.reason, errors.concat());
    let example = invalid.example.as_ref().map(|example| {
        format!("The smallest valid document (its values only show the structure):\n{example}\n")
    });
    if let Some(example) = example
        && text.len() + example.len() + WRITE_AGAIN.len() <= REQUEST_BYTES_MAX
    {
        text.push_str(&example);
    }
    text.push_str(match invalid.reason {
        InvalidReason::TooLong | InvalidReason::TooDeep | InvalidReason::TooCostly => {
            "Write a smaller JSON document, and nothing else."
        }
        _ => WRITE_AGAIN,
    });
    text
}

fn render_error(error: &DecodeMismatch) -> String {
    let path = if error.path.is_empty() { "the top level" } else { error.path.as_str() };
    format!("- at {path}: expected {}, got {}\n", error.expected, error.got)
}

pub(crate) fn render_cut_off(cut: &CutOffDocument) -> String {
    let path = if cut.path.is_empty() { String::new() } else { format!(", inside {}", cut.path) };
    format!(
        "The output reached its length limit and was cut off after {} bytes{path}; it ends with \
         `{}`. No part of it was used. Write the JSON document again so that it fits: shorter texts, \
         fewer items, no words around it. If it cannot be shorter, split the work into several \
         documents.",
        cut.bytes, cut.tail,
    )
}
