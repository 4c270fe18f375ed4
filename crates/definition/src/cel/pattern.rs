//! Regular expressions: from the text to the program that the engine runs.
//!
//! The syntax is RE2's, and `\d`, `\w`, `\s` and `\b` mean ASCII as they do there.
//! What would need tables of Unicode, and what RE2 reads in another way than our
//! parser does, is refused.

use std::collections::BTreeMap;

use jackline_engine::expr::{Inst, Look, PROGRAM_MAX, Pattern};
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    Assertion, AssertionKind, Ast, ClassAsciiKind, ClassBracketed, ClassPerl, ClassPerlKind,
    ClassSet, ClassSetItem, Flag, Flags, GroupKind, Repetition, RepetitionKind, RepetitionRange,
};
use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

/// How deep groups may nest.
const NESTING_MAX: u32 = 32;

/// How many parts are looked at: repetitions of nothing make no instructions.
const WORK_MAX: usize = 4 * PROGRAM_MAX;

/// Why a pattern can't be used.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) message: String,
    pub(super) hint: Option<&'static str>,
}

fn refused<T>(message: impl Into<String>, hint: &'static str) -> Result<T, Refused> {
    Err(Refused { message: message.into(), hint: Some(hint) })
}

/// Makes a program of a pattern.
pub(super) fn compile(pattern: &str) -> Result<Pattern, Refused> {
    let parsed = ParserBuilder::new().nest_limit(NESTING_MAX).build().parse(pattern);
    let ast = parsed.map_err(|error| {
        let message = format!("the pattern can't be read: {}", error.kind());
        Refused { message, hint: None }
    })?;
    let mut compiler = Compiler::default();
    compiler.part(&ast, &mut Switches::default())?;
    Ok(Pattern::new(compiler.program, compiler.classes))
}

/// What `(?ims)` switches on.
#[derive(Debug, Clone, Copy, Default)]
struct Switches {
    any_case: bool,
    lines: bool,
    dot_is_any: bool,
}

impl Switches {
    fn set(&mut self, flags: &Flags) -> Result<(), Refused> {
        if flags.flag_state(Flag::Unicode) == Some(false) {
            return refused("the pattern switches off Unicode", "leave out `(?-u)`");
        }
        if flags.flag_state(Flag::CRLF).is_some() {
            return refused("the pattern uses `(?R)`", "write `\\r?$`");
        }
        let update = |switch: &mut bool, flag| {
            *switch = flags.flag_state(flag).unwrap_or(*switch);
        };
        update(&mut self.any_case, Flag::CaseInsensitive);
        update(&mut self.lines, Flag::MultiLine);
        update(&mut self.dot_is_any, Flag::DotMatchesNewLine);
        Ok(())
    }
}

#[derive(Default)]
struct Compiler {
    program: Vec<Inst>,
    classes: Vec<Vec<(char, char)>>,
    numbers: BTreeMap<Vec<(char, char)>, u16>,
    work: usize,
}

impl Compiler {
    fn emit(&mut self, inst: Inst) -> Result<usize, Refused> {
        if self.program.len() == PROGRAM_MAX {
            return too_large();
        }
        self.program.push(inst);
        Ok(self.program.len() - 1)
    }

    /// The number of the instruction that will be emitted next.
    fn here(&self) -> u16 {
        u16::try_from(self.program.len()).unwrap_or(u16::MAX)
    }

    /// Leads an instruction that was emitted earlier to the one that comes next.
    fn lead_here(&mut self, from: usize) {
        let here = self.here();
        if let Some(Inst::Jump(to) | Inst::Fork(to)) = self.program.get_mut(from) {
            *to = here;
        }
    }

