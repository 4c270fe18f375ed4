//! The grammar of conditions, read by operator precedence.

use jackline_engine::expr::{Comparison, Expr, Id, Node, Operator, Variable};
use jackline_engine::nearest;

use super::operand::{self, Kind, Operand};
use super::token::Token;
use super::{NESTING_MAX, Wrong};

mod names;

/// Reads a whole condition.
pub(super) fn parse(tokens: Vec<(usize, Token)>) -> Result<Expr, Wrong> {
    let mut parser = Parser { tokens, next: 0, nodes: Vec::new(), locals: Vec::new(), nesting: 0 };
    if parser.peek() == &Token::End {
        return Err(Wrong::new(0, "the condition is empty"));
    }
    let whole = parser.expression()?;
    if parser.peek() != &Token::End {
        return Err(parser.unexpected("the end"));
    }
    if !matches!(whole.kind, Kind::Bool | Kind::Any) {
        let message = format!("the condition is {}, not true or false", whole.kind.words());
        return Err(Wrong::new(whole.at, message).hint("compare it with something"));
    }
    Ok(Expr::new(parser.nodes))
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    nodes: Vec<Node>,
    /// The names that the macros around this place give, with what they stand for.
    locals: Vec<(String, Kind)>,
    nesting: u16,
}

/// An operator between two values.
#[derive(Clone, Copy)]
enum Infix {
    Compare(Comparison),
    In,
    Arithmetic(Operator),
}

