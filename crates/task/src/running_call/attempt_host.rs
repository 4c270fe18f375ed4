//! Answers the calls of a program: each one is proposed to the guards, and runs inside the attempt.

use std::cell::RefCell;

use crate::registry::{RegistryError, StoredTool};
use jackline_attempt::ToolState;
use jackline_attempt::{
    ArtifactFault, ArtifactOutcome, AttemptViolation, Executor as _, InternalOutcome, Subtype,
    Validator as _,
};
use jackline_engine::CallStatus;
use jackline_runtime::CallResult;
use jackline_sandbox_host::{
    CallError, CallableSpec, Callables, GeneratedTool, ProgramHost, PythonProgram,
    checker_and_runner,
};
use jackline_workspace::{SHELL, ShownContent, ToolErrorCode};
use serde_json::{Map, Value, json};

use crate::call_tree_state::CommandEffect;
use crate::running_call::RunningCall;
use crate::task_model;

/// The tool name under which calls of delegates are proposed.
const DELEGATE_TOOL: &str = "delegate";

/// How deep generated tools may call each other.
const GENERATED_TOOL_DEPTH_MAX: u32 = 4;

/// How many characters of a command are listed if it can't be undone.
const COMMAND_CHARS_MAX: usize = 200;

/// The host of the programs of a call.
pub(crate) struct AttemptHost<'a, 's, 'r> {
    calling: &'a RunningCall<'s, 'r>,
    /// How many generated tools are between the program and this host.
    nesting: u32,
}

impl<'a, 's, 'r> AttemptHost<'a, 's, 'r> {
    pub(crate) fn new(calling: &'a RunningCall<'s, 'r>) -> Self {
        Self { calling, nesting: 0 }
    }

    /// The generated tools that are not degraded.
    fn generated_tools(&self) -> Vec<StoredTool> {
        let listing = self.calling.shared.overlay.borrow().list().unwrap_or_default();
        let is_good = |tool: &StoredTool| tool.health.state() != ToolState::Degraded;
        listing.tools.into_iter().filter(is_good).collect()
    }

    fn is_workspace_tool(&self, name: &str) -> bool {
        self.calling.task.tools.iter().any(|tool| tool == name)
    }

    /// Proposes a call, runs it, and reports its result.
    fn run_gated(
        &self,
        name: &str,
        arguments: Value,
        run: impl FnOnce(&Value) -> (Result<Value, CallError>, CallResult),
    ) -> Result<Value, CallError> {
        let shared = self.calling.shared;
        if let Some(stuck) = shared.rollback_failure() {
            return Err(CallError::Refused(vec![stuck]));
        }
        let permit = shared.front.borrow_mut().propose(name, arguments.clone());
        let permit = permit.map_err(CallError::Refused)?;
        let arguments = permit.args.unwrap_or(arguments);
        let (answer, back) = run(&arguments);
        let mut front = shared.front.borrow_mut();
        front.finish(CallResult { number: permit.number, ..back });
        match front.hold_reason() {
            // The result paused the session, so nothing of this attempt may be committed.
            Some(why) => Err(CallError::Refused(vec![AttemptViolation::new(
                Subtype::ToolDenied,
                why.to_owned(),
            )])),
            None => answer,
        }
    }

    /// Calls a tool of the workspace inside the attempt.
    fn call_workspace_tool(
        &self,
        name: &str,
        arguments: &Value,
    ) -> (Result<Value, CallError>, CallResult) {
        let shared = self.calling.shared;
        let called = shared.workspace.call(name, arguments);
        if name == SHELL {
            let line = arguments.get("command").and_then(Value::as_str).unwrap_or_default();
            let line: String = line.chars().take(COMMAND_CHARS_MAX).collect();
            let is_undoable = match &called {
                Ok(output) => output.structured.get("undoable") == Some(&Value::Bool(true)),
                // The command ran, and its changes of the workspace were discarded.
                Err(error) => error.code == ToolErrorCode::NotUndoable,
            };
            let effect = CommandEffect { line, is_only_outside: is_undoable };
            shared.command_effects.borrow_mut().push(effect);
        }
        match called {
            Ok(output) => {
                let back = CallResult {
                    exit_code: output.structured.get("exit_code").and_then(Value::as_i64),
                    seen: output.shown_lines(ShownContent::of(name, arguments)),
                    ..result_without_number(output.status(), output.text)
                };
                (Ok(output.structured), back)
            }
            Err(error) => {
                let (error_type, message) = (error.code.as_str().to_owned(), error.render_text());
                let back = failed_result(message.clone());
                (Err(CallError::Failed { error_type, message }), back)
            }
        }
    }