    fn part(&mut self, ast: &Ast, switches: &mut Switches) -> Result<(), Refused> {
        self.work += 1;
        if self.work > WORK_MAX {
            return too_large();
        }
        match ast {
            Ast::Empty(_) => Ok(()),
            Ast::Flags(flags) => switches.set(&flags.flags),
            Ast::Literal(literal) => self.literal(literal.c, *switches),
            Ast::Dot(_) => {
                let dot = if switches.dot_is_any { Inst::Any } else { Inst::NotNewline };
                self.emit(dot).map(drop)
            }
            Ast::Assertion(assertion) => self.assertion(assertion, *switches),
            Ast::ClassUnicode(_) => unicode_class(),
            Ast::ClassPerl(class) => self.class(&perl(class)),
            Ast::ClassBracketed(class) => {
                let class = bracketed(class, *switches)?;
                self.class(&class)
            }
            Ast::Repetition(repetition) => self.repetition(repetition, *switches),
            Ast::Group(group) => {
                let mut inside = *switches;
                if let GroupKind::NonCapturing(flags) = &group.kind {
                    inside.set(flags)?;
                }
                self.part(&group.ast, &mut inside)
            }
            Ast::Concat(concat) => {
                concat.asts.iter().try_for_each(|part| self.part(part, switches))
            }
            Ast::Alternation(alternation) => self.alternation(&alternation.asts, switches),
        }
    }

    fn literal(&mut self, c: char, switches: Switches) -> Result<(), Refused> {
        case_is_known(c, switches)?;
        if switches.any_case && c.is_ascii_alphabetic() {
            let mut class = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
            any_case(&mut class);
            return self.class(&class);
        }
        self.emit(Inst::Char(c)).map(drop)
    }

    fn assertion(&mut self, assertion: &Assertion, switches: Switches) -> Result<(), Refused> {
        let look = match assertion.kind {
            AssertionKind::StartLine if switches.lines => Look::LineStart,
            AssertionKind::EndLine if switches.lines => Look::LineEnd,
            AssertionKind::StartLine | AssertionKind::StartText => Look::Start,
            AssertionKind::EndLine | AssertionKind::EndText => Look::End,
            AssertionKind::WordBoundary => Look::Boundary,
            AssertionKind::NotWordBoundary => Look::NotBoundary,
            _ => return refused("the pattern uses a one-sided word boundary", "write `\\b`"),
        };
        self.emit(Inst::Look(look)).map(drop)
    }

    fn class(&mut self, class: &ClassUnicode) -> Result<(), Refused> {
        let ranges: Vec<_> = class.iter().map(|range| (range.start(), range.end())).collect();
        let number = match self.numbers.get(&ranges) {
            Some(number) => *number,
            None => {
                let number = u16::try_from(self.classes.len()).or_else(|_| too_large())?;
                self.classes.push(ranges.clone());
                self.numbers.insert(ranges, number);
                number
            }
        };
        self.emit(Inst::Class(number)).map(drop)
    }

    fn alternation(&mut self, parts: &[Ast], switches: &mut Switches) -> Result<(), Refused> {
        let mut ends = Vec::new();
        let last = parts.len().saturating_sub(1);
        for (number, part) in parts.iter().enumerate() {
            if number == last {
                self.part(part, switches)?;
            } else {
                let fork = self.emit(Inst::Fork(0))?;
                self.part(part, switches)?;
                ends.push(self.emit(Inst::Jump(0))?);
                self.lead_here(fork);
            }
        }
        ends.into_iter().for_each(|end| self.lead_here(end));
        Ok(())
    }

    fn repetition(&mut self, repetition: &Repetition, switches: Switches) -> Result<(), Refused> {
        let (least, most) = match &repetition.op.kind {
            RepetitionKind::ZeroOrOne => (0, Some(1)),
            RepetitionKind::ZeroOrMore => (0, None),
            RepetitionKind::OneOrMore => (1, None),
            RepetitionKind::Range(RepetitionRange::Exactly(n)) => (*n, Some(*n)),
            RepetitionKind::Range(RepetitionRange::AtLeast(n)) => (*n, None),
            RepetitionKind::Range(RepetitionRange::Bounded(n, m)) => (*n, Some(*m)),
        };
        // `x{3,}` is `xxx` and then `x*`.
        for _ in 0..least {
            self.part(&repetition.ast, &mut { switches })?;
        }
        let Some(most) = most else {
            let fork = self.emit(Inst::Fork(0))?;
            self.part(&repetition.ast, &mut { switches })?;
            self.emit(Inst::Jump(u16::try_from(fork).unwrap_or(u16::MAX)))?;
            self.lead_here(fork);
            return Ok(());
        };
        let mut forks = Vec::new();
        for _ in least..most {
            forks.push(self.emit(Inst::Fork(0))?);
            self.part(&repetition.ast, &mut { switches })?;
        }
        forks.into_iter().for_each(|fork| self.lead_here(fork));
        Ok(())
    }
}

