//! Compiles regular expressions to the program that the engine runs.
//!
//! The syntax is that of RE2, and `\d`, `\w`, `\s` and `\b` match ASCII only, as in RE2. The
//! compiler refuses patterns that need Unicode tables, and syntax that RE2 and our parser interpret
//! differently.

use std::collections::BTreeMap;

use jackline_engine::expr::{
    ExprPattern, PATTERN_INSTRUCTIONS_MAX, PatternAnchor, PatternInstruction,
};
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    Assertion, AssertionKind, Ast, ClassAsciiKind, ClassBracketed, ClassPerl, ClassPerlKind,
    ClassSet, ClassSetItem, Flag, Flags, GroupKind, Repetition, RepetitionKind, RepetitionRange,
};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

/// The maximum nesting depth of groups.
const GROUP_NESTING_MAX: u32 = 32;

/// The maximum number of parts that the compiler visits. The limit on instructions is not enough,
/// because a repetition of an empty part creates no instruction.
const PATTERN_PARTS_MAX: usize = 4 * PATTERN_INSTRUCTIONS_MAX;

/// The reason why a pattern can't be compiled.
#[derive(Debug)]
pub(super) struct PatternError {
    pub(super) message: String,
    pub(super) hint: Option<&'static str>,
}

fn pattern_error<T>(message: impl Into<String>, hint: &'static str) -> Result<T, PatternError> {
    Err(PatternError { message: message.into(), hint: Some(hint) })
}

/// Compiles a pattern to a program.
pub(super) fn compile(pattern: &str) -> Result<ExprPattern, PatternError> {
    let parsed = ParserBuilder::new().nest_limit(GROUP_NESTING_MAX).build().parse(pattern);
    let ast = parsed.map_err(|error| {
        let message = format!("the pattern is not valid: {}", error.kind());
        PatternError { message, hint: None }
    })?;
    let mut compiler = PatternCompiler::default();
    compiler.compile_part(&ast, &mut PatternFlags::default())?;
    Ok(ExprPattern::new(compiler.program, compiler.classes))
}

/// The flags that `(?ims)` switches on.
#[derive(Debug, Clone, Copy, Default)]
struct PatternFlags {
    ignore_case: bool,
    multi_line: bool,
    dot_matches_newline: bool,
}

impl PatternFlags {
    fn set(&mut self, flags: &Flags) -> Result<(), PatternError> {
        if flags.flag_state(Flag::Unicode) == Some(false) {
            return pattern_error("the pattern switches off Unicode", "remove `(?-u)`");
        }
        if flags.flag_state(Flag::CRLF).is_some() {
            return pattern_error("the pattern uses `(?R)`", "write `\\r?$`");
        }
        let update = |switch: &mut bool, flag| {
            *switch = flags.flag_state(flag).unwrap_or(*switch);
        };
        update(&mut self.ignore_case, Flag::CaseInsensitive);
        update(&mut self.multi_line, Flag::MultiLine);
        update(&mut self.dot_matches_newline, Flag::DotMatchesNewLine);
        Ok(())
    }
}

#[derive(Default)]
struct PatternCompiler {
    program: Vec<PatternInstruction>,
    classes: Vec<Vec<(char, char)>>,
    numbers: BTreeMap<Vec<(char, char)>, u16>,
    parts_compiled: usize,
}

impl PatternCompiler {
    fn emit(&mut self, inst: PatternInstruction) -> Result<usize, PatternError> {
        if self.program.len() == PATTERN_INSTRUCTIONS_MAX {
            return pattern_too_large();
        }
        self.program.push(inst);
        Ok(self.program.len() - 1)
    }

    /// Returns the index of the next instruction.
    fn next_index(&self) -> u16 {
        u16::try_from(self.program.len()).unwrap_or(u16::MAX)
    }

    /// Sets the target of an earlier jump or fork to the next instruction.
    fn set_target_here(&mut self, from: usize) {
        let here = self.next_index();
        if let Some(PatternInstruction::Jump(to) | PatternInstruction::Fork(to)) =
            self.program.get_mut(from)
        {
            *to = here;
        }
    }

    fn compile_part(&mut self, ast: &Ast, switches: &mut PatternFlags) -> Result<(), PatternError> {
        self.parts_compiled += 1;
        if self.parts_compiled > PATTERN_PARTS_MAX {
            return pattern_too_large();
        }
        match ast {
            Ast::Empty(_) => Ok(()),
            Ast::Flags(flags) => switches.set(&flags.flags),
            Ast::Literal(literal) => self.compile_literal(literal.c, *switches),
            Ast::Dot(_) => {
                let dot = if switches.dot_matches_newline {
                    PatternInstruction::Any
                } else {
                    PatternInstruction::NotNewline
                };
                self.emit(dot).map(drop)
            }
            Ast::Assertion(assertion) => self.compile_assertion(assertion, *switches),
            Ast::ClassUnicode(_) => unicode_class_error(),
            Ast::ClassPerl(class) => self.compile_class(&perl_class(class)),
            Ast::ClassBracketed(class) => {
                let class = bracketed_class(class, *switches)?;
                self.compile_class(&class)
            }
            Ast::Repetition(repetition) => self.compile_repetition(repetition, *switches),
            Ast::Group(group) => {
                let mut inside = *switches;
                if let GroupKind::NonCapturing(flags) = &group.kind {
                    inside.set(flags)?;
                }
                self.compile_part(&group.ast, &mut inside)
            }
            Ast::Concat(concat) => {
                concat.asts.iter().try_for_each(|part| self.compile_part(part, switches))
            }
            Ast::Alternation(alternation) => self.compile_alternation(&alternation.asts, switches),
        }
    }

