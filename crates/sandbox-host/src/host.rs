//! What a program can reach: whatever its host answers, and nothing else.

use jackline_attempt::{InternalOutcome, Subtype, Violation};
use serde_json::{Map, Value};

use crate::protocol::Known;

/// Answers what programs ask for. Whoever implements it has every call pass the gate: a
/// program has no other way out.
pub trait Host {
    /// What may be called now. Asked again after something was forged.
    fn known(&self) -> Known;

    /// What programs remember from one to the next, without what may be called.
    fn context(&self) -> Map<String, Value>;

    /// Keeps what a program wants to be remembered. Only one that did what it was asked
    /// for gets here.
    fn remember(&mut self, context: Map<String, Value>);

    /// Calls a tool.
    fn call(&mut self, name: &str, arguments: Map<String, Value>) -> Result<Value, CallError>;

    /// Objects to a call of a tool that is not there.
    fn refuse_unknown_tool(&mut self, name: &str) -> Vec<Violation> {
        vec![Violation::new(Subtype::UnknownTool, format!("there is no tool `{name}`"))]
    }

    /// Has somebody else do something, at a depth of their own.
    fn delegate(
        &mut self,
        name: &str,
        arguments: Map<String, Value>,
        depth: u32,
    ) -> Result<InternalOutcome, CallError>;

    /// Takes a tool that a program wrote. Nothing is wrong with its text; what it does
    /// is seen when it is called, as any tool is.
    fn forge(&mut self, forged: Forged) -> Result<(), CallError>;
}

/// A tool that a program wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forged {
    /// Its name.
    pub name: String,
    /// What it does, in words.
    pub description: String,
    /// Its program, which finds what it is called with in `arguments`.
    pub source: String,
}

/// Why a call came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// It was not made: somebody objects.
    Refused(Vec<Violation>),
    /// It was made, and failed.
    Failed {
        /// A word for it: `network_error`, `not_found`, ….
        error_type: String,
        /// What happened.
        message: String,
    },
}