fn too_large<T>() -> Result<T, Refused> {
    let message = format!("the pattern has more than {PROGRAM_MAX} steps, repetitions written out");
    refused(message, "use smaller counts in `{…}`, or none")
}

fn unicode_class<T>() -> Result<T, Refused> {
    refused("the pattern uses a class of Unicode", "write the ranges you mean, such as `[a-zà-ÿ]`")
}

fn bracketed(class: &ClassBracketed, switches: Switches) -> Result<ClassUnicode, Refused> {
    let mut made = ClassUnicode::empty();
    match &class.kind {
        ClassSet::Item(item) => add(&mut made, item, switches)?,
        ClassSet::BinaryOp(_) => {
            return refused("the pattern computes with classes", "put a backslash before the sign");
        }
    }
    if switches.any_case {
        any_case(&mut made);
    }
    if class.negated {
        made.negate();
    }
    Ok(made)
}

fn add(class: &mut ClassUnicode, item: &ClassSetItem, switches: Switches) -> Result<(), Refused> {
    match item {
        ClassSetItem::Empty(_) => {}
        ClassSetItem::Literal(literal) => {
            case_is_known(literal.c, switches)?;
            class.push(ClassUnicodeRange::new(literal.c, literal.c));
        }
        ClassSetItem::Range(range) => {
            case_is_known(range.start.c, switches)?;
            case_is_known(range.end.c, switches)?;
            class.push(ClassUnicodeRange::new(range.start.c, range.end.c));
        }
        ClassSetItem::Ascii(ascii) => class.union(&ranges(named(&ascii.kind), ascii.negated)),
        ClassSetItem::Perl(known) => class.union(&perl(known)),
        ClassSetItem::Union(union) => {
            return union.items.iter().try_for_each(|item| add(class, item, switches));
        }
        ClassSetItem::Unicode(_) => return unicode_class(),
        ClassSetItem::Bracketed(_) => {
            return refused("the pattern has a class inside a class", "write `\\[` for a bracket");
        }
    }
    Ok(())
}

fn perl(class: &ClassPerl) -> ClassUnicode {
    let kind = match class.kind {
        ClassPerlKind::Digit => ClassAsciiKind::Digit,
        ClassPerlKind::Space => ClassAsciiKind::Space,
        ClassPerlKind::Word => ClassAsciiKind::Word,
    };
    ranges(named(&kind), class.negated)
}

fn ranges(ranges: &[(char, char)], negated: bool) -> ClassUnicode {
    let ranges = ranges.iter().map(|(first, last)| ClassUnicodeRange::new(*first, *last));
    let mut class = ClassUnicode::new(ranges);
    if negated {
        class.negate();
    }
    class
}

fn named(kind: &ClassAsciiKind) -> &'static [(char, char)] {
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

/// Refuses a letter whose other case we have no table for.
fn case_is_known(c: char, switches: Switches) -> Result<(), Refused> {
    if switches.any_case && !c.is_ascii() && (c.is_lowercase() || c.is_uppercase()) {
        let message = format!("`(?i)` does not know the other case of `{c}`");
        return refused(message, "write both cases, such as `[éÉ]`, outside of `(?i)`");
    }
    Ok(())
}

/// Adds the other case of every ASCII letter in the class.
fn any_case(class: &mut ClassUnicode) {
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
