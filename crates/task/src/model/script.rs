//! A model that says what a script says.

use std::collections::VecDeque;

use jackline_attempt::ProviderError;

use super::{Model, Reply, Request, provider_error};

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
    fn name(&self) -> String {
        "scripted".to_owned()
    }

    fn ask(&mut self, _: &Request) -> Result<Reply, ProviderError> {
        match self.next() {
            Some(Answer::Text(text)) => Ok(Reply { text, ..Reply::default() }),
            Some(Answer::Timeout) => Err(provider_error("timeout", "the model did not answer")),
            Some(Answer::Status(status)) => Err(super::refused(status, "as the script says")),
            None => {
                let over = provider_error("provider", "the script has no further answer");
                Err(ProviderError { retriable: false, ..over })
            }
        }
    }
}
