//! The result of a tool: the text of it for the guards, and the text that the guards add to it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jackline_engine::CallStatus;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::lone_surrogates::replace_lone_surrogates;
use super::open_requests::OpenRequest;
use super::rpc_message::{push_to_array, push_to_object, range_of, render_answer};
use super::structured_fields;

/// How much of a word from the server is repeated in Jackline's text.
const SERVER_WORD_CHARS_MAX: usize = 64;

/// The field of structured content that contains the guards' feedback.
pub(super) const FEEDBACK_FIELD: &str = "feedback";

/// Fields that describe a result and are not part of it.
const META_FIELDS: [&str; 3] = ["_meta", "isError", "resultType"];

/// A result as the server sent it.
#[derive(Debug, Deserialize)]
pub(super) struct McpToolResult<'a> {
    /// The complete text.
    #[serde(skip)]
    raw: &'a str,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "structuredContent")]
    pub(super) structured: Option<&'a RawValue>,
    #[serde(default, rename = "isError")]
    is_error: Option<bool>,
    /// The state of the call, in the protocol version without a handshake.
    #[serde(borrow, default, rename = "resultType")]
    stage: Option<Cow<'a, str>>,
    /// A call that continues in the background, in the version before.
    #[serde(borrow, default)]
    task: Option<&'a RawValue>,
}

/// An item of a result. An item that can't be parsed counts as text: its raw bytes.
#[derive(Debug)]
pub(super) struct ResultItem<'a> {
    pub(super) raw: &'a str,
    parsed: Option<ParsedItem<'a>>,
}

/// An item that could be parsed.
#[derive(Debug, Deserialize)]
struct ParsedItem<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "mimeType")]
    mime: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    resource: Option<EmbeddedResource<'a>>,
}

#[derive(Debug, Deserialize)]
struct EmbeddedResource<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

impl ParsedItem<'_> {
    fn text(&self) -> Option<&str> {
        self.text.as_deref().filter(|_| self.kind == "text")
    }

    /// The text of it that the model sees.
    fn visible_text(&self) -> Option<&str> {
        self.text().or_else(|| self.resource.as_ref()?.text.as_deref())
    }
}

impl<'a> ResultItem<'a> {
    fn of(raw: &'a RawValue) -> Self {
        let raw = raw.get();
        let known = serde_json::from_str(raw).ok().filter(|_| raw.starts_with('{'));
        Self { raw, parsed: known }
    }

    /// The text of a text item, or the raw bytes of an item that can't be parsed.
    pub(super) fn text(&self) -> Option<&str> {
        self.parsed.as_ref().map_or(Some(self.raw), ParsedItem::text)
    }

    /// How many bytes of context it uses.
    pub(super) fn size(&self) -> usize {
        self.text().unwrap_or(self.raw).len()
    }

    /// Describes an item that is not text.
    pub(super) fn describe(&self) -> String {
        let word = |word: &str| word.chars().take(SERVER_WORD_CHARS_MAX).collect::<String>();
        let parsed = self.parsed.as_ref();
        let kind = parsed.map_or_else(|| "unreadable".to_owned(), |parsed| word(&parsed.kind));
        let mime = parsed.and_then(|parsed| parsed.mime.as_deref());
        let mime = mime.map_or_else(String::new, |mime| format!(" {}", word(mime)));
        format!("[{kind}{mime}, {} bytes]", self.raw.len())
    }

    /// The text of the item for the guards. An item with lone surrogates is repaired first.
    fn text_for_guards(&self) -> String {
        if let Some(parsed) = &self.parsed {
            return parsed.visible_text().map_or_else(|| self.describe(), ToOwned::to_owned);
        }
        let readable = replace_lone_surrogates(self.raw);
        let parsed: Option<ParsedItem<'_>> = serde_json::from_str(&readable).ok();
        let text = parsed.as_ref().and_then(ParsedItem::visible_text).map(ToOwned::to_owned);
        text.unwrap_or_else(|| readable.into_owned())
    }
}

