//! A recursive-descent parser for bash's grammar.
//!
//! It accepts what `bash -n` accepts and rejects what it rejects; tests compare the
//! two on thousands of real command lines. Every recursion passes
//! [`ShellParser::enter_nesting`], which bounds the depth. Lists (`a && b && c`,
//! `elif`, pipes) are loops. The parser does not expand words.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::limits::{NESTING_DEPTH_MAX, WORDS_MAX};
use crate::syntax_tree::{ArenaId, ArenaList, NONE, NodeKind, NodeLink, SyntaxTree, to_u32};
use crate::word_scanner::WordPosition;

/// Why a text was not parsed to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShellParseError {
    /// bash would refuse the text too. The number is the byte at which we noticed.
    Syntax(u32),
    /// A line continues between `$` and the name or bracket that follows it.
    ContinuedLine(u32),
    /// The text nests deeper than [`NESTING_DEPTH_MAX`].
    TooDeep,
    /// The text has more words than [`WORDS_MAX`].
    TooManyWords,
}

/// The state of one parse.
pub(crate) struct ShellParser<'s> {
    pub(crate) text: &'s str,
    pub(crate) bytes: &'s [u8],
    pub(crate) at: usize,
    pub(crate) tree: SyntaxTree,
    pub(crate) depth: u32,
    /// Here-documents whose bodies start after the next newline.
    pub(crate) pending_here_documents: Vec<ArenaId>,
    /// How many command substitutions we are inside.
    pub(crate) substitution_depth: u32,
    /// Where a `((` turned out to be two parentheses and not arithmetic. The parser
    /// does not try these again: each nested one would double the work.
    pub(crate) no_arithmetic: BTreeSet<usize>,
}

/// A position to which the parser can rewind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParserMark {
    at: usize,
    depth: u32,
    nodes: usize,
    words: usize,
    redirects: usize,
    expansions: usize,
    pending: usize,
}

/// A reserved word where a command may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyword {
    If,
    Then,
    Elif,
    Else,
    Fi,
    For,
    Select,
    While,
    Until,
    Do,
    Done,
    Case,
    Esac,
    Function,
    Coproc,
    Time,
    In,
    OpenBrace,
    CloseBrace,
    Bang,
    DoubleBracket,
}

/// Parses a whole text. The node is [`NONE`] where the text contains no command.
pub(crate) fn parse_shell(text: &str) -> Result<(SyntaxTree, ArenaId), ShellParseError> {
    let mut parser = ShellParser::new(text);
    let root = parser.parse_list()?;
    if parser.at < parser.bytes.len() {
        return Err(parser.syntax_error());
    }
    Ok((parser.tree, root))
}

