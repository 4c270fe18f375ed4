//! The model of a task: a script, a network address or a file of this machine.

mod chat;
mod script;

use std::cell::RefCell;
use std::rc::Rc;

use jackline_model::{LocalModelSpec, open_local_model};

use crate::author::{ModelAuthor, SharedAuthor};

pub use chat::ChatSpec;
pub use script::{ScriptedAnswer, TaskScript};

/// The model of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskModel {
    /// The model of the parent task.
    Inherited,
    /// A script.
    Script(TaskScript),
    /// A model behind a network address.
    Chat(ChatSpec),
    /// A model file on this machine, run in this process.
    Local(LocalModelSpec),
}

/// Creates the author of a task; `key` returns the value of a variable.
pub(crate) fn create_author<'m>(
    spec: &TaskModel,
    parent: Option<&SharedAuthor<'m>>,
    key: &dyn Fn(&str) -> Option<String>,
) -> SharedAuthor<'m> {
    let author = match (spec, parent) {
        (TaskModel::Inherited, Some(parent)) => return Rc::clone(parent),
        (TaskModel::Inherited, None) => scripted(&TaskScript::default()),
        (TaskModel::Script(script), _) => scripted(script),
        (TaskModel::Chat(chat), _) => {
            let key = chat.key_env.as_deref().and_then(key);
            ModelAuthor::new(&chat.name, chat.connect(key.as_deref()))
        }
        (TaskModel::Local(local), _) => ModelAuthor::new(local.name(), open_local_model(local)),
    };
    Rc::new(RefCell::new(author))
}

fn scripted(script: &TaskScript) -> ModelAuthor {
    ModelAuthor::new(script::NAME, Ok(Box::new(script::ScriptPlayer::new(script))))
}
