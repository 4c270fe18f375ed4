//! What a program can reach: each of its calls is proposed to the guards, and runs within
//! the attempt.

use std::cell::RefCell;

use crate::registry::{RegistryError, Tool};
use jackline_attempt::ToolState;
use jackline_attempt::{
    Executor as _, Fault, InternalOutcome, Outcome, Subtype, Validator as _, Violation,
};
use jackline_engine::Status;
use jackline_runtime::CallResult;
use jackline_sandbox_host::{CallError, Forged, Host, Known, Named, Program, programs};
use jackline_workspace::{Code, SHELL, Shows};
use serde_json::{Map, Value, json};

use crate::call::Calling;
use crate::model;

/// The name under which delegates are proposed.
const DELEGATE: &str = "delegate";

/// How deep forged tools may call forged tools.
const NESTING_MAX: u32 = 4;

/// How much of a command is named where it can't be undone.
const COMMAND_CHARS_MAX: usize = 200;

/// Whoever a program asks.
pub(crate) struct Caller<'a, 's, 'r> {
    calling: &'a Calling<'s, 'r>,
    /// How many forged tools this one is called by.
    nesting: u32,
}

impl<'a, 's, 'r> Caller<'a, 's, 'r> {
    pub(crate) fn new(calling: &'a Calling<'s, 'r>) -> Self {
        Self { calling, nesting: 0 }
    }

    /// Forged tools that are worth calling.
    fn forged(&self) -> Vec<Tool> {
        let listing = self.calling.shared.overlay.borrow().list().unwrap_or_default();
        let is_good = |tool: &Tool| tool.health.state() != ToolState::Degraded;
        listing.tools.into_iter().filter(is_good).collect()
    }

    fn is_own(&self, name: &str) -> bool {
        self.calling.task.tools.iter().any(|tool| tool == name)
    }

    /// Has a call decided on, run, and its result told.
    fn gated(
        &self,
        name: &str,
        arguments: Value,
        run: impl FnOnce(&Value) -> (Result<Value, CallError>, CallResult),
    ) -> Result<Value, CallError> {
        let shared = self.calling.shared;
        if let Some(stuck) = shared.stuck() {
            return Err(CallError::Refused(vec![stuck]));
        }
        let permit = shared.front.borrow_mut().propose(name, arguments.clone());
        let permit = permit.map_err(CallError::Refused)?;
        let arguments = permit.args.unwrap_or(arguments);
        let (answer, back) = run(&arguments);
        let mut front = shared.front.borrow_mut();
        front.finish(CallResult { number: permit.number, ..back });
        match front.held() {
            // What came back holds the session, so nothing of this attempt may stay.
            Some(why) => {
                Err(CallError::Refused(vec![Violation::new(Subtype::ToolDenied, why.to_owned())]))
            }
            None => answer,
        }
    }

    /// Calls a tool of the workspace, within the attempt.
    fn own(&self, name: &str, arguments: &Value) -> (Result<Value, CallError>, CallResult) {
        let shared = self.calling.shared;
        let called = shared.workspace.call(name, arguments);
        if name == SHELL {
            let line = arguments.get("command").and_then(Value::as_str).unwrap_or_default();
            let line: String = line.chars().take(COMMAND_CHARS_MAX).collect();
            let is_undoable = match &called {
                Ok(output) => output.structured.get("undoable") == Some(&Value::Bool(true)),
                // It ran, and the workspace is as it was.
                Err(error) => error.code == Code::NotUndoable,
            };
            let besides = if is_undoable { " outside of the workspace" } else { "" };
            let did = format!("what the command `{line}` did{besides}");
            shared.commands.borrow_mut().push(did);
        }
        match called {
            Ok(output) => {
                let back = CallResult {
                    exit_code: output.structured.get("exit_code").and_then(Value::as_i64),
                    seen: output.seen(Shows::of(name, arguments)),
                    ..came_back(output.status(), output.text)
                };
                (Ok(output.structured), back)
            }
            Err(error) => {
                let (error_type, message) = (error.code.as_str().to_owned(), error.text());
                let back = failed(message.clone());
                (Err(CallError::Failed { error_type, message }), back)
            }
        }
    }