    /// Runs a generated tool like any program: checked, in a worker, with calls of its own.
    fn run_generated_tool(
        &self,
        tool: &StoredTool,
        arguments: &Value,
    ) -> (Result<Value, CallError>, CallResult) {
        let shared = self.calling.shared;
        let Value::Object(arguments) = arguments.clone() else {
            let message = "a generated tool takes named arguments only".to_owned();
            let error_type = "invalid_arguments".to_owned();
            return (
                Err(CallError::Failed { error_type, message: message.clone() }),
                failed_result(message),
            );
        };
        let program = PythonProgram { source: tool.source.clone(), arguments };
        let inner = RefCell::new(Self { calling: self.calling, nesting: self.nesting + 1 });
        let (mut checker, mut runner) =
            checker_and_runner(&shared.workers, &inner, shared.limits, self.calling.depth);
        let violations = checker.validate(&program);
        let ran = if violations.is_empty() {
            runner.execute(&program)
        } else {
            Err(ArtifactFault::Refused(violations))
        };
        let answer = match ran {
            Ok(outcome) => match checker.judge(&program, &outcome) {
                objections if objections.is_empty() => outcome_value(outcome),
                objections => Err(CallError::Refused(objections)),
            },
            Err(ArtifactFault::Refused(violations)) => Err(CallError::Refused(violations)),
            Err(ArtifactFault::Failed { error_type, message }) => {
                Err(CallError::Failed { error_type, message })
            }
        };
        let (error_type, back) = match &answer {
            Ok(value) => (None, result_without_number(CallStatus::Ok, value.to_string())),
            Err(CallError::Refused(violations)) => {
                let first = violations.first();
                let subtype = first.map_or(Subtype::ToolDenied.name(), |it| it.subtype.as_str());
                (Some(subtype.to_owned()), failed_result(subtype.to_owned()))
            }
            Err(CallError::Failed { error_type, message }) => {
                (Some(error_type.clone()), failed_result(format!("{error_type}: {message}")))
            }
        };
        shared.tool_uses.borrow_mut().push((tool.name.clone(), tool.version, error_type));
        (answer, back)
    }
}

