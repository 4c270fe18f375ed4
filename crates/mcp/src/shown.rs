//! What a tool says of itself so that the model is shown what the tool has said.

use serde_json::{Value, json};

/// The most characters that a client takes which knows the field.
const CHARS_MAX: u32 = 500_000;

/// Has a client show a long result as it is. Without this field, clients that know it put what has
/// more than 50 000 characters into a file and show the model the first 2 KB, of a page that counts
/// as read.
pub(crate) fn shown_whole() -> Value {
    json!({ "anthropic/maxResultSizeChars": CHARS_MAX })
}
