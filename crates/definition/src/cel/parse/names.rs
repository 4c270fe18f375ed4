//! Parses functions, methods and macros.

use jackline_engine::expr::{ExprFunction, ExprMacro, ExprNode, PathQuestion, TextTest};
use jackline_engine::nearest_name;

use super::{ConditionError, ConditionParser, ConditionToken, Operand, OperandType};
use crate::cel::pattern;

/// Functions that are written before their value.
const FUNCTIONS: &[&str] = &["has", "size", "int", "string", "exists", "ignored"];

/// Functions and macros that are written after their value.
const METHODS: &[&str] = &[
    "size",
    "startsWith",
    "endsWith",
    "contains",
    "matches",
    "lowerAscii",
    "exists",
    "all",
    "exists_one",
    "filter",
    "map",
];

/// Words that CEL reserves.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

impl ConditionParser {
    /// Parses a part that starts with a name: a function, a constant or a variable.
    pub(super) fn parse_name(&mut self, name: &str) -> Result<Operand, ConditionError> {
        let at = self.offset();
        if RESERVED.contains(&name) || name == "not" {
            return Err(self.unexpected("a value"));
        }
        self.skip();
        if self.accept("(") { self.parse_function(name, at) } else { self.parse_variable(name, at) }
    }

    fn parse_function(&mut self, name: &str, at: usize) -> Result<Operand, ConditionError> {
        if !FUNCTIONS.contains(&name) {
            return Err(unknown_name_error("function", name, at, FUNCTIONS, METHODS));
        }
        let of = self.parse_expression()?;
        self.expect_end_of_arguments(name)?;
        match name {
            "has" => self.parse_has(of, at),
            "size" => self.parse_size(of, at),
            "int" => {
                let fits = matches!(
                    of.value_type,
                    OperandType::Any | OperandType::Number | OperandType::Text
                );
                let of = if fits { of } else { return Err(type_error(name, of)) };
                self.add_node(
                    ExprNode::Call(ExprFunction::Int, of.id),
                    OperandType::Number,
                    at,
                    &[of],
                )
            }
            "string" => {
                let fits = matches!(
                    of.value_type,
                    OperandType::Any | OperandType::Bool | OperandType::Number | OperandType::Text
                );
                let of = if fits { of } else { return Err(type_error(name, of)) };
                self.add_node(
                    ExprNode::Call(ExprFunction::String, of.id),
                    OperandType::Text,
                    at,
                    &[of],
                )
            }
            _ => {
                of.require_type(OperandType::Text)?;
                let question = PathQuestion::parse(name).unwrap_or(PathQuestion::Exists);
                self.add_node(ExprNode::Ask(question, of.id), OperandType::Bool, at, &[of])
            }
        }
    }

    /// Expects the end of the arguments. A comma means that there are too many.
    fn expect_end_of_arguments(&mut self, name: &str) -> Result<(), ConditionError> {
        if matches!(self.peek(), ConditionToken::Sign(",")) {
            return Err(ConditionError::new(
                self.offset(),
                format!("`{name}` has too many arguments"),
            ));
        }
        self.expect(")")
    }

    fn parse_has(&mut self, of: Operand, at: usize) -> Result<Operand, ConditionError> {
        if let Some(ExprNode::Member(map, key)) = self.nodes.last() {
            let node = ExprNode::Has(*map, key.clone());
            self.nodes.pop();
            self.nodes.push(node);
            return Ok(Operand { value_type: OperandType::Bool, offset: at, ..of });
        }
        Err(ConditionError::new(of.offset, "`has` needs a key of a map")
            .hint("write it as has(args.content)"))
    }

    fn parse_size(&mut self, of: Operand, at: usize) -> Result<Operand, ConditionError> {
        if matches!(of.value_type, OperandType::Null | OperandType::Bool | OperandType::Number) {
            return Err(type_error("size", of));
        }
        self.add_node(ExprNode::Call(ExprFunction::Size, of.id), OperandType::Number, at, &[of])
    }

    /// Parses the part after a dot: a key, a method or a macro.
    pub(super) fn parse_member(&mut self, of: Operand) -> Result<Operand, ConditionError> {
        let at = self.offset();
        let ConditionToken::Name(name) = self.peek().clone() else {
            return Err(self.unexpected("a name"));
        };
        self.skip();
        if self.accept("(") {
            return self.parse_method(of, &name, at);
        }
        if name == "in" {
            return Err(
                ConditionError::new(at, "`in` can't be a key here").hint("write `[\"in\"]`")
            );
        }
        if !matches!(of.value_type, OperandType::Any | OperandType::Map) {
            let wrong = ConditionError::new(
                at,
                format!("{} has no key `{name}`", of.value_type.describe()),
            );
            return Err(match METHODS.iter().find(|method| **method == name) {
                Some(method) => wrong.hint(format!("write `.{method}(…)`")),
                None => wrong,
            });
        }
        self.add_node(ExprNode::Member(of.id, name), OperandType::Any, of.offset, &[of])
    }

