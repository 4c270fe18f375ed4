//! Words: where they end, and which expansions they hold.
//!
//! bash reads a word by recursion: a quote may hold `$(…)`, which holds
//! commands, which hold words. This file walks the text once and notes spans;
//! it decodes nothing.

use crate::dollar::Quotes;
use crate::parse::{Halt, Parser};
use crate::tree::{
    ARRAY, ASSIGNS, BRACE, Chain, EXPANDS, GLOB, Id, NONE, QUOTED, RawWord, TILDE, number,
};

/// Where a word stands, which decides what may be part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Before the program: `a=(…)` and `a[x y]=` are assignments.
    Head,
    /// After a program such as `declare`: `a=(…)` is an assignment.
    Declaration,
    /// Anywhere else.
    Argument,
    /// The right side of `=~`: parentheses and bars belong to the word.
    Regex,
    /// Inside `[[ … ]]`: extended patterns are on.
    Pattern,
}

const ORDINARY: u8 = 0;
const BREAK: u8 = 1;
const SPECIAL: u8 = 2;

/// What a byte means to the word scanner.
static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [ORDINARY; 256];
    let breaks = b"\0 \t\n;&|)";
    let mut at = 0;
    while at < breaks.len() {
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        {
            table[breaks[at] as usize] = BREAK;
        }
        at += 1;
    }
    let specials = b"\\'\"$`<>(*?[{~=@+!";
    at = 0;
    while at < specials.len() {
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        {
            table[specials[at] as usize] = SPECIAL;
        }
        at += 1;
    }
    table
}

fn class(byte: u8) -> u8 {
    CLASS.get(usize::from(byte)).copied().unwrap_or(ORDINARY)
}

