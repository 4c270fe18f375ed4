//! The side that asks: waits for what the model writes, and leaves when nobody wants it.

use core::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::LocalSpec;
use super::grammar::{Form, forms, read_call};
use super::seat;
use crate::ask::{Delta, End, Hearer, Model, Reply, Request, Tool, Usage};
use crate::draft::{Draft, Trouble};
use crate::error::{ErrorKind, ModelError};

/// How often whoever waits is asked whether it still does.
const TICK: Duration = Duration::from_millis(100);

/// How long is waited for a model to see that nobody listens any more.
const FAREWELL: Duration = Duration::from_millis(500);

/// Whose the parts of an answer are.
const OWN: &str = "local";

/// One question, as it goes to the thread that has the model.
pub(super) struct Question {
    pub(super) request: Request,
    /// Within which of these it is answered: the first that can be followed.
    pub(super) forms: Vec<Form>,
    /// Whether nobody wants the answer any more.
    pub(super) left: Arc<AtomicBool>,
    pub(super) answers: Sender<Heard>,
}

impl Question {
    /// Whether the answer is still wanted.
    pub(super) fn goes_on(&self) -> Result<(), ModelError> {
        if self.left.load(Ordering::SeqCst) { Err(ModelError::cancelled()) } else { Ok(()) }
    }
}

/// What is heard of the thread.
pub(super) enum Heard {
    Text(String),
    Ended(Result<Written, ModelError>),
}

/// How an answer came to its end.
pub(super) struct Written {
    pub(super) end: End,
    pub(super) usage: Usage,
    /// How many tokens the context holds.
    pub(super) window: u64,
}

/// A model of this machine. It lives in a thread of its own, with what it has read so far,
/// so that the next question only costs what is new in it.
pub(super) struct Local {
    spec: LocalSpec,
    name: String,
    window: Option<u64>,
    /// Where it takes questions; gone where it failed.
    seat: Option<Sender<Question>>,
}

impl Local {
    pub(super) fn new(spec: &LocalSpec) -> Self {
        Self { spec: spec.clone(), name: spec.name().to_owned(), window: spec.window, seat: None }
    }

    /// Puts a question, to somebody new where nobody is there.
    fn put(&mut self, question: Question) -> Result<(), ModelError> {
        let unheard = match &self.seat {
            Some(seat) => match seat.send(question) {
                Ok(()) => return Ok(()),
                Err(unheard) => unheard.0,
            },
            None => question,
        };
        let (sender, questions) = channel();
        let spec = self.spec.clone();
        let thread = Builder::new().name("local model".to_owned());
        thread.spawn(move || seat::run(&spec, questions)).map_err(|error| {
            let message = format!("no thread can be started for the model: {error}");
            ModelError::new(ErrorKind::Network, message)
        })?;
        let sent = sender.send(unheard);
        self.seat = Some(sender);
        sent.map_err(|_| fault())
    }

    fn answer(&mut self, heard: &Receiver<Heard>, asked: Asked<'_>) -> Result<Reply, ModelError> {
        let Asked { tools, over, hear } = asked;
        let mut draft = Draft::default();
        let (mut call, mut empty) = (String::new(), true);
        let began = started();
        loop {
            if began.elapsed() >= self.spec.timeout {
                return Err(ModelError::new(ErrorKind::Timeout, "the answer took too long"));
            }
            let more = match heard.recv_timeout(TICK) {
                Ok(Heard::Text(more)) => more,
                Ok(Heard::Ended(written)) => {
                    // Nobody is at work on it any more, so nobody has to be waited for.
                    over.store(true, Ordering::SeqCst);
                    let Written { end, usage, window } = written?;
                    self.window = Some(window);
                    match read_call(&call, tools) {
                        Some((tool, arguments)) => {
                            let number = draft.call("", tool, None, hear).map_err(left)?;
                            draft.arguments(number, arguments, hear).map_err(left)?;
                        }
                        None => draft.text(&call, hear).map_err(left)?,
                    }
                    draft.usage = Some(usage);
                    draft.end = Some(end);
                    return draft.reply(OWN).ok_or_else(fault);
                }
                Err(RecvTimeoutError::Timeout) => String::new(),
                Err(RecvTimeoutError::Disconnected) => return Err(fault()),
            };
            // A call is told when it is whole: until then nobody knows of which tool it is.
            if !call.is_empty() || (empty && !tools.is_empty() && more.starts_with('{')) {
                call.push_str(&more);
            } else if !more.is_empty() {
                draft.text(&more, hear).map_err(left)?;
                empty = false;
                continue;
            }
            if hear(Delta::Waiting) == ControlFlow::Break(()) {
                return Err(ModelError::cancelled());
            }
        }
    }
}

/// Who asks, and what may be called.
struct Asked<'a> {
    tools: &'a [Tool],
    /// Whether nobody is at work on it, or nobody wants it any more.
    over: &'a AtomicBool,
    hear: &'a mut Hearer<'a>,
}

impl Model for Local {
    fn name(&self) -> &str {
        &self.name
    }

    fn window(&self) -> Option<u64> {
        self.window
    }

    fn ask(&mut self, request: &Request, hear: &mut Hearer<'_>) -> Result<Reply, ModelError> {
        let (answers, heard) = channel();
        let over = Arc::new(AtomicBool::new(false));
        self.put(Question {
            request: request.clone(),
            forms: forms(request),
            left: Arc::clone(&over),
            answers,
        })?;
        let tools = if request.output.is_some() { &[][..] } else { &request.tools };
        let mut hear = |delta: Delta<'_>| hear(delta);
        let answer = self.answer(&heard, Asked { tools, over: &over, hear: &mut hear });
        if answer.is_err() && !over.swap(true, Ordering::SeqCst) {
            part(&heard);
        }
        answer
    }
}

/// Waits a moment for a model to see that nobody listens, so that the next question does not
/// find it at work.
fn part(heard: &Receiver<Heard>) {
    let began = started();
    while let Some(rest) = FAREWELL.checked_sub(began.elapsed()) {
        if !matches!(heard.recv_timeout(rest), Ok(Heard::Text(_))) {
            return;
        }
    }
}

/// Whoever listens does not want more.
fn left(_: Trouble) -> ModelError {
    ModelError::cancelled()
}

/// The thread did not get to its end.
fn fault() -> ModelError {
    ModelError::new(ErrorKind::BadAnswer, "the model ended in an internal fault")
}

fn started() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "a limit on time decides nothing that is recorded"
    )]
    Instant::now()
}
