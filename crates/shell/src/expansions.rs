//! Parses the expansions inside words: `$(…)`, `${…}`, `$((…))`, backticks, `<(…)`.
//!
//! The scanner records where each expansion starts and ends, and parses the
//! commands inside it at once, as bash does. Backticks are the exception: bash
//! parses them only when it runs them, and so do we.

use crate::shell_parser::{ShellParseError, ShellParser};
use crate::syntax_tree::{
    ArenaId, ArenaList, EXPANDS, ExpansionKind, NONE, QUOTED, RawWord, to_u32,
};

/// Whether an expansion is inside double quotes, which changes how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuoteContext {
    None,
    Double,
}

impl ShellParser<'_> {
    /// Reads the whole text as the body of a here-document.
    pub(crate) fn read_here_text(
        &mut self,
        traits: &mut u8,
        expansions: &mut ArenaList,
    ) -> Result<(), ShellParseError> {
        self.read_expansions_until(0, traits, expansions)
    }

    /// Reads text up to the byte `end`. Only expansions and backslashes have a meaning
    /// in it. `end` is zero for "until the end of the text".
    pub(crate) fn read_expansions_until(
        &mut self,
        end: u8,
        traits: &mut u8,
        expansions: &mut ArenaList,
    ) -> Result<(), ShellParseError> {
        loop {
            match self.current_byte() {
                byte if byte == end => return Ok(()),
                0 => return Err(self.syntax_error()),
                b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                b'$' => self.read_dollar(QuoteContext::Double, traits, expansions)?,
                b'`' => self.read_backtick(traits, expansions)?,
                _ => self.at += 1,
            }
        }
    }

    /// Parses the expansion that starts at a `$`.
    pub(crate) fn read_dollar(
        &mut self,
        quotes: QuoteContext,
        traits: &mut u8,
        expansions: &mut ArenaList,
    ) -> Result<(), ShellParseError> {
        let start = self.at;
        match self.byte_at(1) {
            b'(' => {
                *traits |= EXPANDS;
                if self.byte_at(2) == b'(' && self.read_arithmetic(start, 3, traits, expansions)? {
                    return Ok(());
                }
                self.at += 2;
                let id = self.tree.link_expansion(expansions, ExpansionKind::Command(NONE), start);
                let body = self.parse_substituted_list()?;
                self.tree.close_expansion(id, ExpansionKind::Command(body), self.at);
            }
            b'{' => {
                *traits |= EXPANDS;
                let id = self.tree.link_expansion(expansions, ExpansionKind::Parameter, start);
                self.at += 2;
                self.read_matched(b'{', b'}', traits, expansions)?;
                self.tree.close_expansion(id, ExpansionKind::Parameter, self.at);
            }
            b'[' => {
                *traits |= EXPANDS;
                let id = self.tree.link_expansion(expansions, ExpansionKind::Arithmetic, start);
                self.at += 2;
                self.read_matched(b'[', b']', traits, expansions)?;
                self.tree.close_expansion(id, ExpansionKind::Arithmetic, self.at);
            }
            b'\'' if quotes == QuoteContext::None => {
                *traits |= QUOTED;
                self.at += 2;
                self.read_ansi_quotes()?;
            }
            b'\\' if self.byte_at(2) == b'\n' => {
                // bash joins the lines first and sees an expansion here; this parser
                // goes byte by byte and would miss it.
                return Err(ShellParseError::ContinuedLine(to_u32(start)));
            }
            b'A'..=b'Z' | b'a'..=b'z' | b'_' => {
                *traits |= EXPANDS;
                self.at += 2;
                while matches!(self.current_byte(), b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'0'..=b'9')
                {
                    self.at += 1;
                }
                if self.current_byte() == b'\\' && self.byte_at(1) == b'\n' {
                    // The name may continue on the next line.
                    return Err(ShellParseError::ContinuedLine(to_u32(start)));
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

    /// `$((…))`. Returns false and consumes nothing where it is `$( (…) …)`.
    fn read_arithmetic(
        &mut self,
        start: usize,
        skip: usize,
        traits: &mut u8,
        expansions: &mut ArenaList,
    ) -> Result<bool, ShellParseError> {
        let inside = self.at + skip;
        if self.no_arithmetic.contains(&inside) {
            return Ok(false);
        }
        let before = self.mark();
        let chain = *expansions;
        let id = self.tree.link_expansion(expansions, ExpansionKind::Arithmetic, start);
        self.at = inside;
        let closed = match self.read_matched(b'(', b')', traits, expansions) {
            Ok(()) => self.current_byte() == b')',
            Err(ShellParseError::Syntax(_)) => false,
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

    /// `(( … ))` as a command, stored as one word. `None` where it is two subshells.
    pub(crate) fn parse_arithmetic_command(&mut self) -> Result<Option<ArenaId>, ShellParseError> {
        let (start, mut traits, mut expansions) = (self.at, 0, ArenaList::EMPTY);
        if !self.read_arithmetic(start, 2, &mut traits, &mut expansions)? {
            return Ok(None);
        }
        let id = to_u32(self.tree.words.len());
        self.tree.words.push(RawWord {
            start: to_u32(start),
            end: to_u32(self.at),
            flags: traits | EXPANDS,
            expansions: expansions.head,
            next: NONE,
        });
        Ok(Some(id))
    }

    /// `` `…` ``: everything up to the next unescaped backtick, not parsed yet.
    pub(crate) fn read_backtick(
        &mut self,
        traits: &mut u8,
        expansions: &mut ArenaList,
    ) -> Result<(), ShellParseError> {
        *traits |= EXPANDS;
        let id = self.tree.link_expansion(expansions, ExpansionKind::Backtick, self.at);
        self.at += 1;
        self.read_past_unescaped(b'`')?;
        self.tree.close_expansion(id, ExpansionKind::Backtick, self.at);
        Ok(())
    }

    pub(crate) fn read_process_substitution(
        &mut self,
        traits: &mut u8,
        expansions: &mut ArenaList,
    ) -> Result<(), ShellParseError> {
        *traits |= EXPANDS;
        let id = self.tree.link_expansion(expansions, ExpansionKind::Process(NONE), self.at);
        self.at += 2;
        let body = self.parse_substituted_list()?;
        self.tree.close_expansion(id, ExpansionKind::Process(body), self.at);
        Ok(())
    }

    /// Reads up to and past the `close` that matches an `open` the caller has consumed.
    ///
    /// Quotes and expansions nest. In `${…}` only the first `}` counts.
    pub(crate) fn read_matched(
        &mut self,
        open: u8,
        close: u8,
        traits: &mut u8,
        expansions: &mut ArenaList,
    ) -> Result<(), ShellParseError> {
        self.enter_nesting()?;
        let mut depth = 1_u32;
        loop {
            match self.current_byte() {
                0 => return Err(self.syntax_error()),
                b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                b'\'' => {
                    self.at += 1;
                    self.read_single_quotes()?;
                }
                b'"' => {
                    self.at += 1;
                    self.read_double_quotes(traits, expansions)?;
                }
                b'`' => self.read_backtick(traits, expansions)?,
                b'$' => self.read_dollar(QuoteContext::None, traits, expansions)?,
                b'<' | b'>' if open == b'{' && self.byte_at(1) == b'(' => {
                    self.read_process_substitution(traits, expansions)?;
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
        self.leave_nesting();
        Ok(())
    }
}
