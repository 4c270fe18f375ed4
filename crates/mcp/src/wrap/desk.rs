//! Where the guard is: calls are ruled on, results seen, lists of tools looked at.

use std::ops::Range;

use jackline_engine::json::parse_strict;
use jackline_engine::tool::PAGE_TURN;
use jackline_engine::{Arguments, Payload, Status};
use jackline_runtime::CallResult;
use serde_json::Value;

use super::errors::Failure;
use super::ledger::{Open, What};
use super::message::{Line, Message, answer, range_in};
use super::pages::{Links, Pages, Turned};
use super::pins::Pins;
use super::result::{ToolResult, add_words, refusal, said};
use super::shared::{Answered, Ruled, Shared, Want};
use super::tools::Tools;
use crate::mcp_front::McpFront;

/// How much there may be in a message besides its result.
const AROUND_BYTES_MAX: usize = 4 << 10;

/// Up to here a floating number holds every whole one.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The guard, and what it has to know of the server.
pub(super) struct Desk {
    pub(super) front: McpFront,
    pub(super) tools: Tools,
    pub(super) pins: Pins,
    pub(super) pages: Pages,
}

impl Desk {
    /// Rules on a call.
    pub(super) fn ruled(&mut self, want: &Want) -> Ruled {
        let Want { open, tool, arguments } = want;
        if tool == PAGE_TURN {
            let text = format!("jackline: `{tool}` is no name for a tool of a server");
            return Ruled::Answer(refusal(open, &text));
        }
        let is_page = self.tools.is_page(tool);
        let tool = if is_page { PAGE_TURN } else { tool };
        let written = arguments.as_deref().unwrap_or("{}");
        let args = match parse_strict(written.as_bytes()) {
            Ok(args) if args.is_object() && is_exact(&args) => Arguments::Parsed(args),
            // Nobody can say what the server would read; the guards do.
            _ => Arguments::Text(Payload::Inline(written.to_owned())),
        };
        let request = serde_json::from_str(open.id.json()).unwrap_or_default();
        match self.front.propose(&request, tool, args) {
            Ok(permit) if is_page => Ruled::Answer(self.turn(open, permit.number, written)),
            Ok(permit) => Ruled::Run(permit.number),
            Err(refused) => Ruled::Answer(refusal(open, &refused.text())),
        }
    }

    /// Turns a page, which is a call like any other, but for the server.
    fn turn(&mut self, open: &Open, call: u64, arguments: &str) -> String {
        let arguments: Option<Value> = serde_json::from_str(arguments).ok();
        let Turned { mut result, said, status, seen } = self.pages.turn(open, arguments.as_ref());
        let came_back = CallResult { text: Some(said), seen, ..CallResult::new(call, status) };
        if let Some(words) = self.front.finish(came_back) {
            self.add(PAGE_TURN, &mut result, words);
        }
        answer(&open.id, &result)
    }

    /// Adds what the guard says to the result of a tool, or keeps it for the next.
    fn add(&mut self, tool: &str, result: &mut String, words: String) {
        if !add_words(result, &words, self.tools.takes_feedback(tool)) {
            self.front.add_text(words);
        }
    }

    /// A line of the server as the client gets it.
    pub(super) fn answered(&mut self, shared: &Shared, answered: &Answered) -> Vec<u8> {
        let mut messages = Vec::new();
        for (range, open) in &answered.parts {
            let text = answered.text.get(range.clone()).unwrap_or_default();
            messages.push(match open {
                None => text.to_owned(),
                Some(open) => self.seen(shared, open, text),
            });
        }
        let line = if answered.batch {
            format!("[{}]", messages.join(","))
        } else {
            // What is around the message is kept, too.
            let around = answered.parts.first().map(|(range, _)| range.clone()).unwrap_or_default();
            let before = answered.text.get(..around.start).unwrap_or_default();
            let after = answered.text.get(around.end..).unwrap_or_default();
            format!("{before}{}{after}", messages.concat())
        };
        line.into_bytes()
    }