    fn parse_method(
        &mut self,
        of: Operand,
        name: &str,
        at: usize,
    ) -> Result<Operand, ConditionError> {
        if let Some(what) = named_macro(name) {
            return self.parse_macro(what, of, name, at);
        }
        let test = match name {
            "size" => {
                self.expect_end_of_arguments(name)?;
                return self.parse_size(of, of.offset);
            }
            "lowerAscii" => {
                self.expect_end_of_arguments(name)?;
                check_receiver(of, name, at)?;
                return self.add_node(
                    ExprNode::Call(ExprFunction::LowerAscii, of.id),
                    OperandType::Text,
                    of.offset,
                    &[of],
                );
            }
            "matches" => return self.parse_matches(of, at),
            "startsWith" => TextTest::StartsWith,
            "endsWith" => TextTest::EndsWith,
            "contains" => TextTest::Contains,
            _ => return Err(unknown_name_error("method", name, at, METHODS, FUNCTIONS)),
        };
        check_receiver(of, name, at)?;
        let argument = self.parse_expression()?;
        self.expect_end_of_arguments(name)?;
        argument.require_type(OperandType::Text)?;
        self.add_node(
            ExprNode::Test(test, of.id, argument.id),
            OperandType::Bool,
            of.offset,
            &[of, argument],
        )
    }

    fn parse_matches(&mut self, of: Operand, at: usize) -> Result<Operand, ConditionError> {
        check_receiver(of, "matches", at)?;
        let pattern_at = self.offset();
        let ConditionToken::Text(text) = self.peek().clone() else {
            return Err(ConditionError::new(
                pattern_at,
                "the pattern of `matches` must be a literal text",
            )
            .hint("write it as matches(r\"^v[0-9]+$\")"));
        };
        self.skip();
        self.expect_end_of_arguments("matches")?;
        let pattern = pattern::compile(&text).map_err(|refused| ConditionError {
            offset: pattern_at,
            message: refused.message,
            hint: refused.hint.map(str::to_owned),
        })?;
        self.add_node(ExprNode::Matches(of.id, pattern), OperandType::Bool, of.offset, &[of])
    }

    fn parse_macro(
        &mut self,
        what: ExprMacro,
        of: Operand,
        name: &str,
        at: usize,
    ) -> Result<Operand, ConditionError> {
        let Some(item) = of.value_type.item_type() else {
            return Err(ConditionError::new(
                at,
                format!("{} has no items", of.value_type.describe()),
            ));
        };
        let ConditionToken::Name(local) = self.peek().clone() else {
            return Err(self
                .unexpected("a name for the item")
                .hint(format!("write it as argv.{name}(a, a == \"-f\")")));
        };
        if RESERVED.contains(&local.as_str()) || ["true", "false", "null"].contains(&local.as_str())
        {
            return Err(ConditionError::new(
                self.offset(),
                format!("`{local}` can't be the name of an item"),
            ));
        }
        self.skip();
        self.expect(",")?;
        self.locals.push((local, item));
        let body = self.parse_expression();
        self.locals.pop();
        let body = body?;
        self.expect_end_of_arguments(name)?;
        let kind = match what {
            ExprMacro::Map if body.value_type == OperandType::Text => OperandType::Texts,
            ExprMacro::Map => OperandType::List,
            _ => {
                body.require_type(OperandType::Bool)?;
                match what {
                    ExprMacro::Filter if item == OperandType::Text => OperandType::Texts,
                    ExprMacro::Filter => OperandType::List,
                    _ => OperandType::Bool,
                }
            }
        };
        self.add_node(ExprNode::Each(what, of.id, body.id), kind, of.offset, &[of, body])
    }
}

fn named_macro(name: &str) -> Option<ExprMacro> {
    Some(match name {
        "exists" => ExprMacro::Exists,
        "all" => ExprMacro::All,
        "exists_one" => ExprMacro::ExistsOne,
        "filter" => ExprMacro::Filter,
        "map" => ExprMacro::Map,
        _ => return None,
    })
}

/// Refuses a method of texts on anything else.
fn check_receiver(of: Operand, name: &str, at: usize) -> Result<(), ConditionError> {
    if matches!(of.value_type, OperandType::Any | OperandType::Text) {
        return Ok(());
    }
    let wrong = ConditionError::new(at, format!("{} has no `{name}`", of.value_type.describe()));
    Err(match of.value_type {
        OperandType::List | OperandType::Texts if name == "contains" => {
            wrong.hint("write `a in b`")
        }
        OperandType::List | OperandType::Texts if name != "lowerAscii" => {
            wrong.hint(format!("write `.exists(a, a.{name}(…))`"))
        }
        _ => wrong,
    })
}

fn type_error(name: &str, of: Operand) -> ConditionError {
    ConditionError::new(
        of.offset,
        format!("`{name}` can't be used on {}", of.value_type.describe()),
    )
}

/// Creates the error for an unknown function or method. `others` are written in the other form.
fn unknown_name_error(
    what: &str,
    name: &str,
    at: usize,
    known: &[&str],
    others: &[&str],
) -> ConditionError {
    let wrong = ConditionError::new(at, format!("there is no {what} `{name}`"));
    if others.contains(&name) {
        let written =
            if what == "method" { format!("{name}(a)") } else { format!("a.{name}(…)") };
        return wrong.hint(format!("write it as `{written}`"));
    }
    match nearest_name(name, known.iter().copied()) {
        Some(near) => wrong.hint(format!("did you mean `{near}`?")),
        None => wrong.hint(format!("use one of `{}`", known.join("`, `"))),
    }
}
