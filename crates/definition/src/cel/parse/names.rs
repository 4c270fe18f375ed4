//! Functions, methods and macros.

use jackline_engine::expr::{Function, Macro, Node, Question, Test};
use jackline_engine::nearest;

use super::{Kind, Operand, Parser, Token, Wrong};
use crate::cel::pattern;

/// Functions that stand before their value.
const FUNCTIONS: &[&str] = &["has", "size", "int", "string", "exists", "ignored"];

/// Functions and macros that stand behind it.
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

/// Words that CEL keeps for itself.
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

impl Parser {
    /// What begins with a name: a function, a constant or a variable.
    pub(super) fn name(&mut self, name: &str) -> Result<Operand, Wrong> {
        let at = self.at();
        if RESERVED.contains(&name) || name == "not" {
            return Err(self.unexpected("a value"));
        }
        self.skip();
        if self.accept("(") { self.function(name, at) } else { self.variable(name, at) }
    }

    fn function(&mut self, name: &str, at: usize) -> Result<Operand, Wrong> {
        if !FUNCTIONS.contains(&name) {
            return Err(unknown("function", name, at, FUNCTIONS, METHODS));
        }
        let of = self.expression()?;
        self.close(name)?;
        match name {
            "has" => self.has(of, at),
            "size" => self.size(of, at),
            "int" => {
                let fits = matches!(of.kind, Kind::Any | Kind::Number | Kind::Text);
                let of = if fits { of } else { return Err(no_overload(name, of)) };
                self.add(Node::Call(Function::Int, of.id), Kind::Number, at, &[of])
            }
            "string" => {
                let fits = matches!(of.kind, Kind::Any | Kind::Bool | Kind::Number | Kind::Text);
                let of = if fits { of } else { return Err(no_overload(name, of)) };
                self.add(Node::Call(Function::String, of.id), Kind::Text, at, &[of])
            }
            _ => {
                of.must_be(Kind::Text)?;
                let question = Question::parse(name).unwrap_or(Question::Exists);
                self.add(Node::Ask(question, of.id), Kind::Bool, at, &[of])
            }
        }
    }

    /// The end of the arguments; a comma means that there are too many.
    fn close(&mut self, name: &str) -> Result<(), Wrong> {
        if matches!(self.peek(), Token::Sign(",")) {
            return Err(Wrong::new(self.at(), format!("`{name}` has too many arguments")));
        }
        self.expect(")")
    }

    fn has(&mut self, of: Operand, at: usize) -> Result<Operand, Wrong> {
        if let Some(Node::Member(map, key)) = self.nodes.last() {
            let asks = Node::Has(*map, key.clone());
            self.nodes.pop();
            self.nodes.push(asks);
            return Ok(Operand { kind: Kind::Bool, at, ..of });
        }
        Err(Wrong::new(of.at, "`has` asks for a key of a map")
            .hint("write it as has(args.content)"))
    }

    fn size(&mut self, of: Operand, at: usize) -> Result<Operand, Wrong> {
        if matches!(of.kind, Kind::Null | Kind::Bool | Kind::Number) {
            return Err(no_overload("size", of));
        }
        self.add(Node::Call(Function::Size, of.id), Kind::Number, at, &[of])
    }

    /// What stands behind a point: a key, a method or a macro.
    pub(super) fn member(&mut self, of: Operand) -> Result<Operand, Wrong> {
        let at = self.at();
        let Token::Name(name) = self.peek().clone() else {
            return Err(self.unexpected("a name"));
        };
        self.skip();
        if self.accept("(") {
            return self.method(of, &name, at);
        }
        if name == "in" {
            return Err(Wrong::new(at, "`in` can't be a key here").hint("write `[\"in\"]`"));
        }
        if !matches!(of.kind, Kind::Any | Kind::Map) {
            let wrong = Wrong::new(at, format!("{} has no key `{name}`", of.kind.words()));
            return Err(match METHODS.iter().find(|method| **method == name) {
                Some(method) => wrong.hint(format!("write `.{method}(…)`")),
                None => wrong,
            });
        }
        self.add(Node::Member(of.id, name), Kind::Any, of.at, &[of])
    }

