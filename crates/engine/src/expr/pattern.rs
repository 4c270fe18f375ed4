//! Regular expressions as small programs that run in linear time.
//!
//! All paths through a program are followed in parallel, one character at a time (Thompson's
//! construction). So no text can make a pattern slow, and each instruction is counted.

use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// How many instructions a pattern may have.
pub const PATTERN_INSTRUCTIONS_MAX: usize = 2_048;

/// How many instructions cost one step. They are cheap compared with other steps.
const INSTRUCTIONS_PER_STEP: usize = 4;

/// A regular expression that may match anywhere in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExprPattern {
    program: Vec<PatternInstruction>,
    /// Sorted ranges of characters. Instructions refer to them by number.
    classes: Vec<Vec<(char, char)>>,
    /// The ASCII characters with which a match can begin; `None` if a match can be empty.
    first: Option<(u64, u64)>,
}

/// One instruction. The next one follows unless the instruction jumps. A match is found when the
/// program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternInstruction {
    /// Consumes this character.
    Char(char),
    /// Consumes any character.
    Any,
    /// Consumes any character except a line feed.
    NotNewline,
    /// Consumes a character of this class.
    Class(u16),
    /// Continues only if the condition is true at this position.
    Look(PatternAnchor),
    /// Continues at another instruction.
    Jump(u16),
    /// Continues at the next instruction and at another one.
    Fork(u16),
}

/// A condition on a position between two characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternAnchor {
    /// The text begins.
    Start,
    /// The text ends.
    End,
    /// A line begins.
    LineStart,
    /// A line ends.
    LineEnd,
    /// A word of ASCII letters, digits and underscores begins or ends.
    Boundary,
    /// No such word begins or ends.
    NotBoundary,
}

impl PatternAnchor {
    fn matches_at(self, before: Option<char>, after: Option<char>) -> bool {
        let word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        match self {
            Self::Start => before.is_none(),
            Self::End => after.is_none(),
            Self::LineStart => before.is_none_or(|c| c == '\n'),
            Self::LineEnd => after.is_none_or(|c| c == '\n'),
            Self::Boundary => word(before) != word(after),
            Self::NotBoundary => word(before) == word(after),
        }
    }
}

impl ExprPattern {
    /// Creates a pattern from its instructions.
    pub fn new(program: Vec<PatternInstruction>, classes: Vec<Vec<(char, char)>>) -> Self {
        let mut pattern = Self { program, classes, first: None };
        pattern.first = pattern.first_ascii_chars();
        pattern
    }

