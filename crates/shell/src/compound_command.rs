//! Compound commands: groups, conditions, loops, `case`, `[[ … ]]`, functions.

use crate::shell_parser::{Keyword, ShellParseError, ShellParser};
use crate::syntax_tree::{ASSIGNS, ArenaId, ArenaList, NONE, NodeKind};
use crate::word_scanner::WordPosition;

impl ShellParser<'_> {
    /// Parses a compound command and the redirections behind it.
    pub(crate) fn parse_compound(&mut self) -> Result<ArenaId, ShellParseError> {
        let start = self.at;
        let kind = match self.keyword() {
            Some(Keyword::If) => self.parse_if()?,
            Some(Keyword::While | Keyword::Until) => {
                self.at += 5;
                let condition = self.parse_body()?;
                let body = self.parse_do_group()?;
                NodeKind::While { condition, body }
            }
            Some(Keyword::For) => {
                self.at += 3;
                self.parse_for_loop()?
            }
            Some(Keyword::Select) => {
                self.at += 6;
                self.parse_for_loop()?
            }
            Some(Keyword::Case) => self.parse_case()?,
            Some(Keyword::OpenBrace) => {
                self.at += 1;
                let body = self.parse_body()?;
                self.expect_keyword(Keyword::CloseBrace, 1)?;
                NodeKind::Group { body }
            }
            Some(Keyword::DoubleBracket) => {
                self.at += 2;
                NodeKind::Test { words: self.parse_test_words()? }
            }
            None if self.current_byte() == b'(' => self.parse_parenthesised()?,
            _ => return Err(self.syntax_error()),
        };
        let id = self.tree.add_node(kind, start, self.at);
        let mut redirects = ArenaList::EMPTY;
        loop {
            self.skip_blanks();
            if !self.parse_redirect(&mut redirects)? {
                break;
            }
        }
        if redirects.head != NONE && self.keyword().is_some() {
            // After a redirection bash treats a reserved word as an ordinary word.
            return Err(self.syntax_error());
        }
        self.attach_redirects(id, redirects);
        Ok(id)
    }

    /// `(( … ))` or `( … )`.
    fn parse_parenthesised(&mut self) -> Result<NodeKind, ShellParseError> {
        if self.byte_at(1) == b'('
            && let Some(word) = self.parse_arithmetic_command()?
        {
            return Ok(NodeKind::Test { words: word });
        }
        self.at += 1;
        let body = self.parse_body()?;
        if self.current_byte() != b')' {
            return Err(self.syntax_error());
        }
        self.at += 1;
        Ok(NodeKind::Subshell { body })
    }

    fn parse_if(&mut self) -> Result<NodeKind, ShellParseError> {
        let mut chain = ArenaList::EMPTY;
        self.at += 2;
        loop {
            let start = self.at;
            let condition = self.parse_body()?;
            self.expect_keyword(Keyword::Then, 4)?;
            let body = self.parse_body()?;
            let branch = self.tree.add_node(NodeKind::Branch { condition, body }, start, self.at);
            self.tree.link_node(&mut chain, branch);
            match self.keyword() {
                Some(Keyword::Elif) => self.at += 4,
                Some(Keyword::Else) => {
                    self.at += 4;
                    let start = self.at;
                    let body = self.parse_body()?;
                    let kind = NodeKind::Branch { condition: NONE, body };
                    let branch = self.tree.add_node(kind, start, self.at);
                    self.tree.link_node(&mut chain, branch);
                    break;
                }
                _ => break,
            }
        }
        self.expect_keyword(Keyword::Fi, 2)?;
        Ok(NodeKind::If { first: chain.head })
    }

    /// `do … done`, or the `{ … }` that bash accepts instead.
    fn parse_do_group(&mut self) -> Result<ArenaId, ShellParseError> {
        self.expect_keyword(Keyword::Do, 2)?;
        let body = self.parse_body()?;
        self.expect_keyword(Keyword::Done, 4)?;
        Ok(body)
    }

    fn parse_loop_body(&mut self) -> Result<ArenaId, ShellParseError> {
        self.skip_newlines();
        if self.keyword() == Some(Keyword::OpenBrace) {
            self.at += 1;
            let body = self.parse_body()?;
            self.expect_keyword(Keyword::CloseBrace, 1)?;
            return Ok(body);
        }
        self.parse_do_group()
    }

    /// What follows `for` or `select`.
    fn parse_for_loop(&mut self) -> Result<NodeKind, ShellParseError> {
        self.skip_blanks();
        if self.current_byte() == b'(' {
            let start = self.at;
            let Some(word) = self.parse_arithmetic_command()? else {
                return Err(self.syntax_error());
            };
            let inside = self.text.get(start..self.at).unwrap_or_default();
            if inside.bytes().filter(|byte| *byte == b';').count() < 2 {
                return Err(self.syntax_error());
            }
            self.skip_blanks();
            if self.current_byte() == b';' {
                self.at += 1;
            }
            let body = self.parse_loop_body()?;
            return Ok(NodeKind::ArithmeticFor { word, body });
        }
        let Some(name) = self.read_word(WordPosition::Argument)? else {
            return Err(self.syntax_error());
        };
        self.skip_blanks();
        if self.current_byte() == b';' {
            self.at += 1;
            let body = self.parse_loop_body()?;
            return Ok(NodeKind::For { name, items: NONE, given: false, body });
        }
        self.skip_newlines();
        if self.keyword() != Some(Keyword::In) {
            let body = self.parse_loop_body()?;
            return Ok(NodeKind::For { name, items: NONE, given: false, body });
        }
        self.at += 2;
        let mut items = ArenaList::EMPTY;
        loop {
            self.skip_blanks();
            let Some(id) = self.read_word(WordPosition::Argument)? else { break };
            self.tree.link_word(&mut items, id);
        }
        match self.current_byte() {
            b';' => self.at += 1,
            b'\n' => self.read_newline(),
            _ => return Err(self.syntax_error()),
        }
        let body = self.parse_loop_body()?;
        Ok(NodeKind::For { name, items: items.head, given: true, body })
    }

    fn parse_case(&mut self) -> Result<NodeKind, ShellParseError> {
        self.at += 4;
        self.skip_blanks();
        let Some(word) = self.read_word(WordPosition::Argument)? else {
            return Err(self.syntax_error());
        };
        self.skip_newlines();
        self.expect_keyword(Keyword::In, 2)?;
        let mut arms = ArenaList::EMPTY;
        loop {
            self.skip_newlines();
            if self.keyword() == Some(Keyword::Esac) {
                break;
            }
            let arm = self.parse_case_arm()?;
            self.tree.link_node(&mut arms, arm);
            match (self.current_byte(), self.byte_at(1), self.byte_at(2)) {
                (b';', b';', b'&') => self.at += 3,
                (b';', b';' | b'&', _) => self.at += 2,
                _ => {
                    self.skip_newlines();
                    break;
                }
            }
        }
        self.expect_keyword(Keyword::Esac, 4)?;
        Ok(NodeKind::Case { word, first: arms.head })
    }

    /// `(a|b) list`.
    fn parse_case_arm(&mut self) -> Result<ArenaId, ShellParseError> {
        let start = self.at;
        if self.current_byte() == b'(' {
            self.at += 1;
        }
        let mut patterns = ArenaList::EMPTY;
        loop {
            self.skip_blanks();
            let Some(pattern) = self.read_word(WordPosition::Argument)? else {
                return Err(self.syntax_error());
            };
            self.tree.link_word(&mut patterns, pattern);
            self.skip_blanks();
            match self.current_byte() {
                b'|' => self.at += 1,
                b')' => break,
                _ => return Err(self.syntax_error()),
            }
        }
        self.at += 1;
        let body = self.parse_list()?;
        Ok(self.tree.add_node(NodeKind::Arm { patterns: patterns.head, body }, start, self.at))
    }

    /// The words between `[[` and `]]`.
    ///
    /// bash reports an ill-formed condition but does not count it as a syntax
    /// error, so this accepts any sequence of words and operators.
    fn parse_test_words(&mut self) -> Result<ArenaId, ShellParseError> {
        let mut words = ArenaList::EMPTY;
        let mut place = WordPosition::Pattern;
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
            if let Some(id) = self.read_word(place)? {
                self.tree.link_word(&mut words, id);
                place = if self.text.get(start..self.at) == Some("=~") {
                    WordPosition::Regex
                } else {
                    WordPosition::Pattern
                };
                continue;
            }
            match self.current_byte() {
                0 => return Err(self.syntax_error()),
                _ => self.at += 1,
            }
        }
    }

    /// `name ( )` and a body; the caller has already read the name.
    pub(crate) fn parse_function_parens(
        &mut self,
        start: usize,
        words: ArenaList,
        redirects: ArenaList,
    ) -> Result<ArenaId, ShellParseError> {
        let single = words.head != NONE && words.head == words.tail && redirects.head == NONE;
        let assigns = self.tree.word(words.head).is_some_and(|word| word.flags & ASSIGNS != 0);
        if !single || assigns {
            return Err(self.syntax_error());
        }
        self.at += 1;
        self.skip_blanks();
        if self.current_byte() != b')' {
            return Err(self.syntax_error());
        }
        self.at += 1;
        self.parse_function_body(start, words.head)
    }

    /// `function name`, an optional `()`, and a body.
    pub(crate) fn parse_function_keyword(&mut self) -> Result<ArenaId, ShellParseError> {
        let start = self.at;
        self.at += 8;
        self.skip_blanks();
        let Some(name) = self.read_word(WordPosition::Argument)? else {
            return Err(self.syntax_error());
        };
        self.skip_blanks();
        if self.current_byte() == b'(' {
            let before = self.at;
            self.at += 1;
            self.skip_blanks();
            if self.current_byte() == b')' {
                self.at += 1;
            } else {
                // The parenthesis starts the body.
                self.at = before;
            }
        }
        self.parse_function_body(start, name)
    }

    fn parse_function_body(
        &mut self,
        start: usize,
        name: ArenaId,
    ) -> Result<ArenaId, ShellParseError> {
        self.skip_newlines();
        if self.current_byte() != b'('
            && !matches!(
                self.keyword(),
                Some(
                    Keyword::OpenBrace
                        | Keyword::If
                        | Keyword::While
                        | Keyword::Until
                        | Keyword::For
                        | Keyword::Select
                        | Keyword::Case
                        | Keyword::DoubleBracket
                )
            )
        {
            return Err(self.syntax_error());
        }
        self.enter_nesting()?;
        let body = self.parse_compound()?;
        self.leave_nesting();
        Ok(self.tree.add_node(NodeKind::Function { name, body }, start, self.at))
    }

    /// `coproc`, an optional name, and a command.
    pub(crate) fn parse_coproc(&mut self) -> Result<ArenaId, ShellParseError> {
        let start = self.at;
        self.at += 6;
        self.skip_blanks();
        if self.keyword().is_none() && self.current_byte() != b'(' {
            let mark = self.mark();
            let name = self.read_word(WordPosition::Argument)?;
            self.skip_blanks();
            if name.is_none() || !(self.current_byte() == b'(' || self.keyword().is_some()) {
                self.rewind(mark);
            }
        }
        let body = self.parse_command()?;
        Ok(self.tree.add_node(NodeKind::Coproc { body }, start, self.at))
    }
}
