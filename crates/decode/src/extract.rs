//! Finds the document in what a model wrote around it.
//!
//! Thoughts at the beginning are left out. Then every value in the text is looked
//! for, because one that stands in prose may be an example, a quotation or a first
//! draft: if there are two that differ, nobody knows which one was meant.

use serde_json::Value;

use crate::decoded::{Reason, Repair};
use crate::limits::{FOUND_MAX, TRIED_MAX};
use crate::read::{Manner, Read, Reader, Stop};

const THINK: [&str; 6] = ["think", "thinking", "thought", "reasoning", "reflection", "scratchpad"];

/// What reading a text with prose came to.
pub(crate) enum Extracted {
    /// One value.
    One(Box<Read>),
    /// None, and why. With the place where the document that broke begins.
    Stopped(Stop, Option<usize>),
}

/// The text after the thoughts at its beginning, and whether there were any.
/// `None` if they never end, so that there is no answer.
pub(crate) fn after_thoughts(text: &str) -> Option<(&str, bool)> {
    let mut rest = text;
    let mut any = false;
    loop {
        let start = rest.trim_start();
        if let Some((open, close)) = thought_marks(start) {
            let (_, after) = split_once_ignoring_case(start.get(open..)?, &close)?;
            rest = after;
        } else if !start.starts_with(['{', '[', '"'])
            && let Some((_, after)) = unopened(start)
        {
            rest = after;
        } else {
            return Some((rest, any));
        }
        any = true;
    }
}

/// How long the mark is that opens a thought here, and which one closes it.
fn thought_marks(text: &str) -> Option<(usize, String)> {
    for name in THINK {
        for (open, shut) in [('<', '>'), ('[', ']')] {
            let mark = format!("{open}{name}{shut}");
            if text.get(..mark.len()).is_some_and(|head| head.eq_ignore_ascii_case(&mark)) {
                return Some((mark.len(), format!("{open}/{name}{shut}")));
            }
        }
    }
    None
}

/// A thought whose opening mark is not part of the answer, as templates have it.
fn unopened(text: &str) -> Option<(&str, &str)> {
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

/// What is inside, if the whole text is one code fence.
pub(crate) fn unfenced(text: &str) -> Option<&str> {
    let text = text.trim();
    let mark = ["```", "~~~"].into_iter().find(|mark| text.starts_with(mark))?;
    let (_, inside) = text.split_once('\n')?;
    let inside = inside.trim_end().strip_suffix(mark)?;
    (!inside.contains(mark)).then_some(inside)
}

/// A value and the place where it begins.
struct Found {
    read: Read,
    start: usize,
    language: Language,
}

/// What the fence around a value says it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    None,
    Json,
    Other,
}

/// Looks for the one value in a text.
pub(crate) fn extract(text: &str, manner: Manner) -> Extracted {
    if starts_with_member(text) {
        let start = text.len() - text.trim_start().len();
        return match Reader::new(text, start, manner).read_members() {
            Ok(read) => settle(text, vec![Found { read, start, language: Language::None }]),
            Err(stop) => Extracted::Stopped(stop, Some(start)),
        };
    }
    let mut found: Vec<Found> = Vec::new();
    let (mut at, mut tried) = (0, 0);
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find(['{', '['])) {
        let start = at + offset;
        match Reader::new(text, start, manner).read() {
            Ok(read) => {
                at = read.end;
                found.push(Found { read, start, language: language(text, start) });
            }
            Err(stop) if is_final(text, start, &stop) => {
                return Extracted::Stopped(stop, Some(start));
            }
            Err(stop) => at = stop.at.max(start + 1),
        }
        tried += 1;
        if found.len() > FOUND_MAX || tried > TRIED_MAX {
            return Extracted::Stopped(ambiguous("one JSON document", "many"), None);
        }
    }
    settle(text, found)
}

/// Whether a failure says that the document is broken, and not that a bracket in
/// prose is a bracket in prose.
fn is_final(text: &str, start: usize, stop: &Stop) -> bool {
    let read = text.get(start..stop.at).unwrap_or_default();
    let nested = text.get(stop.at..).is_some_and(|rest| rest.starts_with(['{', '[']));
    let words = !read.trim_matches(['{', '[', ' ', '\n', '\t', '\r']).is_empty();
    let hard = !matches!(stop.reason, Reason::Broken | Reason::Ambiguous);
    hard || stop.committed || (nested && words)
}

fn starts_with_member(text: &str) -> bool {
    let Some(rest) = text.trim_start().strip_prefix('"') else { return false };
    rest.split_once('"').is_some_and(|(key, rest)| {
        key.len() < 200 && !key.contains(['\n', '{', '[']) && rest.trim_start().starts_with(':')
    })
}