    fn compile_literal(&mut self, c: char, switches: PatternFlags) -> Result<(), PatternError> {
        check_case(c, switches)?;
        if switches.ignore_case && c.is_ascii_alphabetic() {
            let mut class = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
            add_other_case(&mut class);
            return self.compile_class(&class);
        }
        self.emit(PatternInstruction::Char(c)).map(drop)
    }

    fn compile_assertion(
        &mut self,
        assertion: &Assertion,
        switches: PatternFlags,
    ) -> Result<(), PatternError> {
        let look = match assertion.kind {
            AssertionKind::StartLine if switches.multi_line => PatternAnchor::LineStart,
            AssertionKind::EndLine if switches.multi_line => PatternAnchor::LineEnd,
            AssertionKind::StartLine | AssertionKind::StartText => PatternAnchor::Start,
            AssertionKind::EndLine | AssertionKind::EndText => PatternAnchor::End,
            AssertionKind::WordBoundary => PatternAnchor::Boundary,
            AssertionKind::NotWordBoundary => PatternAnchor::NotBoundary,
            _ => return pattern_error("the pattern uses a one-sided word boundary", "write `\\b`"),
        };
        self.emit(PatternInstruction::Look(look)).map(drop)
    }

    fn compile_class(&mut self, class: &ClassUnicode) -> Result<(), PatternError> {
        let ranges: Vec<_> = class.iter().map(|range| (range.start(), range.end())).collect();
        let number = match self.numbers.get(&ranges) {
            Some(number) => *number,
            None => {
                let number = u16::try_from(self.classes.len()).or_else(|_| pattern_too_large())?;
                self.classes.push(ranges.clone());
                self.numbers.insert(ranges, number);
                number
            }
        };
        self.emit(PatternInstruction::Class(number)).map(drop)
    }

    fn compile_alternation(
        &mut self,
        parts: &[Ast],
        switches: &mut PatternFlags,
    ) -> Result<(), PatternError> {
        let mut ends = Vec::new();
        let last = parts.len().saturating_sub(1);
        for (number, part) in parts.iter().enumerate() {
            if number == last {
                self.compile_part(part, switches)?;
            } else {
                let fork = self.emit(PatternInstruction::Fork(0))?;
                self.compile_part(part, switches)?;
                ends.push(self.emit(PatternInstruction::Jump(0))?);
                self.set_target_here(fork);
            }
        }
        ends.into_iter().for_each(|end| self.set_target_here(end));
        Ok(())
    }

    fn compile_repetition(
        &mut self,
        repetition: &Repetition,
        switches: PatternFlags,
    ) -> Result<(), PatternError> {
        let (least, most) = match &repetition.op.kind {
            RepetitionKind::ZeroOrOne => (0, Some(1)),
            RepetitionKind::ZeroOrMore => (0, None),
            RepetitionKind::OneOrMore => (1, None),
            RepetitionKind::Range(RepetitionRange::Exactly(n)) => (*n, Some(*n)),
            RepetitionKind::Range(RepetitionRange::AtLeast(n)) => (*n, None),
            RepetitionKind::Range(RepetitionRange::Bounded(n, m)) => (*n, Some(*m)),
        };
        // `x{3,}` is compiled as `xxx` and then `x*`.
        for _ in 0..least {
            self.compile_part(&repetition.ast, &mut { switches })?;
        }
        let Some(most) = most else {
            let fork = self.emit(PatternInstruction::Fork(0))?;
            self.compile_part(&repetition.ast, &mut { switches })?;
            self.emit(PatternInstruction::Jump(u16::try_from(fork).unwrap_or(u16::MAX)))?;
            self.set_target_here(fork);
            return Ok(());
        };
        let mut forks = Vec::new();
        for _ in least..most {
            forks.push(self.emit(PatternInstruction::Fork(0))?);
            self.compile_part(&repetition.ast, &mut { switches })?;
        }
        forks.into_iter().for_each(|fork| self.set_target_here(fork));
        Ok(())
    }
}

fn pattern_too_large<T>() -> Result<T, PatternError> {
    let message = format!(
        "the pattern has more than {PATTERN_INSTRUCTIONS_MAX} steps after its repetitions are expanded"
    );
    pattern_error(message, "use smaller counts in `{…}`, or remove them")
}

