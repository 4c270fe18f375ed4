//! Recognises results that say that nothing was found.
//!
//! Only short results are examined, so the work is bounded. A result that is not surely empty
//! counts as content: guidance after a result with content would mislead the agent.

use serde_json::Value;

use crate::json::parse_strict;

/// The longest document that is examined.
const DOCUMENT_BYTES_MAX: usize = 4096;

/// The longest sentence that is examined.
const SENTENCE_BYTES_MAX: usize = 240;

/// How sentences begin that say that nothing was found.
const BEGINNINGS: [&str; 14] = [
    "no match",
    "no file",
    "no result",
    "no entries",
    "no items",
    "nothing found",
    "nothing was found",
    "0 match",
    "0 file",
    "0 result",
    "found 0 ",
    "(empty",
    "empty directory",
    "the directory is empty",
];

/// Fields that describe the request or the run, and not what was found.
const DESCRIBING_FIELDS: [&str; 14] = [
    "base",
    "cwd",
    "dir",
    "directory",
    "filter",
    "glob",
    "include",
    "mode",
    "path",
    "pattern",
    "query",
    "regex",
    "root",
    "type",
];

/// Beginnings of the names of fields that count what was found.
const COUNTING_FIELDS: [&str; 6] = ["count", "files", "matches", "num", "results", "total"];

/// Whether a result says that nothing was found.
pub(super) fn is_empty_result(text: &str) -> bool {
    let text = text.trim();
    match text.as_bytes().first() {
        None => true,
        Some(b'{' | b'[') if text.len() <= DOCUMENT_BYTES_MAX => parse_strict(text.as_bytes())
            .is_ok_and(|document| content_of(&document) == Found::Nothing),
        Some(_) => is_empty_sentence(text),
    }
}

/// A sentence with a second part gives guidance of its own.
fn is_empty_sentence(text: &str) -> bool {
    if text.len() > SENTENCE_BYTES_MAX || text.contains('\n') {
        return false;
    }
    let sentence = text.to_ascii_lowercase();
    let is_one = !sentence.contains(". ") && !sentence.contains("; ");
    let says_directory = sentence.starts_with("directory ") && sentence.ends_with("is empty.");
    is_one && (says_directory || BEGINNINGS.iter().any(|start| sentence.starts_with(start)))
}

/// What a part of a document says about the findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    /// Nothing in either direction.
    Unstated,
    /// Nothing was found.
    Nothing,
    /// Something was found.
    Something,
}

fn content_of(value: &Value) -> Found {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Found::Unstated,
        Value::String(text) if text.trim().is_empty() => Found::Nothing,
        Value::String(_) => Found::Something,
        Value::Array(items) if items.is_empty() => Found::Nothing,
        Value::Array(items) => {
            // A list of text items, as MCP servers return it, may contain only empty texts.
            items
                .iter()
                .map(content_of)
                .max()
                .filter(|found| *found == Found::Nothing)
                .unwrap_or(Found::Something)
        }
        Value::Object(fields) if fields.is_empty() => Found::Nothing,
        Value::Object(fields) => {
            let field =
                |(name, value): (&alloc::string::String, &Value)| content_of_field(name, value);
            fields.iter().map(field).max().unwrap_or(Found::Nothing)
        }
    }
}

fn content_of_field(name: &str, value: &Value) -> Found {
    let name = name.to_ascii_lowercase();
    match value {
        Value::String(_) if DESCRIBING_FIELDS.contains(&name.as_str()) => Found::Unstated,
        Value::Number(number) if COUNTING_FIELDS.iter().any(|start| name.starts_with(start)) => {
            if number.as_u64() == Some(0) {
                Found::Nothing
            } else {
                Found::Something
            }
        }
        value => content_of(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_without_findings_are_empty() {
        for text in [
            "",
            " \n",
            "[]",
            "{}",
            "No matches found",
            "No files found.",
            "Found 0 matches for `x`",
            "0 results",
            r#"No matches found for pattern "a.b" in path "src" (filter: "*.rs")."#,
            "Directory /w/src is empty.",
            r#"{"mode":"files_with_matches","numFiles":0,"filenames":[],"durationMs":7}"#,
            r#"{"matches":[],"truncated":false,"pattern":"two words"}"#,
            r#"{"content":""}"#,
            r#"[{"type":"text","text":""}]"#,
        ] {
            assert!(is_empty_result(text), "{text}");
        }
    }

    #[test]
    fn results_with_content_or_guidance_are_not_empty() {
        for text in [
            "0",
            "done",
            "no",
            "Normal text",
            "src/a.rs:3: no matches found",
            "No matches found. Did you mean `Foo`?",
            "No matches found\nsrc/a.rs",
            "[no matches found. Similar names: `a`.]",
            "{\"ok\":true}",
            r#"{"mode":"count","numFiles":1,"filenames":[]}"#,
            r#"{"mode":"content","filenames":[],"content":"a.rs:3"}"#,
            r#"{"matches":[],"guidance":"try `b`"}"#,
            r#"{"matches":[{"path":"a"}]}"#,
            "[1]",
            "[not json",
        ] {
            assert!(!is_empty_result(text), "{text}");
        }
    }
}
