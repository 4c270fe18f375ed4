//! Asks a model, and does not wait for it where a person wants the run to end.
//!
//! A model that is asked may be silent for minutes. So the question is put by a thread of
//! its own: whoever waits here can leave at any time, and does so when the session's time is
//! up; the thread ends by itself, at the latest when its own time is over.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use jackline_host::clock::now;
use jackline_model::{
    Delta, ErrorKind, Model, ModelError, Patience, Reply, Request, ask_patiently,
};

use crate::listening::{Cut, Listening, Schemas};
use crate::lookout::Lookout;

/// How often is looked whether the run is to end.
const TICK: Duration = Duration::from_millis(50);

/// What comes of a question.
pub(crate) enum Asked {
    /// An answer.
    Reply(Box<Reply>),
    /// One that was cut, because it could not become valid.
    Cut(Box<Cut>),
    /// None, and why.
    Failed(ModelError),
    /// Nobody waits for it any more.
    Over,
}

/// What is heard of the thread.
enum Heard {
    /// It waits before it asks again.
    Waits(Duration, ModelError),
    Ended(Box<dyn Model>, Result<Reply, ModelError>),
    Cut(Box<dyn Model>, Box<Cut>),
}

/// A question, and how it is asked.
pub(crate) struct Question {
    pub(crate) request: Request,
    /// What the arguments of calls have to look like.
    pub(crate) schemas: Arc<Schemas>,
    pub(crate) patience: Patience,
    /// How long anybody waits for an answer; as long as it takes where there is none.
    pub(crate) time_left: Option<Duration>,
}

/// Asks, and gives the model back unless it is still asked. `waits` is told of pauses.
pub(crate) fn ask(
    mut model: Box<dyn Model>,
    asked: Question,
    lookout: &Lookout,
    waits: &mut dyn FnMut(Duration, &ModelError),
) -> (Option<Box<dyn Model>>, Asked) {
    let Question { request, schemas, patience, time_left } = asked;
    let in_ms = |left: Duration| u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
    let ends_ms = time_left.map(|left| now().boot_ms.saturating_add(in_ms(left)));
    let is_late = || ends_ms.is_some_and(|ends| now().boot_ms >= ends);
    if is_late() {
        return (Some(model), Asked::Over);
    }
    let (sender, receiver) = channel();
    let left = Arc::new(AtomicBool::new(false));
    let leaves = Arc::clone(&left);
    let spawned = Builder::new().name("asks a model".to_owned()).spawn(move || {
        let mut listening = Listening::new(&schemas);
        let answer = question(&mut *model, &request, &mut listening, &patience, &leaves, &sender);
        // Nobody may be there any more.
        let _ = sender.send(match listening.cut() {
            Some(cut) => Heard::Cut(model, Box::new(cut)),
            None => Heard::Ended(model, answer),
        });
    });
    if let Err(error) = spawned {
        let message = format!("no thread can be started: {error}");
        return (None, Asked::Failed(ModelError::new(ErrorKind::Network, message)));
    }
    loop {
        match receiver.recv_timeout(TICK) {
            Ok(Heard::Waits(pause, error)) => waits(pause, &error),
            Ok(Heard::Ended(model, Ok(reply))) => {
                return (Some(model), Asked::Reply(Box::new(reply)));
            }
            Ok(Heard::Cut(model, cut)) => return (Some(model), Asked::Cut(cut)),
            Ok(Heard::Ended(model, Err(error))) => return (Some(model), Asked::Failed(error)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let message = "asking the model ended in an internal fault";
                return (None, Asked::Failed(ModelError::new(ErrorKind::BadAnswer, message)));
            }
        }
        if lookout.is_over() || is_late() {
            left.store(true, Ordering::SeqCst);
            return (None, Asked::Over);
        }
    }
}

fn question(
    model: &mut dyn Model,
    request: &Request,
    listening: &mut Listening<'_>,
    patience: &Patience,
    leaves: &AtomicBool,
    sender: &Sender<Heard>,
) -> Result<Reply, ModelError> {
    let goes_on = || {
        let left = leaves.load(Ordering::SeqCst);
        if left { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut hear = |delta: Delta<'_>| {
        listening.hear(delta)?;
        goes_on()
    };
    let mut wait = |pause: Duration, error: &ModelError| {
        let _ = sender.send(Heard::Waits(pause, error.clone()));
        let mut waited = Duration::ZERO;
        while waited < pause {
            goes_on()?;
            let next = TICK.min(pause.saturating_sub(waited));
            std::thread::sleep(next);
            waited += next;
        }
        goes_on()
    };
    ask_patiently(model, request, &mut hear, patience, &mut wait)
}
