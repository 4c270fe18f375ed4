//! The host functions of a program.

use std::io;

use jackline_attempt::Subtype;
use jackline_sandbox_host::ProgramLimits;
use jackline_sandbox_host::protocol::{
    CallAnswer, CallableSpec, Callables, HostRequest, ProgramEnd, ProgramFailure, ProgramPosition,
    ProgramViolation,
};
use monty_types::{ExcType, ExtFunctionResult, MontyException, MontyObject};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::check::check;
use crate::run::failed;
use crate::serve::HostChannel;
use crate::values::{NotData, keyword_arguments, to_json, to_python};

/// A prefix for tool names, so that no tool name can be mistaken for a host function.
const TOOL_PREFIX: &str = "tool:";

/// How long the name of a generated tool may be.
const NAME_BYTES_MAX: usize = 64;

/// What happens after a call.
pub(super) enum CallStep {
    /// The program continues with this value or exception.
    Resume(ExtFunctionResult),
    /// The program has ended.
    End(ProgramEnd),
}

/// The calls of a program so far.
pub(super) struct ProgramCalls {
    limits: ProgramLimits,
    callables: Callables,
    /// One entry for each call of the host, in order.
    made: Vec<CallRecord>,
}

/// The result that the program got for a call.
enum CallRecord {
    /// A value that the program can't pass on as an outcome.
    Value,
    /// The outcome of a delegate.
    Outcome(Value),
    /// An exception, which the program may catch.
    Raised { exception: ExcType, message: String },
}

type Keywords = Vec<(MontyObject, MontyObject)>;

impl ProgramCalls {
    pub(super) fn new(limits: ProgramLimits, known: Callables) -> Self {
        Self { limits, callables: known, made: Vec::new() }
    }

    /// Runs a host function.
    pub(super) fn call(
        &mut self,
        function: &str,
        args: Vec<MontyObject>,
        kwargs: Keywords,
        host: &mut dyn HostChannel,
    ) -> io::Result<CallStep> {
        let wanted = match function {
            "ok" => {
                return Ok(ok_end(args, kwargs)
                    .map_or_else(UsageError::into_step, |end| self.end_if_small(end)));
            }
            "error" => {
                return Ok(error_end(args, kwargs)
                    .map_or_else(UsageError::into_step, |end| self.end_if_small(end)));
            }
            "tool" => match tool_result(args, kwargs) {
                Ok(ToolFunctionResult::Handle(name)) => {
                    let name = format!("{TOOL_PREFIX}{name}");
                    return Ok(resume_with(MontyObject::Function { name, docstring: None }));
                }
                Ok(ToolFunctionResult::Call(wanted)) => Ok(wanted),
                Err(wrong) => Err(wrong),
            },
            "delegate" => name_and_arguments("delegate", args, kwargs)
                .map(|(name, arguments)| HostRequest::Delegate { name, arguments }),
            "forge" => self.forge(args, kwargs),
            other => match other.strip_prefix(TOOL_PREFIX) {
                Some(name) => check_only_named(name, &args)
                    .and_then(|()| call_arguments(name, kwargs))
                    .map(|arguments| HostRequest::Tool { name: name.to_owned(), arguments }),
                None => {
                    let not_found = ExtFunctionResult::NotFound(other.to_owned());
                    return Ok(CallStep::Resume(not_found));
                }
            },
        };
        match wanted {
            Ok(wanted) => self.ask(wanted, host),
            Err(wrong) => Ok(wrong.into_step()),
        }
    }

    /// The end of a program that called neither `ok` nor `error`.
    pub(super) fn end_without_answer(&self, value: MontyObject) -> ProgramEnd {
        let outcome = to_json(value).ok();
        let same = |made: &CallRecord| matches!(made, CallRecord::Outcome(it) if Some(it) == outcome.as_ref());
        match self.made.iter().position(same) {
            Some(call) => ProgramEnd::HandedOn(call),
            None => failed(
                ProgramFailure::Execution,
                "the program ended without an answer; end it with ok(value) or error(type, message)",
            ),
        }
    }

    /// The end of a program that did not catch the exception of a call.
    pub(super) fn end_of_call_exception(&self, error: &MontyException) -> Option<ProgramEnd> {
        let position = self.made.iter().rposition(|made| {
            matches!(made, CallRecord::Raised { exception, message }
                if *exception == error.exc_type() && Some(message.as_str()) == error.message())
        })?;
        Some(match error.exc_type() {
            ExcType::PermissionError => ProgramEnd::Refused(position),
            _ => ProgramEnd::CallFailed(position),
        })
    }

