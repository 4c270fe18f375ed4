//! From the client to the server: passes on everything unchanged, except calls that the guards did
//! not permit.

use jackline_engine::CallStatus;
use serde_json::value::RawValue;

use super::bounded_lines::{LineRead, find_id_in_ends};
use super::open_requests::{AddResult, OpenRequest, OpenRequestKind};
use super::proxied_server::lock_ignoring_poison;
use super::proxy_failure::ProxyFailure;
use super::proxy_shared::{CallDecision, ProxyJob, ProxyShared, RequestedCall};
use super::rpc_message::{
    CancelledParams, LISTENING_METHODS, RpcId, RpcLine, RpcMessage, STATELESS_VERSION_KEY,
};
use crate::call_params::CallParams;

/// Handles the messages of the client.
pub(super) struct ToServer<'a> {
    pub(super) shared: &'a ProxyShared,
}

/// What happens to a message.
enum ClientMessageAction<'a> {
    /// It is sent to the server.
    Send(&'a RawValue),
    /// It is a request that is sent to the server.
    Ask(&'a RawValue, OpenRequest),
    /// It is a tool call, which is sent if the guards permit it.
    Call(&'a RawValue, RequestedCall),
    /// It is answered without the server.
    Answer(String),
}

impl ToServer<'_> {
    /// Handles a line of the client, or the end of its input. Returns whether a tool call was sent
    /// to the server.
    pub(super) fn handle_read(&self, read: LineRead) -> bool {
        match read {
            LineRead::Line(line) => return self.handle_line(line),
            LineRead::TooLong { head, tail, bytes } => {
                let id = find_id_in_ends(&head, &tail).as_ref().and_then(RpcId::from_value);
                let failure = ProxyFailure::LineTooLong { bytes };
                self.shared.emit(failure.answer(id.as_ref()).into_bytes());
            }
            LineRead::End => self.shared.send(ProxyJob::Leave),
        }
        false
    }

    fn handle_line(&self, line: Vec<u8>) -> bool {
        if line.iter().all(u8::is_ascii_whitespace) {
            return false;
        }
        let parsed = std::str::from_utf8(&line).ok().and_then(RpcLine::parse);
        let Some(RpcLine { messages, batch }) = parsed else {
            self.shared.emit(ProxyFailure::NotAMessage.answer(None).into_bytes());
            return false;
        };
        let steps: Vec<ClientMessageAction<'_>> =
            messages.iter().map(|(raw, message)| self.choose_action(raw, message)).collect();
        let count = steps.len();
        let calls = steps.iter().any(|step| matches!(step, ClientMessageAction::Call(..)));
        let (sent, answers) = self.carry_out(steps);
        let has_messages = !sent.is_empty();
        if sent.len() == count {
            self.shared.forward(line);
        } else if has_messages {
            self.shared.forward(join_messages(&sent, batch));
        }
        if !answers.is_empty() {
            let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
            self.shared.emit(join_messages(&answers, batch));
        }
        if calls {
            self.shared.write_urgent_notes();
        }
        calls && has_messages
    }

    fn choose_action<'a>(
        &self,
        raw: &'a RawValue,
        message: &RpcMessage<'_>,
    ) -> ClientMessageAction<'a> {
        let Some(method) = message.method.as_deref() else { return ClientMessageAction::Send(raw) };
        let calls = method == "tools/call";
        let Some(id) = message.request_id() else {
            if message.id.is_some() {
                return ClientMessageAction::Answer(ProxyFailure::BadId.answer(None));
            }
            if calls {
                return ClientMessageAction::Answer(ProxyFailure::CallWithoutId.answer(None));
            }
            if method == "notifications/cancelled" {
                self.cancel_request(message);
            }
            return ClientMessageAction::Send(raw);
        };
        let params: Option<CallParams<'_>> = message.parse_params();
        // Two parsers could read it as two different calls.
        if calls && params.is_none() && message.params.is_some() {
            return ClientMessageAction::Answer(ProxyFailure::BadParams.answer(Some(&id)));
        }
        let params = params.unwrap_or_default();
        let what = match method {
            "tools/list" => OpenRequestKind::List,
            "initialize" => OpenRequestKind::Initialize,
            _ => OpenRequestKind::Other(method.to_owned()),
        };
        let meta = params.meta.as_ref();
        let open = OpenRequest {
            id,
            kind: what,
            stateless: meta.is_some_and(|meta| meta.get(STATELESS_VERSION_KEY).is_some()),
            progress: meta.and_then(|meta| RpcId::from_value(meta.get("progressToken")?)),
            deadline_ms: (!LISTENING_METHODS.contains(&method))
                .then(|| self.shared.new_deadline_ms()),
        };
        if !calls {
            return ClientMessageAction::Ask(raw, open);
        }
        // Do not ask the guards about a call that can't be sent.
        if let Some(gone) = lock_ignoring_poison(&self.shared.open_requests).gone() {
            return ClientMessageAction::Answer(
                ProxyFailure::ServerGone(gone.clone()).answer_to(&open),
            );
        }
        let tool = params.name.unwrap_or_default();
        let arguments = params.arguments.map(|raw| raw.get().to_owned());
        ClientMessageAction::Call(raw, RequestedCall { open, tool, arguments })
    }

    /// Carries out steps. Returns the messages to send, and the answers of the proxy.
    fn carry_out<'a>(&self, steps: Vec<ClientMessageAction<'a>>) -> (Vec<&'a str>, Vec<String>) {
        let (mut sent, mut answers) = (Vec::new(), Vec::new());
        let (mut calls, mut wants) = (Vec::new(), Vec::new());
        for (at, step) in steps.into_iter().enumerate() {
            match step {
                ClientMessageAction::Send(raw) => sent.push((at, raw.get())),
                ClientMessageAction::Ask(raw, open) => match self.open_request(&open) {
                    Ok(()) => sent.push((at, raw.get())),
                    Err(failure) => answers.push(failure.answer_to(&open)),
                },
                ClientMessageAction::Call(raw, want) => {
                    calls.push((at, raw, want.open.clone(), want.tool.clone()));
                    wants.push(want);
                }
                ClientMessageAction::Answer(answer) => answers.push(answer),
            }
        }
        let mut rulings = Vec::new();
        if !wants.is_empty() {
            let mut desk = lock_ignoring_poison(&self.shared.gate);
            rulings.extend(wants.iter().map(|want| desk.decide_call(want)));
        }
        for ((at, raw, open, tool), ruled) in calls.into_iter().zip(rulings) {
            match ruled {
                CallDecision::Answer(answer) => answers.push(answer),
                CallDecision::Permit(call) => {
                    let until_ms = open.deadline_ms.map(|_| self.shared.new_deadline_ms());
                    let open = OpenRequest {
                        kind: OpenRequestKind::Call { call, tool },
                        deadline_ms: until_ms,
                        ..open
                    };
                    match self.open_request(&open) {
                        Ok(()) => sent.push((at, raw.get())),
                        Err(failure) => {
                            answers.push(failure.answer_to(&open));
                            lock_ignoring_poison(&self.shared.gate).finish_without_result(
                                &open,
                                CallStatus::Cancelled,
                                None,
                            );
                        }
                    }
                }
            }
        }
        sent.sort_unstable_by_key(|(at, _)| *at);
        (sent.into_iter().map(|(_, raw)| raw).collect(), answers)
    }

    /// Opens a request, unless it can't be answered.
    fn open_request(&self, open: &OpenRequest) -> Result<(), ProxyFailure> {
        let result = lock_ignoring_poison(&self.shared.open_requests).add(open.clone());
        match result {
            AddResult::Open => Ok(()),
            AddResult::DuplicateId => Err(ProxyFailure::DuplicateId),
            AddResult::Gone(gone) => Err(ProxyFailure::ServerGone(gone)),
        }
    }

    /// Handles a cancelled request, which gets no answer.
    fn cancel_request(&self, message: &RpcMessage<'_>) {
        let params: Option<CancelledParams> = message.parse_params();
        let id = params.and_then(|params| RpcId::from_value(&params.request));
        let open = id.and_then(|id| lock_ignoring_poison(&self.shared.open_requests).remove(&id));
        if let Some(open) = open.filter(|open| matches!(open.kind, OpenRequestKind::Call { .. })) {
            self.shared.send(ProxyJob::Cancelled(open));
        }
    }
}

/// Joins messages to one line.
fn join_messages(messages: &[&str], batch: bool) -> Vec<u8> {
    let all = messages.join(",");
    if batch { format!("[{all}]") } else { all }.into_bytes()
}
