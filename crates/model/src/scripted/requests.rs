//! What the model was asked and shown, kept within bounds.

use std::collections::VecDeque;

use serde_json::Value;

use super::script::for_each_text;

/// How many requests are remembered, and how long they may be together.
const REQUESTS_MAX: usize = 512;
const BYTES_MAX: usize = 64 << 20;

/// One request, as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Counts from one.
    pub number: usize,
    /// What was asked for, with its query.
    pub path: String,
    /// What kind of request it was.
    pub kind: RequestKind,
    /// What it said; null where it was no JSON.
    pub body: Value,
}

/// What a request was taken for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestKind {
    /// It declared tools, and took a step.
    Main {
        /// The marker of the part that was played; none for the rest.
        part: Option<String>,
        /// The number of the step, from zero.
        step: usize,
    },
    /// It declared no tools: a title, a summary.
    Side,
    /// It asked how many tokens something has.
    Count,
    /// Anything else.
    Other,
}

/// What a tool answered, as the model saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// All text of the result.
    pub text: String,
    /// The client calls it a failure.
    pub is_error: bool,
}

impl Request {
    /// Whether a step of this part was taken; no part is the rest.
    pub fn is_of(&self, marker: Option<&str>) -> bool {
        matches!(&self.kind, RequestKind::Main { part, .. } if part.as_deref() == marker)
    }

    /// Whether the text is in any message.
    pub fn shows(&self, text: &str) -> bool {
        let mut found = false;
        if let Some(messages) = self.body.get("messages") {
            for_each_text(messages, &mut |part| found |= part.contains(text));
        }
        found
    }

    /// The results of tools in all its messages, oldest first.
    pub fn tool_results(&self) -> Vec<ToolResult> {
        let messages = self.body.get("messages").and_then(Value::as_array);
        let contents = messages.into_iter().flatten().filter_map(|message| message.get("content"));
        let blocks = contents.filter_map(Value::as_array).flatten();
        let results = blocks.filter(|block| block.get("type") == Some(&"tool_result".into()));
        results.map(tool_result).collect()
    }
}

fn tool_result(block: &Value) -> ToolResult {
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
    ToolResult { text, is_error }
}

/// The latest requests.
#[derive(Default)]
pub(super) struct Log {
    kept: VecDeque<(usize, Request)>,
    bytes: usize,
    count: usize,
}

impl Log {
    /// Adds a request of so many bytes, and forgets the oldest beyond the bounds.
    pub(super) fn add(&mut self, bytes: usize, path: String, kind: RequestKind, body: Value) {
        self.count += 1;
        self.bytes += bytes;
        self.kept.push_back((bytes, Request { number: self.count, path, kind, body }));
        while self.kept.len() > REQUESTS_MAX || (self.bytes > BYTES_MAX && self.kept.len() > 1) {
            if let Some((bytes, _)) = self.kept.pop_front() {
                self.bytes -= bytes;
            }
        }
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.kept.iter().map(|(_, request)| request.clone()).collect()
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
    fn results_of_tools_are_read_in_both_spellings() {
        let body = json!({ "messages": [
            { "role": "user", "content": "plain" },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": true },
                { "type": "text", "text": "between" },
                { "type": "tool_result", "tool_use_id": "b",
                  "content": [{ "type": "text", "text": "x" }, { "type": "text", "text": "y" }] },
            ] },
        ] });
        let request = Request { number: 1, path: String::new(), kind: RequestKind::Side, body };
        let result = |text: &str, is_error| ToolResult { text: text.to_owned(), is_error };
        assert_eq!(request.tool_results(), [result("no", true), result("xy", false)]);
        assert!(request.shows("between") && request.shows("lai") && !request.shows("absent"));
    }

    #[test]
    fn the_oldest_are_forgotten_and_still_counted() {
        let mut log = Log::default();
        for _ in 0..REQUESTS_MAX + 3 {
            log.add(1, String::new(), RequestKind::Side, Value::Null);
        }
        assert_eq!((log.requests().len(), log.count()), (REQUESTS_MAX, REQUESTS_MAX + 3));
        assert_eq!(log.requests().first().map(|request| request.number), Some(4));
        log.add(BYTES_MAX + 1, String::new(), RequestKind::Side, Value::Null);
        assert_eq!(log.requests().len(), 1);
    }
}
