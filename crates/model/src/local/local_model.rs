//! The caller's side of a local model: waits for its output, and can cancel.

use core::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::LocalModelSpec;
use super::grammar::{AnswerForm, answer_forms, read_call};
use super::model_thread;
use crate::answer_draft::{AnswerDraft, AnswerError};
use crate::conversation::{
    AnswerDelta, AnswerEnd, DeltaReceiver, Model, ModelReply, ModelRequest, TokenUsage,
    ToolDeclaration,
};
use crate::error::{ModelError, ModelErrorKind};

/// How often a waiting caller can cancel.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// How long a cancelled caller waits for the model to stop.
const STOP_WAIT: Duration = Duration::from_millis(500);

/// The provider name of the answers.
const PROVIDER_NAME: &str = "local";

/// A request, as it is sent to the model thread.
pub(super) struct LocalRequest {
    pub(super) request: ModelRequest,
    /// The allowed forms of the answer. The first one that the decoder supports is used.
    pub(super) forms: Vec<AnswerForm>,
    /// Whether the caller no longer needs the answer.
    pub(super) is_abandoned: Arc<AtomicBool>,
    pub(super) answers: Sender<ModelThreadEvent>,
}

impl LocalRequest {
    /// Fails if the caller no longer needs the answer.
    pub(super) fn check_wanted(&self) -> Result<(), ModelError> {
        if self.is_abandoned.load(Ordering::SeqCst) { Err(ModelError::cancelled()) } else { Ok(()) }
    }
}

/// A message of the model thread.
pub(super) enum ModelThreadEvent {
    Text(String),
    Ended(Result<FinishedAnswer, ModelError>),
}

/// How an answer ended.
pub(super) struct FinishedAnswer {
    pub(super) end: AnswerEnd,
    pub(super) usage: TokenUsage,
    /// The size of the context window in tokens.
    pub(super) window: u64,
}

/// A local model. Its thread keeps the tokens that the model has read, so that the next request
/// only has to process its new part.
pub(super) struct LocalModel {
    spec: LocalModelSpec,
    name: String,
    window: Option<u64>,
    /// The sender to the model thread; `None` before the first request.
    requests: Option<Sender<LocalRequest>>,
}

impl LocalModel {
    pub(super) fn new(spec: &LocalModelSpec) -> Self {
        Self {
            spec: spec.clone(),
            name: spec.name().to_owned(),
            window: spec.window,
            requests: None,
        }
    }

    /// Sends a request to the model thread. Starts a new thread if there is none.
    fn send_request(&mut self, question: LocalRequest) -> Result<(), ModelError> {
        let undelivered = match &self.requests {
            Some(seat) => match seat.send(question) {
                Ok(()) => return Ok(()),
                Err(undelivered) => undelivered.0,
            },
            None => question,
        };
        let (sender, questions) = channel();
        let spec = self.spec.clone();
        let thread = Builder::new().name("local model".to_owned());
        thread.spawn(move || model_thread::run_model_thread(&spec, questions)).map_err(
            |error| {
                let message = format!("can't start a thread for the model: {error}");
                ModelError::new(ModelErrorKind::Network, message)
            },
        )?;
        let sent = sender.send(undelivered);
        self.requests = Some(sender);
        sent.map_err(|_| thread_ended_error())
    }

    fn receive_answer(
        &mut self,
        events: &Receiver<ModelThreadEvent>,
        asked: AnswerReceiver<'_>,
    ) -> Result<ModelReply, ModelError> {
        let AnswerReceiver { tools, is_finished: over, hear } = asked;
        let mut draft = AnswerDraft::default();
        let (mut call, mut empty) = (String::new(), true);
        let began = start_time();
        loop {
            if began.elapsed() >= self.spec.timeout {
                return Err(ModelError::new(ModelErrorKind::Timeout, "the answer took too long"));
            }
            let more = match events.recv_timeout(CANCEL_CHECK_INTERVAL) {
                Ok(ModelThreadEvent::Text(more)) => more,
                Ok(ModelThreadEvent::Ended(written)) => {
                    // The model has finished, so the caller need not wait for it.
                    over.store(true, Ordering::SeqCst);
                    let FinishedAnswer { end, usage, window } = written?;
                    self.window = Some(window);
                    match read_call(&call, tools) {
                        Some((tool, arguments)) => {
                            let number =
                                draft.start_call("", tool, None, hear).map_err(cancelled_error)?;
                            draft
                                .add_arguments(number, arguments, hear)
                                .map_err(cancelled_error)?;
                        }
                        None => draft.add_text(&call, hear).map_err(cancelled_error)?,
                    }
                    draft.usage = Some(usage);
                    draft.end = Some(end);
                    return draft.into_reply(PROVIDER_NAME).ok_or_else(thread_ended_error);
                }
                Err(RecvTimeoutError::Timeout) => String::new(),
                Err(RecvTimeoutError::Disconnected) => return Err(thread_ended_error()),
            };
            // A call is passed on when it is complete, because the tool is not known before.
            if !call.is_empty() || (empty && !tools.is_empty() && more.starts_with('{')) {
                call.push_str(&more);
            } else if !more.is_empty() {
                draft.add_text(&more, hear).map_err(cancelled_error)?;
                empty = false;
                continue;
            }
            if hear(AnswerDelta::Waiting) == ControlFlow::Break(()) {
                return Err(ModelError::cancelled());
            }
        }
    }
}

/// The caller of a request, and the tools that may be called.
struct AnswerReceiver<'a> {
    tools: &'a [ToolDeclaration],
    /// Whether the model has finished, or the caller no longer needs the answer.
    is_finished: &'a AtomicBool,
    hear: &'a mut DeltaReceiver<'a>,
}

impl Model for LocalModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn window(&self) -> Option<u64> {
        self.window
    }

    fn ask(
        &mut self,
        request: &ModelRequest,
        hear: &mut DeltaReceiver<'_>,
    ) -> Result<ModelReply, ModelError> {
        let (answers, events) = channel();
        let over = Arc::new(AtomicBool::new(false));
        self.send_request(LocalRequest {
            request: request.clone(),
            forms: answer_forms(request),
            is_abandoned: Arc::clone(&over),
            answers,
        })?;
        let tools = if request.output.is_some() { &[][..] } else { &request.tools };
        let mut hear = |delta: AnswerDelta<'_>| hear(delta);
        let answer = self
            .receive_answer(&events, AnswerReceiver { tools, is_finished: &over, hear: &mut hear });
        if answer.is_err() && !over.swap(true, Ordering::SeqCst) {
            wait_for_stop(&events);
        }
        answer
    }
}

/// Waits briefly for the model to stop, so that it is not busy at the next request.
fn wait_for_stop(events: &Receiver<ModelThreadEvent>) {
    let began = start_time();
    while let Some(rest) = STOP_WAIT.checked_sub(began.elapsed()) {
        if !matches!(events.recv_timeout(rest), Ok(ModelThreadEvent::Text(_))) {
            return;
        }
    }
}

/// The error after the receiver stopped the answer.
fn cancelled_error(_: AnswerError) -> ModelError {
    ModelError::cancelled()
}

/// The error if the model thread ended unexpectedly.
fn thread_ended_error() -> ModelError {
    ModelError::new(ModelErrorKind::BadAnswer, "the model thread ended unexpectedly")
}

fn start_time() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "a timeout affects nothing that is recorded")]
    Instant::now()
}