fn unicode_class_error<T>() -> Result<T, PatternError> {
    pattern_error("the pattern uses a Unicode class", "write explicit ranges, such as `[a-zà-ÿ]`")
}

fn bracketed_class(
    class: &ClassBracketed,
    switches: PatternFlags,
) -> Result<ClassUnicode, PatternError> {
    let mut result = ClassUnicode::empty();
    match &class.kind {
        ClassSet::Item(item) => add_class_item(&mut result, item, switches)?,
        ClassSet::BinaryOp(_) => {
            return pattern_error(
                "the pattern uses an operator on classes",
                "put a backslash before the sign",
            );
        }
    }
    if switches.ignore_case {
        add_other_case(&mut result);
    }
    if class.negated {
        result.negate();
    }
    Ok(result)
}

fn add_class_item(
    class: &mut ClassUnicode,
    item: &ClassSetItem,
    switches: PatternFlags,
) -> Result<(), PatternError> {
    match item {
        ClassSetItem::Empty(_) => {}
        ClassSetItem::Literal(literal) => {
            check_case(literal.c, switches)?;
            class.push(ClassUnicodeRange::new(literal.c, literal.c));
        }
        ClassSetItem::Range(range) => {
            check_case(range.start.c, switches)?;
            check_case(range.end.c, switches)?;
            class.push(ClassUnicodeRange::new(range.start.c, range.end.c));
        }
        ClassSetItem::Ascii(ascii) => {
            class.union(&class_of_ranges(ascii_ranges(&ascii.kind), ascii.negated));
        }
        ClassSetItem::Perl(known) => class.union(&perl_class(known)),
        ClassSetItem::Union(union) => {
            return union.items.iter().try_for_each(|item| add_class_item(class, item, switches));
        }
        ClassSetItem::Unicode(_) => return unicode_class_error(),
        ClassSetItem::Bracketed(_) => {
            return pattern_error(
                "the pattern has a class inside a class",
                "write `\\[` for a bracket",
            );
        }
    }
    Ok(())
}

fn perl_class(class: &ClassPerl) -> ClassUnicode {
    let kind = match class.kind {
        ClassPerlKind::Digit => ClassAsciiKind::Digit,
        ClassPerlKind::Space => ClassAsciiKind::Space,
        ClassPerlKind::Word => ClassAsciiKind::Word,
    };
    class_of_ranges(ascii_ranges(&kind), class.negated)
}

fn class_of_ranges(ranges: &[(char, char)], negated: bool) -> ClassUnicode {
    let ranges = ranges.iter().map(|(first, last)| ClassUnicodeRange::new(*first, *last));
    let mut class = ClassUnicode::new(ranges);
    if negated {
        class.negate();
    }
    class
}

fn ascii_ranges(kind: &ClassAsciiKind) -> &'static [(char, char)] {
    match kind {
        ClassAsciiKind::Alnum => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
        ClassAsciiKind::Alpha => &[('A', 'Z'), ('a', 'z')],
        ClassAsciiKind::Ascii => &[('\0', '\x7f')],
        ClassAsciiKind::Blank => &[('\t', '\t'), (' ', ' ')],
        ClassAsciiKind::Cntrl => &[('\0', '\x1f'), ('\x7f', '\x7f')],
        ClassAsciiKind::Digit => &[('0', '9')],
        ClassAsciiKind::Graph => &[('!', '~')],
        ClassAsciiKind::Lower => &[('a', 'z')],
        ClassAsciiKind::Print => &[(' ', '~')],
        ClassAsciiKind::Punct => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        ClassAsciiKind::Space => &[('\t', '\r'), (' ', ' ')],
        ClassAsciiKind::Upper => &[('A', 'Z')],
        ClassAsciiKind::Word => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
        ClassAsciiKind::Xdigit => &[('0', '9'), ('A', 'F'), ('a', 'f')],
    }
}

/// Refuses a letter that is not ASCII, because there is no table of its other case.
fn check_case(c: char, switches: PatternFlags) -> Result<(), PatternError> {
    if switches.ignore_case && !c.is_ascii() && (c.is_lowercase() || c.is_uppercase()) {
        let message = format!("`(?i)` does not know the other case of `{c}`");
        return pattern_error(message, "write both cases, such as `[éÉ]`, outside of `(?i)`");
    }
    Ok(())
}

/// Adds the other case of every ASCII letter in the class.
fn add_other_case(class: &mut ClassUnicode) {
    let shift = |range: &ClassUnicodeRange, from: (char, char), to: char| {
        let (first, last) = (range.start().max(from.0), range.end().min(from.1));
        let other = |c: char| {
            let offset = u32::from(c) - u32::from(from.0);
            char::from_u32(u32::from(to) + offset)
        };
        (first <= last).then(|| Some(ClassUnicodeRange::new(other(first)?, other(last)?)))?
    };
    let others: Vec<_> = class
        .iter()
        .flat_map(|range| [shift(range, ('a', 'z'), 'A'), shift(range, ('A', 'Z'), 'a')])
        .flatten()
        .collect();
    class.union(&ClassUnicode::new(others));
}
