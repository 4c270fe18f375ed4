//! Looks at the syntax tree of a program, and runs nothing of it.
//!
//! Each pass looks for one kind of mistake. They know names only by how the program
//! itself binds them: a name has a meaning where all its bindings give it the same one,
//! so what is not certain is not objected to, and shows when the program runs.

mod calls;
mod fallback;
mod forbidden;
mod mutation;
mod names;
mod registry;
mod tree;

use jackline_attempt::Subtype;
use jackline_sandbox_host::protocol::{Known, Objection, Place};
use monty::MontyRun;
use monty_types::{CompileOptions, ExcType};
use ruff_python_parser::{ParseError, parse_module};
use ruff_text_size::TextSize;

use crate::check::names::Names;
use crate::run::input_names;

/// How many objections are told; the first ones matter most.
const OBJECTIONS_MAX: usize = 20;

/// Everything that is wrong with a program, in the order of its text.
pub fn check(source: &str, known: &Known) -> Vec<Objection> {
    let mut objections = Objections { source, found: Vec::new() };
    if let Some(position) = source.find('\0') {
        let at = TextSize::try_from(position).unwrap_or_default();
        objections.add(Subtype::SyntaxError, at, "the program has a NUL in it");
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
    let names = Names::of(body);
    forbidden::look(body, &names, &mut objections);
    calls::look(body, &names, known, &mut objections);
    mutation::look(body, &names, &mut objections);
    registry::look(body, &names, &mut objections);
    fallback::look(body, &names, known, &mut objections);
    if objections.found.is_empty() {
        unsupported(&mut objections);
    }
    let mut found = objections.found;
    found.sort_by(|one, other| (one.at, &one.subtype).cmp(&(other.at, &other.subtype)));
    found.dedup_by(|one, other| one.at == other.at && one.subtype == other.subtype);
    found.truncate(OBJECTIONS_MAX);
    found
}

/// What the interpreter can't run, which it says when it compiles.
fn unsupported(objections: &mut Objections<'_>) {
    let source = objections.source.to_owned();
    let compiled = MontyRun::new(source, "program.py", input_names(), CompileOptions::default());
    let Err(error) = compiled else { return };
    let start = error.traceback().last().map(|frame| frame.start);
    let at = start.map_or(Place { line: 1, column: 1 }, |start| Place {
        line: start.line,
        column: start.column,
    });
    let said = error.message().unwrap_or("this can't be run");
    let (subtype, message) = match error.exc_type() {
        ExcType::SyntaxError => (Subtype::SyntaxError, said.to_owned()),
        _ => (
            Subtype::ForbiddenConstruct,
            said.replace("The monty syntax parser does not yet support", "programs can't have"),
        ),
    };
    let subtype = subtype.name().to_owned();
    objections.found.push(Objection { subtype, message, at, correction: None });
}

/// What was found so far.
struct Objections<'a> {
    source: &'a str,
    found: Vec<Objection>,
}

impl Objections<'_> {
    /// Adds one with the correction of its subtype.
    fn add(&mut self, subtype: Subtype, at: TextSize, message: impl Into<String>) {
        self.push(subtype, at, message.into(), None);
    }

    /// Adds one with a correction that knows more.
    fn correct(
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
        let (subtype, at) = (subtype.name().to_owned(), place(self.source, at));
        self.found.push(Objection { subtype, message, at, correction });
    }
}

/// Lines end as Python's do.
fn place(source: &str, at: TextSize) -> Place {
    let before = source.get(..usize::from(at)).unwrap_or(source);
    let mut place = Place { line: 1, column: 1 };
    let mut letters = before.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\r' if letters.peek() == Some(&'\n') => {}
            '\n' | '\r' => place = Place { line: place.line.saturating_add(1), column: 1 },
            _ => place.column = place.column.saturating_add(1),
        }
    }
    place
}

#[cfg(test)]
mod tests;