impl<'a> McpToolResult<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let parsed = serde_json::from_str(text).ok().filter(|_| text.starts_with('{'));
        parsed.map(|parsed| Self { raw: text, ..parsed })
    }

    /// The items. A result without a list of items counts as one item.
    pub(super) fn items(&self) -> Vec<ResultItem<'a>> {
        let Some(content) = self.content else {
            let whole = ResultItem { raw: self.raw, parsed: None };
            return if self.structured.is_some() { Vec::new() } else { vec![whole] };
        };
        let items: Option<Vec<&'a RawValue>> = serde_json::from_str(content.get()).ok();
        items.unwrap_or_else(|| vec![content]).into_iter().map(ResultItem::of).collect()
    }

    /// How many bytes of context it uses.
    pub(super) fn size(&self, items: &[ResultItem<'_>]) -> usize {
        let parts = [self.content, self.structured].into_iter().flatten();
        let rest = parts.map(|raw| raw.get().len()).fold(self.raw.len(), usize::saturating_sub);
        let structured = self.structured.map_or(0, |raw| raw.get().len());
        let rest = if self.has_content_field() { rest } else { 0 };
        items.iter().map(ResultItem::size).sum::<usize>() + structured + rest
    }

    /// The status of the call.
    pub(super) fn status(&self) -> CallStatus {
        match self.stage.as_deref() {
            // The client will send the call again, with the input that the server asks for.
            Some("input_required") => CallStatus::Cancelled,
            _ if self.is_error() => CallStatus::Error,
            _ => CallStatus::Ok,
        }
    }

    /// Whether the server reports an error.
    pub(super) fn is_error(&self) -> bool {
        self.is_error == Some(true)
    }

    /// Whether the work continues in the background.
    pub(super) fn is_background(&self) -> bool {
        self.task.is_some() || self.stage.as_deref() == Some("task")
    }

    /// Whether it has a field for content.
    pub(super) fn has_content_field(&self) -> bool {
        self.content.is_some() || self.structured.is_some()
    }

    /// Whether the result contains no output of the tool.
    fn has_no_output(&self) -> bool {
        let fields: BTreeMap<String, &RawValue> =
            serde_json::from_str(self.raw).unwrap_or_default();
        self.status() == CallStatus::Cancelled
            || self.is_background()
            || fields.keys().all(|key| META_FIELDS.contains(&key.as_str()))
    }
}

/// The text of a result for the guards.
pub(super) fn result_text(result: &McpToolResult<'_>, items: &[ResultItem<'_>]) -> String {
    if !result.has_content_field() && result.has_no_output() {
        return String::new();
    }
    let text = items.iter().map(ResultItem::text_for_guards).collect::<Vec<String>>().join("\n");
    match result.structured {
        Some(structured) if text.is_empty() => structured.get().to_owned(),
        Some(structured) if structured_fields::has_more_than_text(structured.get(), &text) => {
            format!("{text}\n{}", replace_lone_surrogates(structured.get()))
        }
        _ => text,
    }
}

