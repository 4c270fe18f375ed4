//! Finds the JSON document in a text with reasoning and prose around it.
//!
//! Reasoning at the start is removed. Then this finds every value in the text, because
//! a value in prose may be an example, a quotation or a first draft. If two values
//! differ, the text is ambiguous.

use serde_json::Value;

use crate::limits::{BRACKETS_TRIED_MAX, CANDIDATES_MAX};
use crate::outcome::{InvalidReason, TextRepair};
use crate::read::{JsonReadFailure, JsonReadMode, JsonReader, ReadDocument};

const REASONING_TAGS: [&str; 6] =
    ["think", "thinking", "thought", "reasoning", "reflection", "scratchpad"];

/// The result of reading a text with prose.
pub(crate) enum ExtractionResult {
    /// One value.
    Document(Box<ReadDocument>),
    /// No value, and the failure. Also the start of the broken document, if there is one.
    Failed(JsonReadFailure, Option<usize>),
}

/// The text behind the reasoning at its start, and whether there was any reasoning.
/// `None` if the reasoning never ends, so that there is no answer.
pub(crate) fn skip_reasoning(text: &str) -> Option<(&str, bool)> {
    let mut rest = text;
    let mut any = false;
    loop {
        let start = rest.trim_start();
        if let Some((open, close)) = reasoning_tags(start) {
            let (_, after) = split_once_ignoring_case(start.get(open..)?, &close)?;
            rest = after;
        } else if !start.starts_with(['{', '[', '"'])
            && let Some((_, after)) = split_unopened_reasoning(start)
        {
            rest = after;
        } else {
            return Some((rest, any));
        }
        any = true;
    }
}

/// The length of the tag that opens reasoning here, and its closing tag.
fn reasoning_tags(text: &str) -> Option<(usize, String)> {
    for name in REASONING_TAGS {
        for (open, shut) in [('<', '>'), ('[', ']')] {
            let mark = format!("{open}{name}{shut}");
            if text.get(..mark.len()).is_some_and(|head| head.eq_ignore_ascii_case(&mark)) {
                return Some((mark.len(), format!("{open}/{name}{shut}")));
            }
        }
    }
    None
}

/// Splits at the end of reasoning without an opening tag: chat templates may consume that
/// tag.
fn split_unopened_reasoning(text: &str) -> Option<(&str, &str)> {
    ["</think>", "</thinking>"].iter().find_map(|mark| {
        let (thought, after) = text.split_once(mark)?;
        (!thought.contains(&mark.replace('/', ""))).then_some((thought, after))
    })
}

fn split_once_ignoring_case<'t>(text: &'t str, mark: &str) -> Option<(&'t str, &'t str)> {
    let first = mark.chars().next()?;
    text.match_indices(first).find_map(|(at, _)| {
        let head = text.get(at..at + mark.len())?;
        head.eq_ignore_ascii_case(mark).then(|| text.get(..at).zip(text.get(at + mark.len()..)))?
    })
}

/// The content of a code fence, if the whole text is one fence.
pub(crate) fn fence_content(text: &str) -> Option<&str> {
    let text = text.trim();
    let mark = ["```", "~~~"].into_iter().find(|mark| text.starts_with(mark))?;
    let (_, inside) = text.split_once('\n')?;
    let inside = inside.trim_end().strip_suffix(mark)?;
    (!inside.contains(mark)).then_some(inside)
}

/// A value in the text, and where it starts.
struct CandidateDocument {
    read: ReadDocument,
    start: usize,
    language: FenceLanguage,
}

/// The language that the fence around a value names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FenceLanguage {
    None,
    Json,
    Other,
}

/// Finds the one value in a text.
pub(crate) fn extract(text: &str, manner: JsonReadMode) -> ExtractionResult {
    if is_member_first(text) {
        let start = text.len() - text.trim_start().len();
        return match JsonReader::new(text, start, manner).read_members() {
            Ok(read) => choose_document(
                text,
                vec![CandidateDocument { read, start, language: FenceLanguage::None }],
            ),
            Err(stop) => ExtractionResult::Failed(stop, Some(start)),
        };
    }
    let mut found: Vec<CandidateDocument> = Vec::new();
    let (mut at, mut tried) = (0, 0);
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find(['{', '['])) {
        let start = at + offset;
        match JsonReader::new(text, start, manner).read_document() {
            Ok(read) => {
                at = read.end;
                found.push(CandidateDocument {
                    read,
                    start,
                    language: fence_language(text, start),
                });
            }
            Err(stop) if is_final(text, start, &stop) => {
                return ExtractionResult::Failed(stop, Some(start));
            }
            Err(stop) => at = stop.at.max(start + 1),
        }
        tried += 1;
        if found.len() > CANDIDATES_MAX || tried > BRACKETS_TRIED_MAX {
            return ExtractionResult::Failed(
                ambiguous_failure("one JSON document", "too many values"),
                None,
            );
        }
    }
    choose_document(text, found)
}

/// Whether a failure means that the document is broken, and not that the bracket is
/// only a bracket in prose.
fn is_final(text: &str, start: usize, stop: &JsonReadFailure) -> bool {
    let read = text.get(start..stop.at).unwrap_or_default();
    let nested = text.get(stop.at..).is_some_and(|rest| rest.starts_with(['{', '[']));
    let words = !read.trim_matches(['{', '[', ' ', '\n', '\t', '\r']).is_empty();
    let hard = !matches!(stop.reason, InvalidReason::Broken | InvalidReason::Ambiguous);
    hard || stop.is_document || (nested && words)
}

