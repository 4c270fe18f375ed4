//! Checks the syntax tree of a program, without running it.
//!
//! Each check looks for one kind of mistake. A name has a meaning only if all of its bindings give
//! it the same one. An uncertain use is no violation; it may fail when the program runs.

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

/// How many violations are reported. The first ones are the most useful.
const VIOLATIONS_MAX: usize = 20;

/// All violations of a program, in the order of its text.
pub fn check(source: &str, known: &Callables) -> Vec<ProgramViolation> {
    let mut objections = ViolationList { source, found: Vec::new() };
    if let Some(position) = source.find('\0') {
        let at = TextSize::try_from(position).unwrap_or_default();
        objections.add(Subtype::SyntaxError, at, "the program contains a NUL character");
        return objections.found;
    }
    let parsed = match parse_module(source) {
        Ok(parsed) => parsed,
        Err(ParseError { error, location }) => {
            objections.add(Subtype::SyntaxError, location.start(), error.to_string());
            return objections.found;
        }
    };
    let body = parsed.suite();
    let names = ProgramNames::of(body);
    forbidden::check_forbidden(body, &names, &mut objections);
    unknown_calls::check_calls(body, &names, known, &mut objections);
    mutation::check_mutations(body, &names, &mut objections);
    context_tools::check_context_tools(body, &names, &mut objections);
    fallback::check_fallbacks(body, &names, known, &mut objections);
    if objections.found.is_empty() {
        check_compiles(&mut objections);
    }
    let mut found = objections.found;
    found.sort_by(|one, other| (one.at, &one.subtype).cmp(&(other.at, &other.subtype)));
    found.dedup_by(|one, other| one.at == other.at && one.subtype == other.subtype);
    found.truncate(VIOLATIONS_MAX);
    found
}

/// Reports what the interpreter can't compile.
fn check_compiles(objections: &mut ViolationList<'_>) {
    let source = objections.source.to_owned();
    let compiled = MontyRun::new(source, "program.py", input_names(), CompileOptions::default());
    let Err(error) = compiled else { return };
    let start = error.traceback().last().map(|frame| frame.start);
    let at = start.map_or(ProgramPosition { line: 1, column: 1 }, |start| ProgramPosition {
        line: start.line,
        column: start.column,
    });
    let said = error.message().unwrap_or("this program can't be run");
    let (subtype, message) = match error.exc_type() {
        ExcType::SyntaxError => (Subtype::SyntaxError, said.to_owned()),
        _ => (
            Subtype::ForbiddenConstruct,
            said.replace("The monty syntax parser does not yet support", "a program can't use"),
        ),
    };
    let subtype = subtype.name().to_owned();
    objections.found.push(ProgramViolation { subtype, message, at, correction: None });
}

/// The violations so far.
struct ViolationList<'a> {
    source: &'a str,
    found: Vec<ProgramViolation>,
}

impl ViolationList<'_> {
    /// Adds a violation with the correction of its subtype.
    fn add(&mut self, subtype: Subtype, at: TextSize, message: impl Into<String>) {
        self.push(subtype, at, message.into(), None);
    }

    /// Adds a violation with a more specific correction.
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

/// The position of an offset. Lines end as in Python.
fn position_of(source: &str, at: TextSize) -> ProgramPosition {
    let before = source.get(..usize::from(at)).unwrap_or(source);
    let mut place = ProgramPosition { line: 1, column: 1 };
    let mut letters = before.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\r' if letters.peek() == Some(&'\n') => {}
            '\n' | '\r' => {
                place = ProgramPosition { line: place.line.saturating_add(1), column: 1 }
            }
            _ => place.column = place.column.saturating_add(1),
        }
    }
    place
}

#[cfg(test)]
mod tests;