    /// Runs a forged tool as any program: looked at, in a worker, with calls of its own.
    fn run_forged(&self, tool: &Tool, arguments: &Value) -> (Result<Value, CallError>, CallResult) {
        let shared = self.calling.shared;
        let Value::Object(arguments) = arguments.clone() else {
            let message = "a forged tool takes named arguments".to_owned();
            let error_type = "invalid_arguments".to_owned();
            return (
                Err(CallError::Failed { error_type, message: message.clone() }),
                failed(message),
            );
        };
        let program = Program { source: tool.source.clone(), arguments };
        let inner = RefCell::new(Self { calling: self.calling, nesting: self.nesting + 1 });
        let (mut checker, mut runner) =
            programs(&shared.workers, &inner, shared.limits, self.calling.depth);
        let violations = checker.validate(&program);
        let ran = if violations.is_empty() {
            runner.execute(&program)
        } else {
            Err(Fault::Refused(violations))
        };
        let answer = match ran {
            Ok(outcome) => match checker.judge(&program, &outcome) {
                objections if objections.is_empty() => answered(outcome),
                objections => Err(CallError::Refused(objections)),
            },
            Err(Fault::Refused(violations)) => Err(CallError::Refused(violations)),
            Err(Fault::Failed { error_type, message }) => {
                Err(CallError::Failed { error_type, message })
            }
        };
        let (error_type, back) = match &answer {
            Ok(value) => (None, came_back(Status::Ok, value.to_string())),
            Err(CallError::Refused(violations)) => {
                let first = violations.first();
                let subtype = first.map_or(Subtype::ToolDenied.name(), |it| it.subtype.word());
                (Some(subtype.to_owned()), failed(subtype.to_owned()))
            }
            Err(CallError::Failed { error_type, message }) => {
                (Some(error_type.clone()), failed(format!("{error_type}: {message}")))
            }
        };
        shared.uses.borrow_mut().push((tool.name.clone(), tool.version, error_type));
        (answer, back)
    }
}