/// A text item.
pub(super) fn text_item(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Adds text to a result, both as an item and as a field, because some clients show the model only
/// one of the two. `fields` says whether a field may be added. Returns whether the text could be
/// added.
pub(super) fn add_text_to_result(result: &mut String, text: &str, fields: bool) -> bool {
    let in_fields = fields && add_feedback_field(result, text);
    add_text_item(result, text) || in_fields
}

fn add_feedback_field(result: &mut String, text: &str) -> bool {
    let structured = McpToolResult::parse(result).and_then(|it| it.structured);
    let Some(structured) = structured else { return false };
    let fields: Option<BTreeMap<String, &RawValue>> = serde_json::from_str(structured.get()).ok();
    if fields.is_none_or(|fields| fields.contains_key(FEEDBACK_FIELD)) {
        return false;
    }
    let at = range_of(result, structured);
    push_to_object(result, &at, FEEDBACK_FIELD, &Value::from(text).to_string());
    true
}

fn add_text_item(result: &mut String, text: &str) -> bool {
    let content =
        McpToolResult::parse(result).and_then(|it| it.content.map(|raw| range_of(result, raw)));
    let Some(content) =
        content.filter(|at| result.get(at.start..).is_some_and(|it| it.starts_with('[')))
    else {
        return false;
    };
    push_to_array(result, &content, &text_item(text).to_string());
    true
}

/// An answer of Jackline itself to a call.
pub(super) fn own_answer(
    open: &OpenRequest,
    content: Vec<Value>,
    is_error: bool,
) -> Map<String, Value> {
    let mut result = Map::new();
    result.insert("content".to_owned(), Value::Array(content));
    result.insert("isError".to_owned(), Value::Bool(is_error));
    if open.stateless {
        result.insert("resultType".to_owned(), json!("complete"));
    }
    result
}

/// A refusal; the server did not get the call.
pub(super) fn refusal(open: &OpenRequest, text: &str) -> String {
    render_answer(
        &open.id,
        &Value::Object(own_answer(open, vec![text_item(text)], true)).to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_becomes_the_last_item_and_the_rest_does_not_change() {
        let mut result =
            r#"{ "content":[{"type":"text","text":"\u0061"}], "isError" : false }"#.to_owned();
        assert!(add_text_item(&mut result, "x\"y"));
        assert_eq!(
            result,
            r#"{ "content":[{"type":"text","text":"\u0061"},{"text":"x\"y","type":"text"}], "isError" : false }"#
        );
        for odd in [r#"{"structuredContent":{}}"#, r#"{"content":3}"#, "3"] {
            let mut text = odd.to_owned();
            assert!(!add_text_item(&mut text, "x"));
            assert_eq!(text, odd);
        }
    }

    #[test]
    fn feedback_is_added_as_a_field_unless_the_schema_forbids_it() {
        let sent = r#"{"content":[],"structuredContent":{ "a":1 }}"#;
        let with = |fields: bool, sent: &str| {
            let mut result = sent.to_owned();
            assert!(add_text_to_result(&mut result, "slow", fields));
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
    fn an_item_that_cannot_be_parsed_counts_as_text() {
        let items = |text: &str| {
            let result = McpToolResult::parse(text).unwrap();
            let items = result.items();
            let shown = items.iter().map(|item| item.text().unwrap().to_owned()).collect();
            (result_text(&result, &items), shown)
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
    fn the_text_of_an_embedded_file_is_part_of_the_text() {
        let file = r#"{"type":"resource","resource":{"uri":"file:///a","text":"b"}}"#;
        let text = format!(r#"{{"content":[{file}]}}"#);
        let result = McpToolResult::parse(&text).unwrap();
        assert_eq!(result_text(&result, &result.items()), "b");
        let long = format!(r#"{{"type":"{}"}}"#, "x".repeat(1 << 20));
        let text = format!(r#"{{"content":[{long}]}}"#);
        let result = McpToolResult::parse(&text).unwrap();
        assert!(result_text(&result, &result.items()).len() < 100);
    }

    #[test]
    fn the_text_of_a_result_describes_items_that_are_not_text() {
        let of = |text: &str| {
            let result = McpToolResult::parse(text).unwrap();
            (result_text(&result, &result.items()), result.status(), result.is_background())
        };
        let image = r#"{"type":"image","mimeType":"image/png","data":"AAAA"}"#;
        let mixed =
            format!(r#"{{"content":[{{"type":"text","text":"a\nb"}},{image}],"isError":true}}"#);
        let shown = format!("a\nb\n[image image/png, {} bytes]", image.len());
        assert_eq!(of(&mixed), (shown, CallStatus::Error, false));
        let structured = r#"{"structuredContent":{"a":1},"task":{"taskId":"t"}}"#;
        assert_eq!(of(structured), (r#"{"a":1}"#.to_owned(), CallStatus::Ok, true));
        let asks = r#"{"resultType":"input_required","inputRequests":{}}"#;
        assert_eq!(of(asks), (String::new(), CallStatus::Cancelled, false));
    }
}
