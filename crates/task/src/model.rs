//! Which model does a task: a script, one behind an address, or one of this machine.

mod chat;
mod script;

use std::cell::RefCell;
use std::rc::Rc;

use jackline_model::{LocalSpec, open_local};

use crate::author::{ModelAuthor, SharedAuthor};

pub use chat::Chat;
pub use script::{Answer, Script};

/// The model of a task.
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

/// Makes the author of a task; `key` returns the value of a variable.
pub(crate) fn make<'m>(
    spec: &ModelSpec,
    parent: Option<&SharedAuthor<'m>>,
    key: &dyn Fn(&str) -> Option<String>,
) -> SharedAuthor<'m> {
    let author = match (spec, parent) {
        (ModelSpec::Inherited, Some(parent)) => return Rc::clone(parent),
        (ModelSpec::Inherited, None) => scripted(&Script::default()),
        (ModelSpec::Script(script), _) => scripted(script),
        (ModelSpec::Chat(chat), _) => {
            let key = chat.key_env.as_deref().and_then(key);
            ModelAuthor::new(&chat.name, chat.connect(key.as_deref()))
        }
        (ModelSpec::Local(local), _) => ModelAuthor::new(local.name(), open_local(local)),
    };
    Rc::new(RefCell::new(author))
}

fn scripted(script: &Script) -> ModelAuthor {
    ModelAuthor::new(script::NAME, Ok(Box::new(script::Player::new(script))))
}
