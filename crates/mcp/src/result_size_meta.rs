//! Metadata of a tool that makes clients show its complete results.

use serde_json::{Value, json};

/// The largest value that clients accept.
const RESULT_CHARS_MAX: u32 = 500_000;

/// Tells the client to show a long result completely. Without this field, some clients write a
/// result of more than 50 000 characters to a file and show the model only the first 2 KB. The
/// guards would still count the complete page as read.
pub(crate) fn full_result_meta() -> Value {
    json!({ "anthropic/maxResultSizeChars": RESULT_CHARS_MAX })
}
