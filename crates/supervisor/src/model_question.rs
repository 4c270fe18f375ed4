//! Asks a model on a thread, so that the run can stop while the model is silent.
//!
//! A model may take minutes to answer. The caller returns as soon as the run has to stop or the
//! time of the session is used up. The thread then ends on its own, at the latest when the request
//! times out.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use jackline_host::clock::now;
use jackline_model::{
    AnswerDelta, Model, ModelError, ModelErrorKind, ModelReply, ModelRequest, RetryPolicy,
    ask_with_retries,
};

use crate::reply_listener::{CutReply, ReplyListener, ToolSchemas};
use crate::stop_signals::StopSignals;

/// How often the caller checks whether the run has to stop.
const STOP_CHECK_PAUSE: Duration = Duration::from_millis(50);

/// How a question to a model ended.
pub(crate) enum QuestionOutcome {
    /// The model answered.
    Reply(Box<ModelReply>),
    /// The answer was cut, because its last call could not become valid.
    CutShort(Box<CutReply>),
    /// The model did not answer.
    Failed(ModelError),
    /// The run stopped, or its time was used up, before the model answered.
    Abandoned,
}

/// A message from the thread that asks the model.
enum AskThreadMessage {
    /// The thread pauses before it tries again.
    Pausing(Duration, ModelError),
    Finished(Box<dyn Model>, Result<ModelReply, ModelError>),
    CutShort(Box<dyn Model>, Box<CutReply>),
}

/// A question to a model, with the retries and the time that it may use.
pub(crate) struct ModelQuestion {
    pub(crate) request: ModelRequest,
    /// The schemas for the arguments of calls.
    pub(crate) schemas: Arc<ToolSchemas>,
    pub(crate) patience: RetryPolicy,
    /// How long the caller waits for an answer. `None` means no limit.
    pub(crate) time_left: Option<Duration>,
}

/// Asks the model. Returns the model too, unless the thread still uses it. `waits` is called before
/// each pause.
pub(crate) fn ask_model(
    mut model: Box<dyn Model>,
    asked: ModelQuestion,
    lookout: &StopSignals,
    waits: &mut dyn FnMut(Duration, &ModelError),
) -> (Option<Box<dyn Model>>, QuestionOutcome) {
    let ModelQuestion { request, schemas, patience, time_left } = asked;
    let in_ms = |left: Duration| u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
    let ends_ms = time_left.map(|left| now().boot_ms.saturating_add(in_ms(left)));
    let is_late = || ends_ms.is_some_and(|ends| now().boot_ms >= ends);
    if is_late() {
        return (Some(model), QuestionOutcome::Abandoned);
    }
    let (sender, receiver) = channel();
    let abandoned = Arc::new(AtomicBool::new(false));
    let thread_abandoned = Arc::clone(&abandoned);
    let spawned = Builder::new().name("model-request".to_owned()).spawn(move || {
        let mut listening = ReplyListener::new(&schemas);
        let answer = ask_on_thread(
            &mut *model,
            &request,
            &mut listening,
            &patience,
            &thread_abandoned,
            &sender,
        );
        // The receiver may be gone already.
        let _ = sender.send(match listening.into_cut() {
            Some(cut) => AskThreadMessage::CutShort(model, Box::new(cut)),
            None => AskThreadMessage::Finished(model, answer),
        });
    });
    if let Err(error) = spawned {
        let message = format!("can't start a thread: {error}");
        return (None, QuestionOutcome::Failed(ModelError::new(ModelErrorKind::Network, message)));
    }
    loop {
        match receiver.recv_timeout(STOP_CHECK_PAUSE) {
            Ok(AskThreadMessage::Pausing(pause, error)) => waits(pause, &error),
            Ok(AskThreadMessage::Finished(model, Ok(reply))) => {
                return (Some(model), QuestionOutcome::Reply(Box::new(reply)));
            }
            Ok(AskThreadMessage::CutShort(model, cut)) => {
                return (Some(model), QuestionOutcome::CutShort(cut));
            }
            Ok(AskThreadMessage::Finished(model, Err(error))) => {
                return (Some(model), QuestionOutcome::Failed(error));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let message = "the thread that asked the model failed with an internal fault";
                return (
                    None,
                    QuestionOutcome::Failed(ModelError::new(ModelErrorKind::BadAnswer, message)),
                );
            }
        }
        if lookout.should_stop() || is_late() {
            abandoned.store(true, Ordering::SeqCst);
            return (None, QuestionOutcome::Abandoned);
        }
    }
}

fn ask_on_thread(
    model: &mut dyn Model,
    request: &ModelRequest,
    listening: &mut ReplyListener<'_>,
    patience: &RetryPolicy,
    abandoned: &AtomicBool,
    sender: &Sender<AskThreadMessage>,
) -> Result<ModelReply, ModelError> {
    let check_abandoned = || {
        let is_abandoned = abandoned.load(Ordering::SeqCst);
        if is_abandoned { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut hear = |delta: AnswerDelta<'_>| {
        listening.feed(delta)?;
        check_abandoned()
    };
    let mut wait = |pause: Duration, error: &ModelError| {
        let _ = sender.send(AskThreadMessage::Pausing(pause, error.clone()));
        let mut waited = Duration::ZERO;
        while waited < pause {
            check_abandoned()?;
            let next = STOP_CHECK_PAUSE.min(pause.saturating_sub(waited));
            std::thread::sleep(next);
            waited += next;
        }
        check_abandoned()
    };
    ask_with_retries(model, request, &mut hear, patience, &mut wait)
}
