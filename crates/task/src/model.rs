//! Who writes programs and plans: a script, or a model behind an address or of this machine.

mod chat;
mod script;

use std::cell::RefCell;
use std::rc::Rc;

use jackline_attempt::ProviderError;
use jackline_model::LocalSpec;

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
pub(crate) struct Request {
    /// What holds for every task, and stays the same from one to the next.
    pub(crate) system: String,
    /// The task, and what was wrong before.
    pub(crate) user: String,
}

/// What a model says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) usage: Option<Usage>,
    /// Whether it ran into a limit of length.
    pub(crate) cut_off: bool,
}

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

/// Somebody who answers.
pub(crate) trait Model {
    fn name(&self) -> String;

    fn ask(&mut self, request: &Request) -> Result<Reply, ProviderError>;
}

/// A model that a call and its delegates share.
pub(crate) type Shared = Rc<RefCell<dyn Model>>;

/// Makes the model of a task; `key` gives what a variable says.
pub(crate) fn make(
    spec: &ModelSpec,
    parent: Option<&Shared>,
    key: &dyn Fn(&str) -> Option<String>,
) -> Shared {
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