fn is_member_first(text: &str) -> bool {
    let Some(rest) = text.trim_start().strip_prefix('"') else { return false };
    rest.split_once('"').is_some_and(|(key, rest)| {
        key.len() < 200 && !key.contains(['\n', '{', '[']) && rest.trim_start().starts_with(':')
    })
}

/// Chooses the document among the values, if the choice is clear.
fn choose_document(text: &str, mut found: Vec<CandidateDocument>) -> ExtractionResult {
    if found.iter().any(|one| one.read.value.is_object()) {
        found.retain(|one| !is_footnote(&one.read.value));
    }
    if found.iter().any(|one| is_fragment(text, one)) || has_member_in_prose(text, &found) {
        let got = "parts of a document, or text that may belong to it";
        return ExtractionResult::Failed(ambiguous_failure("one JSON document", got), None);
    }
    if found.iter().any(|one| one.language == FenceLanguage::Json) {
        found.retain(|one| one.language != FenceLanguage::Other);
    }
    let mut found = found.into_iter();
    let Some(mut first) = found.next() else {
        return ExtractionResult::Failed(no_json_failure(), None);
    };
    if found.any(|other| other.read.value != first.read.value) {
        return ExtractionResult::Failed(
            ambiguous_failure("one JSON document", "several different ones"),
            None,
        );
    }
    let before = text.get(..first.start).unwrap_or_default().trim();
    let after = text.get(first.read.end..).unwrap_or_default().trim();
    let fences = ["```", "~~~", "```json", "```JSON", ""];
    if first.language != FenceLanguage::None || before.starts_with("```") {
        first.read.repairs.push(TextRepair::Fence);
    }
    if !fences.contains(&before) || !fences.contains(&after) {
        if is_empty(&first.read.value) && !before.ends_with(':') {
            return ExtractionResult::Failed(
                ambiguous_failure("a JSON document", "only empty brackets in prose"),
                None,
            );
        }
        first.read.repairs.push(TextRepair::Prose);
    }
    ExtractionResult::Document(Box::new(first.read))
}

/// Whether a value is a pair of empty brackets, which prose may contain too.
fn is_empty(value: &Value) -> bool {
    *value == Value::Array(Vec::new()) || value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Whether a value is a footnote mark of prose, such as `[3]`.
fn is_footnote(value: &Value) -> bool {
    value.as_array().is_some_and(|items| matches!(items.as_slice(), [Value::Number(_)]))
}

/// The language of the last fence before a value, if that fence is still open.
fn fence_language(text: &str, start: usize) -> FenceLanguage {
    let before = text.get(..start).unwrap_or_default();
    let mut fences = before.rmatch_indices("```");
    let Some((at, _)) = fences.next() else { return FenceLanguage::None };
    if fences.count() % 2 == 1 {
        return FenceLanguage::None;
    }
    let tag = before.get(at + 3..).unwrap_or_default();
    let tag = tag.split(|sign: char| !sign.is_ascii_alphanumeric()).next().unwrap_or_default();
    match tag.to_ascii_lowercase().as_str() {
        "json" | "jsonc" | "json5" => FenceLanguage::Json,
        "" => FenceLanguage::None,
        _ => FenceLanguage::Other,
    }
}

/// Whether a value looks like a part of a larger document that could not be read.
fn is_fragment(text: &str, found: &CandidateDocument) -> bool {
    let quotes = ['"', '\'', '”', '’'];
    let before = text.get(..found.start).unwrap_or_default().trim_end();
    let after = text.get(found.read.end..).unwrap_or_default();
    let line = after.lines().next().unwrap_or_default();
    let after = after.trim_start();
    // If a bracket was inserted and more text follows, the end of the document is unclear.
    let inserted = found.read.repairs.contains(&TextRepair::MissingClose);
    let more = !line.trim().is_empty() && !line.trim().starts_with("```");
    let unclear_end = inserted && (more || after.starts_with(['}', ']', ',']));
    let after = after.trim_start_matches(['}', ']']).trim_start();
    let preceded =
        before.strip_suffix([':', ',']).is_some_and(|rest| rest.trim_end().ends_with(quotes));
    let wrapped = before.ends_with('"') && after.starts_with('"');
    let followed = match after.chars().next() {
        Some(':') => true,
        Some('"') => !wrapped,
        Some(',') => {
            let next = after.get(1..).unwrap_or_default().trim_start();
            let words = ["true", "false", "null"].iter().any(|word| next.starts_with(word));
            words
                || next.starts_with(['"', '{', '[', '-'])
                || next.starts_with(|c: char| c.is_ascii_digit())
        }
        _ => false,
    };
    preceded || followed || unclear_end
}

/// Whether the text between the values contains a key with a colon, which may belong to
/// one of the values.
fn has_member_in_prose(text: &str, found: &[CandidateDocument]) -> bool {
    let ends = found.iter().map(|one| one.read.end);
    let starts = found.iter().map(|one| one.start).chain([text.len()]);
    [0].into_iter().chain(ends).zip(starts).any(|(end, start)| {
        let prose = text.get(end..start).unwrap_or_default();
        prose.match_indices('"').any(|(at, _)| {
            prose.get(at + 1..).is_some_and(|rest| rest.trim_start().starts_with(':'))
        })
    })
}

fn ambiguous_failure(expected: &'static str, got: &str) -> JsonReadFailure {
    let got = got.to_owned();
    JsonReadFailure {
        reason: InvalidReason::Ambiguous,
        at: 0,
        path: String::new(),
        expected,
        got,
        is_document: true,
    }
}

fn no_json_failure() -> JsonReadFailure {
    let got = "text without JSON".to_owned();
    let expected = "a JSON document";
    JsonReadFailure {
        reason: InvalidReason::NoJson,
        at: 0,
        path: String::new(),
        expected,
        got,
        is_document: false,
    }
}
