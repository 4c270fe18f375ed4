//! Runs one program, and asks the host at each call.

mod print_buffer;
mod program_calls;
mod program_end;

use std::io;
use std::time::Duration;

use jackline_sandbox_host::protocol::{
    CallableSpec, Callables, EndedProgram, ProgramEnd, ProgramFailure, RunRequest,
};
use monty::{MontyRepl, ReplFunctionCall, ReplProgress};
use monty_types::{
    CompileOptions, ExcType, ExtFunctionResult, MontyException, MontyObject, NameLookupResult,
    ResourceLimits, ResourceTracker,
};
use serde_json::{Map, Value};

use crate::run::print_buffer::PrintBuffer;
use crate::run::program_calls::{CallStep, ProgramCalls};
use crate::serve::HostChannel;
use crate::values::to_python_dict;

/// The host functions of a program.
pub(crate) const HOST_FUNCTIONS: [&str; 5] = ["tool", "delegate", "forge", "ok", "error"];

/// The host variables of a program.
pub(crate) const CONTEXT: &str = "context";
pub(crate) const ARGUMENTS: &str = "arguments";

/// Keys of the context that belong to the host.
pub(crate) const TOOLS: &str = "tools";
const DELEGATES: &str = "delegates";

/// Runs a program to its end. An error means that the connection failed.
pub(crate) fn run(asked: RunRequest, host: &mut dyn HostChannel) -> io::Result<EndedProgram> {
    let mut printed = PrintBuffer::new(asked.limits.printed_bytes_max);
    let resources = ResourceLimits {
        max_duration: Some(Duration::from_millis(asked.limits.time_ms)),
        max_memory: Some(asked.limits.memory_bytes),
        max_recursion_depth: asked.limits.recursion_max,
        ..ResourceLimits::default()
    };
    let repl =
        MontyRepl::new("program.py", ResourceTracker::new(resources), CompileOptions::default());
    let before = asked.context.clone();
    let inputs = inputs(asked.arguments, asked.context, &asked.known);
    let mut calls = ProgramCalls::new(asked.limits, asked.known);
    let mut progress = repl.feed_start(&asked.source, inputs, printed.writer());
    let (repl, mut end, at) = loop {
        progress = match progress {
            Ok(ReplProgress::FunctionCall(mut call)) => {
                match run_host_call(&mut calls, &mut call, host)? {
                    CallStep::Resume(result) => call.resume(result, printed.writer()),
                    CallStep::End(end) => {
                        // Ends the program at its current position, and reads that position.
                        let over = MontyException::new(ExcType::SystemExit, None);
                        match call.abort(over, printed.writer()) {
                            Err(stopped) => {
                                break (
                                    stopped.repl,
                                    end,
                                    program_end::exception_position(&stopped.error),
                                );
                            }
                            Ok(progress) => break (progress.into_repl(), end, None),
                        }
                    }
                }
            }
            Ok(ReplProgress::NameLookup(lookup)) => {
                let value = match lookup.name.as_str() {
                    "__name__" => MontyObject::String("__main__".to_owned()).into(),
                    _ => NameLookupResult::Undefined,
                };
                lookup.resume(value, printed.writer())
            }
            Ok(ReplProgress::OsCall(call)) => {
                let name = call.function_call.name();
                let message =
                    format!("{name}() is not available in a program; call a tool instead");
                let refused = MontyException::new(ExcType::PermissionError, Some(message));
                call.resume(ExtFunctionResult::Error(refused), printed.writer())
            }
            Ok(ReplProgress::Complete { repl, value }) => {
                break (repl, calls.end_without_answer(value), None);
            }
            Ok(waiting @ ReplProgress::ResolveFutures(_)) => {
                let message = "a program can't await: calls return when they are done";
                break (waiting.into_repl(), failed(ProgramFailure::Execution, message), None);
            }
            Err(stopped) => {
                let at = program_end::exception_position(&stopped.error);
                break (stopped.repl, program_end::end_of_exception(&stopped.error, &calls), at);
            }
        };
    };
    let mut context = None;
    if matches!(end, ProgramEnd::Ok { .. } | ProgramEnd::HandedOn(_)) {
        match program_end::saved_context(repl, &mut printed) {
            Ok(after) if after == before => {}
            Ok(after) => match calls.check_size(&after) {
                Ok(()) => context = Some(after),
                Err(too_long) => end = too_long,
            },
            Err(no_data) => end = no_data,
        }
    }
    let (printed, printed_bytes) = printed.finish();
    Ok(EndedProgram { end, at, printed, printed_bytes, context })
}

/// Runs a call of the program.
fn run_host_call(
    calls: &mut ProgramCalls,
    call: &mut ReplFunctionCall,
    host: &mut dyn HostChannel,
) -> io::Result<CallStep> {
    let (args, kwargs) = (std::mem::take(&mut call.args), std::mem::take(&mut call.kwargs));
    calls.call(&call.function_name, args, kwargs, host)
}

/// The variables of a program.
fn inputs(
    arguments: Map<String, Value>,
    mut context: Map<String, Value>,
    known: &Callables,
) -> Vec<(String, MontyObject)> {
    let described = |named: &[CallableSpec]| {
        let pair = |it: &CallableSpec| (it.name.clone(), Value::String(it.description.clone()));
        Value::Object(named.iter().map(pair).collect())
    };
    context.insert(TOOLS.to_owned(), described(&known.tools));
    context.insert(DELEGATES.to_owned(), described(&known.delegates));
    let function = |name: &str| {
        (name.to_owned(), MontyObject::Function { name: name.to_owned(), docstring: None })
    };
    let mut inputs: Vec<_> = HOST_FUNCTIONS.into_iter().map(function).collect();
    inputs.push((CONTEXT.to_owned(), to_python_dict(context)));
    inputs.push((ARGUMENTS.to_owned(), to_python_dict(arguments)));
    inputs
}

/// The names of all variables of a program.
pub(crate) fn input_names() -> Vec<String> {
    HOST_FUNCTIONS.into_iter().chain([CONTEXT, ARGUMENTS]).map(ToOwned::to_owned).collect()
}

fn failed(failure: ProgramFailure, message: impl Into<String>) -> ProgramEnd {
    ProgramEnd::Failed { failure, message: message.into() }
}
