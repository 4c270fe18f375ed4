//! What the model is told when its output can't be used.

use crate::decoded::{CutOff, Invalid, Mismatch, Reason};
use crate::limits::REQUEST_BYTES_MAX;

/// What every request ends with.
const AGAIN: &str = "Write the whole JSON document again, corrected, and nothing else.";

pub(crate) fn render_invalid(invalid: &Invalid) -> String {
    let errors: Vec<String> = invalid.errors.iter().map(render_error).collect();
    let more = match invalid.more {
        0 => String::new(),
        more => format!("- and {more} more\n"),
    };
    let mut text =
        format!("The output can't be used: {}.\n{}{more}", invalid.reason, errors.concat());
    let example = invalid.example.as_ref().map(|example| {
        format!("The smallest valid document, whose values only show the shape:\n{example}\n")
    });
    if let Some(example) = example
        && text.len() + example.len() + AGAIN.len() <= REQUEST_BYTES_MAX
    {
        text.push_str(&example);
    }
    text.push_str(match invalid.reason {
        Reason::TooLong | Reason::TooDeep | Reason::TooCostly => {
            "Write a smaller JSON document, and nothing else."
        }
        _ => AGAIN,
    });
    text
}

fn render_error(error: &Mismatch) -> String {
    let place = if error.path.is_empty() { "the whole" } else { error.path.as_str() };
    format!("- at {place}: expected {}, got {}\n", error.expected, error.got)
}

pub(crate) fn render_cut_off(cut: &CutOff) -> String {
    let place = if cut.path.is_empty() { String::new() } else { format!(", inside {}", cut.path) };
    format!(
        "The output reached its length limit and was cut off after {} bytes{place}; it ends with \
         `{}`. Nothing of it was used. Write the JSON document again so that it fits: shorter texts, \
         fewer items, no words around it. If it can't be shorter, split the work into several \
         documents.",
        cut.bytes, cut.tail,
    )
}