/// The operator that a token is, with how tightly it binds.
fn infix(token: &Token) -> Option<(u8, &'static str, Infix)> {
    let sign = match token {
        Token::Sign(sign) => sign,
        Token::Name(name) if name == "in" => "in",
        _ => return None,
    };
    let (binds, operator) = match sign {
        "==" => (1, Infix::Compare(Comparison::Equal)),
        "!=" => (1, Infix::Compare(Comparison::Unequal)),
        "<" => (1, Infix::Compare(Comparison::Less)),
        "<=" => (1, Infix::Compare(Comparison::LessEqual)),
        ">" => (1, Infix::Compare(Comparison::Greater)),
        ">=" => (1, Infix::Compare(Comparison::GreaterEqual)),
        "in" => (1, Infix::In),
        "+" => (2, Infix::Arithmetic(Operator::Add)),
        "-" => (2, Infix::Arithmetic(Operator::Subtract)),
        "*" => (3, Infix::Arithmetic(Operator::Multiply)),
        "/" => (3, Infix::Arithmetic(Operator::Divide)),
        "%" => (3, Infix::Arithmetic(Operator::Remainder)),
        _ => return None,
    };
    Some((binds, sign, operator))
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.next).map_or(&Token::End, |(_, token)| token)
    }

    /// Where the next token begins.
    fn at(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |(at, _)| *at)
    }

    fn skip(&mut self) {
        self.next += 1;
    }

    fn accept(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(next) if *next == sign);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Wrong> {
        if self.accept(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    fn unexpected(&self, expected: &str) -> Wrong {
        let found = self.peek();
        let wrong =
            Wrong::new(self.at(), format!("expected {expected}, found {}", found.describe()));
        match found {
            Token::Name(name) if name == "and" => wrong.hint("write `&&`"),
            Token::Name(name) if name == "or" => wrong.hint("write `||`"),
            Token::Name(name) if name == "not" => wrong.hint("write `!`"),
            _ => wrong,
        }
    }

    /// Adds a node made of `parts`.
    fn add(
        &mut self,
        node: Node,
        kind: Kind,
        at: usize,
        parts: &[Operand],
    ) -> Result<Operand, Wrong> {
        let height = parts.iter().map(|part| part.height).max().unwrap_or(0) + 1;
        if height > NESTING_MAX {
            return Err(too_deep(at));
        }
        let id = Id(u16::try_from(self.nodes.len()).map_err(|_| too_deep(at))?);
        self.nodes.push(node);
        Ok(Operand { id, kind, height, at })
    }

    /// `a ? b : c`, and everything that binds more tightly.
    fn expression(&mut self) -> Result<Operand, Wrong> {
        if self.nesting == NESTING_MAX {
            return Err(too_deep(self.at()));
        }
        self.nesting += 1;
        let condition = self.any_of("||")?;
        let whole = if self.accept("?") {
            condition.must_be(Kind::Bool)?;
            let then = self.any_of("||")?;
            self.expect(":")?;
            let otherwise = self.expression()?;
            let kind = then.kind.either(otherwise.kind);
            let node = Node::If(condition.id, then.id, otherwise.id);
            self.add(node, kind, condition.at, &[condition, then, otherwise])?
        } else {
            condition
        };
        self.nesting -= 1;
        Ok(whole)
    }

    /// A chain of `||`, or one of `&&`: as long as one likes, since it is one node.
    fn any_of(&mut self, sign: &str) -> Result<Operand, Wrong> {
        let is_or = sign == "||";
        let mut parts = Vec::new();
        loop {
            let part = if is_or { self.any_of("&&")? } else { self.binary(1)? };
            parts.push(part);
            if !self.accept(sign) {
                break;
            }
        }
        if let [only] = parts.as_slice() {
            return Ok(*only);
        }
        parts.iter().try_for_each(|part| part.must_be(Kind::Bool))?;
        let at = parts.first().map_or(0, |part| part.at);
        let ids = parts.iter().map(|part| part.id).collect();
        let node = if is_or { Node::Or(ids) } else { Node::And(ids) };
        self.add(node, Kind::Bool, at, &parts)
    }

    fn binary(&mut self, least: u8) -> Result<Operand, Wrong> {
        let mut left = self.unary()?;
        while let Some((binds, sign, operator)) = infix(self.peek()) {
            if binds < least {
                break;
            }
            let at = self.at();
            self.skip();
            let right = self.binary(binds + 1)?;
            let (a, b) = (left.id, right.id);
            let (node, kind) = match operator {
                Infix::Compare(how) => {
                    operand::compare(how, left.kind, right.kind, at)?;
                    (Node::Compare(how, a, b), Kind::Bool)
                }
                Infix::In => {
                    operand::look_into(left.kind, right.kind, at)?;
                    (Node::In(a, b), Kind::Bool)
                }
                Infix::Arithmetic(operator) => {
                    let kind = operand::arithmetic(operator, sign, left.kind, right.kind, at)?;
                    (Node::Arithmetic(operator, a, b), kind)
                }
            };
            left = self.add(node, kind, left.at, &[left, right])?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Operand, Wrong> {
        let mut signs = Vec::new();
        loop {
            let at = self.at();
            match self.peek() {
                Token::Sign(sign @ ("!" | "-")) => signs.push((at, *sign)),
                _ => break,
            }
            self.skip();
        }
        // The sign before a number belongs to it: the least number has no positive.
        let mut operand = match (self.peek(), signs.last()) {
            (Token::Int(number), Some((at, "-"))) => {
                let number = 0_i64.checked_sub_unsigned(*number).ok_or_else(|| too_large(*at))?;
                let at = *at;
                signs.pop();
                self.skip();
                let number = self.add(Node::Int(number), Kind::Number, at, &[])?;
                self.postfix(number)?
            }
            _ => {
                let primary = self.primary()?;
                self.postfix(primary)?
            }
        };
        for (at, sign) in signs.into_iter().rev() {
            let (kind, node) = match sign {
                "!" => (Kind::Bool, Node::Not(operand.id)),
                _ => (Kind::Number, Node::Negate(operand.id)),
            };
            operand.must_be(kind)?;
            operand = self.add(node, kind, at, &[operand])?;
        }
        Ok(operand)
    }

    fn postfix(&mut self, mut of: Operand) -> Result<Operand, Wrong> {
        loop {
            let at = self.at();
            if self.accept(".") {
                of = self.member(of)?;
            } else if self.accept("[") {
                let index = self.expression()?;
                self.expect("]")?;
                let key = match of.kind {
                    Kind::Any => Kind::Any,
                    Kind::Map => Kind::Text,
                    Kind::List | Kind::Texts => Kind::Number,
                    kind => return Err(Wrong::new(at, format!("{} has no items", kind.words()))),
                };
                index.must_be(key)?;
                let kind = if of.kind == Kind::Texts { Kind::Text } else { Kind::Any };
                of = self.add(Node::Index(of.id, index.id), kind, of.at, &[of, index])?;
            } else {
                return Ok(of);
            }
        }
    }

    fn primary(&mut self) -> Result<Operand, Wrong> {
        let at = self.at();
        let (node, kind) = match self.peek().clone() {
            Token::Int(number) => {
                let number = i64::try_from(number).map_err(|_| too_large(at))?;
                (Node::Int(number), Kind::Number)
            }
            Token::Text(text) => (Node::Text(text), Kind::Text),
            Token::Name(name) => return self.name(&name),
            Token::Sign("(") => {
                self.skip();
                let inside = self.expression()?;
                self.expect(")")?;
                return Ok(Operand { at, ..inside });
            }
            Token::Sign("[") => return self.list(),
            Token::Sign("{") => return self.map(),
            Token::Sign(_) | Token::End => return Err(self.unexpected("a value")),
        };
        self.skip();
        self.add(node, kind, at, &[])
    }

    fn list(&mut self) -> Result<Operand, Wrong> {
        let at = self.at();
        self.expect("[")?;
        let mut items = Vec::new();
        while !self.accept("]") {
            items.push(self.expression()?);
            if !self.accept(",") {
                self.expect("]")?;
                break;
            }
        }
        let all_texts = !items.is_empty() && items.iter().all(|item| item.kind == Kind::Text);
        let kind = if all_texts { Kind::Texts } else { Kind::List };
        let node = Node::List(items.iter().map(|item| item.id).collect());
        self.add(node, kind, at, &items)
    }

    fn map(&mut self) -> Result<Operand, Wrong> {
        let at = self.at();
        self.expect("{")?;
        let (mut entries, mut parts) = (Vec::new(), Vec::new());
        while !self.accept("}") {
            let key = self.expression()?;
            key.must_be(Kind::Text)?;
            self.expect(":")?;
            let value = self.expression()?;
            entries.push((key.id, value.id));
            parts.extend([key, value]);
            if !self.accept(",") {
                self.expect("}")?;
                break;
            }
        }
        self.add(Node::Map(entries), Kind::Map, at, &parts)
    }

    /// A name that is no function: a constant, a macro's own, or a variable.
    fn variable(&mut self, name: &str, at: usize) -> Result<Operand, Wrong> {
        let constant = match name {
            "true" => Some((Node::Bool(true), Kind::Bool)),
            "false" => Some((Node::Bool(false), Kind::Bool)),
            "null" => Some((Node::Null, Kind::Null)),
            _ => None,
        };
        if let Some((node, kind)) = constant {
            return self.add(node, kind, at, &[]);
        }
        let local = (0..).zip(self.locals.iter().rev()).find(|(_, (local, _))| local == name);
        if let Some((level, (_, kind))) = local {
            let kind = *kind;
            return self.add(Node::Local(level), kind, at, &[]);
        }
        let variable = match Variable::parse(name) {
            Some(variable) => variable,
            None => self.grouped(name, at)?,
        };
        self.add(Node::Variable(variable), Kind::from(variable.shape()), at, &[])
    }

    /// `session.steps` and its like, where `session` alone is nothing.
    fn grouped(&mut self, group: &str, at: usize) -> Result<Variable, Wrong> {
        let members = || {
            Variable::ALL.iter().map(|variable| variable.name()).filter(move |name| {
                name.strip_prefix(group).is_some_and(|rest| rest.starts_with('.'))
            })
        };
        if members().next().is_none() {
            let known = Variable::ALL.iter().map(|variable| variable.name());
            let known = known.chain(self.locals.iter().map(|(name, _)| name.as_str()));
            let wrong = Wrong::new(at, format!("there is no variable `{group}`"));
            return Err(match nearest(group, known) {
                Some(near) => wrong.hint(format!("did you mean `{near}`?")),
                None => wrong,
            });
        }
        let listed = || members().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        if !self.accept(".") {
            let message = format!("`{group}` is not a value by itself");
            return Err(Wrong::new(at, message).hint(format!("there are {}", listed())));
        }
        let Token::Name(member) = self.peek() else { return Err(self.unexpected("a name")) };
        let full = format!("{group}.{member}");
        let Some(variable) = Variable::parse(&full) else {
            let wrong = Wrong::new(at, format!("there is no variable `{full}`"));
            return Err(match nearest(&full, members()) {
                Some(near) => wrong.hint(format!("did you mean `{near}`?")),
                None => wrong.hint(format!("there are {}", listed())),
            });
        };
        self.skip();
        Ok(variable)
    }
}

fn too_deep(at: usize) -> Wrong {
    Wrong::new(at, format!("the condition is nested deeper than {NESTING_MAX}"))
        .hint("make it several rules, or a list with `in`")
}

fn too_large(at: usize) -> Wrong {
    Wrong::new(at, "the number is too large")
}