impl<'s> ShellParser<'s> {
    pub(crate) fn new(text: &'s str) -> Self {
        let mut tree = SyntaxTree::default();
        tree.nodes.reserve(8);
        tree.words.reserve(16);
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            tree,
            depth: 0,
            pending_here_documents: Vec::new(),
            substitution_depth: 0,
            no_arithmetic: BTreeSet::new(),
        }
    }

    /// The current byte, 0 at the end. Texts contain no NUL.
    pub(crate) fn current_byte(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    pub(crate) fn byte_at(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    pub(crate) fn find_byte(&self, byte: u8) -> Option<usize> {
        let rest = self.bytes.get(self.at..)?;
        rest.iter().position(|other| *other == byte).map(|found| self.at + found)
    }

    pub(crate) fn syntax_error(&self) -> ShellParseError {
        ShellParseError::Syntax(to_u32(self.at))
    }

    pub(crate) fn enter_nesting(&mut self) -> Result<(), ShellParseError> {
        self.depth += 1;
        if self.depth > NESTING_DEPTH_MAX { Err(ShellParseError::TooDeep) } else { Ok(()) }
    }

    pub(crate) fn leave_nesting(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    pub(crate) fn check_word_count(&self) -> Result<(), ShellParseError> {
        if self.tree.words.len() >= WORDS_MAX { Err(ShellParseError::TooManyWords) } else { Ok(()) }
    }

    pub(crate) fn mark(&self) -> ParserMark {
        ParserMark {
            at: self.at,
            depth: self.depth,
            nodes: self.tree.nodes.len(),
            words: self.tree.words.len(),
            redirects: self.tree.redirects.len(),
            expansions: self.tree.expansions.len(),
            pending: self.pending_here_documents.len(),
        }
    }

    pub(crate) fn rewind(&mut self, mark: ParserMark) {
        self.at = mark.at;
        self.depth = mark.depth;
        self.tree.nodes.truncate(mark.nodes);
        self.tree.words.truncate(mark.words);
        self.tree.redirects.truncate(mark.redirects);
        self.tree.expansions.truncate(mark.expansions);
        self.pending_here_documents.truncate(mark.pending);
    }

    /// Skips blanks, continued lines and a comment.
    pub(crate) fn skip_blanks(&mut self) {
        loop {
            match self.current_byte() {
                b' ' | b'\t' => self.at += 1,
                b'\\' if self.byte_at(1) == b'\n' => self.at += 2,
                b'#' => {
                    self.at = self.find_byte(b'\n').unwrap_or(self.bytes.len());
                    return;
                }
                _ => return,
            }
        }
    }

    /// Skips blanks and newlines. The bodies of here-documents start behind a newline.
    pub(crate) fn skip_newlines(&mut self) {
        loop {
            self.skip_blanks();
            if self.current_byte() != b'\n' {
                return;
            }
            self.read_newline();
        }
    }

    pub(crate) fn read_newline(&mut self) {
        self.at += 1;
        if !self.pending_here_documents.is_empty() {
            self.read_here_bodies();
        }
    }

    /// Parses the body of `$(…)` or `<(…)`, up to and including the `)`.
    pub(crate) fn parse_substituted_list(&mut self) -> Result<ArenaId, ShellParseError> {
        self.enter_nesting()?;
        self.substitution_depth += 1;
        let outer = core::mem::take(&mut self.pending_here_documents);
        let body = self.parse_list()?;
        if self.current_byte() != b')' {
            return Err(self.syntax_error());
        }
        // The body of a pending here-document starts on the line after this one.
        let open = core::mem::replace(&mut self.pending_here_documents, outer);
        self.pending_here_documents.extend(open);
        self.at += 1;
        self.substitution_depth -= 1;
        self.leave_nesting();
        Ok(body)
    }

    /// Parses commands up to a closing token. Returns [`NONE`] where there are none.
    pub(crate) fn parse_list(&mut self) -> Result<ArenaId, ShellParseError> {
        let start = self.at;
        let mut chain = ArenaList::EMPTY;
        let mut several = false;
        loop {
            self.skip_newlines();
            if self.is_at_end_of_list() {
                break;
            }
            let mut id = self.parse_and_or()?;
            self.skip_blanks();
            let mut more = true;
            match (self.current_byte(), self.byte_at(1)) {
                (b';', b';' | b'&') => more = false,
                (b';', _) => self.at += 1,
                (b'&', _) => {
                    self.at += 1;
                    let node_start = self.tree.node(id).map_or(0, |node| node.start as usize);
                    let kind = NodeKind::Background { body: id };
                    id = self.tree.add_node(kind, node_start, self.at);
                }
                (b'\n', _) => self.read_newline(),
                _ => more = false,
            }
            several |= chain.head != NONE;
            self.tree.link_node(&mut chain, id);
            if !more {
                break;
            }
        }
        if several {
            Ok(self.tree.add_node(NodeKind::List { first: chain.head }, start, self.at))
        } else {
            Ok(chain.head)
        }
    }

    /// Parses a list that must not be empty.
    pub(crate) fn parse_body(&mut self) -> Result<ArenaId, ShellParseError> {
        match self.parse_list()? {
            NONE => Err(self.syntax_error()),
            id => Ok(id),
        }
    }

    fn is_at_end_of_list(&self) -> bool {
        match self.current_byte() {
            0 | b')' => true,
            b';' => matches!(self.byte_at(1), b';' | b'&'),
            _ => matches!(
                self.keyword(),
                Some(
                    Keyword::Then
                        | Keyword::Elif
                        | Keyword::Else
                        | Keyword::Fi
                        | Keyword::Do
                        | Keyword::Done
                        | Keyword::Esac
                        | Keyword::CloseBrace
                )
            ),
        }
    }

    /// Parses pipelines joined by `&&` and `||`.
    fn parse_and_or(&mut self) -> Result<ArenaId, ShellParseError> {
        let start = self.at;
        let first = self.parse_pipeline()?;
        let mut chain = ArenaList { head: first, tail: first };
        loop {
            self.skip_blanks();
            let link = match (self.current_byte(), self.byte_at(1)) {
                (b'&', b'&') => NodeLink::And,
                (b'|', b'|') => NodeLink::Or,
                _ => break,
            };
            self.at += 2;
            self.skip_newlines();
            let next = self.parse_pipeline()?;
            if let Some(node) = self.tree.nodes.get_mut(next as usize) {
                node.link = link;
            }
            self.tree.link_node(&mut chain, next);
        }
        if chain.tail == first {
            return Ok(first);
        }
        Ok(self.tree.add_node(NodeKind::AndOrList { first }, start, self.at))
    }

    /// Parses a pipeline such as `! time a | b`.
    fn parse_pipeline(&mut self) -> Result<ArenaId, ShellParseError> {
        let start = self.at;
        let mut negated = false;
        let mut timed = false;
        loop {
            match self.keyword() {
                Some(Keyword::Bang) => negated = !negated,
                Some(Keyword::Time) => timed = true,
                _ => break,
            }
            let word = if self.current_byte() == b'!' { 1 } else { 4 };
            self.at += word;
            self.skip_blanks();
            if word == 4 {
                self.skip_time_options();
            }
        }
        if (negated || timed || self.at > start) && self.is_at_separator() {
            // bash accepts `!` or `time` without a command.
            return Ok(self.tree.add_node(NodeKind::Not { body: NONE }, start, self.at));
        }
        let first = self.parse_pipe(start)?;
        if negated {
            return Ok(self.tree.add_node(NodeKind::Not { body: first }, start, self.at));
        }
        Ok(first)
    }

    fn parse_pipe(&mut self, start: usize) -> Result<ArenaId, ShellParseError> {
        let first = self.parse_command()?;
        let mut chain = ArenaList { head: first, tail: first };
        loop {
            self.skip_blanks();
            match (self.current_byte(), self.byte_at(1)) {
                (b'|', b'|') => break,
                (b'|', b'&') => self.at += 2,
                (b'|', _) => self.at += 1,
                _ => break,
            }
            self.skip_newlines();
            while self.keyword() == Some(Keyword::Time) {
                self.at += 4;
                self.skip_blanks();
                self.skip_time_options();
            }
            if self.is_at_separator() && self.ends_with_time() {
                break;
            }
            let next = self.parse_command()?;
            self.tree.link_node(&mut chain, next);
        }
        if chain.tail == first {
            return Ok(first);
        }
        Ok(self.tree.add_node(NodeKind::Pipe { first }, start, self.at))
    }

    fn skip_time_options(&mut self) {
        for option in ["-p", "--"] {
            let rest = self.text.get(self.at..).unwrap_or_default();
            if let Some(rest) = rest.strip_prefix(option)
                && matches!(rest.as_bytes().first(), None | Some(b' ' | b'\t' | b'\n' | b';'))
            {
                self.at += 2;
                self.skip_blanks();
            }
        }
    }

    /// Whether a separator is here, where a command would have to start.
    fn is_at_separator(&self) -> bool {
        matches!(self.current_byte(), 0 | b'\n' | b';' | b')')
            || (self.current_byte() == b'&' && self.byte_at(1) != b'&')
    }

    fn ends_with_time(&self) -> bool {
        self.text.get(..self.at).is_some_and(|before| {
            let before = before.trim_end();
            before.ends_with("time") || before.ends_with("time -p")
        })
    }

    /// The reserved word that starts here, if one does.
    pub(crate) fn keyword(&self) -> Option<Keyword> {
        let first = self.current_byte();
        if !matches!(
            first,
            b'i' | b't'
                | b'e'
                | b'f'
                | b's'
                | b'w'
                | b'u'
                | b'd'
                | b'c'
                | b'{'
                | b'}'
                | b'!'
                | b'['
        ) {
            return None;
        }
        let rest = self.bytes.get(self.at..)?;
        let length = rest
            .iter()
            .take(9)
            .position(|byte| {
                matches!(
                    byte,
                    b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>'
                )
            })
            .unwrap_or(rest.len());
        Some(match rest.get(..length)? {
            b"if" => Keyword::If,
            b"then" => Keyword::Then,
            b"elif" => Keyword::Elif,
            b"else" => Keyword::Else,
            b"fi" => Keyword::Fi,
            b"for" => Keyword::For,
            b"select" => Keyword::Select,
            b"while" => Keyword::While,
            b"until" => Keyword::Until,
            b"do" => Keyword::Do,
            b"done" => Keyword::Done,
            b"case" => Keyword::Case,
            b"esac" => Keyword::Esac,
            b"function" => Keyword::Function,
            b"coproc" => Keyword::Coproc,
            b"time" => Keyword::Time,
            b"in" => Keyword::In,
            b"{" => Keyword::OpenBrace,
            b"}" => Keyword::CloseBrace,
            b"!" => Keyword::Bang,
            b"[[" => Keyword::DoubleBracket,
            _ => return None,
        })
    }

    pub(crate) fn expect_keyword(
        &mut self,
        keyword: Keyword,
        length: usize,
    ) -> Result<(), ShellParseError> {
        if self.keyword() == Some(keyword) {
            self.at += length;
            Ok(())
        } else {
            Err(self.syntax_error())
        }
    }

    /// Parses one command of any kind.
    pub(crate) fn parse_command(&mut self) -> Result<ArenaId, ShellParseError> {
        self.enter_nesting()?;
        let id = match self.keyword() {
            None if self.current_byte() != b'(' => self.parse_simple()?,
            Some(Keyword::Coproc) => self.parse_coproc()?,
            Some(Keyword::Function) => self.parse_function_keyword()?,
            _ => self.parse_compound()?,
        };
        self.leave_nesting();
        Ok(id)
    }

    /// Parses assignments, words and redirections, or a function definition.
    fn parse_simple(&mut self) -> Result<ArenaId, ShellParseError> {
        let start = self.at;
        let mut words = ArenaList::EMPTY;
        let mut redirects = ArenaList::EMPTY;
        let mut place = WordPosition::BeforeArguments;
        let mut end = start;
        loop {
            self.skip_blanks();
            if self.parse_redirect(&mut redirects)? {
                end = self.at;
                continue;
            }
            let Some(id) = self.read_word(place)? else {
                if self.current_byte() == b'(' {
                    return self.parse_function_parens(start, words, redirects);
                }
                break;
            };
            end = self.at;
            self.tree.link_word(&mut words, id);
            if place == WordPosition::BeforeArguments {
                place = self.position_after(id);
            }
        }
        if words.head == NONE && redirects.head == NONE {
            return Err(self.syntax_error());
        }
        let node = self.tree.add_node(NodeKind::Simple { words: words.head }, start, end);
        self.attach_redirects(node, redirects);
        Ok(node)
    }

    /// The position of the word that follows a word before the arguments.
    fn position_after(&self, id: ArenaId) -> WordPosition {
        let Some(word) = self.tree.word(id) else { return WordPosition::Argument };
        if word.flags & crate::syntax_tree::ASSIGNS != 0 {
            return WordPosition::BeforeArguments;
        }
        match self.text.get(word.start as usize..word.end as usize) {
            Some(
                "declare" | "local" | "typeset" | "export" | "readonly" | "alias" | "eval" | "let",
            ) => WordPosition::Declaration,
            _ => WordPosition::Argument,
        }
    }

    pub(crate) fn attach_redirects(&mut self, id: ArenaId, redirects: ArenaList) {
        if redirects.head != NONE
            && let Some(node) = self.tree.nodes.get_mut(id as usize)
        {
            node.redirects = redirects.head;
        }
    }
}
