//! A model whose answers a task file gives.
//!
//! It is not the scripted model of `jackline-model`: a script of a task that is over is an error,
//! it repeats its last answer only, and its answers cost no tokens.

use std::collections::VecDeque;

use jackline_model::{End, ErrorKind, Hearer, Model, ModelError, Reply, Request, Said};

/// The name of a scripted model in traces.
pub(super) const NAME: &str = "scripted";

/// What a scripted model says, one answer after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// The answers.
    pub answers: Vec<Answer>,
    /// Whether the last one is given for ever.
    pub repeats: bool,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It says something.
    Text(String),
    /// It does not answer in time. Nobody waits for that here.
    Timeout,
    /// It refuses, with a status such as 529.
    Status(u16),
}

/// A script under way.
pub(super) struct Player {
    answers: VecDeque<Answer>,
    repeats: bool,
}

impl Player {
    pub(super) fn new(script: &Script) -> Self {
        Self { answers: script.answers.iter().cloned().collect(), repeats: script.repeats }
    }

    fn next(&mut self) -> Option<Answer> {
        if self.repeats && self.answers.len() == 1 {
            return self.answers.front().cloned();
        }
        self.answers.pop_front()
    }
}

impl Model for Player {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ask(&mut self, _: &Request, _: &mut Hearer<'_>) -> Result<Reply, ModelError> {
        match self.next() {
            Some(Answer::Text(text)) => {
                let said = Said { text, ..Said::default() };
                Ok(Reply { said, end: End::Turn, usage: None, request: None })
            }
            Some(Answer::Timeout) => {
                Err(ModelError::new(ErrorKind::Timeout, "the model did not answer"))
            }
            Some(Answer::Status(status)) => Err(refused(status)),
            None => {
                let message = "the script has no further answer";
                Err(ModelError::new(ErrorKind::BadRequest, message))
            }
        }
    }
}

fn refused(status: u16) -> ModelError {
    let kind = match status {
        401 | 403 => ErrorKind::Auth,
        429 => ErrorKind::RateLimit,
        408 | 500.. => ErrorKind::Overload,
        _ => ErrorKind::BadRequest,
    };
    let message = format!("the model's server answered with status {status}: as the script says");
    ModelError { status: Some(status), ..ModelError::new(kind, message) }
}
