//! The gate of the proxy: it decides about calls, checks results and examines lists of tools.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jackline_engine::json::parse_strict;
use jackline_engine::output_page::PageLimits;
use jackline_engine::tool::PAGE_TURN_TOOL;
use jackline_engine::{Arguments, CallStatus, Payload};
use jackline_runtime::CallResult;
use serde_json::Value;

use super::open_requests::{OpenRequest, OpenRequestKind};
use super::proxy_failure::ProxyFailure;
use super::proxy_shared::{CallDecision, ProxyShared, RequestedCall, ServerAnswers};
use super::result_pages::{LinkSupport, PageRequirements, ResultPageAnswer, ResultPages};
use super::rpc_message::{RpcLine, RpcMessage, range_of, render_answer};
use super::server_tools::ServerTools;
use super::tool_pins::ToolPins;
use super::tool_result::{McpToolResult, add_text_to_result, refusal, result_text};
use crate::mcp_session_gate::McpSessionGate;

/// How many bytes of a message, without its result, are passed on.
const ENVELOPE_BYTES_MAX: usize = 4 << 10;

/// The limit up to which a floating-point number represents every whole number.
const EXACT_FLOAT_MAX: f64 = 9_007_199_254_740_992.0;

/// The guards' session, with the state about the server.
pub(super) struct ProxyGate {
    pub(super) front: McpSessionGate,
    pub(super) tools: ServerTools,
    /// Set if the server has announced another list of tools.
    pub(super) announced_tools: Arc<AtomicBool>,
    pub(super) pins: ToolPins,
    pub(super) pages: ResultPages,
}

impl ProxyGate {
    /// Decides about a call.
    pub(super) fn decide_call(&mut self, want: &RequestedCall) -> CallDecision {
        let RequestedCall { open, tool, arguments } = want;
        if self.forget_outdated_tools() {
            self.front.set_tools(self.tools.known_tools());
        }
        if tool == PAGE_TURN_TOOL {
            let text = format!("jackline: `{tool}` is a reserved tool name");
            return CallDecision::Answer(refusal(open, &text));
        }
        let is_page = self.tools.is_page_tool(tool);
        let tool = if is_page { PAGE_TURN_TOOL } else { tool };
        let written = arguments.as_deref().unwrap_or("{}");
        let args = match parse_strict(written.as_bytes()) {
            Ok(args) if args.is_object() && has_exact_numbers(&args) => Arguments::Parsed(args),
            // It is unclear how the server would parse this, so the guards get the text.
            _ => Arguments::Text(Payload::Inline(written.to_owned())),
        };
        let request = serde_json::from_str(open.id.json()).unwrap_or_default();
        match self.front.propose(&request, tool, args) {
            Ok(permit) if is_page => {
                CallDecision::Answer(self.show_page(open, permit.number, written))
            }
            Ok(permit) => CallDecision::Permit(permit.number),
            Err(refused) => CallDecision::Answer(refusal(open, &refused.text())),
        }
    }

    /// Forgets the list of tools if the server has announced another one. Returns whether it has.
    fn forget_outdated_tools(&mut self) -> bool {
        let is_outdated = self.announced_tools.swap(false, Ordering::Relaxed);
        if is_outdated {
            self.tools.forget_list();
        }
        is_outdated
    }

    /// Handles a call of the page tool. Like any other call, but without the server.
    fn show_page(&mut self, open: &OpenRequest, call: u64, arguments: &str) -> String {
        let arguments: Option<Value> = serde_json::from_str(arguments).ok();
        let ResultPageAnswer { mut result, text: said, status, seen } =
            self.pages.show_page(open, arguments.as_ref());
        let came_back = CallResult { text: Some(said), seen, ..CallResult::new(call, status) };
        if let Some(text) = self.front.finish(came_back) {
            self.add_text_to_result(PAGE_TURN_TOOL, &mut result, text);
        }
        render_answer(&open.id, &result)
    }

    /// Adds the guards' text to a tool result, or stores it for the next result.
    fn add_text_to_result(&mut self, tool: &str, result: &mut String, text: String) {
        if !add_text_to_result(result, &text, self.tools.can_add_feedback(tool)) {
            self.front.add_text(text);
        }
    }

    /// Processes a line of the server. Returns the line for the client.
    pub(super) fn process_answers(
        &mut self,
        shared: &ProxyShared,
        answered: &ServerAnswers,
    ) -> Vec<u8> {
        let mut messages = Vec::new();
        for (range, open) in &answered.parts {
            let text = answered.text.get(range.clone()).unwrap_or_default();
            messages.push(match open {
                None => text.to_owned(),
                Some(open) => self.process_answer(shared, open, text),
            });
        }
        let line = if answered.batch {
            format!("[{}]", messages.join(","))
        } else {
            // Text around the message is passed on too.
            let range = answered.parts.first().map(|(range, _)| range.clone()).unwrap_or_default();
            let before = answered.text.get(..range.start).unwrap_or_default();
            let after = answered.text.get(range.end..).unwrap_or_default();
            format!("{before}{}{after}", messages.concat())
        };
        line.into_bytes()
    }

