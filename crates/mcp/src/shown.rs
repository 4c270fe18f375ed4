//! What a tool says of itself so that the model is shown what the tool has said.

use serde_json::{Value, json};

/// The most characters that Claude Code takes.
const CHARS_MAX: u32 = 500_000;

/// Has Claude Code show a long result as it is. It would else put what has more than 50 000
/// characters into a file, and show the model the first 2 KB: of a page that counts as read.
pub(crate) fn shown_whole() -> Value {
    json!({ "anthropic/maxResultSizeChars": CHARS_MAX })
}
