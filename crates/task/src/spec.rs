//! What is to be done, and with what.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::model::ModelSpec;

/// The name of a task file in its directory.
pub const TASK_FILE: &str = "task.yaml";

/// What is to be done, and with what.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// What it is called in messages.
    pub name: String,
    /// What is asked for.
    pub prompt: String,
    /// Tools of the workspace that may be called.
    pub tools: Vec<String>,
    /// The definition, where it is not the usual one.
    pub definition: Option<PathBuf>,
    /// Who does it.
    pub model: ModelSpec,
    /// What programs remember at first.
    pub context: Map<String, Value>,
    /// Who may be asked for help, by name.
    pub delegates: BTreeMap<String, Delegate>,
    /// What the model writes.
    pub artifact: ArtifactKind,
}

/// Somebody who may be asked for help.
#[derive(Debug, Clone, PartialEq)]
pub struct Delegate {
    /// What they do, in words.
    pub description: String,
    /// Whether their answers come from outside, so that whoever uses them says from where.
    pub external: bool,
    /// What they are asked for. Who has no model of their own has that of their parent.
    pub task: Task,
}

/// What a model writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ArtifactKind {
    /// A program that calls tools.
    #[default]
    Program,
    /// A list of calls.
    Plan,
}