    /// Whether the pattern matches somewhere in `text`. `spend` is called with the work that was
    /// done.
    pub(super) fn matches_somewhere<E>(
        &self,
        text: &str,
        mut spend: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<bool, E> {
        spend(self.program.len() / 16)?;
        // Usually no match can begin anywhere in the text, and no instruction has to be followed.
        if self.first.is_some() && self.unmatchable_prefix_len(text, None) == text.len() {
            spend(text.len() / 16)?;
            return Ok(false);
        }
        let mut threads = PatternThreads::new(self.program.len());
        let mut rest = text;
        let mut before = None;
        let mut followed = 0;
        loop {
            if threads.open.is_empty() && !rest.is_empty() {
                let skipped = self.unmatchable_prefix_len(rest, before);
                if skipped > 0 {
                    spend(skipped / 16)?;
                    let (past, left) = rest.split_at_checked(skipped).unwrap_or((rest, ""));
                    (before, rest) = (past.chars().next_back(), left);
                }
            }
            let after = rest.chars().next();
            threads.start(0);
            while let Some(at) = threads.next() {
                followed += 1;
                if self.follow_instruction(at, before, after, &mut threads) == ThreadOutcome::Found
                {
                    return Ok(true);
                }
            }
            spend(followed / INSTRUCTIONS_PER_STEP)?;
            followed %= INSTRUCTIONS_PER_STEP;
            let Some(c) = after else { return Ok(false) };
            threads.advance();
            before = after;
            rest = rest.get(c.len_utf8()..).unwrap_or("");
        }
    }

    /// How many bytes at the start of `rest` can't be the beginning of a match.
    fn unmatchable_prefix_len(&self, rest: &str, before: Option<char>) -> usize {
        if before.is_some()
            && self.program.first() == Some(&PatternInstruction::Look(PatternAnchor::Start))
        {
            return rest.len();
        }
        let Some(first) = self.first else { return 0 };
        rest.bytes().position(|b| !b.is_ascii() || is_in_ascii_set(first, b)).unwrap_or(rest.len())
    }

    fn follow_instruction(
        &self,
        at: u16,
        before: Option<char>,
        after: Option<char>,
        threads: &mut PatternThreads,
    ) -> ThreadOutcome {
        let Some(inst) = self.program.get(usize::from(at)) else { return ThreadOutcome::Found };
        let next = at.saturating_add(1);
        match *inst {
            PatternInstruction::Jump(to) => threads.start(to),
            PatternInstruction::Fork(to) => {
                threads.start(next);
                threads.start(to);
            }
            PatternInstruction::Look(look) if look.matches_at(before, after) => threads.start(next),
            PatternInstruction::Look(_) => {}
            consuming => {
                if after.is_some_and(|c| self.accepts_char(consuming, c)) {
                    threads.waiting.push(next);
                }
            }
        }
        ThreadOutcome::Open
    }

    fn accepts_char(&self, inst: PatternInstruction, c: char) -> bool {
        match inst {
            PatternInstruction::Char(expected) => c == expected,
            PatternInstruction::Any => true,
            PatternInstruction::NotNewline => c != '\n',
            PatternInstruction::Class(class) => {
                self.classes.get(usize::from(class)).is_some_and(|ranges| {
                    let at = ranges.partition_point(|(_, last)| *last < c);
                    ranges.get(at).is_some_and(|(first, _)| *first <= c)
                })
            }
            PatternInstruction::Look(_)
            | PatternInstruction::Jump(_)
            | PatternInstruction::Fork(_) => false,
        }
    }

    /// The ASCII characters with which a match can begin; `None` if a match can be empty.
    fn first_ascii_chars(&self) -> Option<(u64, u64)> {
        let mut threads = PatternThreads::new(self.program.len());
        let mut first = (0, 0);
        threads.start(0);
        while let Some(at) = threads.next() {
            let next = at.saturating_add(1);
            match *self.program.get(usize::from(at))? {
                PatternInstruction::Jump(to) => threads.start(to),
                PatternInstruction::Fork(to) => {
                    threads.start(next);
                    threads.start(to);
                }
                PatternInstruction::Look(_) => threads.start(next),
                consuming => {
                    for b in 0..128_u8 {
                        if self.accepts_char(consuming, char::from(b)) {
                            let half = if b < 64 { &mut first.0 } else { &mut first.1 };
                            *half |= 1 << (b % 64);
                        }
                    }
                }
            }
        }
        Some(first)
    }
}

fn is_in_ascii_set((low, high): (u64, u64), b: u8) -> bool {
    let half = if b < 64 { low } else { high };
    half >> (b % 64) & 1 == 1
}

#[derive(PartialEq, Eq)]
enum ThreadOutcome {
    Found,
    Open,
}

/// The instructions that are followed in parallel.
struct PatternThreads {
    /// Instructions to follow at the current position of the text.
    open: Vec<u16>,
    /// Instructions to follow at the next position of the text.
    waiting: Vec<u16>,
    /// The last position at which each instruction was followed. An instruction is followed once
    /// per position, so one position costs at most one pass through the program.
    followed_at: Vec<usize>,
    position: usize,
}

impl PatternThreads {
    fn new(instructions: usize) -> Self {
        // One more than the number of instructions, for the end of the program.
        let seen = vec![0; instructions.saturating_add(1)];
        Self { open: Vec::new(), waiting: Vec::new(), followed_at: seen, position: 1 }
    }

    fn start(&mut self, at: u16) {
        match self.followed_at.get_mut(usize::from(at)) {
            Some(seen) if *seen == self.position => {}
            Some(seen) => {
                *seen = self.position;
                self.open.push(at);
            }
            // Only a damaged pattern jumps to an instruction that does not exist.
            None => {}
        }
    }

    fn next(&mut self) -> Option<u16> {
        self.open.pop()
    }

    /// Moves to the next position of the text.
    fn advance(&mut self) {
        self.position += 1;
        let mut waiting = core::mem::take(&mut self.waiting);
        for at in waiting.drain(..) {
            self.start(at);
        }
        self.waiting = waiting;
    }
}