    /// Whether a value is small enough to leave the program.
    pub(super) fn check_size(&self, value: &impl Serialize) -> Result<(), ProgramEnd> {
        let most = self.limits.value_bytes_max;
        let bytes = serde_json::to_vec(value).map_or(usize::MAX, |text| text.len());
        if bytes <= most {
            return Ok(());
        }
        let message = format!("the value has {bytes} bytes; the limit is {most}");
        Err(failed(NotData::FAILURE, message))
    }

    fn end_if_small(&self, end: ProgramEnd) -> CallStep {
        CallStep::End(self.check_size(&end).err().unwrap_or(end))
    }

    /// Sends a call to the host, and converts the answer.
    fn ask(&mut self, wanted: HostRequest, host: &mut dyn HostChannel) -> io::Result<CallStep> {
        if self.made.len() >= self.limits.calls_max as usize {
            let message =
                format!("the program has made {} calls, which is the limit", self.limits.calls_max);
            return Ok(CallStep::End(failed(ProgramFailure::BudgetExceeded, message)));
        }
        if let Err(too_long) = self.check_size(&wanted) {
            return Ok(CallStep::End(too_long));
        }
        let forged = match &wanted {
            HostRequest::Forge { name, description, .. } => {
                Some((name.clone(), description.clone()))
            }
            HostRequest::Tool { .. } | HostRequest::Delegate { .. } => None,
        };
        let delegated = matches!(wanted, HostRequest::Delegate { .. });
        let (made, result) = match host.ask(wanted)? {
            CallAnswer::Value(value) => {
                if let Some((name, description)) = forged {
                    self.callables.tools.push(CallableSpec { name, description, external: false });
                }
                let made =
                    if delegated { CallRecord::Outcome(value.clone()) } else { CallRecord::Value };
                (made, to_python(value).into())
            }
            CallAnswer::Refused(message) => raise_exception(ExcType::PermissionError, message),
            CallAnswer::Failed(message) => raise_exception(ExcType::RuntimeError, message),
        };
        self.made.push(made);
        Ok(CallStep::Resume(result))
    }

    /// `forge(name, source, description="")`.
    fn forge(&self, args: Vec<MontyObject>, kwargs: Keywords) -> Result<HostRequest, UsageError> {
        let mut given =
            ParsedArguments::new("forge", &["name", "source", "description"], args, kwargs)?;
        let (name, source) = (given.text("name")?, given.text("source")?);
        let description = given.text_or("description", "")?;
        let letters = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(letters) {
            let message = "forge() needs a name of at most 64 letters, digits and _";
            return Err(UsageError::value_error(message));
        }
        let most = self.limits.source_bytes_max;
        let objections = if source.len() > most {
            vec![ProgramViolation {
                subtype: Subtype::ProgramTooLong.name().to_owned(),
                message: format!("the program has {} bytes; the limit is {most}", source.len()),
                at: ProgramPosition { line: 1, column: 1 },
                correction: None,
            }]
        } else {
            check(&source, &self.callables)
        };
        Ok(HostRequest::Forge { name, description, source, objections })
    }
}

/// The result of the function `tool`.
enum ToolFunctionResult {
    Handle(String),
    Call(HostRequest),
}

/// `tool(name)` returns the tool, and `tool(name, …)` calls it at once.
fn tool_result(args: Vec<MontyObject>, kwargs: Keywords) -> Result<ToolFunctionResult, UsageError> {
    let is_call = !kwargs.is_empty();
    let (name, arguments) = name_and_arguments("tool", args, kwargs)?;
    if is_call {
        return Ok(ToolFunctionResult::Call(HostRequest::Tool { name, arguments }));
    }
    Ok(ToolFunctionResult::Handle(name))
}

/// A wrong use of a host function, as a Python exception.
struct UsageError(MontyException);

impl UsageError {
    fn type_error(message: impl Into<String>) -> Self {
        Self(MontyException::new(ExcType::TypeError, Some(message.into())))
    }

    fn value_error(message: impl Into<String>) -> Self {
        Self(MontyException::new(ExcType::ValueError, Some(message.into())))
    }

    fn into_step(self) -> CallStep {
        CallStep::Resume(ExtFunctionResult::Error(self.0))
    }
}

