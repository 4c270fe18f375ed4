//! What the end of a run means.

use jackline_sandbox_host::protocol::{End, Failure, Place};
use monty::MontyRepl;
use monty_types::{ExcType, MontyException};
use serde_json::{Map, Value};

use crate::run::calls::Calls;
use crate::run::printed::Printed;
use crate::run::{CONTEXT, DELEGATES, TOOLS, failed};
use crate::values::{NotData, to_json};

/// How much of an exception is told.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// Where an exception was raised.
pub(super) fn place(error: &MontyException) -> Option<Place> {
    let start = error.traceback().last()?.start;
    Some(Place { line: start.line, column: start.column })
}

/// What an exception that nobody caught comes to.
pub(super) fn of(error: &MontyException, calls: &Calls) -> End {
    if let Some(end) = calls.raised(error) {
        return end;
    }
    // The interpreter's own limits say so in these words; a program that raises the same
    // ones only speaks ill of itself.
    let says = |words: &str| error.message().is_some_and(|message| message.starts_with(words));
    let failure = match error.exc_type() {
        ExcType::TimeoutError if says("time limit exceeded") => Failure::Timeout,
        ExcType::MemoryError => Failure::Memory,
        ExcType::RecursionError => Failure::Recursion,
        ExcType::SyntaxError => Failure::InvalidCode,
        _ => Failure::Execution,
    };
    failed(failure, error.summary().chars().take(MESSAGE_CHARS_MAX).collect::<String>())
}

/// What the program wants to be remembered, without what is the host's.
pub(super) fn context(
    mut repl: MontyRepl,
    printed: &mut Printed,
) -> Result<Map<String, Value>, End> {
    let read = repl.feed_run(CONTEXT, Vec::new(), printed.writer());
    let value = read.map_err(|error| {
        let failure = match error.exc_type() {
            ExcType::TimeoutError => Failure::Timeout,
            ExcType::MemoryError => Failure::Memory,
            _ => Failure::Execution,
        };
        failed(failure, error.summary())
    })?;
    let no_data = |it: NotData| failed(NotData::FAILURE, it.about(CONTEXT));
    let Value::Object(mut fields) = to_json(value).map_err(no_data)? else {
        return Err(failed(NotData::FAILURE, "context is no dictionary any more"));
    };
    fields.remove(TOOLS);
    fields.remove(DELEGATES);
    Ok(fields)
}