    fn method(&mut self, of: Operand, name: &str, at: usize) -> Result<Operand, Wrong> {
        if let Some(what) = named_macro(name) {
            return self.each(what, of, name, at);
        }
        let test = match name {
            "size" => {
                self.close(name)?;
                return self.size(of, of.at);
            }
            "lowerAscii" => {
                self.close(name)?;
                receiver(of, name, at)?;
                return self.add(Node::Call(Function::LowerAscii, of.id), Kind::Text, of.at, &[of]);
            }
            "matches" => return self.matches(of, at),
            "startsWith" => Test::StartsWith,
            "endsWith" => Test::EndsWith,
            "contains" => Test::Contains,
            _ => return Err(unknown("method", name, at, METHODS, FUNCTIONS)),
        };
        receiver(of, name, at)?;
        let argument = self.expression()?;
        self.close(name)?;
        argument.must_be(Kind::Text)?;
        self.add(Node::Test(test, of.id, argument.id), Kind::Bool, of.at, &[of, argument])
    }

    fn matches(&mut self, of: Operand, at: usize) -> Result<Operand, Wrong> {
        receiver(of, "matches", at)?;
        let pattern_at = self.at();
        let Token::Text(text) = self.peek().clone() else {
            return Err(Wrong::new(pattern_at, "the pattern of `matches` must be written out")
                .hint("write it as matches(r\"^v[0-9]+$\")"));
        };
        self.skip();
        self.close("matches")?;
        let pattern = pattern::compile(&text).map_err(|refused| Wrong {
            at: pattern_at,
            message: refused.message,
            hint: refused.hint.map(str::to_owned),
        })?;
        self.add(Node::Matches(of.id, pattern), Kind::Bool, of.at, &[of])
    }

    fn each(&mut self, what: Macro, of: Operand, name: &str, at: usize) -> Result<Operand, Wrong> {
        let Some(item) = of.kind.item() else {
            return Err(Wrong::new(at, format!("{} has no items", of.kind.words())));
        };
        let Token::Name(local) = self.peek().clone() else {
            return Err(self
                .unexpected("a name for the item")
                .hint(format!("write it as argv.{name}(a, a == \"-f\")")));
        };
        if RESERVED.contains(&local.as_str()) || ["true", "false", "null"].contains(&local.as_str())
        {
            return Err(Wrong::new(self.at(), format!("`{local}` can't be the name of an item")));
        }
        self.skip();
        self.expect(",")?;
        self.locals.push((local, item));
        let body = self.expression();
        self.locals.pop();
        let body = body?;
        self.close(name)?;
        let kind = match what {
            Macro::Map if body.kind == Kind::Text => Kind::Texts,
            Macro::Map => Kind::List,
            _ => {
                body.must_be(Kind::Bool)?;
                match what {
                    Macro::Filter if item == Kind::Text => Kind::Texts,
                    Macro::Filter => Kind::List,
                    _ => Kind::Bool,
                }
            }
        };
        self.add(Node::Each(what, of.id, body.id), kind, of.at, &[of, body])
    }
}

fn named_macro(name: &str) -> Option<Macro> {
    Some(match name {
        "exists" => Macro::Exists,
        "all" => Macro::All,
        "exists_one" => Macro::ExistsOne,
        "filter" => Macro::Filter,
        "map" => Macro::Map,
        _ => return None,
    })
}

/// Refuses a method of texts on anything else.
fn receiver(of: Operand, name: &str, at: usize) -> Result<(), Wrong> {
    if matches!(of.kind, Kind::Any | Kind::Text) {
        return Ok(());
    }
    let wrong = Wrong::new(at, format!("{} has no `{name}`", of.kind.words()));
    Err(match of.kind {
        Kind::List | Kind::Texts if name == "contains" => wrong.hint("write `a in b`"),
        Kind::List | Kind::Texts if name != "lowerAscii" => {
            wrong.hint(format!("write `.exists(a, a.{name}(…))`"))
        }
        _ => wrong,
    })
}

fn no_overload(name: &str, of: Operand) -> Wrong {
    Wrong::new(of.at, format!("`{name}` can't be used on {}", of.kind.words()))
}

/// A name that is no function here; one of the `others` stands elsewhere.
fn unknown(what: &str, name: &str, at: usize, known: &[&str], others: &[&str]) -> Wrong {
    let wrong = Wrong::new(at, format!("there is no {what} `{name}`"));
    if others.contains(&name) {
        let written =
            if what == "method" { format!("{name}(a)") } else { format!("a.{name}(…)") };
        return wrong.hint(format!("write it as `{written}`"));
    }
    match nearest(name, known.iter().copied()) {
        Some(near) => wrong.hint(format!("did you mean `{near}`?")),
        None => wrong.hint(format!("there are `{}`", known.join("`, `"))),
    }
}
