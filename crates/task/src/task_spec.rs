//! The description of a task.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::task_model::TaskModel;

/// The name of a task file in its directory.
pub const TASK_FILE: &str = "task.yaml";

/// The description of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The name of the task in messages.
    pub name: String,
    /// The prompt of the task.
    pub prompt: String,
    /// The workspace tools that may be called.
    pub tools: Vec<String>,
    /// The definition file, if the task names one.
    pub definition: Option<PathBuf>,
    /// The model.
    pub model: TaskModel,
    /// The initial context of its programs.
    pub context: Map<String, Value>,
    /// The delegates that programs may call, by name.
    pub delegates: BTreeMap<String, Delegate>,
    /// What the model writes.
    pub artifact: ArtifactKind,
}

/// A task that programs of another task may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Delegate {
    /// The description for models.
    pub description: String,
    /// Whether its answers contain external data, so that answers that use them must name sources.
    pub external: bool,
    /// The task of the delegate. Without a model of its own it uses the model of its parent.
    pub task: Task,
}

/// What a model writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ArtifactKind {
    /// A program that calls tools.
    #[default]
    Program,
    /// A list of tool calls.
    Plan,
}
