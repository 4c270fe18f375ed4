//! From the server to the client: passes on everything unchanged, except answers without a request,
//! and messages that the guards must see first.

use std::sync::atomic::Ordering;

use serde::Deserialize;
use serde_json::Value;

use super::bounded_lines::{LineRead, find_id_in_ends, has_method_in_head};
use super::open_requests::{OpenRequest, OpenRequestKind};
use super::proxied_server::lock_ignoring_poison;
use super::proxy_failure::ProxyFailure;
use super::proxy_shared::{ProxyJob, ProxyShared, ServerAnswers, short_text};
use super::rpc_message::{RpcId, RpcLine, RpcMessage, range_of};

/// What happens to a message.
enum ServerMessageAction {
    /// The client gets it unchanged.
    Pass,
    /// The guards see it first.
    Guard(OpenRequest),
    /// It is dropped.
    Drop(&'static str),
}

/// Handles a line of the server, or the end of its output.
pub(super) fn handle_read(shared: &ProxyShared, read: LineRead) {
    match read {
        LineRead::Line(bytes) => drop(handle_line(shared, bytes)),
        LineRead::TooLong { head, tail, bytes } => {
            shared.warn(&format!("the server sent a line of {bytes} bytes, which was dropped"));
            // A request or notification of the server answers none of the client's requests.
            if has_method_in_head(&head) {
                return;
            }
            let id = find_id_in_ends(&head, &tail).as_ref().and_then(RpcId::from_value);
            let mut ledger = lock_ignoring_poison(&shared.open_requests);
            let named = id.and_then(|id| ledger.remove(&id));
            if let Some(open) = named.or_else(|| ledger.remove_oldest()) {
                drop(ledger);
                shared.send(ProxyJob::Failed(open, ProxyFailure::TooLong { bytes }));
            }
        }
        LineRead::End => shared.send(ProxyJob::OutputClosed),
    }
}

/// Handles a line. Returns the requests that it answers.
pub(super) fn handle_line(shared: &ProxyShared, bytes: Vec<u8>) -> Vec<RpcId> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Vec::new();
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return report_invalid_line(shared, error.as_bytes()),
    };
    let Some(RpcLine { messages, batch }) = RpcLine::parse(&text) else {
        return report_invalid_line(shared, text.as_bytes());
    };
    let (mut parts, mut unchanged) = (Vec::new(), true);
    let answered = messages.iter().filter_map(|(_, message)| message.answered_id()).collect();
    for (raw, message) in &messages {
        match choose_action(shared, message) {
            ServerMessageAction::Pass => parts.push((range_of(&text, raw), None)),
            ServerMessageAction::Guard(open) => {
                unchanged = false;
                parts.push((range_of(&text, raw), Some(open)));
            }
            ServerMessageAction::Drop(why) => {
                unchanged = false;
                let id = message.id.map_or("null", |id| id.get());
                shared.warn(&format!(
                    "an answer to request {} was dropped: {why}",
                    short_text(id.as_bytes())
                ));
            }
        }
    }
    if unchanged {
        shared.emit(text.into_bytes());
    } else if !parts.is_empty() {
        process_answers(shared, ServerAnswers { text, parts, batch });
    }
    answered
}

/// Passes an answer to the guards; if the gate is locked, the main thread does it.
fn process_answers(shared: &ProxyShared, answered: ServerAnswers) {
    let line = match shared.gate.try_lock() {
        Ok(mut desk) => desk.process_answers(shared, &answered),
        Err(_) => return shared.send(ProxyJob::Answered(answered)),
    };
    shared.emit(line);
    shared.write_urgent_notes();
}

fn report_invalid_line(shared: &ProxyShared, bytes: &[u8]) -> Vec<RpcId> {
    let text =
        format!("the server sent a line that is not a JSON-RPC message: {}", short_text(bytes));
    shared.warn(&text);
    Vec::new()
}

fn choose_action(shared: &ProxyShared, message: &RpcMessage<'_>) -> ServerMessageAction {
    if message.method.as_deref() == Some("notifications/progress") {
        let progress: Option<ProgressParams> = message.parse_params();
        if let Some(token) = progress.and_then(|progress| RpcId::from_value(&progress.token)) {
            lock_ignoring_poison(&shared.open_requests)
                .extend_deadline(&token, shared.new_deadline_ms());
        }
    }
    if message.method.as_deref() == Some("notifications/tools/list_changed") {
        shared.announced_tools.store(true, Ordering::Relaxed);
    }
    let Some(id) = message.answered_id() else { return ServerMessageAction::Pass };
    let Some(open) = lock_ignoring_poison(&shared.open_requests).remove(&id) else {
        return ServerMessageAction::Drop("no open request has this id");
    };
    match open.kind {
        OpenRequestKind::Call { .. } | OpenRequestKind::List => ServerMessageAction::Guard(open),
        OpenRequestKind::Initialize => {
            let agreed = message.result.and_then(|raw| serde_json::from_str(raw.get()).ok());
            *lock_ignoring_poison(&shared.protocol_version) =
                agreed.map(|InitializeResult { version }| version);
            ServerMessageAction::Pass
        }
        OpenRequestKind::Other(_) => ServerMessageAction::Pass,
    }
}

#[derive(Deserialize)]
struct ProgressParams {
    #[serde(rename = "progressToken")]
    token: Value,
}

#[derive(Deserialize)]
struct InitializeResult {
    #[serde(rename = "protocolVersion")]
    version: String,
}
