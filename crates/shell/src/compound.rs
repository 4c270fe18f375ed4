//! Compound commands: groups, conditions, loops, `case`, `[[ … ]]`, functions.

use crate::parse::{Halt, Keyword, Parser};
use crate::scan::Place;
use crate::tree::{ASSIGNS, Chain, Id, NONE, NodeKind};

impl Parser<'_> {
    /// A compound command and the redirections behind it.
    pub(crate) fn compound(&mut self) -> Result<Id, Halt> {
        let start = self.at;
        let kind = match self.keyword() {
            Some(Keyword::If) => self.conditional()?,
            Some(Keyword::While | Keyword::Until) => {
                self.at += 5;
                let condition = self.body()?;
                let body = self.do_group()?;
                NodeKind::While { condition, body }
            }
            Some(Keyword::For) => {
                self.at += 3;
                self.for_loop()?
            }
            Some(Keyword::Select) => {
                self.at += 6;
                self.for_loop()?
            }
            Some(Keyword::Case) => self.case()?,
            Some(Keyword::Open) => {
                self.at += 1;
                let body = self.body()?;
                self.expect(Keyword::Close, 1)?;
                NodeKind::Group { body }
            }
            Some(Keyword::Test) => {
                self.at += 2;
                NodeKind::Test { words: self.test_words()? }
            }
            None if self.byte() == b'(' => self.parenthesised()?,
            _ => return Err(self.syntax()),
        };
        let id = self.tree.add_node(kind, start, self.at);
        let mut redirects = Chain::EMPTY;
        loop {
            self.skip_blanks();
            if !self.redirect(&mut redirects)? {
                break;
            }
        }
        if redirects.head != NONE && self.keyword().is_some() {
            // After a redirection a reserved word is a word like any other.
            return Err(self.syntax());
        }
        self.hang_redirects(id, redirects);
        Ok(id)
    }

    /// `(( … ))` or `( … )`.
    fn parenthesised(&mut self) -> Result<NodeKind, Halt> {
        if self.byte_at(1) == b'('
            && let Some(word) = self.arithmetic_command()?
        {
            return Ok(NodeKind::Test { words: word });
        }
        self.at += 1;
        let body = self.body()?;
        if self.byte() != b')' {
            return Err(self.syntax());
        }
        self.at += 1;
        Ok(NodeKind::Subshell { body })
    }

    fn conditional(&mut self) -> Result<NodeKind, Halt> {
        let mut chain = Chain::EMPTY;
        self.at += 2;
        loop {
            let start = self.at;
            let condition = self.body()?;
            self.expect(Keyword::Then, 4)?;
            let body = self.body()?;
            let branch = self.tree.add_node(NodeKind::Branch { condition, body }, start, self.at);
            self.tree.link_node(&mut chain, branch);
            match self.keyword() {
                Some(Keyword::Elif) => self.at += 4,
                Some(Keyword::Else) => {
                    self.at += 4;
                    let start = self.at;
                    let body = self.body()?;
                    let kind = NodeKind::Branch { condition: NONE, body };
                    let branch = self.tree.add_node(kind, start, self.at);
                    self.tree.link_node(&mut chain, branch);
                    break;
                }
                _ => break,
            }
        }
        self.expect(Keyword::Fi, 2)?;
        Ok(NodeKind::If { first: chain.head })
    }

    /// `do … done`, or the `{ … }` that bash takes in its place.
    fn do_group(&mut self) -> Result<Id, Halt> {
        self.expect(Keyword::Do, 2)?;
        let body = self.body()?;
        self.expect(Keyword::Done, 4)?;
        Ok(body)
    }

    fn loop_body(&mut self) -> Result<Id, Halt> {
        self.skip_newlines();
        if self.keyword() == Some(Keyword::Open) {
            self.at += 1;
            let body = self.body()?;
            self.expect(Keyword::Close, 1)?;
            return Ok(body);
        }
        self.do_group()
    }

    /// What follows `for` or `select`.
    fn for_loop(&mut self) -> Result<NodeKind, Halt> {
        self.skip_blanks();
        if self.byte() == b'(' {
            let start = self.at;
            let Some(word) = self.arithmetic_command()? else { return Err(self.syntax()) };
            let inside = self.text.get(start..self.at).unwrap_or_default();
            if inside.bytes().filter(|byte| *byte == b';').count() < 2 {
                return Err(self.syntax());
            }
            self.skip_blanks();
            if self.byte() == b';' {
                self.at += 1;
            }
            let body = self.loop_body()?;
            return Ok(NodeKind::ArithmeticFor { word, body });
        }
        let Some(name) = self.word(Place::Argument)? else { return Err(self.syntax()) };
        self.skip_blanks();
        if self.byte() == b';' {
            self.at += 1;
            let body = self.loop_body()?;
            return Ok(NodeKind::For { name, items: NONE, given: false, body });
        }
        self.skip_newlines();
        if self.keyword() != Some(Keyword::In) {
            let body = self.loop_body()?;
            return Ok(NodeKind::For { name, items: NONE, given: false, body });
        }
        self.at += 2;
        let mut items = Chain::EMPTY;
        loop {
            self.skip_blanks();
            let Some(id) = self.word(Place::Argument)? else { break };
            self.tree.link_word(&mut items, id);
        }
        match self.byte() {
            b';' => self.at += 1,
            b'\n' => self.newline(),
            _ => return Err(self.syntax()),
        }
        let body = self.loop_body()?;
        Ok(NodeKind::For { name, items: items.head, given: true, body })
    }

    fn case(&mut self) -> Result<NodeKind, Halt> {
        self.at += 4;
        self.skip_blanks();
        let Some(word) = self.word(Place::Argument)? else { return Err(self.syntax()) };
        self.skip_newlines();
        self.expect(Keyword::In, 2)?;
        let mut arms = Chain::EMPTY;
        loop {
            self.skip_newlines();
            if self.keyword() == Some(Keyword::Esac) {
                break;
            }
            let arm = self.arm()?;
            self.tree.link_node(&mut arms, arm);
            match (self.byte(), self.byte_at(1), self.byte_at(2)) {
                (b';', b';', b'&') => self.at += 3,
                (b';', b';' | b'&', _) => self.at += 2,
                _ => {
                    self.skip_newlines();
                    break;
                }
            }
        }
        self.expect(Keyword::Esac, 4)?;
        Ok(NodeKind::Case { word, first: arms.head })
    }

    /// `(a|b) list`.
    fn arm(&mut self) -> Result<Id, Halt> {
        let start = self.at;
        if self.byte() == b'(' {
            self.at += 1;
        }
        let mut patterns = Chain::EMPTY;
        loop {
            self.skip_blanks();
            let Some(pattern) = self.word(Place::Argument)? else { return Err(self.syntax()) };
            self.tree.link_word(&mut patterns, pattern);
            self.skip_blanks();
            match self.byte() {
                b'|' => self.at += 1,
                b')' => break,
                _ => return Err(self.syntax()),
            }
        }
        self.at += 1;
        let body = self.list()?;
        Ok(self.tree.add_node(NodeKind::Arm { patterns: patterns.head, body }, start, self.at))
    }

    /// The words between `[[` and `]]`.
    ///
    /// bash reports an ill-formed condition but does not count it as a syntax
    /// error, so anything made of words and operators will do.
    fn test_words(&mut self) -> Result<Id, Halt> {
        let mut words = Chain::EMPTY;
        let mut place = Place::Pattern;
        loop {
            self.skip_newlines();
            if self.text.get(self.at..).is_some_and(|rest| rest.starts_with("]]"))
                && matches!(
                    self.byte_at(2),
                    0 | b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' | b'<' | b'>'
                )
            {
                self.at += 2;
                return Ok(words.head);
            }
            let start = self.at;
            if let Some(id) = self.word(place)? {
                self.tree.link_word(&mut words, id);
                place = if self.text.get(start..self.at) == Some("=~") {
                    Place::Regex
                } else {
                    Place::Pattern
                };
                continue;
            }
            match self.byte() {
                0 => return Err(self.syntax()),
                _ => self.at += 1,
            }
        }
    }

    /// `name ( )` and a body, the name already read.
    pub(crate) fn function_parens(
        &mut self,
        start: usize,
        words: Chain,
        redirects: Chain,
    ) -> Result<Id, Halt> {
        let single = words.head != NONE && words.head == words.tail && redirects.head == NONE;
        let assigns = self.tree.word(words.head).is_some_and(|word| word.traits & ASSIGNS != 0);
        if !single || assigns {
            return Err(self.syntax());
        }
        self.at += 1;
        self.skip_blanks();
        if self.byte() != b')' {
            return Err(self.syntax());
        }
        self.at += 1;
        self.function_body(start, words.head)
    }

    /// `function name`, maybe `()`, and a body.
    pub(crate) fn function_keyword(&mut self) -> Result<Id, Halt> {
        let start = self.at;
        self.at += 8;
        self.skip_blanks();
        let Some(name) = self.word(Place::Argument)? else { return Err(self.syntax()) };
        self.skip_blanks();
        if self.byte() == b'(' {
            let before = self.at;
            self.at += 1;
            self.skip_blanks();
            if self.byte() == b')' {
                self.at += 1;
            } else {
                // The parenthesis is the body.
                self.at = before;
            }
        }
        self.function_body(start, name)
    }

    fn function_body(&mut self, start: usize, name: Id) -> Result<Id, Halt> {
        self.skip_newlines();
        if self.byte() != b'('
            && !matches!(
                self.keyword(),
                Some(
                    Keyword::Open
                        | Keyword::If
                        | Keyword::While
                        | Keyword::Until
                        | Keyword::For
                        | Keyword::Select
                        | Keyword::Case
                        | Keyword::Test
                )
            )
        {
            return Err(self.syntax());
        }
        self.enter()?;
        let body = self.compound()?;
        self.leave();
        Ok(self.tree.add_node(NodeKind::Function { name, body }, start, self.at))
    }

    /// `coproc`, maybe a name, and a command.
    pub(crate) fn coproc(&mut self) -> Result<Id, Halt> {
        let start = self.at;
        self.at += 6;
        self.skip_blanks();
        if self.keyword().is_none() && self.byte() != b'(' {
            let mark = self.mark();
            let name = self.word(Place::Argument)?;
            self.skip_blanks();
            if name.is_none() || !(self.byte() == b'(' || self.keyword().is_some()) {
                self.rewind(mark);
            }
        }
        let body = self.command()?;
        Ok(self.tree.add_node(NodeKind::Coproc { body }, start, self.at))
    }
}
