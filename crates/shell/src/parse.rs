//! bash's grammar, by recursive descent.
//!
//! Accepts what `bash -n` accepts and rejects what it rejects; the agreement is
//! tested on thousands of real command lines. Every recursion passes
//! [`Parser::enter`], so that nesting is bounded, and chains (`a && b && c`,
//! `elif`, pipes) are loops. What the words say is not looked at here.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::limits::{DEPTH_MAX, WORDS_MAX};
use crate::scan::Place;
use crate::tree::{Chain, Id, Link, NONE, NodeKind, Tree, number};

/// Why a text was not parsed to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halt {
    /// bash would refuse it too; the place is where we noticed.
    Syntax(u32),
    /// A line continued between `$` and what it expands.
    Continued(u32),
    /// Nested deeper than [`DEPTH_MAX`].
    Deep,
    /// More words than [`WORDS_MAX`].
    Many,
}

/// The state of one parse.
pub(crate) struct Parser<'s> {
    pub(crate) text: &'s str,
    pub(crate) bytes: &'s [u8],
    pub(crate) at: usize,
    pub(crate) tree: Tree,
    pub(crate) depth: u32,
    /// Here-documents whose bodies start after the next newline.
    pub(crate) pending: Vec<Id>,
    /// How many command substitutions we are inside of.
    pub(crate) substitutions: u32,
    /// Where a `((` was found to be two parentheses. Whatever is read again after
    /// that is not tried again: nested ones would double the work each.
    pub(crate) no_arithmetic: BTreeSet<usize>,
}

/// A place to come back to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    at: usize,
    depth: u32,
    nodes: usize,
    words: usize,
    redirects: usize,
    expansions: usize,
    pending: usize,
}

/// A reserved word in the place of a command.
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
    Open,
    Close,
    Bang,
    Test,
}

/// Parses a whole text. The node is absent where there is no command in it.
pub(crate) fn parse(text: &str) -> Result<(Tree, Id), Halt> {
    let mut parser = Parser::new(text);
    let root = parser.list()?;
    if parser.at < parser.bytes.len() {
        return Err(parser.syntax());
    }
    Ok((parser.tree, root))
}

