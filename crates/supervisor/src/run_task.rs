//! The task of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jackline_model::scripted::ModelScript;

use crate::engines::EngineSpec;

/// How a model acts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ActionMode {
    /// The model calls tools, one after the other.
    #[default]
    Tools,
    /// The model writes programs that call tools. Each program is an attempt.
    Programs,
}

/// The task of a run, as its task file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct RunTask {
    /// The name of the task in messages.
    pub name: String,
    /// The task file.
    pub file: PathBuf,
    /// The prompt of the task.
    pub prompt: String,
    /// The definition file, if the task names one.
    pub definition: Option<PathBuf>,
    /// A directory to copy; the run works in the copy.
    pub copy: Option<PathBuf>,
    /// How a model acts.
    pub action_mode: ActionMode,
    /// The tools that may be called. Empty means all tools.
    pub tools: Vec<String>,
    /// The engine of the task. It comes before the engines of the definition.
    pub engine: Option<EngineSpec>,
    /// The scripts of scripted models, by model name.
    pub scripts: BTreeMap<String, ModelScript>,
    /// The role of the agent.
    pub role: Option<String>,
    /// Whether only engines with `when: [sensitive]` may see the task.
    pub sensitive: bool,
}
