//! Parses conditions by operator precedence.

use jackline_engine::expr::{ArithmeticOperator, Comparison, Expr, ExprNode, ExprNodeId, Variable};
use jackline_engine::nearest_name;

use super::operand::{self, Operand, OperandType};
use super::token::ConditionToken;
use super::{ConditionError, NESTING_MAX};

mod names;

/// Parses a complete condition.
pub(super) fn parse(tokens: Vec<(usize, ConditionToken)>) -> Result<Expr, ConditionError> {
    let mut parser =
        ConditionParser { tokens, next: 0, nodes: Vec::new(), locals: Vec::new(), nesting: 0 };
    if parser.peek() == &ConditionToken::End {
        return Err(ConditionError::new(0, "the condition is empty"));
    }
    let whole = parser.parse_expression()?;
    if parser.peek() != &ConditionToken::End {
        return Err(parser.unexpected("the end"));
    }
    if !matches!(whole.value_type, OperandType::Bool | OperandType::Any) {
        let message =
            format!("the condition is {}, not true or false", whole.value_type.describe());
        return Err(
            ConditionError::new(whole.offset, message).hint("add a comparison, such as `== 1`")
        );
    }
    Ok(Expr::new(parser.nodes))
}

struct ConditionParser {
    tokens: Vec<(usize, ConditionToken)>,
    next: usize,
    nodes: Vec<ExprNode>,
    /// The item names of the enclosing macros, with the types of the items.
    locals: Vec<(String, OperandType)>,
    nesting: u16,
}

/// An operator between two values.
#[derive(Clone, Copy)]
enum InfixOperator {
    Compare(Comparison),
    In,
    Arithmetic(ArithmeticOperator),
}

/// Returns the operator of a token, with its precedence and its sign.
fn infix_operator(token: &ConditionToken) -> Option<(u8, &'static str, InfixOperator)> {
    let sign = match token {
        ConditionToken::Sign(sign) => sign,
        ConditionToken::Name(name) if name == "in" => "in",
        _ => return None,
    };
    let (binds, operator) = match sign {
        "==" => (1, InfixOperator::Compare(Comparison::Equal)),
        "!=" => (1, InfixOperator::Compare(Comparison::Unequal)),
        "<" => (1, InfixOperator::Compare(Comparison::Less)),
        "<=" => (1, InfixOperator::Compare(Comparison::LessEqual)),
        ">" => (1, InfixOperator::Compare(Comparison::Greater)),
        ">=" => (1, InfixOperator::Compare(Comparison::GreaterEqual)),
        "in" => (1, InfixOperator::In),
        "+" => (2, InfixOperator::Arithmetic(ArithmeticOperator::Add)),
        "-" => (2, InfixOperator::Arithmetic(ArithmeticOperator::Subtract)),
        "*" => (3, InfixOperator::Arithmetic(ArithmeticOperator::Multiply)),
        "/" => (3, InfixOperator::Arithmetic(ArithmeticOperator::Divide)),
        "%" => (3, InfixOperator::Arithmetic(ArithmeticOperator::Remainder)),
        _ => return None,
    };
    Some((binds, sign, operator))
}

impl ConditionParser {
    fn peek(&self) -> &ConditionToken {
        self.tokens.get(self.next).map_or(&ConditionToken::End, |(_, token)| token)
    }

