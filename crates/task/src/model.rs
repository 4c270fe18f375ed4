//! Who writes programs and plans: a script, or a model behind an address or of this machine.

mod chat;
mod script;

use std::cell::RefCell;
use std::rc::Rc;

use jackline_attempt::ProviderError;
use jackline_model::LocalSpec;
use serde_json::Value;

pub use chat::Chat;
pub use script::{Answer, Script};

/// Who does a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSpec {
    /// The one that its parent has.
    Inherited,
    /// A script.
    Script(Script),
    /// A model behind an address.
    Chat(Chat),
    /// A file of this machine, run in this process.
    Local(LocalSpec),
}

/// What a model is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What holds for every task, and stays the same from one to the next.
    pub system: String,
    /// What is asked for. Who keeps a conversation may have it there already.
    pub task: String,
    /// What there is to do it with.
    pub means: String,
    /// What was wrong before, and what the guards have to say; empty at first.
    pub news: String,
    /// The JSON Schema of the answer, where it is no free text.
    pub output: Option<Value>,
}

impl Request {
    /// All of it but what holds for every task, for a model that is asked once.
    pub fn user(&self) -> String {
        let parts = [&self.task, &self.means, &self.news].into_iter();
        let parts = parts.filter(|part| !part.is_empty()).map(String::as_str);
        parts.collect::<Vec<_>>().join("\n\n")
    }
}

/// What a model says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// Its words.
    pub text: String,
    /// What they have cost, where that is still to be written down.
    pub usage: Option<Usage>,
    /// Whether it ran into a limit of length.
    pub cut_off: bool,
}

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Those that were read.
    pub input: u64,
    /// Those that were written.
    pub output: u64,
}

/// Somebody who answers.
pub trait Model {
    /// What it is called in traces.
    fn name(&self) -> String;

    /// Answers, or says why not.
    fn ask(&mut self, request: &Request) -> Result<Reply, ProviderError>;
}

/// A model that a call and its delegates share.
pub type SharedModel<'m> = Rc<RefCell<dyn Model + 'm>>;

/// Makes the model of a task; `key` gives what a variable says.
pub(crate) fn make<'m>(
    spec: &ModelSpec,
    parent: Option<&SharedModel<'m>>,
    key: &dyn Fn(&str) -> Option<String>,
) -> SharedModel<'m> {
    match (spec, parent) {
        (ModelSpec::Inherited, Some(parent)) => Rc::clone(parent),
        (ModelSpec::Inherited, None) => {
            Rc::new(RefCell::new(script::Player::new(&Script::default())))
        }
        (ModelSpec::Script(script), _) => Rc::new(RefCell::new(script::Player::new(script))),
        (ModelSpec::Chat(chat), _) => {
            let key = chat.key_env.as_deref().and_then(key);
            Rc::new(RefCell::new(chat::Asked::new(chat, key.as_deref())))
        }
        (ModelSpec::Local(local), _) => Rc::new(RefCell::new(chat::Asked::local(local))),
    }
}

/// An error that asking again may get over.
pub(crate) fn provider_error(error_type: &str, message: impl Into<String>) -> ProviderError {
    ProviderError { error_type: error_type.to_owned(), message: message.into(), retriable: true }
}

/// A request that was refused with a status.
fn refused(status: u16, reason: &str) -> ProviderError {
    let (error_type, retriable) = match status {
        401 | 403 => ("missing_credentials", false),
        429 => ("rate_limited", true),
        408 | 500.. => ("provider", true),
        _ => ("provider", false),
    };
    let message = format!("the model's server answered with status {status}: {reason}");
    ProviderError { error_type: error_type.to_owned(), message, retriable }
}
