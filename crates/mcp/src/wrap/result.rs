//! The result of a tool: what the guard is told of it, and what is added to it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jackline_engine::Status;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::fields;
use super::ledger::Open;
use super::lossy::lossy;
use super::message::{answer, push_to_array, push_to_object, range_in};

/// How much of a word of the server is repeated in one of ours.
const WORD_CHARS_MAX: usize = 64;

/// The field of structured content that the guards speak in.
pub(super) const FEEDBACK: &str = "feedback";

/// Fields that say something about a result, and nothing that a tool has found.
const ABOUT: [&str; 3] = ["_meta", "isError", "resultType"];

/// A result as the server sent it.
#[derive(Debug, Deserialize)]
pub(super) struct ToolResult<'a> {
    /// All of it.
    #[serde(skip)]
    raw: &'a str,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "structuredContent")]
    pub(super) structured: Option<&'a RawValue>,
    #[serde(default, rename = "isError")]
    is_error: Option<bool>,
    /// How far the call has come, in the protocol without a handshake.
    #[serde(borrow, default, rename = "resultType")]
    stage: Option<Cow<'a, str>>,
    /// A call that goes on behind its answer, in the version before.
    #[serde(borrow, default)]
    task: Option<&'a RawValue>,
}

/// One item of a result. What is no item of the protocol is a text: the bytes of the server.
#[derive(Debug)]
pub(super) struct Item<'a> {
    pub(super) raw: &'a str,
    known: Option<Known<'a>>,
}

/// An item that can be read.
#[derive(Debug, Deserialize)]
struct Known<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "mimeType")]
    mime: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    resource: Option<Embedded<'a>>,
}

#[derive(Debug, Deserialize)]
struct Embedded<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

impl Known<'_> {
    fn text(&self) -> Option<&str> {
        self.text.as_deref().filter(|_| self.kind == "text")
    }

    /// What the model is shown of it, as far as that is text.
    fn said(&self) -> Option<&str> {
        self.text().or_else(|| self.resource.as_ref()?.text.as_deref())
    }
}

impl<'a> Item<'a> {
    fn of(raw: &'a RawValue) -> Self {
        let raw = raw.get();
        let known = serde_json::from_str(raw).ok().filter(|_| raw.starts_with('{'));
        Self { raw, known }
    }

    /// The text of an item that is text, and the bytes of one that nobody can read.
    pub(super) fn text(&self) -> Option<&str> {
        self.known.as_ref().map_or(Some(self.raw), Known::text)
    }

    /// How much of a context it takes.
    pub(super) fn size(&self) -> usize {
        self.text().unwrap_or(self.raw).len()
    }

    /// What an item is that is no text.
    pub(super) fn describe(&self) -> String {
        let word = |word: &str| word.chars().take(WORD_CHARS_MAX).collect::<String>();
        let known = self.known.as_ref();
        let kind = known.map_or_else(|| "unreadable".to_owned(), |known| word(&known.kind));
        let mime = known.and_then(|known| known.mime.as_deref());
        let mime = mime.map_or_else(String::new, |mime| format!(" {}", word(mime)));
        format!("[{kind}{mime}, {} bytes]", self.raw.len())
    }

    /// What it says, for the guard. One with half a character in it says the rest.
    fn said(&self) -> String {
        if let Some(known) = &self.known {
            return known.said().map_or_else(|| self.describe(), ToOwned::to_owned);
        }
        let readable = lossy(self.raw);
        let known: Option<Known<'_>> = serde_json::from_str(&readable).ok();
        let said = known.as_ref().and_then(Known::said).map(ToOwned::to_owned);
        said.unwrap_or_else(|| readable.into_owned())
    }
}