impl Host for Caller<'_, '_, '_> {
    fn known(&self) -> Known {
        let task = self.calling.task;
        let specs = jackline_workspace::tools().iter().filter(|spec| self.is_own(spec.name));
        let own = specs.map(|spec| named(spec.name, spec.description, false));
        let forged = self.forged();
        let forged = forged.iter().filter(|tool| !self.is_own(&tool.name));
        let forged = forged.map(|tool| named(&tool.name, &tool.description, false));
        let delegates = task.delegates.iter();
        let delegates = delegates.map(|(name, it)| named(name, &it.description, it.external));
        Known { tools: own.chain(forged).collect(), delegates: delegates.collect() }
    }

    fn context(&self) -> Map<String, Value> {
        self.calling.context()
    }

    fn remember(&mut self, context: Map<String, Value>) {
        // What a tool puts into the context of its own run is nobody's memory.
        if self.nesting == 0 {
            let name = &self.calling.task.name;
            self.calling.shared.contexts.borrow_mut().remember(name, context);
        }
    }

    fn call(&mut self, name: &str, arguments: Map<String, Value>) -> Result<Value, CallError> {
        let arguments = Value::Object(arguments);
        if self.is_own(name) {
            return self.gated(name, arguments, |arguments| self.own(name, arguments));
        }
        let found = self.calling.shared.overlay.borrow().get(name);
        let Some(tool) = found.map_err(|error| unavailable(&error))? else {
            return Err(CallError::Refused(self.refuse_unknown_tool(name)));
        };
        if self.nesting >= NESTING_MAX {
            let message = format!("forged tools may call each other {NESTING_MAX} deep");
            return Err(CallError::Refused(vec![Violation::new(Subtype::ToolDenied, message)]));
        }
        self.gated(name, arguments, |arguments| self.run_forged(&tool, arguments))
    }

    fn refuse_unknown_tool(&mut self, name: &str) -> Vec<Violation> {
        self.calling.shared.front.borrow_mut().refuse_unknown_tool(name)
    }

    fn delegate(
        &mut self,
        name: &str,
        arguments: Map<String, Value>,
        depth: u32,
    ) -> Result<InternalOutcome, CallError> {
        let calling = self.calling;
        let Some(delegate) = calling.task.delegates.get(name) else {
            let message = format!("there is no delegate `{name}`");
            return Err(CallError::Refused(vec![Violation::new(Subtype::UnknownTool, message)]));
        };
        let proposed = json!({ "name": name, "arguments": arguments });
        let mut ended = None;
        self.gated(DELEGATE, proposed, |_| {
            let key = jackline_host::environment::named_variable;
            let author = model::make(&delegate.task.model, Some(&calling.author), &key);
            let below = Some((calling.id.as_str(), depth));
            let task = &delegate.task;
            let child = Calling::new(calling.shared, task, author, arguments, below);
            let (outcome, _) = child.run();
            let error = outcome.error().map(|error| error.error_type.clone());
            let back = match error {
                None => came_back(Status::Ok, "ok".to_owned()),
                Some(error_type) => failed(error_type),
            };
            ended = Some(outcome);
            (Ok(Value::Null), back)
        })?;
        match (calling.shared.stuck(), ended) {
            (Some(stuck), _) => Err(CallError::Refused(vec![stuck])),
            (None, Some(outcome)) => Ok(outcome),
            (None, None) => Err(CallError::Failed {
                error_type: "execution".to_owned(),
                message: "the delegate has no outcome".to_owned(),
            }),
        }
    }

    fn forge(&mut self, forged: Forged) -> Result<(), CallError> {
        let Forged { name, description, source } = forged;
        let is_taken =
            name == DELEGATE || jackline_workspace::tools().iter().any(|spec| spec.name == name);
        if is_taken {
            let refused = Violation::new(Subtype::ToolDenied, format!("there is a tool `{name}`"))
                .correct("Forge the tool under another name.");
            return Err(CallError::Refused(vec![refused]));
        }
        let forged = crate::registry::Forged {
            description: if description.trim().is_empty() { name.clone() } else { description },
            source,
        };
        let done = self.calling.shared.overlay.borrow_mut().forge(&name, forged);
        done.map_err(|error| unavailable(&error))
    }
}

/// What the registry says, for a program.
fn unavailable(error: &RegistryError) -> CallError {
    match error {
        RegistryError::Name(_)
        | RegistryError::Source { .. }
        | RegistryError::Description { .. }
        | RegistryError::TooMany => {
            let refused = Violation::new(Subtype::ToolDenied, error.to_string())
                .correct("Forge the tool as the message says, or do without it.");
            CallError::Refused(vec![refused])
        }
        error => {
            CallError::Failed { error_type: "tool_registry".to_owned(), message: error.to_string() }
        }
    }
}

/// What a forged tool's outcome is for its caller.
fn answered(outcome: Outcome) -> Result<Value, CallError> {
    let error = match outcome {
        Outcome::Ok { value, .. } => return Ok(value),
        Outcome::Error(error) => error,
        Outcome::Child(child) => match *child {
            InternalOutcome::Ok { value, .. } => return Ok(value),
            InternalOutcome::Error(error) => error,
            // What is inside a delegate is not for the text of an exception.
            InternalOutcome::Inside { error, .. } => {
                let message = "a delegate of the tool did not succeed".to_owned();
                return Err(CallError::Failed { error_type: error.error_type, message });
            }
        },
    };
    Err(CallError::Failed { error_type: error.error_type, message: error.error_message })
}

fn failed(text: String) -> CallResult {
    came_back(Status::Error, text)
}

/// A result whose number is filled in when it is reported.
fn came_back(status: Status, text: String) -> CallResult {
    CallResult { text: Some(text), ..CallResult::new(0, status) }
}

fn named(name: &str, description: &str, external: bool) -> Named {
    Named { name: name.to_owned(), description: description.to_owned(), external }
}