/// `ok(value, sources=[])`. A value that is not plain data ends the program as a failure.
fn ok_end(args: Vec<MontyObject>, kwargs: Keywords) -> Result<ProgramEnd, UsageError> {
    let mut given = ParsedArguments::new("ok", &["value", "sources"], args, kwargs)?;
    let value = given.take("value").unwrap_or(MontyObject::None);
    let sources = given.take("sources").unwrap_or(MontyObject::List(Vec::new()));
    Ok(match (to_json(value), to_json(sources)) {
        (Ok(value), Ok(Value::Array(sources))) => ProgramEnd::Ok { value, sources },
        (Ok(_), Ok(_)) => return Err(UsageError::type_error("ok() needs a list for `sources`")),
        (Err(it), _) => failed(NotData::FAILURE, it.describe("value")),
        (_, Err(it)) => failed(NotData::FAILURE, it.describe("sources")),
    })
}

/// `error(type, message, retriable=False)`.
fn error_end(args: Vec<MontyObject>, kwargs: Keywords) -> Result<ProgramEnd, UsageError> {
    let mut given = ParsedArguments::new("error", &["type", "message", "retriable"], args, kwargs)?;
    let (error_type, message) = (given.text("type")?, given.text("message")?);
    match given.take("retriable").unwrap_or(MontyObject::Bool(false)) {
        MontyObject::Bool(retriable) => Ok(ProgramEnd::Error { error_type, message, retriable }),
        _ => Err(UsageError::type_error("error() needs True or False for `retriable`")),
    }
}

/// The name and the keyword arguments of a call.
fn name_and_arguments(
    function: &str,
    args: Vec<MontyObject>,
    kwargs: Keywords,
) -> Result<(String, Map<String, Value>), UsageError> {
    let mut args = args.into_iter();
    let Some(MontyObject::String(name)) = args.next() else {
        return Err(UsageError::type_error(format!(
            "{function}() needs a name as its first argument, as a string"
        )));
    };
    check_only_named(&name, args.as_slice())?;
    let arguments = call_arguments(&name, kwargs)?;
    Ok((name, arguments))
}

fn check_only_named(name: &str, args: &[MontyObject]) -> Result<(), UsageError> {
    if args.is_empty() {
        return Ok(());
    }
    Err(UsageError::type_error(format!(
        "`{name}` takes named arguments only, such as path=\"a.txt\""
    )))
}

fn call_arguments(name: &str, kwargs: Keywords) -> Result<Map<String, Value>, UsageError> {
    let whole = format!("an argument of `{name}`, ");
    keyword_arguments(kwargs).map_err(|it| UsageError::type_error(it.describe(&whole)))
}

fn raise_exception(exception: ExcType, message: String) -> (CallRecord, ExtFunctionResult) {
    let raised = MontyException::new(exception, Some(message.clone()));
    (CallRecord::Raised { exception, message }, ExtFunctionResult::Error(raised))
}

fn resume_with(value: MontyObject) -> CallStep {
    CallStep::Resume(value.into())
}

/// Arguments by position or by name, each at most once.
struct ParsedArguments {
    function: &'static str,
    values: Vec<(&'static str, MontyObject)>,
}

impl ParsedArguments {
    fn new(
        function: &'static str,
        names: &[&'static str],
        args: Vec<MontyObject>,
        kwargs: Keywords,
    ) -> Result<Self, UsageError> {
        let wanted = || names.join(", ");
        if args.len() > names.len() {
            return Err(UsageError::type_error(format!("{function}() takes only {}", wanted())));
        }
        let mut values: Vec<_> = names.iter().copied().zip(args).collect();
        for (key, value) in kwargs {
            let MontyObject::String(key) = key else {
                return Err(UsageError::type_error(format!("{function}() takes {}", wanted())));
            };
            let known = names.iter().copied().find(|name| *name == key);
            match known {
                Some(name) if values.iter().all(|(given, _)| *given != name) => {
                    values.push((name, value));
                }
                Some(name) => {
                    return Err(UsageError::type_error(format!("{function}() got `{name}` twice")));
                }
                None => {
                    let message = format!("{function}() takes {}, not `{key}`", wanted());
                    return Err(UsageError::type_error(message));
                }
            }
        }
        Ok(Self { function, values })
    }

    fn take(&mut self, name: &str) -> Option<MontyObject> {
        let position = self.values.iter().position(|(given, _)| *given == name)?;
        Some(self.values.swap_remove(position).1)
    }

    fn text(&mut self, name: &str) -> Result<String, UsageError> {
        match self.take(name) {
            Some(MontyObject::String(text)) => Ok(text),
            _ => Err(UsageError::type_error(format!(
                "{}() needs a string for `{name}`",
                self.function
            ))),
        }
    }

    fn text_or(&mut self, name: &str, otherwise: &str) -> Result<String, UsageError> {
        if self.values.iter().any(|(given, _)| *given == name) {
            return self.text(name);
        }
        Ok(otherwise.to_owned())
    }
}
