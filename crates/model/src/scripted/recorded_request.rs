//! The recorded requests, limited in number and size.

use std::collections::VecDeque;

use serde_json::Value;

use super::script::for_each_text;

/// How many requests are stored, and how large they may be together.
const REQUESTS_MAX: usize = 512;
const BYTES_MAX: usize = 64 << 20;

/// One recorded request.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedRequest {
    /// The number of the request, from 1.
    pub number: usize,
    /// The path with its query.
    pub path: String,
    /// The kind of request.
    pub kind: RecordedRequestKind,
    /// The body; null if it was not JSON.
    pub body: Value,
}

/// The kind of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedRequestKind {
    /// A request with tools, which took a step of the script.
    Main {
        /// The marker of the part; `None` for the steps without a part.
        part: Option<String>,
        /// The number of the step, from 0.
        step: usize,
    },
    /// A request without tools: for a title or a summary.
    Side,
    /// A request to count tokens.
    Count,
    /// Any other request.
    Other,
}

/// The result of a tool, as the model received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedToolResult {
    /// The complete text of the result.
    pub text: String,
    /// Whether the client marked it as an error.
    pub is_error: bool,
}

impl RecordedRequest {
    /// Whether a step of this part was taken; `None` means the steps without a part.
    pub fn is_of_part(&self, marker: Option<&str>) -> bool {
        matches!(&self.kind, RecordedRequestKind::Main { part, .. } if part.as_deref() == marker)
    }

    /// Whether a message contains the text.
    pub fn has_text(&self, text: &str) -> bool {
        let mut is_shown = false;
        if let Some(messages) = self.body.get("messages") {
            for_each_text(messages, &mut |part| is_shown |= part.contains(text));
        }
        is_shown
    }

    /// The tool results in all messages, the oldest first.
    pub fn tool_results(&self) -> Vec<RecordedToolResult> {
        let messages = self.body.get("messages").and_then(Value::as_array);
        let contents = messages.into_iter().flatten().filter_map(|message| message.get("content"));
        let blocks = contents.filter_map(Value::as_array).flatten();
        let results = blocks.filter(|block| block.get("type") == Some(&"tool_result".into()));
        results.map(tool_result).collect()
    }
}

fn tool_result(block: &Value) -> RecordedToolResult {
    let mut text = String::new();
    match block.get("content") {
        Some(Value::String(whole)) => text.clone_from(whole),
        Some(Value::Array(parts)) => {
            for part in parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)) {
                text.push_str(part);
            }
        }
        _ => {}
    }
    let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
    RecordedToolResult { text, is_error }
}

/// The latest requests.
#[derive(Default)]
pub(super) struct RequestLog {
    requests_with_size: VecDeque<(usize, RecordedRequest)>,
    bytes: usize,
    count: usize,
}

impl RequestLog {
    /// Adds a request of so many bytes, and drops the oldest ones beyond the limits.
    pub(super) fn add(
        &mut self,
        bytes: usize,
        path: String,
        kind: RecordedRequestKind,
        body: Value,
    ) {
        self.count += 1;
        self.bytes += bytes;
        self.requests_with_size
            .push_back((bytes, RecordedRequest { number: self.count, path, kind, body }));
        while self.requests_with_size.len() > REQUESTS_MAX
            || (self.bytes > BYTES_MAX && self.requests_with_size.len() > 1)
        {
            if let Some((bytes, _)) = self.requests_with_size.pop_front() {
                self.bytes -= bytes;
            }
        }
    }

    pub(super) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests_with_size.iter().map(|(_, request)| request.clone()).collect()
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tool_results_are_read_in_both_forms() {
        let body = json!({ "messages": [
            { "role": "user", "content": "plain" },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": true },
                { "type": "text", "text": "between" },
                { "type": "tool_result", "tool_use_id": "b",
                  "content": [{ "type": "text", "text": "x" }, { "type": "text", "text": "y" }] },
            ] },
        ] });
        let request = RecordedRequest {
            number: 1,
            path: String::new(),
            kind: RecordedRequestKind::Side,
            body,
        };
        let result = |text: &str, is_error| RecordedToolResult { text: text.to_owned(), is_error };
        assert_eq!(request.tool_results(), [result("no", true), result("xy", false)]);
        assert!(
            request.has_text("between") && request.has_text("lai") && !request.has_text("absent")
        );
    }

    #[test]
    fn the_oldest_requests_are_dropped_but_still_counted() {
        let mut log = RequestLog::default();
        for _ in 0..REQUESTS_MAX + 3 {
            log.add(1, String::new(), RecordedRequestKind::Side, Value::Null);
        }
        assert_eq!((log.requests().len(), log.count()), (REQUESTS_MAX, REQUESTS_MAX + 3));
        assert_eq!(log.requests().first().map(|request| request.number), Some(4));
        log.add(BYTES_MAX + 1, String::new(), RecordedRequestKind::Side, Value::Null);
        assert_eq!(log.requests().len(), 1);
    }
}