    /// Returns the offset of the next token.
    fn offset(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |(at, _)| *at)
    }

    fn skip(&mut self) {
        self.next += 1;
    }

    fn accept(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), ConditionToken::Sign(next) if *next == sign);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), ConditionError> {
        if self.accept(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    fn unexpected(&self, expected: &str) -> ConditionError {
        let found = self.peek();
        let wrong = ConditionError::new(
            self.offset(),
            format!("expected {expected}, found {}", found.describe()),
        );
        match found {
            ConditionToken::Name(name) if name == "and" => wrong.hint("write `&&`"),
            ConditionToken::Name(name) if name == "or" => wrong.hint("write `||`"),
            ConditionToken::Name(name) if name == "not" => wrong.hint("write `!`"),
            _ => wrong,
        }
    }

    /// Adds a node that consists of `parts`.
    fn add_node(
        &mut self,
        node: ExprNode,
        kind: OperandType,
        at: usize,
        parts: &[Operand],
    ) -> Result<Operand, ConditionError> {
        let height = parts.iter().map(|part| part.height).max().unwrap_or(0) + 1;
        if height > NESTING_MAX {
            return Err(nesting_error(at));
        }
        let id = ExprNodeId(u16::try_from(self.nodes.len()).map_err(|_| nesting_error(at))?);
        self.nodes.push(node);
        Ok(Operand { id, value_type: kind, height, offset: at })
    }

    /// Parses `a ? b : c`, and everything with a higher precedence.
    fn parse_expression(&mut self) -> Result<Operand, ConditionError> {
        if self.nesting == NESTING_MAX {
            return Err(nesting_error(self.offset()));
        }
        self.nesting += 1;
        let condition = self.parse_logical_chain("||")?;
        let whole = if self.accept("?") {
            condition.require_type(OperandType::Bool)?;
            let then = self.parse_logical_chain("||")?;
            self.expect(":")?;
            let otherwise = self.parse_expression()?;
            let kind = then.value_type.common_type(otherwise.value_type);
            let node = ExprNode::If(condition.id, then.id, otherwise.id);
            self.add_node(node, kind, condition.offset, &[condition, then, otherwise])?
        } else {
            condition
        };
        self.nesting -= 1;
        Ok(whole)
    }

    /// Parses a chain of `||` or `&&`. A chain is one node, so its length is not nesting.
    fn parse_logical_chain(&mut self, sign: &str) -> Result<Operand, ConditionError> {
        let is_or = sign == "||";
        let mut parts = Vec::new();
        loop {
            let part = if is_or { self.parse_logical_chain("&&")? } else { self.parse_binary(1)? };
            parts.push(part);
            if !self.accept(sign) {
                break;
            }
        }
        if let [only] = parts.as_slice() {
            return Ok(*only);
        }
        parts.iter().try_for_each(|part| part.require_type(OperandType::Bool))?;
        let at = parts.first().map_or(0, |part| part.offset);
        let ids = parts.iter().map(|part| part.id).collect();
        let node = if is_or { ExprNode::Or(ids) } else { ExprNode::And(ids) };
        self.add_node(node, OperandType::Bool, at, &parts)
    }

    fn parse_binary(&mut self, least: u8) -> Result<Operand, ConditionError> {
        let mut left = self.parse_unary()?;
        while let Some((binds, sign, operator)) = infix_operator(self.peek()) {
            if binds < least {
                break;
            }
            let at = self.offset();
            self.skip();
            let right = self.parse_binary(binds + 1)?;
            let (a, b) = (left.id, right.id);
            let (node, kind) = match operator {
                InfixOperator::Compare(how) => {
                    operand::check_comparison(how, left.value_type, right.value_type, at)?;
                    (ExprNode::Compare(how, a, b), OperandType::Bool)
                }
                InfixOperator::In => {
                    operand::check_membership(left.value_type, right.value_type, at)?;
                    (ExprNode::In(a, b), OperandType::Bool)
                }
                InfixOperator::Arithmetic(operator) => {
                    let kind = operand::check_arithmetic(
                        operator,
                        sign,
                        left.value_type,
                        right.value_type,
                        at,
                    )?;
                    (ExprNode::Arithmetic(operator, a, b), kind)
                }
            };
            left = self.add_node(node, kind, left.offset, &[left, right])?;
        }
        Ok(left)
    }

    fn parse_unary(&mut self) -> Result<Operand, ConditionError> {
        let mut signs = Vec::new();
        loop {
            let at = self.offset();
            match self.peek() {
                ConditionToken::Sign(sign @ ("!" | "-")) => signs.push((at, *sign)),
                _ => break,
            }
            self.skip();
        }
        // A minus before a number is part of it: the smallest number has no positive counterpart.
        let mut operand = match (self.peek(), signs.last()) {
            (ConditionToken::Int(number), Some((at, "-"))) => {
                let number =
                    0_i64.checked_sub_unsigned(*number).ok_or_else(|| number_too_large(*at))?;
                let at = *at;
                signs.pop();
                self.skip();
                let number = self.add_node(ExprNode::Int(number), OperandType::Number, at, &[])?;
                self.parse_postfix(number)?
            }
            _ => {
                let primary = self.parse_primary()?;
                self.parse_postfix(primary)?
            }
        };
        for (at, sign) in signs.into_iter().rev() {
            let (kind, node) = match sign {
                "!" => (OperandType::Bool, ExprNode::Not(operand.id)),
                _ => (OperandType::Number, ExprNode::Negate(operand.id)),
            };
            operand.require_type(kind)?;
            operand = self.add_node(node, kind, at, &[operand])?;
        }
        Ok(operand)
    }

    fn parse_postfix(&mut self, mut of: Operand) -> Result<Operand, ConditionError> {
        loop {
            let at = self.offset();
            if self.accept(".") {
                of = self.parse_member(of)?;
            } else if self.accept("[") {
                let index = self.parse_expression()?;
                self.expect("]")?;
                let key = match of.value_type {
                    OperandType::Any => OperandType::Any,
                    OperandType::Map => OperandType::Text,
                    OperandType::List | OperandType::Texts => OperandType::Number,
                    kind => {
                        return Err(ConditionError::new(
                            at,
                            format!("{} has no items", kind.describe()),
                        ));
                    }
                };
                index.require_type(key)?;
                let kind = if of.value_type == OperandType::Texts {
                    OperandType::Text
                } else {
                    OperandType::Any
                };
                of =
                    self.add_node(ExprNode::Index(of.id, index.id), kind, of.offset, &[of, index])?;
            } else {
                return Ok(of);
            }
        }
    }

    fn parse_primary(&mut self) -> Result<Operand, ConditionError> {
        let at = self.offset();
        let (node, kind) = match self.peek().clone() {
            ConditionToken::Int(number) => {
                let number = i64::try_from(number).map_err(|_| number_too_large(at))?;
                (ExprNode::Int(number), OperandType::Number)
            }
            ConditionToken::Text(text) => (ExprNode::Text(text), OperandType::Text),
            ConditionToken::Name(name) => return self.parse_name(&name),
            ConditionToken::Sign("(") => {
                self.skip();
                let inside = self.parse_expression()?;
                self.expect(")")?;
                return Ok(Operand { offset: at, ..inside });
            }
            ConditionToken::Sign("[") => return self.parse_list(),
            ConditionToken::Sign("{") => return self.parse_map(),
            ConditionToken::Sign(_) | ConditionToken::End => return Err(self.unexpected("a value")),
        };
        self.skip();
        self.add_node(node, kind, at, &[])
    }

    fn parse_list(&mut self) -> Result<Operand, ConditionError> {
        let at = self.offset();
        self.expect("[")?;
        let mut items = Vec::new();
        while !self.accept("]") {
            items.push(self.parse_expression()?);
            if !self.accept(",") {
                self.expect("]")?;
                break;
            }
        }
        let all_texts =
            !items.is_empty() && items.iter().all(|item| item.value_type == OperandType::Text);
        let kind = if all_texts { OperandType::Texts } else { OperandType::List };
        let node = ExprNode::List(items.iter().map(|item| item.id).collect());
        self.add_node(node, kind, at, &items)
    }

    fn parse_map(&mut self) -> Result<Operand, ConditionError> {
        let at = self.offset();
        self.expect("{")?;
        let (mut entries, mut parts) = (Vec::new(), Vec::new());
        while !self.accept("}") {
            let key = self.parse_expression()?;
            key.require_type(OperandType::Text)?;
            self.expect(":")?;
            let value = self.parse_expression()?;
            entries.push((key.id, value.id));
            parts.extend([key, value]);
            if !self.accept(",") {
                self.expect("}")?;
                break;
            }
        }
        self.add_node(ExprNode::Map(entries), OperandType::Map, at, &parts)
    }

    /// Parses a name that is not a function: a constant, an item of a macro, or a variable.
    fn parse_variable(&mut self, name: &str, at: usize) -> Result<Operand, ConditionError> {
        let constant = match name {
            "true" => Some((ExprNode::Bool(true), OperandType::Bool)),
            "false" => Some((ExprNode::Bool(false), OperandType::Bool)),
            "null" => Some((ExprNode::Null, OperandType::Null)),
            _ => None,
        };
        if let Some((node, kind)) = constant {
            return self.add_node(node, kind, at, &[]);
        }
        let local = (0..).zip(self.locals.iter().rev()).find(|(_, (local, _))| local == name);
        if let Some((level, (_, kind))) = local {
            let kind = *kind;
            return self.add_node(ExprNode::Local(level), kind, at, &[]);
        }
        let variable = match Variable::parse(name) {
            Some(variable) => variable,
            None => self.parse_grouped_variable(name, at)?,
        };
        self.add_node(ExprNode::Variable(variable), OperandType::from(variable.shape()), at, &[])
    }

    /// Parses a variable in a group, such as `session.steps`. The group alone is not a value.
    fn parse_grouped_variable(
        &mut self,
        group: &str,
        at: usize,
    ) -> Result<Variable, ConditionError> {
        let members = || {
            Variable::ALL.iter().map(|variable| variable.name()).filter(move |name| {
                name.strip_prefix(group).is_some_and(|rest| rest.starts_with('.'))
            })
        };
        if members().next().is_none() {
            let known = Variable::ALL.iter().map(|variable| variable.name());
            let known = known.chain(self.locals.iter().map(|(name, _)| name.as_str()));
            let wrong = ConditionError::new(at, format!("there is no variable `{group}`"));
            return Err(match nearest_name(group, known) {
                Some(near) => wrong.hint(format!("did you mean `{near}`?")),
                None => wrong,
            });
        }
        let listed = || members().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        if !self.accept(".") {
            let message = format!("`{group}` alone is not a value");
            return Err(ConditionError::new(at, message).hint(format!("use one of {}", listed())));
        }
        let ConditionToken::Name(member) = self.peek() else {
            return Err(self.unexpected("a name"));
        };
        let full = format!("{group}.{member}");
        let Some(variable) = Variable::parse(&full) else {
            let wrong = ConditionError::new(at, format!("there is no variable `{full}`"));
            return Err(match nearest_name(&full, members()) {
                Some(near) => wrong.hint(format!("did you mean `{near}`?")),
                None => wrong.hint(format!("use one of {}", listed())),
            });
        };
        self.skip();
        Ok(variable)
    }
}

fn nesting_error(at: usize) -> ConditionError {
    ConditionError::new(at, format!("the condition is nested deeper than {NESTING_MAX} levels"))
        .hint("split it into several rules, or use a list with `in`")
}

fn number_too_large(at: usize) -> ConditionError {
    ConditionError::new(at, "the number is too large")
}
