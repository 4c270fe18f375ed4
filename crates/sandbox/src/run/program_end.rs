//! Interprets the end of a run.

use jackline_sandbox_host::protocol::{ProgramEnd, ProgramFailure, ProgramPosition};
use monty::MontyRepl;
use monty_types::{ExcType, MontyException};
use serde_json::{Map, Value};

use crate::run::print_buffer::PrintBuffer;
use crate::run::program_calls::ProgramCalls;
use crate::run::{CONTEXT, DELEGATES, TOOLS, failed};
use crate::values::{NotData, to_json};

/// How many characters of an exception are reported.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// The position at which an exception was raised.
pub(super) fn exception_position(error: &MontyException) -> Option<ProgramPosition> {
    let start = error.traceback().last()?.start;
    Some(ProgramPosition { line: start.line, column: start.column })
}

/// The end of a program that did not catch an exception.
pub(super) fn end_of_exception(error: &MontyException, calls: &ProgramCalls) -> ProgramEnd {
    if let Some(end) = calls.end_of_call_exception(error) {
        return end;
    }
    // The interpreter reports its own limits with this text. A program that raises the same
    // exception only makes its own result worse.
    let says = |words: &str| error.message().is_some_and(|message| message.starts_with(words));
    let failure = match error.exc_type() {
        ExcType::TimeoutError if says("time limit exceeded") => ProgramFailure::Timeout,
        ExcType::MemoryError => ProgramFailure::Memory,
        ExcType::RecursionError => ProgramFailure::Recursion,
        ExcType::SyntaxError => ProgramFailure::InvalidCode,
        _ => ProgramFailure::Execution,
    };
    failed(failure, error.summary().chars().take(MESSAGE_CHARS_MAX).collect::<String>())
}

/// The context that the program leaves, without the keys of the host.
pub(super) fn saved_context(
    mut repl: MontyRepl,
    printed: &mut PrintBuffer,
) -> Result<Map<String, Value>, ProgramEnd> {
    let read = repl.feed_run(CONTEXT, Vec::new(), printed.writer());
    let value = read.map_err(|error| {
        let failure = match error.exc_type() {
            ExcType::TimeoutError => ProgramFailure::Timeout,
            ExcType::MemoryError => ProgramFailure::Memory,
            _ => ProgramFailure::Execution,
        };
        failed(failure, error.summary())
    })?;
    let no_data = |it: NotData| failed(NotData::FAILURE, it.describe(CONTEXT));
    let Value::Object(mut fields) = to_json(value).map_err(no_data)? else {
        return Err(failed(NotData::FAILURE, "context is no longer a dictionary"));
    };
    fields.remove(TOOLS);
    fields.remove(DELEGATES);
    Ok(fields)
}
