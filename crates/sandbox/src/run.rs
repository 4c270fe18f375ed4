//! Runs one program, and asks the host at each call.

mod calls;
mod ending;
mod printed;

use std::io;
use std::time::Duration;

use jackline_sandbox_host::protocol::{End, Ended, Failure, Known, Named, Run};
use monty::{MontyRepl, ReplFunctionCall, ReplProgress};
use monty_types::{
    CompileOptions, ExcType, ExtFunctionResult, MontyException, MontyObject, NameLookupResult,
    ResourceLimits, ResourceTracker,
};
use serde_json::{Map, Value};

use crate::run::calls::{Calls, Next};
use crate::run::printed::Printed;
use crate::serve::Asks;
use crate::values::object;

/// The functions that a program has besides Python's own.
pub(crate) const FUNCTIONS: [&str; 5] = ["tool", "delegate", "forge", "ok", "error"];

/// What a program finds in its names besides.
pub(crate) const CONTEXT: &str = "context";
pub(crate) const ARGUMENTS: &str = "arguments";

/// Keys of the context that are the host's.
pub(crate) const TOOLS: &str = "tools";
const DELEGATES: &str = "delegates";

/// Runs a program to its end. An error is one of the wire.
pub(crate) fn run(asked: Run, host: &mut dyn Asks) -> io::Result<Ended> {
    let mut printed = Printed::new(asked.limits.printed_bytes_max);
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
    let mut calls = Calls::new(asked.limits, asked.known);
    let mut progress = repl.feed_start(&asked.source, inputs, printed.writer());
    let (repl, mut end, at) = loop {
        progress = match progress {
            Ok(ReplProgress::FunctionCall(mut call)) => match next(&mut calls, &mut call, host)? {
                Next::GoOn(result) => call.resume(result, printed.writer()),
                Next::End(end) => {
                    // Ends the program where it is, and says where that was.
                    let over = MontyException::new(ExcType::SystemExit, None);
                    match call.abort(over, printed.writer()) {
                        Err(stopped) => break (stopped.repl, end, ending::place(&stopped.error)),
                        Ok(progress) => break (progress.into_repl(), end, None),
                    }
                }
            },
            Ok(ReplProgress::NameLookup(lookup)) => {
                let value = match lookup.name.as_str() {
                    "__name__" => MontyObject::String("__main__".to_owned()).into(),
                    _ => NameLookupResult::Undefined,
                };
                lookup.resume(value, printed.writer())
            }
            Ok(ReplProgress::OsCall(call)) => {
                let name = call.function_call.name();
                let message = format!("a program has no {name}(); call a tool for it");
                let refused = MontyException::new(ExcType::PermissionError, Some(message));
                call.resume(ExtFunctionResult::Error(refused), printed.writer())
            }
            Ok(ReplProgress::Complete { repl, value }) => {
                break (repl, calls.handed_on(value), None);
            }
            Ok(waiting @ ReplProgress::ResolveFutures(_)) => {
                let message = "nothing in a program is awaited: calls wait by themselves";
                break (waiting.into_repl(), failed(Failure::Execution, message), None);
            }
            Err(stopped) => {
                let at = ending::place(&stopped.error);
                break (stopped.repl, ending::of(&stopped.error, &calls), at);
            }
        };
    };
    let mut context = None;
    if matches!(end, End::Ok { .. } | End::HandedOn(_)) {
        match ending::context(repl, &mut printed) {
            Ok(after) if after == before => {}
            Ok(after) => match calls.fits(&after) {
                Ok(()) => context = Some(after),
                Err(too_long) => end = too_long,
            },
            Err(no_data) => end = no_data,
        }
    }
    let (printed, printed_bytes) = printed.finish();
    Ok(Ended { end, at, printed, printed_bytes, context })
}

/// What a call comes to.
fn next(calls: &mut Calls, call: &mut ReplFunctionCall, host: &mut dyn Asks) -> io::Result<Next> {
    let (args, kwargs) = (std::mem::take(&mut call.args), std::mem::take(&mut call.kwargs));
    calls.call(&call.function_name, args, kwargs, host)
}

/// The names that a program finds.
fn inputs(
    arguments: Map<String, Value>,
    mut context: Map<String, Value>,
    known: &Known,
) -> Vec<(String, MontyObject)> {
    let described = |named: &[Named]| {
        let pair = |it: &Named| (it.name.clone(), Value::String(it.description.clone()));
        Value::Object(named.iter().map(pair).collect())
    };
    context.insert(TOOLS.to_owned(), described(&known.tools));
    context.insert(DELEGATES.to_owned(), described(&known.delegates));
    let function = |name: &str| {
        (name.to_owned(), MontyObject::Function { name: name.to_owned(), docstring: None })
    };
    let mut inputs: Vec<_> = FUNCTIONS.into_iter().map(function).collect();
    inputs.push((CONTEXT.to_owned(), object(context)));
    inputs.push((ARGUMENTS.to_owned(), object(arguments)));
    inputs
}

/// All names that a program finds.
pub(crate) fn input_names() -> Vec<String> {
    FUNCTIONS.into_iter().chain([CONTEXT, ARGUMENTS]).map(ToOwned::to_owned).collect()
}

fn failed(failure: Failure, message: impl Into<String>) -> End {
    End::Failed { failure, message: message.into() }
}