impl<'a> ToolResult<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let parsed = serde_json::from_str(text).ok().filter(|_| text.starts_with('{'));
        parsed.map(|parsed| Self { raw: text, ..parsed })
    }

    /// Its items. What has none where they belong is an item as a whole.
    pub(super) fn items(&self) -> Vec<Item<'a>> {
        let Some(content) = self.content else {
            let whole = Item { raw: self.raw, known: None };
            return if self.structured.is_some() { Vec::new() } else { vec![whole] };
        };
        let items: Option<Vec<&'a RawValue>> = serde_json::from_str(content.get()).ok();
        items.unwrap_or_else(|| vec![content]).into_iter().map(Item::of).collect()
    }

    /// How much of a context it takes.
    pub(super) fn size(&self, items: &[Item<'_>]) -> usize {
        let parts = [self.content, self.structured].into_iter().flatten();
        let rest = parts.map(|raw| raw.get().len()).fold(self.raw.len(), usize::saturating_sub);
        let structured = self.structured.map_or(0, |raw| raw.get().len());
        let rest = if self.is_readable() { rest } else { 0 };
        items.iter().map(Item::size).sum::<usize>() + structured + rest
    }

    /// How the call ended.
    pub(super) fn status(&self) -> Status {
        match self.stage.as_deref() {
            // It comes again with what the server wants to know first.
            Some("input_required") => Status::Cancelled,
            _ if self.is_error() => Status::Error,
            _ => Status::Ok,
        }
    }

    /// Whether the server says that it failed.
    pub(super) fn is_error(&self) -> bool {
        self.is_error == Some(true)
    }

    /// Whether the work goes on behind the result.
    pub(super) fn is_background(&self) -> bool {
        self.task.is_some() || self.stage.as_deref() == Some("task")
    }

    /// Whether it has a place for what a tool says.
    pub(super) fn is_readable(&self) -> bool {
        self.content.is_some() || self.structured.is_some()
    }

    /// Whether a tool says nothing by it.
    fn is_silent(&self) -> bool {
        let fields: BTreeMap<String, &RawValue> =
            serde_json::from_str(self.raw).unwrap_or_default();
        self.status() == Status::Cancelled
            || self.is_background()
            || fields.keys().all(|key| ABOUT.contains(&key.as_str()))
    }
}

/// What was said, for the guard.
pub(super) fn said(result: &ToolResult<'_>, items: &[Item<'_>]) -> String {
    if !result.is_readable() && result.is_silent() {
        return String::new();
    }
    let said = items.iter().map(Item::said).collect::<Vec<String>>().join("\n");
    match result.structured {
        Some(structured) if said.is_empty() => structured.get().to_owned(),
        Some(structured) if fields::say_more(structured.get(), &said) => {
            format!("{said}\n{}", lossy(structured.get()))
        }
        _ => said,
    }
}