    /// Processes an answer of the server. Returns the answer for the client.
    fn process_answer(&mut self, shared: &ProxyShared, open: &OpenRequest, text: &str) -> String {
        let line = RpcLine::parse(text);
        let message = line.as_ref().and_then(|line| line.messages.first());
        let Some((_, message)) = message else { return ProxyFailure::Unreadable.answer_to(open) };
        let Some(raw) = message.result else {
            return self.process_error(open, message, text);
        };
        let mut result = raw.get().to_owned();
        let is_valid = match &open.kind {
            OpenRequestKind::List => self.process_tool_list(shared, &mut result),
            OpenRequestKind::Call { call, tool } => {
                self.process_tool_result(shared.link_support(open), (*call, tool), &mut result)
            }
            OpenRequestKind::Initialize | OpenRequestKind::Other(_) => true,
        };
        if !is_valid {
            return ProxyFailure::Unreadable.answer_to(open);
        }
        replace_part(open, text, range_of(text, raw), ("result", &result))
    }

    /// Processes an error answer.
    fn process_error(
        &mut self,
        open: &OpenRequest,
        message: &RpcMessage<'_>,
        text: &str,
    ) -> String {
        let Some(raw) = message.error else {
            self.finish_without_result(open, CallStatus::Error, None);
            return ProxyFailure::Unreadable.answer_to(open);
        };
        self.finish_without_result(open, CallStatus::Error, Some(raw.get().to_owned()));
        let short = self.pages.shorten_error(raw.get()).map(|short| short.to_string());
        let error = short.as_deref().unwrap_or(raw.get());
        replace_part(open, text, range_of(text, raw), ("error", error))
    }

    /// Processes a list of tools and adds the page tool. Returns whether it is a valid list.
    fn process_tool_list(&mut self, shared: &ProxyShared, result: &mut String) -> bool {
        self.forget_outdated_tools();
        let Some(list) = self.tools.read_list(result, &mut self.pins) else { return false };
        self.front.set_tools(self.tools.known_tools());
        shared.server.note_tools(shared, &list.tools);
        if let Err(error) = self.pins.save() {
            shared.write_message(&format!("can't save the tool descriptions: {error}"));
        }
        if !list.changed.is_empty() {
            self.front.report_changed_tools(list.changed);
        }
        true
    }

    /// Processes a tool result: shortens it and adds the guards' text. Returns whether it is a
    /// valid result.
    fn process_tool_result(
        &mut self,
        links: LinkSupport,
        (call, tool): (u64, &str),
        result: &mut String,
    ) -> bool {
        let Some(parsed) = McpToolResult::parse(result) else {
            self.report_failed_call(call, CallStatus::Error, None);
            return false;
        };
        let (status, background) = (parsed.status(), parsed.is_background());
        let text = result_text(&parsed, &parsed.items());
        // A finished tool with an empty text has found nothing.
        let is_output = status == CallStatus::Ok && !background && parsed.has_content_field();
        let text = Some(text).filter(|text| is_output || !text.is_empty());
        let insists = self.tools.requires_structured(tool);
        let (PageLimits { lines_max, .. }, first) = self.front.page_limits(call);
        let mut page = self.pages.shorten(result, PageRequirements { links, insists, lines_max });
        if let Some(page) = &mut page {
            let shows = if status == CallStatus::Ok {
                self.front.file_contents_shown(call)
            } else {
                Vec::new()
            };
            if let Some(lines) = &mut page.fact.lines {
                lines.first = first;
            }
            self.pages.remember_unread(page, shows);
        }
        let offered = page.as_ref().map(|page| page.fact.clone());
        let came_back =
            CallResult { text, background, page: offered, ..CallResult::new(call, status) };
        let text_to_add = self.front.finish(came_back);
        if let Some(page) = page {
            *result = page.result;
        }
        if let Some(text_to_add) = text_to_add {
            self.add_text_to_result(tool, result, text_to_add);
        }
        true
    }

    /// Reports to the guards that a request ended without a result.
    pub(super) fn finish_without_result(
        &mut self,
        open: &OpenRequest,
        status: CallStatus,
        text: Option<String>,
    ) {
        if let OpenRequestKind::Call { call, .. } = open.kind {
            self.report_failed_call(call, status, text);
        }
    }

    fn report_failed_call(&mut self, call: u64, status: CallStatus, text: Option<String>) {
        if let Some(text_to_add) =
            self.front.finish(CallResult { text, ..CallResult::new(call, status) })
        {
            self.front.add_text(text_to_add);
        }
    }

    /// Ends the session and removes its stored pages.
    pub(super) fn end(&mut self) {
        self.front.end();
        self.pages.remove();
    }
}

/// Whether every number is exact. A large number may have been rounded, and the server would get a
/// different number than the guards.
fn has_exact_numbers(value: &Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => {
            number.as_f64().is_some_and(|number| number.abs() < EXACT_FLOAT_MAX)
        }
        Value::Array(items) => items.iter().all(has_exact_numbers),
        Value::Object(fields) => fields.values().all(has_exact_numbers),
        _ => true,
    }
}

/// Replaces a part of a message. The text around it is passed on, unless it is larger than a
/// message needs.
fn replace_part(
    open: &OpenRequest,
    text: &str,
    at: Range<usize>,
    (key, value): (&str, &str),
) -> String {
    let (before, after) = (text.get(..at.start), text.get(at.end..));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    if before.len() + after.len() > ENVELOPE_BYTES_MAX {
        let id = open.id.json();
        return format!(r#"{{"jsonrpc":"2.0","id":{id},"{key}":{value}}}"#);
    }
    [before, value, after].concat()
}
