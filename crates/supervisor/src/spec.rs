//! What is to be done, and by whom.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jackline_model::scripted::Script;

use crate::engines::EngineSpec;

/// How a model acts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Acts {
    /// It calls tools, one after the other.
    #[default]
    Tools,
    /// It writes programs that call tools, each of them an attempt.
    Programs,
}

/// What is to be done, and by whom.
#[derive(Debug, Clone, PartialEq)]
pub struct RunTask {
    /// What it is called in messages.
    pub name: String,
    /// The file that it was read from.
    pub file: PathBuf,
    /// What is asked for.
    pub prompt: String,
    /// The definition, where it is not the usual one.
    pub definition: Option<PathBuf>,
    /// A directory of which a copy is worked on.
    pub copy: Option<PathBuf>,
    /// How a model acts.
    pub acts: Acts,
    /// Tools that may be called; all where it is empty.
    pub tools: Vec<String>,
    /// Who does it, before those that the definition names.
    pub engine: Option<EngineSpec>,
    /// What models that play a script say, by their names.
    pub scripts: BTreeMap<String, Script>,
    /// The role in which the agent acts.
    pub role: Option<String>,
    /// Whether only those may see it whom the definition allows what is sensitive.
    pub sensitive: bool,
}
