//! Checks a Python program that a model wrote, without running it.
//!
//! Each check of the syntax tree looks for one kind of mistake. A name has a meaning only if all of
//! its bindings give it the same one. An uncertain use is no violation; it may fail when the
//! program runs. If the checks find nothing, Monty, the Python interpreter of the sandbox, tries to
//! compile the program.

mod context_tools;
mod fallback;
mod forbidden;
mod mutation;
mod names;
mod tree;
mod unknown_calls;

use jackline_attempt::Subtype;
use jackline_sandbox_host::protocol::{Callables, ProgramPosition, ProgramViolation};
use monty::MontyRun;
use monty_types::{CompileOptions, ExcType};
use ruff_python_parser::{ParseError, parse_module};
use ruff_text_size::TextSize;

use crate::check::names::ProgramNames;
use crate::run::input_names;

/// How many violations are reported, so that a report to the model stays short. The first ones in
/// the text are the most useful.
const VIOLATIONS_MAX: usize = 20;

/// The violations of a program, in the order of its text: at most `VIOLATIONS_MAX`, and at most one
/// of each subtype at one position. A syntax error is reported alone, because there is no tree to
/// check then.
///
/// The interpreter compiles the program only if no check of the syntax tree finds a violation. It
/// reports only its first problem, which may be one that a check describes with a better message.
pub fn check(source: &str, known: &Callables) -> Vec<ProgramViolation> {
    let mut violations = ViolationList { source, found: Vec::new() };
    if let Some(position) = source.find('\0') {
        let at = TextSize::try_from(position).unwrap_or_default();
        violations.add(Subtype::SyntaxError, at, "the program contains a NUL character");
        return violations.found;
    }
    let parsed = match parse_module(source) {
        Ok(parsed) => parsed,
        Err(ParseError { error, location }) => {
            violations.add(Subtype::SyntaxError, location.start(), error.to_string());
            return violations.found;
        }
    };
    let body = parsed.suite();
    let names = ProgramNames::of(body);
    forbidden::check_forbidden(body, &names, &mut violations);
    unknown_calls::check_calls(body, &names, known, &mut violations);
    mutation::check_mutations(body, &names, &mut violations);
    context_tools::check_context_tools(body, &names, &mut violations);
    fallback::check_fallbacks(body, &names, known, &mut violations);
    if violations.found.is_empty() {
        check_compiles(&mut violations);
    }
    let mut violations = violations.found;
    violations.sort_by(|one, other| (one.at, &one.subtype).cmp(&(other.at, &other.subtype)));
    violations.dedup_by(|one, other| one.at == other.at && one.subtype == other.subtype);
    violations.truncate(VIOLATIONS_MAX);
    violations
}

/// Adds a violation if Monty, the interpreter that runs the programs, can't compile the program.
fn check_compiles(violations: &mut ViolationList<'_>) {
    let source = violations.source.to_owned();
    let compiled = MontyRun::new(source, "program.py", input_names(), CompileOptions::default());
    let Err(error) = compiled else { return };
    let start = error.traceback().last().map(|frame| frame.start);
    let at = start.map_or(ProgramPosition { line: 1, column: 1 }, |start| ProgramPosition {
        line: start.line,
        column: start.column,
    });
    let error_text = error.message().unwrap_or("this program can't be run");
    let (subtype, message) = match error.exc_type() {
        ExcType::SyntaxError => (Subtype::SyntaxError, error_text.to_owned()),
        _ => (
            Subtype::ForbiddenConstruct,
            error_text
                .replace("The monty syntax parser does not yet support", "a program can't use"),
        ),
    };
    let subtype = subtype.name().to_owned();
    violations.found.push(ProgramViolation { subtype, message, at, correction: None });
}

/// The violations of one program that were found so far.
struct ViolationList<'a> {
    source: &'a str,
    found: Vec<ProgramViolation>,
}

impl ViolationList<'_> {
    /// Adds a violation without a correction of its own. The host uses that of its subtype.
    fn add(&mut self, subtype: Subtype, at: TextSize, message: impl Into<String>) {
        self.push(subtype, at, message.into(), None);
    }

    /// Adds a violation with a correction that is more specific than that of its subtype.
    fn add_with_correction(
        &mut self,
        subtype: Subtype,
        at: TextSize,
        message: impl Into<String>,
        correction: impl Into<String>,
    ) {
        self.push(subtype, at, message.into(), Some(correction.into()));
    }

    fn push(
        &mut self,
        subtype: Subtype,
        at: TextSize,
        message: String,
        correction: Option<String>,
    ) {
        let (subtype, at) = (subtype.name().to_owned(), position_of(self.source, at));
        self.found.push(ProgramViolation { subtype, message, at, correction });
    }
}

/// The line and column of a byte offset. Lines end as in Python: with `\n`, `\r` or `\r\n`.
fn position_of(source: &str, at: TextSize) -> ProgramPosition {
    let text_before = source.get(..usize::from(at)).unwrap_or(source);
    let mut position = ProgramPosition { line: 1, column: 1 };
    let mut characters = text_before.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\r' if characters.peek() == Some(&'\n') => {}
            '\n' | '\r' => {
                position = ProgramPosition { line: position.line.saturating_add(1), column: 1 }
            }
            _ => position.column = position.column.saturating_add(1),
        }
    }
    position
}

#[cfg(test)]
mod tests;