/// An item of text.
pub(super) fn text_item(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Adds words to a result, where they are read: some clients show the model the text, some
/// the fields. `fields` says whether those may be more than the server gave. Whether there
/// was a place for words.
pub(super) fn add_words(result: &mut String, words: &str, fields: bool) -> bool {
    let in_fields = fields && add_field(result, words);
    add_text(result, words) || in_fields
}

fn add_field(result: &mut String, words: &str) -> bool {
    let structured = ToolResult::parse(result).and_then(|it| it.structured);
    let Some(structured) = structured else { return false };
    let fields: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(structured.get()).ok();
    if fields.is_none_or(|fields| fields.contains_key(FEEDBACK)) {
        return false;
    }
    let at = range_in(result, structured);
    push_to_object(result, &at, FEEDBACK, &Value::from(words).to_string());
    true
}

fn add_text(result: &mut String, text: &str) -> bool {
    let content =
        ToolResult::parse(result).and_then(|it| it.content.map(|raw| range_in(result, raw)));
    let Some(content) =
        content.filter(|at| result.get(at.start..).is_some_and(|it| it.starts_with('[')))
    else {
        return false;
    };
    push_to_array(result, &content, &text_item(text).to_string());
    true
}

/// An answer of our own to a call.
pub(super) fn own_answer(open: &Open, content: Vec<Value>, is_error: bool) -> Map<String, Value> {
    let mut result = Map::new();
    result.insert("content".to_owned(), Value::Array(content));
    result.insert("isError".to_owned(), Value::Bool(is_error));
    if open.stateless {
        result.insert("resultType".to_owned(), json!("complete"));
    }
    result
}

/// A refusal: the server was not asked.
pub(super) fn refusal(open: &Open, text: &str) -> String {
    answer(&open.id, &Value::Object(own_answer(open, vec![text_item(text)], true)).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_is_the_last_item_and_the_rest_stays_as_it_is() {
        let mut result =
            r#"{ "content":[{"type":"text","text":"\u0061"}], "isError" : false }"#.to_owned();
        assert!(add_text(&mut result, "x\"y"));
        assert_eq!(
            result,
            r#"{ "content":[{"type":"text","text":"\u0061"},{"text":"x\"y","type":"text"}], "isError" : false }"#
        );
        for odd in [r#"{"structuredContent":{}}"#, r#"{"content":3}"#, "3"] {
            let mut text = odd.to_owned();
            assert!(!add_text(&mut text, "x"));
            assert_eq!(text, odd);
        }
    }

    #[test]
    fn feedback_is_said_in_the_fields_too_unless_those_are_promised() {
        let sent = r#"{"content":[],"structuredContent":{ "a":1 }}"#;
        let with = |fields: bool, sent: &str| {
            let mut result = sent.to_owned();
            assert!(add_words(&mut result, "slow", fields));
            result
        };
        let item = r#"{"text":"slow","type":"text"}"#;
        assert_eq!(
            with(true, sent),
            format!(r#"{{"content":[{item}],"structuredContent":{{ "a":1 ,"feedback":"slow"}}}}"#)
        );
        let promised = format!(r#"{{"content":[{item}],"structuredContent":{{ "a":1 }}}}"#);
        assert_eq!(with(false, sent), promised);
        let own = r#"{"content":[],"structuredContent":{"feedback":1}}"#;
        assert!(with(true, own).ends_with(r#"{"feedback":1}}"#));
        assert_eq!(
            with(true, r#"{"structuredContent":{}}"#),
            r#"{"structuredContent":{"feedback":"slow"}}"#
        );
    }

    #[test]
    fn what_no_client_could_read_is_a_text_all_the_same() {
        let items = |text: &str| {
            let result = ToolResult::parse(text).unwrap();
            let items = result.items();
            let shown = items.iter().map(|item| item.text().unwrap().to_owned()).collect();
            (said(&result, &items), shown)
        };
        let item = r#"{"type":"text","text":"a\ud83db"}"#;
        let half = format!(r#"{{"content":[{item}]}}"#);
        assert_eq!(items(&half), ("a\u{fffd}b".to_owned(), vec![item.to_owned()]));
        for item in [r#"{"text":"a"}"#, r#"{"type":"text","text":123}"#, r#""a""#, "[1]"] {
            let text = format!(r#"{{"content":[{item}]}}"#);
            assert_eq!(items(&text), (item.to_owned(), vec![item.to_owned()]), "{item}");
        }
        for content in [r#""a""#, r#"{"a":1}"#, "7"] {
            let text = format!(r#"{{"content":{content}}}"#);
            assert_eq!(items(&text), (content.to_owned(), vec![content.to_owned()]));
        }
        let odd = r#"{"toolResult":"a"}"#;
        assert_eq!(items(odd), (odd.to_owned(), vec![odd.to_owned()]));
        assert_eq!(items(r#"{"isError":false,"_meta":{}}"#).0, "");
    }

    #[test]
    fn the_text_of_a_file_in_a_result_is_said() {
        let file = r#"{"type":"resource","resource":{"uri":"file:///a","text":"b"}}"#;
        let text = format!(r#"{{"content":[{file}]}}"#);
        let result = ToolResult::parse(&text).unwrap();
        assert_eq!(said(&result, &result.items()), "b");
        let long = format!(r#"{{"type":"{}"}}"#, "x".repeat(1 << 20));
        let text = format!(r#"{{"content":[{long}]}}"#);
        let result = ToolResult::parse(&text).unwrap();
        assert!(said(&result, &result.items()).len() < 100);
    }

    #[test]
    fn what_a_call_said_is_its_text_and_a_word_on_the_rest() {
        let of = |text: &str| {
            let result = ToolResult::parse(text).unwrap();
            (said(&result, &result.items()), result.status(), result.is_background())
        };
        let image = r#"{"type":"image","mimeType":"image/png","data":"AAAA"}"#;
        let mixed =
            format!(r#"{{"content":[{{"type":"text","text":"a\nb"}},{image}],"isError":true}}"#);
        let shown = format!("a\nb\n[image image/png, {} bytes]", image.len());
        assert_eq!(of(&mixed), (shown, Status::Error, false));
        let structured = r#"{"structuredContent":{"a":1},"task":{"taskId":"t"}}"#;
        assert_eq!(of(structured), (r#"{"a":1}"#.to_owned(), Status::Ok, true));
        let asks = r#"{"resultType":"input_required","inputRequests":{}}"#;
        assert_eq!(of(asks), (String::new(), Status::Cancelled, false));
    }
}
