//! What runs inside words: `$(…)`, `${…}`, `$((…))`, backticks, `<(…)`.
//!
//! The scanner notes where each of them starts and ends, and the commands in
//! them are parsed at once, as bash does. Backticks are the exception: bash
//! looks into them only when it runs them, and so do we.

use crate::parse::{Halt, Parser};
use crate::tree::{Chain, EXPANDS, ExpansionKind, Id, NONE, QUOTED, RawWord, number};

/// Whether quotes around an expansion change how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quotes {
    None,
    Double,
}

impl Parser<'_> {
    /// The whole text as the body of a here-document.
    pub(crate) fn here_text(
        &mut self,
        traits: &mut u8,
        expansions: &mut Chain,
    ) -> Result<(), Halt> {
        self.expansions_until(0, traits, expansions)
    }

    /// Reads text in which only expansions and backslashes mean something, up to a byte. A zero
    /// byte is the end of the text.
    pub(crate) fn expansions_until(
        &mut self,
        end: u8,
        traits: &mut u8,
        expansions: &mut Chain,
    ) -> Result<(), Halt> {
        loop {
            match self.byte() {
                byte if byte == end => return Ok(()),
                0 => return Err(self.syntax()),
                b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                b'$' => self.dollar(Quotes::Double, traits, expansions)?,
                b'`' => self.backtick(traits, expansions)?,
                _ => self.at += 1,
            }
        }
    }

    /// What follows a `$`.
    pub(crate) fn dollar(
        &mut self,
        quotes: Quotes,
        traits: &mut u8,
        expansions: &mut Chain,
    ) -> Result<(), Halt> {
        let start = self.at;
        match self.byte_at(1) {
            b'(' => {
                *traits |= EXPANDS;
                if self.byte_at(2) == b'(' && self.arithmetic(start, 3, traits, expansions)? {
                    return Ok(());
                }
                self.at += 2;
                let id = self.tree.link_expansion(expansions, ExpansionKind::Command(NONE), start);
                let body = self.substituted_list()?;
                self.tree.close_expansion(id, ExpansionKind::Command(body), self.at);
            }
            b'{' => {
                *traits |= EXPANDS;
                let id = self.tree.link_expansion(expansions, ExpansionKind::Parameter, start);
                self.at += 2;
                self.matched(b'{', b'}', traits, expansions)?;
                self.tree.close_expansion(id, ExpansionKind::Parameter, self.at);
            }
            b'[' => {
                *traits |= EXPANDS;
                let id = self.tree.link_expansion(expansions, ExpansionKind::Arithmetic, start);
                self.at += 2;
                self.matched(b'[', b']', traits, expansions)?;
                self.tree.close_expansion(id, ExpansionKind::Arithmetic, self.at);
            }
            b'\'' if quotes == Quotes::None => {
                *traits |= QUOTED;
                self.at += 2;
                self.ansi_quotes()?;
            }
            b'\\' if self.byte_at(2) == b'\n' => {
                // A continued line between `$` and what it expands hides an
                // expansion from a reader who goes byte by byte.
                return Err(Halt::Continued(number(start)));
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => {
                *traits |= EXPANDS;
                self.at += 2;
                while matches!(self.byte(), b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'0'..=b'9') {
                    self.at += 1;
                }
                if self.byte() == b'\\' && self.byte_at(1) == b'\n' {
                    // The name may go on in the next line.
                    return Err(Halt::Continued(number(start)));
                }
            }
            b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' => {
                *traits |= EXPANDS;
                self.at += 2;
            }
            _ => self.at += 1,
        }
        Ok(())
    }

    /// `$((…))`. False, with nothing consumed, where it is `$( (…) …)`.
    fn arithmetic(
        &mut self,
        start: usize,
        skip: usize,
        traits: &mut u8,
        expansions: &mut Chain,
    ) -> Result<bool, Halt> {
        let inside = self.at + skip;
        if self.no_arithmetic.contains(&inside) {
            return Ok(false);
        }
        let before = self.mark();
        let chain = *expansions;
        let id = self.tree.link_expansion(expansions, ExpansionKind::Arithmetic, start);
        self.at = inside;
        let closed = match self.matched(b'(', b')', traits, expansions) {
            Ok(()) => self.byte() == b')',
            Err(Halt::Syntax(_)) => false,
            Err(other) => return Err(other),
        };
        if closed {
            self.at += 1;
            self.tree.close_expansion(id, ExpansionKind::Arithmetic, self.at);
            return Ok(true);
        }
        self.no_arithmetic.insert(inside);
        self.rewind(before);
        *expansions = chain;
        if let Some(tail) = self.tree.expansions.get_mut(chain.tail as usize) {
            tail.next = NONE;
        }
        Ok(false)
    }

    /// `(( … ))` as a command, as one word. `None` where it is two subshells.
    pub(crate) fn arithmetic_command(&mut self) -> Result<Option<Id>, Halt> {
        let (start, mut traits, mut expansions) = (self.at, 0, Chain::EMPTY);
        if !self.arithmetic(start, 2, &mut traits, &mut expansions)? {
            return Ok(None);
        }
        let id = number(self.tree.words.len());
        self.tree.words.push(RawWord {
            start: number(start),
            end: number(self.at),
            traits: traits | EXPANDS,
            expansions: expansions.head,
            next: NONE,
        });
        Ok(Some(id))
    }

    /// `` `…` ``: everything up to the next unescaped backtick, unparsed.
    pub(crate) fn backtick(&mut self, traits: &mut u8, expansions: &mut Chain) -> Result<(), Halt> {
        *traits |= EXPANDS;
        let id = self.tree.link_expansion(expansions, ExpansionKind::Backtick, self.at);
        self.at += 1;
        self.past_unescaped(b'`')?;
        self.tree.close_expansion(id, ExpansionKind::Backtick, self.at);
        Ok(())
    }

    pub(crate) fn process_substitution(
        &mut self,
        traits: &mut u8,
        expansions: &mut Chain,
    ) -> Result<(), Halt> {
        *traits |= EXPANDS;
        let id = self.tree.link_expansion(expansions, ExpansionKind::Process(NONE), self.at);
        self.at += 2;
        let body = self.substituted_list()?;
        self.tree.close_expansion(id, ExpansionKind::Process(body), self.at);
        Ok(())
    }

    /// Up to and past the `close` that matches an `open` already consumed.
    ///
    /// Quotes and expansions nest. In `${…}` only the first `}` counts.
    pub(crate) fn matched(
        &mut self,
        open: u8,
        close: u8,
        traits: &mut u8,
        expansions: &mut Chain,
    ) -> Result<(), Halt> {
        self.enter()?;
        let mut depth = 1_u32;
        loop {
            match self.byte() {
                0 => return Err(self.syntax()),
                b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                b'\'' => {
                    self.at += 1;
                    self.single_quotes()?;
                }
                b'"' => {
                    self.at += 1;
                    self.double_quotes(traits, expansions)?;
                }
                b'`' => self.backtick(traits, expansions)?,
                b'$' => self.dollar(Quotes::None, traits, expansions)?,
                b'<' | b'>' if open == b'{' && self.byte_at(1) == b'(' => {
                    self.process_substitution(traits, expansions)?;
                }
                byte if byte == close => {
                    self.at += 1;
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                byte if byte == open && open != b'{' => {
                    self.at += 1;
                    depth += 1;
                }
                _ => self.at += 1,
            }
        }
        self.leave();
        Ok(())
    }
}
