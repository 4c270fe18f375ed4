//! Finds where words end and which expansions they contain.
//!
//! bash reads a word by recursion: a quote may contain `$(…)`, which contains
//! commands, which contain words. This file scans the text once and records spans;
//! it decodes nothing.

use crate::expansions::QuoteContext;
use crate::shell_parser::{ShellParseError, ShellParser};
use crate::syntax_tree::{
    ARRAY, ASSIGNS, ArenaId, ArenaList, BRACE, EXPANDS, GLOB, NONE, QUOTED, RawWord, TILDE, to_u32,
};

/// The position of a word in a command. It decides which characters belong to the word.
///
/// The scanner also collects the flags of a word: one bit for each kind of syntax in it, such as
/// `QUOTED` or `GLOB` in `syntax_tree.rs`. A word without flags means exactly its own text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordPosition {
    /// A leading assignment or the program name, which are scanned before it is clear which of them
    /// the word is. `a=(…)` and `a[x y]=` are assignments here.
    BeforeArguments,
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
const WORD_BREAK: u8 = 1;
const SPECIAL: u8 = 2;

/// The class of each byte for the word scanner.
static BYTE_CLASSES: [u8; 256] = build_byte_classes();

const fn build_byte_classes() -> [u8; 256] {
    let mut table = [ORDINARY; 256];
    // `current_byte` returns 0 at the end of the text, so the end also ends a word. The text itself
    // contains no NUL.
    let breaks = b"\0 \t\n;&|)";
    let mut at = 0;
    while at < breaks.len() {
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        {
            table[breaks[at] as usize] = WORD_BREAK;
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

fn byte_class(byte: u8) -> u8 {
    BYTE_CLASSES.get(usize::from(byte)).copied().unwrap_or(ORDINARY)
}

impl ShellParser<'_> {
    /// Reads one word that starts here, and returns its id. `None` where no word starts here.
    ///
    /// The word is added to `tree.words`. The caller links it to the other words of its command. A
    /// word that no caller links, such as an array element, stays in `tree.words` but is never
    /// visited. It still counts towards the limit of words.
    pub(crate) fn read_word(
        &mut self,
        position: WordPosition,
    ) -> Result<Option<ArenaId>, ShellParseError> {
        let start = self.at;
        let mut word_flags = 0;
        let mut expansions = ArenaList::EMPTY;
        loop {
            let byte = self.current_byte();
            match byte_class(byte) {
                ORDINARY => self.at += 1,
                WORD_BREAK if byte == b'|' && position == WordPosition::Regex => self.at += 1,
                WORD_BREAK => break,
                _ => {
                    if !self.read_special(
                        byte,
                        start,
                        position,
                        &mut word_flags,
                        &mut expansions,
                    )? {
                        break;
                    }
                }
            }
        }
        if self.at == start {
            return Ok(None);
        }
        self.check_word_count()?;
        let id = to_u32(self.tree.words.len());
        self.tree.words.push(RawWord {
            start: to_u32(start),
            end: to_u32(self.at),
            flags: word_flags,
            expansions: expansions.head,
            next: NONE,
        });
        Ok(Some(id))
    }

    /// Reads a byte that may have a special meaning. Returns false where it ends the word.
    ///
    /// `word_flags` and `expansions` collect the syntax of the word that begins at `start`.
    fn read_special(
        &mut self,
        byte: u8,
        start: usize,
        position: WordPosition,
        word_flags: &mut u8,
        expansions: &mut ArenaList,
    ) -> Result<bool, ShellParseError> {
        match byte {
            b'\\' => {
                *word_flags |= QUOTED;
                self.at = (self.at + 2).min(self.bytes.len());
            }
            b'\'' => {
                *word_flags |= QUOTED;
                self.at += 1;
                self.read_single_quotes()?;
            }
            b'"' => {
                *word_flags |= QUOTED;
                self.at += 1;
                self.read_double_quotes(word_flags, expansions)?;
            }
            b'$' => self.read_dollar(QuoteContext::None, word_flags, expansions)?,
            b'`' => self.read_backtick(word_flags, expansions)?,
            b'<' | b'>' if self.byte_at(1) == b'(' => {
                self.read_process_substitution(word_flags, expansions)?;
            }
            b'<' | b'>' => return Ok(false),
            b'(' => return self.read_parenthesis(start, position, word_flags, expansions),
            b'[' => {
                *word_flags |= GLOB;
                // After a name, bash reads a subscript up to its `]`, with any blanks in it. It is
                // an array assignment if `=` or `+=` follows. Elsewhere, `[` begins a pattern.
                if position == WordPosition::BeforeArguments && self.is_name(start, self.at) {
                    self.at += 1;
                    self.read_matched(b'[', b']', word_flags, expansions)?;
                } else {
                    self.at += 1;
                }
            }
            b'*' | b'?' => {
                *word_flags |= GLOB;
                self.at += 1;
            }
            b'{' => {
                *word_flags |= BRACE;
                self.at += 1;
            }
            b'~' => {
                *word_flags |= TILDE;
                self.at += 1;
            }
            b'=' => {
                if matches!(position, WordPosition::BeforeArguments | WordPosition::Declaration)
                    && *word_flags & ASSIGNS == 0
                    && self.is_assignment_left_side(start)
                {
                    // The word is an assignment, so a `[` or `*` before this `=` was part of the
                    // subscript in `a[*]=x` and not of a file name pattern.
                    *word_flags = (*word_flags & !GLOB) | ASSIGNS;
                }
                self.at += 1;
            }
            _ => self.at += 1,
        }
        Ok(true)
    }

    /// Reads an unquoted `(` inside or at the start of a word. Returns false where it ends the
    /// word.
    fn read_parenthesis(
        &mut self,
        start: usize,
        position: WordPosition,
        word_flags: &mut u8,
        expansions: &mut ArenaList,
    ) -> Result<bool, ShellParseError> {
        let previous_byte = self.bytes.get(self.at.wrapping_sub(1)).copied().unwrap_or(0);
        match position {
            WordPosition::BeforeArguments | WordPosition::Declaration
                if *word_flags & ASSIGNS != 0
                    && previous_byte == b'='
                    && self.is_after_assignment(start) =>
            {
                *word_flags |= ARRAY;
                self.read_array(word_flags, expansions)?;
                Ok(true)
            }
            WordPosition::Regex => {
                self.at += 1;
                self.read_matched(b'(', b')', word_flags, expansions)?;
                Ok(true)
            }
            WordPosition::Pattern
                if self.at > start && matches!(previous_byte, b'@' | b'!' | b'?' | b'*' | b'+') =>
            {
                *word_flags |= GLOB;
                self.at += 1;
                self.read_matched(b'(', b')', word_flags, expansions)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Reads the elements of `a=(…)`: words and comments on one or more lines.
    fn read_array(
        &mut self,
        word_flags: &mut u8,
        expansions: &mut ArenaList,
    ) -> Result<(), ShellParseError> {
        self.enter_nesting()?;
        self.at += 1;
        loop {
            self.skip_newlines();
            match self.current_byte() {
                b')' => break,
                b'[' => {
                    // `[key with spaces]=value`
                    self.at += 1;
                    self.read_matched(b'[', b']', word_flags, expansions)?;
                }
                _ => {
                    let Some(id) = self.read_word(WordPosition::Argument)? else {
                        return Err(self.syntax_error());
                    };
                    // The tree stores an array as one word. Its expansions and its flag `EXPANDS`
                    // must include those of the elements, because the walk has to find every
                    // command that runs in them. The walk gets the values of the elements by
                    // parsing the text of the array again. So the element's own word, which stays
                    // in `tree.words`, is not linked to anything.
                    let first = self.tree.word(id).map_or(NONE, |word| word.expansions);
                    self.append_expansions(first, expansions);
                    *word_flags |= self.tree.word(id).map_or(0, |word| word.flags & EXPANDS);
                }
            }
        }
        self.at += 1;
        self.leave_nesting();
        Ok(())
    }

    /// Appends the expansions of an array element, which begin with `first`, to those of the array.
    fn append_expansions(&mut self, first: ArenaId, expansions: &mut ArenaList) {
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

    /// Reads up to and including the closing `'`.
    pub(crate) fn read_single_quotes(&mut self) -> Result<(), ShellParseError> {
        match self.find_byte(b'\'') {
            Some(end) => {
                self.at = end + 1;
                Ok(())
            }
            None => Err(self.syntax_error()),
        }
    }

    /// Reads up to and including the closing `'` of `$'…'`, in which a backslash escapes.
    pub(crate) fn read_ansi_quotes(&mut self) -> Result<(), ShellParseError> {
        self.read_past_unescaped(b'\'')
    }

    /// Reads up to and including the next `end` that no backslash escapes.
    pub(crate) fn read_past_unescaped(&mut self, end: u8) -> Result<(), ShellParseError> {
        loop {
            match self.current_byte() {
                byte if byte == end => break,
                0 => return Err(self.syntax_error()),
                b'\\' => self.at = (self.at + 2).min(self.bytes.len()),
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Reads up to and including the closing `"`.
    pub(crate) fn read_double_quotes(
        &mut self,
        word_flags: &mut u8,
        expansions: &mut ArenaList,
    ) -> Result<(), ShellParseError> {
        self.read_expansions_until(b'"', word_flags, expansions)?;
        self.at += 1;
        Ok(())
    }

    /// Whether the text from `start` to here is the left side of an assignment: a
    /// name, an optional subscript, an optional `+`.
    fn is_assignment_left_side(&self, start: usize) -> bool {
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

    /// Whether the previous byte, which is a `=`, is the one between the name and the value of the
    /// assignment.
    fn is_after_assignment(&self, start: usize) -> bool {
        let equals = self.at - 1;
        let Some(left) = self.bytes.get(start..equals) else { return false };
        let left = left.strip_suffix(b"+").unwrap_or(left);
        is_name(left) || left.ends_with(b"]")
    }

    /// Whether the text between two offsets is a shell name.
    fn is_name(&self, start: usize, end: usize) -> bool {
        self.bytes.get(start..end).is_some_and(is_name)
    }
}

/// Whether bytes are a shell name: letters, digits and `_`, without a leading digit.
pub(crate) fn is_name(bytes: &[u8]) -> bool {
    match bytes {
        [b'A'..=b'Z' | b'a'..=b'z' | b'_', rest @ ..] => {
            rest.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        }
        _ => false,
    }
}