impl Parser<'_> {
    /// Reads one word, which must start here; `None` where there is none.
    pub(crate) fn word(&mut self, place: Place) -> Result<Option<Id>, Halt> {
        let start = self.at;
        let mut traits = 0;
        let mut expansions = Chain::EMPTY;
        loop {
            let byte = self.byte();
            match class(byte) {
                ORDINARY => self.at += 1,
                BREAK if byte == b'|' && place == Place::Regex => self.at += 1,
                BREAK => break,
                _ => {
                    if !self.special(byte, start, place, &mut traits, &mut expansions)? {
                        break;
                    }
                }
            }
        }
        if self.at == start {
            return Ok(None);
        }
        self.count_word()?;
        let id = number(self.tree.words.len());
        self.tree.words.push(RawWord {
            start: number(start),
            end: number(self.at),
            traits,
            expansions: expansions.head,
            next: NONE,
        });
        Ok(Some(id))
    }

    /// Steps over a byte that may mean something. False where it ends the word.
    fn special(
        &mut self,
        byte: u8,
        start: usize,
        place: Place,
        traits: &mut u8,
        expansions: &mut Chain,
    ) -> Result<bool, Halt> {
        match byte {
            b'\\' => {
                *traits |= QUOTED;
                self.at = (self.at + 2).min(self.bytes.len());
            }
            b'\'' => {
                *traits |= QUOTED;
                self.at += 1;
                self.single_quotes()?;
            }
            b'"' => {
                *traits |= QUOTED;
                self.at += 1;
                self.double_quotes(traits, expansions)?;
            }
            b'$' => self.dollar(Quotes::None, traits, expansions)?,
            b'`' => self.backtick(traits, expansions)?,
            b'<' | b'>' if self.byte_at(1) == b'(' => {
                self.process_substitution(traits, expansions)?;
            }
            b'<' | b'>' => return Ok(false),
            b'(' => return self.parenthesis(start, place, traits, expansions),
            b'[' => {
                *traits |= GLOB;
                if place == Place::Head && self.is_name(start, self.at) {
                    self.at += 1;
                    self.matched(b'[', b']', traits, expansions)?;
                } else {
                    self.at += 1;
                }
            }
            b'*' | b'?' => {
                *traits |= GLOB;
                self.at += 1;
            }
            b'{' => {
                *traits |= BRACE;
                self.at += 1;
            }
            b'~' => {
                *traits |= TILDE;
                self.at += 1;
            }
            b'=' => {
                if matches!(place, Place::Head | Place::Declaration)
                    && *traits & ASSIGNS == 0
                    && self.assigns(start)
                {
                    // A subscript is not a pattern.
                    *traits = (*traits & !GLOB) | ASSIGNS;
                }
                self.at += 1;
            }
            _ => self.at += 1,
        }
        Ok(true)
    }

    /// An unquoted `(` inside or at the start of a word.
    fn parenthesis(
        &mut self,
        start: usize,
        place: Place,
        traits: &mut u8,
        expansions: &mut Chain,
    ) -> Result<bool, Halt> {
        let before = self.bytes.get(self.at.wrapping_sub(1)).copied().unwrap_or(0);
        match place {
            Place::Head | Place::Declaration
                if *traits & ASSIGNS != 0 && before == b'=' && self.assigns_before(start) =>
            {
                *traits |= ARRAY;
                self.array(traits, expansions)?;
                Ok(true)
            }
            Place::Regex => {
                self.at += 1;
                self.matched(b'(', b')', traits, expansions)?;
                Ok(true)
            }
            Place::Pattern
                if self.at > start && matches!(before, b'@' | b'!' | b'?' | b'*' | b'+') =>
            {
                *traits |= GLOB;
                self.at += 1;
                self.matched(b'(', b')', traits, expansions)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The elements of `a=(…)`: words and comments over several lines.
    fn array(&mut self, traits: &mut u8, expansions: &mut Chain) -> Result<(), Halt> {
        self.enter()?;
        self.at += 1;
        loop {
            self.skip_newlines();
            match self.byte() {
                b')' => break,
                b'[' => {
                    // `[key with spaces]=value`
                    self.at += 1;
                    self.matched(b'[', b']', traits, expansions)?;
                }
                _ => {
                    let Some(id) = self.word(Place::Argument)? else {
                        return Err(self.syntax());
                    };
                    // The element itself is not looked at, what it runs is.
                    let first = self.tree.word(id).map_or(NONE, |word| word.expansions);
                    self.adopt(first, expansions);
                    *traits |= self.tree.word(id).map_or(0, |word| word.traits & EXPANDS);
                }
            }
        }
        self.at += 1;
        self.leave();
        Ok(())
    }

    /// Hangs the expansions of an array's element onto the array.
    fn adopt(&mut self, first: Id, expansions: &mut Chain) {
        if first == NONE {
            return;
        }
        if let Some(tail) = self.tree.expansions.get_mut(expansions.tail as usize) {
            tail.next = first;
        } else {
            expansions.head = first;
        }
        let mut last = first;
        while let Some(next) = self.tree.expansion(last).map(|expansion| expansion.next)
            && next != NONE
        {
            last = next;
        }
        expansions.tail = last;
    }

    /// Up to and past the closing `'`.
    pub(crate) fn single_quotes(&mut self) -> Result<(), Halt> {
        match self.find(b'\'') {
            Some(end) => {
                self.at = end + 1;
                Ok(())
            }
            None => Err(self.syntax()),
        }
    }

    /// Up to and past the closing `'` of `$'…'`, where a backslash escapes.
    pub(crate) fn ansi_quotes(&mut self) -> Result<(), Halt> {
        self.past_unescaped(b'\'')
    }

    /// Up to and past the next `end` that no backslash escapes.
    pub(crate) fn past_unescaped(&mut self, end: u8) -> Result<(), Halt> {
        loop {
            match self.byte() {
                byte if byte == end => break,
                0 => return Err(self.syntax()),
                b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Up to and past the closing `"`.
    pub(crate) fn double_quotes(
        &mut self,
        traits: &mut u8,
        expansions: &mut Chain,
    ) -> Result<(), Halt> {
        self.expansions_until(b'"', traits, expansions)?;
        self.at += 1;
        Ok(())
    }

    /// Whether the text from `start` to here is what stands before the `=` of
    /// an assignment: a name, maybe a subscript, maybe a `+`.
    fn assigns(&self, start: usize) -> bool {
        let Some(mut left) = self.bytes.get(start..self.at) else { return false };
        if let [rest @ .., b'+'] = left {
            left = rest;
        }
        if let [rest @ .., b']'] = left {
            let Some(open) = rest.iter().position(|byte| *byte == b'[') else { return false };
            left = rest.get(..open).unwrap_or_default();
        }
        is_name(left)
    }

    /// Whether the first `=` of the word is the byte before this one.
    fn assigns_before(&self, start: usize) -> bool {
        let equals = self.at - 1;
        let Some(left) = self.bytes.get(start..equals) else { return false };
        let left = left.strip_suffix(b"+").unwrap_or(left);
        is_name(left) || left.ends_with(b"]")
    }

    fn is_name(&self, start: usize, end: usize) -> bool {
        self.bytes.get(start..end).is_some_and(is_name)
    }
}

/// Whether bytes are a shell name.
pub(crate) fn is_name(bytes: &[u8]) -> bool {
    match bytes {
        [b'A'..=b'Z' | b'a'..=b'z' | b'_', rest @ ..] => {
            rest.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        }
        _ => false,
    }
}