    /// An answer as the client gets it.
    fn seen(&mut self, shared: &Shared, open: &Open, text: &str) -> String {
        let line = Line::parse(text);
        let message = line.as_ref().and_then(|line| line.messages.first());
        let Some((_, message)) = message else { return Failure::Unreadable.answer_to(open) };
        let Some(raw) = message.result else {
            return self.seen_error(open, message, text);
        };
        let mut result = raw.get().to_owned();
        let seen = match &open.what {
            What::List => self.listed(shared, &mut result),
            What::Call { call, tool } => {
                self.came_back(shared.links(open), (*call, tool), &mut result)
            }
            What::Initialize | What::Other(_) => true,
        };
        if !seen {
            return Failure::Unreadable.answer_to(open);
        }
        put_in(open, text, range_in(text, raw), ("result", &result))
    }

    /// An answer that says why there is no result.
    fn seen_error(&mut self, open: &Open, message: &Message<'_>, text: &str) -> String {
        let Some(raw) = message.error else {
            self.over(open, Status::Error, None);
            return Failure::Unreadable.answer_to(open);
        };
        self.over(open, Status::Error, Some(raw.get().to_owned()));
        let short = self.pages.shorten_error(raw.get()).map(|short| short.to_string());
        let error = short.as_deref().unwrap_or(raw.get());
        put_in(open, text, range_in(text, raw), ("error", error))
    }

    /// Whether a list of tools is one; ours is added.
    fn listed(&mut self, shared: &Shared, result: &mut String) -> bool {
        let Some(seen) = self.tools.listed(result, &mut self.pins) else { return false };
        shared.server.listed(shared, &seen.tools);
        if let Err(error) = self.pins.save() {
            shared.say(&format!("how tools are described can't be kept: {error}"));
        }
        if !seen.changed.is_empty() {
            self.front.tools_changed(seen.changed);
        }
        true
    }

    /// Whether a result is one; it is shortened, and what the guard says is added.
    fn came_back(&mut self, links: Links, (call, tool): (u64, &str), result: &mut String) -> bool {
        let Some(parsed) = ToolResult::parse(result) else {
            self.lost(call, Status::Error, None);
            return false;
        };
        let text = Some(said(&parsed, &parsed.items())).filter(|text| !text.is_empty());
        let (status, background) = (parsed.status(), parsed.is_background());
        let insists = self.tools.is_structured(tool);
        let page = self.pages.shorten(result, links, insists);
        if let Some(page) = &page {
            let shows = if status == Status::Ok { self.front.shows(call) } else { Vec::new() };
            self.pages.remember(page, shows);
        }
        let offered = page.as_ref().map(|page| page.fact.clone());
        let came_back =
            CallResult { text, background, page: offered, ..CallResult::new(call, status) };
        let words = self.front.finish(came_back);
        if let Some(page) = page {
            *result = page.result;
        }
        if let Some(words) = words {
            self.add(tool, result, words);
        }
        true
    }

    /// Tells the guard of a request that came back without a result.
    pub(super) fn over(&mut self, open: &Open, status: Status, text: Option<String>) {
        if let What::Call { call, .. } = open.what {
            self.lost(call, status, text);
        }
    }

    fn lost(&mut self, call: u64, status: Status, text: Option<String>) {
        if let Some(words) = self.front.finish(CallResult { text, ..CallResult::new(call, status) })
        {
            self.front.add_text(words);
        }
    }

    /// Ends the session, and takes away what is only for it.
    pub(super) fn end(&mut self) {
        self.front.end();
        self.pages.remove();
    }
}

/// Whether every number is the one that was written: a large one may have been rounded, and
/// the server would get another than was judged.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().is_some_and(|number| number.abs() < WHOLE_MAX)
        }
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(fields) => fields.values().all(is_exact),
        _ => true,
    }
}

/// A message with something else at a place. What is around it is kept, unless it is more
/// than a message needs.
fn put_in(open: &Open, text: &str, at: Range<usize>, (key, value): (&str, &str)) -> String {
    let (before, after) = (text.get(..at.start), text.get(at.end..));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    if before.len() + after.len() > AROUND_BYTES_MAX {
        let id = open.id.json();
        return format!(r#"{{"jsonrpc":"2.0","id":{id},"{key}":{value}}}"#);
    }
    [before, value, after].concat()
}
