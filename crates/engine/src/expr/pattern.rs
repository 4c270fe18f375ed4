//! Regular expressions as small programs, run in linear time.
//!
//! All ways through a program are followed side by side, one character at a
//! time (Thompson's construction): no text can make a pattern take long, and
//! what it does take is counted.

use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// How many instructions a pattern may be made of.
pub const PROGRAM_MAX: usize = 2_048;

/// How many instructions cost one step: they are small beside other steps.
const INSTS_PER_STEP: usize = 4;

/// A regular expression that looks for a match anywhere in a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    program: Vec<Inst>,
    /// Sorted ranges of characters, named by the instructions.
    classes: Vec<Vec<(char, char)>>,
    /// The ASCII characters a match can begin with, where it can't be empty.
    first: Option<(u64, u64)>,
}

/// One instruction. The one after it comes next, unless it says otherwise; a
/// match is found where the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inst {
    /// Takes this character.
    Char(char),
    /// Takes any character.
    Any,
    /// Takes any character but a line feed.
    NotNewline,
    /// Takes a character of this class.
    Class(u16),
    /// Goes on only at such a place.
    Look(Look),
    /// Goes on at another instruction.
    Jump(u16),
    /// Goes on at the next instruction and at another.
    Fork(u16),
}

/// A place between two characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Look {
    /// Where the text begins.
    Start,
    /// Where the text ends.
    End,
    /// Where a line begins.
    LineStart,
    /// Where a line ends.
    LineEnd,
    /// Where a word of ASCII letters, digits and underscores begins or ends.
    Boundary,
    /// Anywhere else.
    NotBoundary,
}

impl Look {
    fn is_at(self, before: Option<char>, after: Option<char>) -> bool {
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

impl Pattern {
    /// Makes a pattern of its instructions.
    pub fn new(program: Vec<Inst>, classes: Vec<Vec<(char, char)>>) -> Self {
        let mut pattern = Self { program, classes, first: None };
        pattern.first = pattern.beginnings();
        pattern
    }

    /// Whether the pattern is found in `text`; `spend` is told of the work.
    pub(super) fn is_found<E>(
        &self,
        text: &str,
        mut spend: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<bool, E> {
        spend(self.program.len() / 16)?;
        // Mostly no match can begin anywhere, and nothing has to be followed.
        if self.first.is_some() && self.hopeless(text, None) == text.len() {
            spend(text.len() / 16)?;
            return Ok(false);
        }
        let mut threads = Threads::new(self.program.len());
        let mut rest = text;
        let mut before = None;
        let mut followed = 0;
        loop {
            if threads.open.is_empty() && !rest.is_empty() {
                let skipped = self.hopeless(rest, before);
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
                if self.follow(at, before, after, &mut threads) == Outcome::Found {
                    return Ok(true);
                }
            }
            spend(followed / INSTS_PER_STEP)?;
            followed %= INSTS_PER_STEP;
            let Some(c) = after else { return Ok(false) };
            threads.turn();
            before = after;
            rest = rest.get(c.len_utf8()..).unwrap_or("");
        }
    }

    /// How much of `rest` no match can begin in.
    fn hopeless(&self, rest: &str, before: Option<char>) -> usize {
        if before.is_some() && self.program.first() == Some(&Inst::Look(Look::Start)) {
            return rest.len();
        }
        let Some(first) = self.first else { return 0 };
        rest.bytes().position(|b| !b.is_ascii() || is_in(first, b)).unwrap_or(rest.len())
    }

    fn follow(
        &self,
        at: u16,
        before: Option<char>,
        after: Option<char>,
        threads: &mut Threads,
    ) -> Outcome {
        let Some(inst) = self.program.get(usize::from(at)) else { return Outcome::Found };
        let next = at.saturating_add(1);
        match *inst {
            Inst::Jump(to) => threads.start(to),
            Inst::Fork(to) => {
                threads.start(next);
                threads.start(to);
            }
            Inst::Look(look) if look.is_at(before, after) => threads.start(next),
            Inst::Look(_) => {}
            takes => {
                if after.is_some_and(|c| self.takes(takes, c)) {
                    threads.waiting.push(next);
                }
            }
        }
        Outcome::Open
    }

    fn takes(&self, inst: Inst, c: char) -> bool {
        match inst {
            Inst::Char(wanted) => c == wanted,
            Inst::Any => true,
            Inst::NotNewline => c != '\n',
            Inst::Class(class) => self.classes.get(usize::from(class)).is_some_and(|ranges| {
                let at = ranges.partition_point(|(_, last)| *last < c);
                ranges.get(at).is_some_and(|(first, _)| *first <= c)
            }),
            Inst::Look(_) | Inst::Jump(_) | Inst::Fork(_) => false,
        }
    }

    /// The ASCII characters a match can begin with, unless it can be empty.
    fn beginnings(&self) -> Option<(u64, u64)> {
        let mut threads = Threads::new(self.program.len());
        let mut first = (0, 0);
        threads.start(0);
        while let Some(at) = threads.next() {
            let next = at.saturating_add(1);
            match *self.program.get(usize::from(at))? {
                Inst::Jump(to) => threads.start(to),
                Inst::Fork(to) => {
                    threads.start(next);
                    threads.start(to);
                }
                Inst::Look(_) => threads.start(next),
                takes => {
                    for b in 0..128_u8 {
                        if self.takes(takes, char::from(b)) {
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

fn is_in((low, high): (u64, u64), b: u8) -> bool {
    let half = if b < 64 { low } else { high };
    half >> (b % 64) & 1 == 1
}

#[derive(PartialEq, Eq)]
enum Outcome {
    Found,
    Open,
}

/// Where in the program the ways through it are.
struct Threads {
    /// To be followed at this place of the text.
    open: Vec<u16>,
    /// To be followed at the next place of the text.
    waiting: Vec<u16>,
    /// The last place at which an instruction was followed: each is once a place,
    /// so one place costs at most one run through the program.
    seen: Vec<usize>,
    place: usize,
}

impl Threads {
    fn new(instructions: usize) -> Self {
        // One more than there are instructions: the end.
        let seen = vec![0; instructions.saturating_add(1)];
        Self { open: Vec::new(), waiting: Vec::new(), seen, place: 1 }
    }

    fn start(&mut self, at: u16) {
        match self.seen.get_mut(usize::from(at)) {
            Some(seen) if *seen == self.place => {}
            Some(seen) => {
                *seen = self.place;
                self.open.push(at);
            }
            // Only a damaged pattern leads here.
            None => {}
        }
    }

    fn next(&mut self) -> Option<u16> {
        self.open.pop()
    }

    /// Moves on to the next place.
    fn turn(&mut self) {
        self.place += 1;
        let mut waiting = core::mem::take(&mut self.waiting);
        for at in waiting.drain(..) {
            self.start(at);
        }
        self.waiting = waiting;
    }
}