impl<'s> Parser<'s> {
    pub(crate) fn new(text: &'s str) -> Self {
        let mut tree = Tree::default();
        tree.nodes.reserve(8);
        tree.words.reserve(16);
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            tree,
            depth: 0,
            pending: Vec::new(),
            substitutions: 0,
            no_arithmetic: BTreeSet::new(),
        }
    }

    /// The byte here, 0 at the end. Texts hold no NUL.
    pub(crate) fn byte(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    pub(crate) fn byte_at(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    pub(crate) fn find(&self, byte: u8) -> Option<usize> {
        let rest = self.bytes.get(self.at..)?;
        rest.iter().position(|other| *other == byte).map(|found| self.at + found)
    }

    pub(crate) fn syntax(&self) -> Halt {
        Halt::Syntax(number(self.at))
    }

    pub(crate) fn enter(&mut self) -> Result<(), Halt> {
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(Halt::Deep) } else { Ok(()) }
    }

    pub(crate) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    pub(crate) fn count_word(&self) -> Result<(), Halt> {
        if self.tree.words.len() >= WORDS_MAX { Err(Halt::Many) } else { Ok(()) }
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            at: self.at,
            depth: self.depth,
            nodes: self.tree.nodes.len(),
            words: self.tree.words.len(),
            redirects: self.tree.redirects.len(),
            expansions: self.tree.expansions.len(),
            pending: self.pending.len(),
        }
    }

    pub(crate) fn rewind(&mut self, mark: Mark) {
        self.at = mark.at;
        self.depth = mark.depth;
        self.tree.nodes.truncate(mark.nodes);
        self.tree.words.truncate(mark.words);
        self.tree.redirects.truncate(mark.redirects);
        self.tree.expansions.truncate(mark.expansions);
        self.pending.truncate(mark.pending);
    }

    /// Skips blanks, continued lines and a comment.
    pub(crate) fn skip_blanks(&mut self) {
        loop {
            match self.byte() {
                b' ' | b'\t' => self.at += 1,
                b'\\' if self.byte_at(1) == b'\n' => self.at += 2,
                b'#' => {
                    self.at = self.find(b'\n').unwrap_or(self.bytes.len());
                    return;
                }
                _ => return,
            }
        }
    }

    /// Skips blanks and newlines; a newline brings the bodies of here-documents.
    pub(crate) fn skip_newlines(&mut self) {
        loop {
            self.skip_blanks();
            if self.byte() != b'\n' {
                return;
            }
            self.newline();
        }
    }

    pub(crate) fn newline(&mut self) {
        self.at += 1;
        if !self.pending.is_empty() {
            self.here_bodies();
        }
    }

    /// The body of `$(…)` or `<(…)`, up to and past the `)`.
    pub(crate) fn substituted_list(&mut self) -> Result<Id, Halt> {
        self.enter()?;
        self.substitutions += 1;
        let outer = core::mem::take(&mut self.pending);
        let body = self.list()?;
        if self.byte() != b')' {
            return Err(self.syntax());
        }
        // A here-document left open takes the lines after the one we are on.
        let open = core::mem::replace(&mut self.pending, outer);
        self.pending.extend(open);
        self.at += 1;
        self.substitutions -= 1;
        self.leave();
        Ok(body)
    }

    /// Commands up to something that closes them. Absent where there are none.
    pub(crate) fn list(&mut self) -> Result<Id, Halt> {
        let start = self.at;
        let mut chain = Chain::EMPTY;
        let mut several = false;
        loop {
            self.skip_newlines();
            if self.at_end_of_list() {
                break;
            }
            let mut id = self.chain()?;
            self.skip_blanks();
            let mut more = true;
            match (self.byte(), self.byte_at(1)) {
                (b';', b';' | b'&') => more = false,
                (b';', _) => self.at += 1,
                (b'&', _) => {
                    self.at += 1;
                    let node_start = self.tree.node(id).map_or(0, |node| node.start as usize);
                    let kind = NodeKind::Background { body: id };
                    id = self.tree.add_node(kind, node_start, self.at);
                }
                (b'\n', _) => self.newline(),
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

    /// A list that must not be empty.
    pub(crate) fn body(&mut self) -> Result<Id, Halt> {
        match self.list()? {
            NONE => Err(self.syntax()),
            id => Ok(id),
        }
    }

    fn at_end_of_list(&self) -> bool {
        match self.byte() {
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
                        | Keyword::Close
                )
            ),
        }
    }

    /// Pipelines joined by `&&` and `||`.
    fn chain(&mut self) -> Result<Id, Halt> {
        let start = self.at;
        let first = self.pipeline()?;
        let mut chain = Chain { head: first, tail: first };
        loop {
            self.skip_blanks();
            let link = match (self.byte(), self.byte_at(1)) {
                (b'&', b'&') => Link::And,
                (b'|', b'|') => Link::Or,
                _ => break,
            };
            self.at += 2;
            self.skip_newlines();
            let next = self.pipeline()?;
            if let Some(node) = self.tree.nodes.get_mut(next as usize) {
                node.link = link;
            }
            self.tree.link_node(&mut chain, next);
        }
        if chain.tail == first {
            return Ok(first);
        }
        Ok(self.tree.add_node(NodeKind::Chain { first }, start, self.at))
    }

    /// `! time a | b`.
    fn pipeline(&mut self) -> Result<Id, Halt> {
        let start = self.at;
        let mut negated = false;
        let mut timed = false;
        loop {
            match self.keyword() {
                Some(Keyword::Bang) => negated = !negated,
                Some(Keyword::Time) => timed = true,
                _ => break,
            }
            let word = if self.byte() == b'!' { 1 } else { 4 };
            self.at += word;
            self.skip_blanks();
            if word == 4 {
                self.time_options();
            }
        }
        if (negated || timed || self.at > start) && self.at_separator() {
            // A lone `!` or `time` is a command of its own.
            return Ok(self.tree.add_node(NodeKind::Not { body: NONE }, start, self.at));
        }
        let first = self.piped(start)?;
        if negated {
            return Ok(self.tree.add_node(NodeKind::Not { body: first }, start, self.at));
        }
        Ok(first)
    }

    fn piped(&mut self, start: usize) -> Result<Id, Halt> {
        let first = self.command()?;
        let mut chain = Chain { head: first, tail: first };
        loop {
            self.skip_blanks();
            match (self.byte(), self.byte_at(1)) {
                (b'|', b'|') => break,
                (b'|', b'&') => self.at += 2,
                (b'|', _) => self.at += 1,
                _ => break,
            }
            self.skip_newlines();
            while self.keyword() == Some(Keyword::Time) {
                self.at += 4;
                self.skip_blanks();
                self.time_options();
            }
            if self.at_separator() && self.tail_is_time() {
                break;
            }
            let next = self.command()?;
            self.tree.link_node(&mut chain, next);
        }
        if chain.tail == first {
            return Ok(first);
        }
        Ok(self.tree.add_node(NodeKind::Pipe { first }, start, self.at))
    }

    fn time_options(&mut self) {
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

    /// Whether a command ends here without having begun.
    fn at_separator(&self) -> bool {
        matches!(self.byte(), 0 | b'\n' | b';' | b')')
            || (self.byte() == b'&' && self.byte_at(1) != b'&')
    }

    fn tail_is_time(&self) -> bool {
        self.text.get(..self.at).is_some_and(|before| {
            let before = before.trim_end();
            before.ends_with("time") || before.ends_with("time -p")
        })
    }

    /// The reserved word that starts here, if one does.
    pub(crate) fn keyword(&self) -> Option<Keyword> {
        let first = self.byte();
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
            b"{" => Keyword::Open,
            b"}" => Keyword::Close,
            b"!" => Keyword::Bang,
            b"[[" => Keyword::Test,
            _ => return None,
        })
    }

    pub(crate) fn expect(&mut self, keyword: Keyword, length: usize) -> Result<(), Halt> {
        if self.keyword() == Some(keyword) {
            self.at += length;
            Ok(())
        } else {
            Err(self.syntax())
        }
    }

    /// One command of any shape.
    pub(crate) fn command(&mut self) -> Result<Id, Halt> {
        self.enter()?;
        let id = match self.keyword() {
            None if self.byte() != b'(' => self.simple()?,
            Some(Keyword::Coproc) => self.coproc()?,
            Some(Keyword::Function) => self.function_keyword()?,
            _ => self.compound()?,
        };
        self.leave();
        Ok(id)
    }

    /// Assignments, words and redirections; or a function definition.
    fn simple(&mut self) -> Result<Id, Halt> {
        let start = self.at;
        let mut words = Chain::EMPTY;
        let mut redirects = Chain::EMPTY;
        let mut place = Place::Head;
        let mut end = start;
        loop {
            self.skip_blanks();
            if self.redirect(&mut redirects)? {
                end = self.at;
                continue;
            }
            let Some(id) = self.word(place)? else {
                if self.byte() == b'(' {
                    return self.function_parens(start, words, redirects);
                }
                break;
            };
            end = self.at;
            self.tree.link_word(&mut words, id);
            if place == Place::Head {
                place = self.place_after(id);
            }
        }
        if words.head == NONE && redirects.head == NONE {
            return Err(self.syntax());
        }
        let node = self.tree.add_node(NodeKind::Simple { words: words.head }, start, end);
        self.hang_redirects(node, redirects);
        Ok(node)
    }

    /// Where the next word stands after one at the head.
    fn place_after(&self, id: Id) -> Place {
        let Some(word) = self.tree.word(id) else { return Place::Argument };
        if word.traits & crate::tree::ASSIGNS != 0 {
            return Place::Head;
        }
        match self.text.get(word.start as usize..word.end as usize) {
            Some(
                "declare" | "local" | "typeset" | "export" | "readonly" | "alias" | "eval" | "let",
            ) => Place::Declaration,
            _ => Place::Argument,
        }
    }

    pub(crate) fn hang_redirects(&mut self, id: Id, redirects: Chain) {
        if redirects.head != NONE
            && let Some(node) = self.tree.nodes.get_mut(id as usize)
        {
            node.redirects = redirects.head;
        }
    }
}
