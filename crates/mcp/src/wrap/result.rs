//! The result of a tool: what the guard is told of it, and what is added to it.

use std::borrow::Cow;

use jackline_engine::Status;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::ledger::Open;
use super::message::{answer, push_to_array, range_in};

/// A result as the server sent it.
#[derive(Debug, Deserialize)]
pub(super) struct ToolResult<'a> {
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

/// One item of a result.
#[derive(Debug, Deserialize)]
pub(super) struct Item<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "mimeType")]
    mime: Option<Cow<'a, str>>,
}

impl Item<'_> {
    /// The text of an item that is text.
    pub(super) fn text(&self) -> Option<&str> {
        self.text.as_deref().filter(|_| self.kind == "text")
    }

    /// What an item is that is no text.
    pub(super) fn describe(&self, bytes: usize) -> String {
        let mime = self.mime.as_deref().map_or_else(String::new, |mime| format!(" {mime}"));
        format!("[{}{mime}, {bytes} bytes]", self.kind)
    }
}

impl<'a> ToolResult<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|_| text.starts_with('{'))
    }

    /// Its items, each with the text it was read from.
    pub(super) fn items(&self) -> Vec<(&'a RawValue, Item<'a>)> {
        let raw: Vec<&'a RawValue> =
            self.content.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let item = |raw: &'a RawValue| Some((raw, serde_json::from_str(raw.get()).ok()?));
        raw.into_iter().filter_map(item).collect()
    }

    /// How the call ended.
    pub(super) fn status(&self) -> Status {
        match self.stage.as_deref() {
            // It comes again with what the server wants to know first.
            Some("input_required") => Status::Cancelled,
            _ if self.is_error == Some(true) => Status::Error,
            _ => Status::Ok,
        }
    }

    /// Whether the work goes on behind the result.
    pub(super) fn is_background(&self) -> bool {
        self.task.is_some() || self.stage.as_deref() == Some("task")
    }

    /// Whether there is anything to read in it.
    pub(super) fn is_readable(&self) -> bool {
        self.content.is_some() || self.structured.is_some()
    }
}

/// What was said, for the guard.
pub(super) fn said(result: &ToolResult<'_>, items: &[(&RawValue, Item<'_>)]) -> String {
    if items.is_empty() {
        return result.structured.map_or_else(String::new, |raw| raw.get().to_owned());
    }
    let said = |(raw, item): &(&RawValue, Item<'_>)| match item.text() {
        Some(text) => text.to_owned(),
        None => item.describe(raw.get().len()),
    };
    items.iter().map(said).collect::<Vec<String>>().join("\n")
}

/// An item of text.
pub(super) fn text_item(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Adds a text to a result. One without content has no place for it.
pub(super) fn add_text(result: &mut String, text: &str) -> bool {
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