/// Decides which of the values is meant, if that can be said.
fn settle(text: &str, mut found: Vec<Found>) -> Extracted {
    if found.iter().any(|one| one.read.value.is_object()) {
        found.retain(|one| !is_footnote(&one.read.value));
    }
    if found.iter().any(|one| torn_off(text, one)) || member_in_prose(text, &found) {
        let got = "pieces of one, or text that may belong to it";
        return Extracted::Stopped(ambiguous("one JSON document", got), None);
    }
    if found.iter().any(|one| one.language == Language::Json) {
        found.retain(|one| one.language != Language::Other);
    }
    let mut found = found.into_iter();
    let Some(mut first) = found.next() else {
        return Extracted::Stopped(no_json(), None);
    };
    if found.any(|other| other.read.value != first.read.value) {
        return Extracted::Stopped(ambiguous("one JSON document", "several that differ"), None);
    }
    let before = text.get(..first.start).unwrap_or_default().trim();
    let after = text.get(first.read.end..).unwrap_or_default().trim();
    let fences = ["```", "~~~", "```json", "```JSON", ""];
    if first.language != Language::None || before.starts_with("```") {
        first.read.repairs.push(Repair::Fence);
    }
    if !fences.contains(&before) || !fences.contains(&after) {
        if is_empty(&first.read.value) && !before.ends_with(':') {
            return Extracted::Stopped(
                ambiguous("a JSON document", "empty brackets in prose"),
                None,
            );
        }
        first.read.repairs.push(Repair::Prose);
    }
    Extracted::One(Box::new(first.read))
}

/// Brackets with nothing in them, which prose has, too.
fn is_empty(value: &Value) -> bool {
    *value == Value::Array(Vec::new()) || value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// A mark like `[3]` in prose.
fn is_footnote(value: &Value) -> bool {
    value.as_array().is_some_and(|items| matches!(items.as_slice(), [Value::Number(_)]))
}

/// What the last fence before a value says it is, if it is still open.
fn language(text: &str, start: usize) -> Language {
    let before = text.get(..start).unwrap_or_default();
    let mut fences = before.rmatch_indices("```");
    let Some((at, _)) = fences.next() else { return Language::None };
    if fences.count() % 2 == 1 {
        return Language::None;
    }
    let tag = before.get(at + 3..).unwrap_or_default();
    let tag = tag.split(|sign: char| !sign.is_ascii_alphanumeric()).next().unwrap_or_default();
    match tag.to_ascii_lowercase().as_str() {
        "json" | "jsonc" | "json5" => Language::Json,
        "" => Language::None,
        _ => Language::Other,
    }
}

/// Whether a value looks like a piece of something larger that could not be read.
fn torn_off(text: &str, found: &Found) -> bool {
    let quotes = ['"', '\'', '”', '’'];
    let before = text.get(..found.start).unwrap_or_default().trim_end();
    let after = text.get(found.read.end..).unwrap_or_default();
    let line = after.lines().next().unwrap_or_default();
    let after = after.trim_start();
    // A bracket that was put in, and more after the end: then it is unclear where that is.
    let mended = found.read.repairs.contains(&Repair::MissingClose);
    let more = !line.trim().is_empty() && !line.trim().starts_with("```");
    let moved = mended && (more || after.starts_with(['}', ']', ',']));
    let after = after.trim_start_matches(['}', ']']).trim_start();
    let led = before.strip_suffix([':', ',']).is_some_and(|rest| rest.trim_end().ends_with(quotes));
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
    led || followed || moved
}

/// Whether the text between the values has a key with a colon, which may belong to one.
fn member_in_prose(text: &str, found: &[Found]) -> bool {
    let ends = found.iter().map(|one| one.read.end);
    let starts = found.iter().map(|one| one.start).chain([text.len()]);
    [0].into_iter().chain(ends).zip(starts).any(|(end, start)| {
        let prose = text.get(end..start).unwrap_or_default();
        prose.match_indices('"').any(|(at, _)| {
            prose.get(at + 1..).is_some_and(|rest| rest.trim_start().starts_with(':'))
        })
    })
}

fn ambiguous(expected: &'static str, got: &str) -> Stop {
    let got = got.to_owned();
    Stop { reason: Reason::Ambiguous, at: 0, path: String::new(), expected, got, committed: true }
}

fn no_json() -> Stop {
    let got = "text without one".to_owned();
    let expected = "a JSON document";
    Stop { reason: Reason::NoJson, at: 0, path: String::new(), expected, got, committed: false }
}
