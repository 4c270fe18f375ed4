//! What a program can reach: the calls that its host answers, and nothing else.

use jackline_attempt::{AttemptViolation, InternalOutcome, Subtype};
use serde_json::{Map, Value};

use crate::protocol::Callables;

/// Answers the calls of programs. An implementation must send every call through the gate: a
/// program has no other way to act.
pub trait ProgramHost {
    /// What programs may call now. Queried again after a tool was generated.
    fn callables(&self) -> Callables;

    /// The context that programs share, without the lists of tools and delegates.
    fn context(&self) -> Map<String, Value>;

    /// Stores the context of a program. Called only for a program that succeeded.
    fn store_context(&mut self, context: Map<String, Value>);

    /// Calls a tool.
    fn call(&mut self, name: &str, arguments: Map<String, Value>) -> Result<Value, CallError>;

    /// The violations for a call of a tool that does not exist.
    fn refuse_unknown_tool(&mut self, name: &str) -> Vec<AttemptViolation> {
        vec![AttemptViolation::new(Subtype::UnknownTool, format!("tool `{name}` does not exist"))]
    }

    /// Runs a delegate, at the given depth.
    fn delegate(
        &mut self,
        name: &str,
        arguments: Map<String, Value>,
        depth: u32,
    ) -> Result<InternalOutcome, CallError>;

    /// Adds a tool that a program wrote. Its text was checked already. Its calls pass the gate like
    /// the calls of any tool.
    fn add_tool(&mut self, forged: GeneratedTool) -> Result<(), CallError>;
}

/// A tool that a program wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedTool {
    /// The name of the tool.
    pub name: String,
    /// The description for models.
    pub description: String,
    /// The source. It reads its arguments from `arguments`.
    pub source: String,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// The call was refused and did not run.
    Refused(Vec<AttemptViolation>),
    /// The call ran and failed.
    Failed {
        /// The error type: `network_error`, `not_found`, ….
        error_type: String,
        /// The error message.
        message: String,
    },
}
