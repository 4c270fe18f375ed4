//! The scripted model without a server: for runs that need no key and no network.

use core::ops::ControlFlow;
use std::time::Duration;

use serde_json::json;

use super::script::{Broken, Player, Script, Step, for_each_text};
use crate::ask::{Call, Delta, End, Hearer, Message, Model, Reply, Request, Said, Usage};
use crate::error::{ErrorKind, ModelError};
use crate::refusal::Complaint;

/// How often whoever waits is asked whether it still does.
const TICK: Duration = Duration::from_millis(100);

/// A model that plays a script in this process.
pub struct InProcess {
    player: Player,
    /// How often it was asked, over all parts: makes the ids of calls differ.
    asked: usize,
}

impl InProcess {
    /// Plays a script from its beginning.
    pub fn new(script: Script) -> Self {
        Self { player: Player::new(script), asked: 0 }
    }

    /// Leaves out so many steps of the script: what was played before a restart. Parts of
    /// their own begin anew.
    #[must_use]
    pub fn after(mut self, steps: usize) -> Self {
        self.player.skip(steps);
        self.asked = steps;
        self
    }

    fn play(&self, step: &Step, hear: &mut Hearer<'_>) -> Result<Reply, ModelError> {
        wait(step.delay, hear)?;
        if let Some(status) = step.status {
            let error = refused(status, &step.text);
            return Err(ModelError { retry_after: step.retry_after, ..error });
        }
        let bad = |message: &str| Err(ModelError::new(ErrorKind::BadAnswer, message));
        match step.broken {
            Some(Broken::Nothing) => {
                return Err(ModelError::new(ErrorKind::Timeout, "the script says nothing"));
            }
            Some(Broken::Html) => return bad("the script says HTML"),
            _ => {}
        }
        let text = step.said();
        if step.broken == Some(Broken::Half) {
            let half = text.get(..text.floor_char_boundary(text.len() / 2)).unwrap_or_default();
            tell(hear, Delta::Text(half))?;
            return bad("the script says half of an answer");
        }
        if !text.is_empty() {
            tell(hear, Delta::Text(&text))?;
        }
        let mut calls = Vec::new();
        for (n, tool) in step.tools.iter().enumerate() {
            let arguments = tool.arguments();
            tell(hear, Delta::Call(&tool.name))?;
            tell(hear, Delta::Arguments(n, &arguments))?;
            let id = format!("call_{}_{n}", self.asked);
            calls.push(Call { id, name: tool.name.clone(), arguments });
        }
        let usage = Usage {
            input: step.usage.input,
            cache_read: step.usage.cache_read,
            cache_creation: step.usage.cache_creation,
            output: step.usage.output,
        };
        let whole = if calls.is_empty() { End::Turn } else { End::Calls };
        let end = if step.is_cut_off() { End::Length } else { whole };
        let said = Said { text: text.into_owned(), calls, kept: None };
        Ok(Reply { said, end, usage: Some(usage), request: None })
    }
}

impl Model for InProcess {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn ask(&mut self, request: &Request, hear: &mut Hearer<'_>) -> Result<Reply, ModelError> {
        let step = self.player.next(&opening(request)).step;
        self.asked += 1;
        self.play(&step, hear)
    }
}

/// What a conversation begins with: its system text and its first message.
fn opening(request: &Request) -> String {
    let mut text = format!("{}\n", request.system);
    match request.messages.first() {
        Some(Message::User(first)) => text.push_str(first),
        Some(other) => for_each_text(&json!(other), &mut |part| text.push_str(part)),
        None => {}
    }
    text
}

/// The failure that a server's status would be.
fn refused(status: u16, text: &str) -> ModelError {
    let said = if text.is_empty() { "the script says so" } else { text };
    let kind = Complaint::of(&json!({ "error": { "message": said } })).kind(Some(status));
    let message = format!("the script answered with status {status}: {said}");
    ModelError { status: Some(status), ..ModelError::new(kind, message) }
}

/// Waits in steps, so that it can be broken off.
fn wait(mut left: Duration, hear: &mut Hearer<'_>) -> Result<(), ModelError> {
    while !left.is_zero() {
        let tick = left.min(TICK);
        std::thread::sleep(tick);
        left = left.saturating_sub(tick);
        tell(hear, Delta::Waiting)?;
    }
    Ok(())
}

fn tell(hear: &mut Hearer<'_>, delta: Delta<'_>) -> Result<(), ModelError> {
    match hear(delta) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(ModelError::cancelled()),
    }
}