impl ProgramHost for AttemptHost<'_, '_, '_> {
    fn callables(&self) -> Callables {
        let task = self.calling.task;
        let specs =
            jackline_workspace::tools().iter().filter(|spec| self.is_workspace_tool(spec.name));
        let own = specs.map(|spec| callable(spec.name, spec.description, false));
        let forged = self.generated_tools();
        let forged = forged.iter().filter(|tool| !self.is_workspace_tool(&tool.name));
        let forged = forged.map(|tool| callable(&tool.name, &tool.description, false));
        let delegates = task.delegates.iter();
        let delegates = delegates.map(|(name, it)| callable(name, &it.description, it.external));
        Callables { tools: own.chain(forged).collect(), delegates: delegates.collect() }
    }

    fn context(&self) -> Map<String, Value> {
        self.calling.context()
    }

    fn store_context(&mut self, context: Map<String, Value>) {
        // A generated tool has a context of its own, which is not stored.
        if self.nesting == 0 {
            let name = &self.calling.task.name;
            self.calling.shared.contexts.borrow_mut().store(name, context);
        }
    }

    fn call(&mut self, name: &str, arguments: Map<String, Value>) -> Result<Value, CallError> {
        let arguments = Value::Object(arguments);
        if self.is_workspace_tool(name) {
            return self
                .run_gated(name, arguments, |arguments| self.call_workspace_tool(name, arguments));
        }
        let found = self.calling.shared.overlay.borrow().get(name);
        let Some(tool) = found.map_err(|error| registry_call_error(&error))? else {
            return Err(CallError::Refused(self.refuse_unknown_tool(name)));
        };
        if self.nesting >= GENERATED_TOOL_DEPTH_MAX {
            let message =
                format!("generated tools may call each other only {GENERATED_TOOL_DEPTH_MAX} deep");
            return Err(CallError::Refused(vec![AttemptViolation::new(
                Subtype::ToolDenied,
                message,
            )]));
        }
        self.run_gated(name, arguments, |arguments| self.run_generated_tool(&tool, arguments))
    }

    fn refuse_unknown_tool(&mut self, name: &str) -> Vec<AttemptViolation> {
        let Callables { tools, .. } = self.callables();
        let existing: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        self.calling.shared.front.borrow_mut().refuse_unknown_tool(name, &existing)
    }

    fn delegate(
        &mut self,
        name: &str,
        arguments: Map<String, Value>,
        depth: u32,
    ) -> Result<InternalOutcome, CallError> {
        let calling = self.calling;
        let Some(delegate) = calling.task.delegates.get(name) else {
            let message = format!("delegate `{name}` does not exist");
            return Err(CallError::Refused(vec![AttemptViolation::new(
                Subtype::UnknownTool,
                message,
            )]));
        };
        let proposed = json!({ "name": name, "arguments": arguments });
        let mut ended = None;
        self.run_gated(DELEGATE_TOOL, proposed, |_| {
            let key = jackline_host::environment::named_variable;
            let author =
                task_model::create_author(&delegate.task.model, Some(&calling.author), &key);
            let below = Some((calling.id.as_str(), depth));
            let task = &delegate.task;
            let child = RunningCall::new(calling.shared, task, author, arguments, below);
            let outcome = child.run(|outcome, _| outcome).outcome;
            let error = outcome.error().map(|error| error.error_type.clone());
            let back = match error {
                None => result_without_number(CallStatus::Ok, "ok".to_owned()),
                Some(error_type) => failed_result(error_type),
            };
            ended = Some(outcome);
            (Ok(Value::Null), back)
        })?;
        match (calling.shared.rollback_failure(), ended) {
            (Some(stuck), _) => Err(CallError::Refused(vec![stuck])),
            (None, Some(outcome)) => Ok(outcome),
            (None, None) => Err(CallError::Failed {
                error_type: "execution".to_owned(),
                message: "the delegate has no outcome".to_owned(),
            }),
        }
    }

    fn add_tool(&mut self, forged: GeneratedTool) -> Result<(), CallError> {
        let GeneratedTool { name, description, source } = forged;
        let is_taken = name == DELEGATE_TOOL
            || jackline_workspace::tools().iter().any(|spec| spec.name == name);
        if is_taken {
            let refused = AttemptViolation::new(
                Subtype::ToolDenied,
                format!("a tool with the name `{name}` already exists"),
            )
            .with_correction("Call forge() with another name.");
            return Err(CallError::Refused(vec![refused]));
        }
        let forged = crate::registry::ToolSource {
            description: if description.trim().is_empty() { name.clone() } else { description },
            source,
        };
        let done = self.calling.shared.overlay.borrow_mut().add_tool(&name, forged);
        done.map_err(|error| registry_call_error(&error))
    }
}

/// A registry error as the answer to a program.
fn registry_call_error(error: &RegistryError) -> CallError {
    match error {
        RegistryError::Name(_)
        | RegistryError::Source { .. }
        | RegistryError::Description { .. }
        | RegistryError::TooMany => {
            let refused = AttemptViolation::new(Subtype::ToolDenied, error.to_string())
                .with_correction(
                    "Correct the call of forge() as the message says, or leave it out.",
                );
            CallError::Refused(vec![refused])
        }
        error => {
            CallError::Failed { error_type: "tool_registry".to_owned(), message: error.to_string() }
        }
    }
}

/// The outcome of a generated tool as the answer to its caller.
fn outcome_value(outcome: ArtifactOutcome) -> Result<Value, CallError> {
    let error = match outcome {
        ArtifactOutcome::Ok { value, .. } => return Ok(value),
        ArtifactOutcome::Error(error) => error,
        ArtifactOutcome::Child(child) => match *child {
            InternalOutcome::Ok { value, .. } => return Ok(value),
            InternalOutcome::Error(error) => error,
            // Internal text of a delegate must not be part of an exception.
            InternalOutcome::InternalError { error, .. } => {
                let message = "a delegate of the tool did not succeed".to_owned();
                return Err(CallError::Failed { error_type: error.error_type, message });
            }
        },
    };
    Err(CallError::Failed { error_type: error.error_type, message: error.error_message })
}

fn failed_result(text: String) -> CallResult {
    result_without_number(CallStatus::Error, text)
}

/// A result without its number, which is set when the result is reported.
fn result_without_number(status: CallStatus, text: String) -> CallResult {
    CallResult { text: Some(text), ..CallResult::new(0, status) }
}

fn callable(name: &str, description: &str, external: bool) -> CallableSpec {
    CallableSpec { name: name.to_owned(), description: description.to_owned(), external }
}
