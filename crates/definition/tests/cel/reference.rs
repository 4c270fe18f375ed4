//! Tests that conditions mean the same as in the `cel` crate.
//!
//! Both evaluate random conditions and must give the same result, or both must fail. Some
//! differences are intended, so the test does not generate them: decimals are compared exactly and
//! have no arithmetic, work is limited, keys of maps are texts, and a visible type error is refused
//! before the condition is evaluated. To create type errors, the test therefore hides the type of a
//! value (`[1, null][0]`).

use std::collections::HashMap;

use cel::objects::Key;
use cel::{Context, Program, Value};
use proptest::prelude::*;

use crate::ConditionCall;

/// Generates conditions from a list of choices.
struct ConditionWriter<'c> {
    choices: std::slice::Iter<'c, u8>,
    /// The number of enclosing macros.
    locals: usize,
}

impl ConditionWriter<'_> {
    fn choose<'w>(&mut self, among: &[&'w str]) -> &'w str {
        let choice = usize::from(self.choices.next().copied().unwrap_or(0));
        among.get(choice % among.len()).copied().unwrap_or_default()
    }

    fn bool(&mut self, depth: u32) -> String {
        let leaf = [
            "true",
            "false",
            "args.on",
            "!args.on",
            "!!has(args.none)",
            "program == \"git\"",
            "has",
            "missing",
        ];
        let deep = [
            "&&",
            "||",
            "!",
            "?:",
            "== number",
            "== text",
            "== list",
            "== any",
            "== map",
            "<",
            "< text",
            "< any",
            "in list",
            "in map",
            "in any",
            "test",
            "has",
            "each",
            "each",
            "each",
            "any",
            "true",
            "decimal",
        ];
        let kind = if depth == 0 { self.choose(&leaf) } else { self.choose(&deep) };
        let depth = depth.saturating_sub(1);
        match kind {
            "missing" => "args.missing".to_owned(),
            "has" => {
                let map = self.choose(&["args", "args.nested", "args.nested.deep", "args.missing"]);
                let key = self.choose(&["count", "deep", "missing", "er"]);
                format!("has({map}.{key})")
            }
            "&&" | "||" => {
                let (a, b, c) = (self.bool(depth), self.bool(depth), self.bool(depth));
                let also = self.choose(&["&&", "||"]);
                format!("({a} {kind} {b} {also} {c})")
            }
            "!" => format!("!({})", self.bool(depth)),
            "?:" => {
                let (a, b, c) = (self.bool(depth), self.bool(depth), self.bool(depth));
                format!("({a} ? {b} : {c})")
            }
            "== number" => self.pair(&["==", "!="], depth, Self::number),
            "== text" => self.pair(&["==", "!="], depth, Self::text),
            "== list" => self.pair(&["==", "!="], depth, Self::list),
            "== map" => self.pair(&["==", "!="], depth, Self::map),
            "== any" => self.pair(&["==", "!="], depth, Self::any),
            "<" => self.pair(&["<", "<=", ">", ">="], depth, Self::number),
            "< text" => self.pair(&["<", "<=", ">", ">="], depth, Self::text),
            "< any" => self.pair(&["<", "<=", ">", ">="], depth, Self::any_ordered),
            "in list" => format!("({} in {})", self.any(depth), self.list(depth)),
            "in map" => format!("({} in {})", self.text(depth), self.map(depth)),
            "in any" => format!("({} in {})", self.any(depth), self.any(depth)),
            "test" => {
                let of = if self.choose(&["t", "t", "a"]) == "t" {
                    self.text(depth)
                } else {
                    self.any(depth)
                };
                let test = self.choose(&["startsWith", "endsWith", "contains"]);
                format!("{of}.{test}({})", self.text(depth))
            }
            "each" => {
                let of = self.items(depth);
                let what = self.choose(&["exists", "all", "exists_one"]);
                self.each(&of, what, depth, Self::bool)
            }
            "decimal" => {
                let decimal = self.choose(&["args.ratio", "args.two"]);
                let sign = self.choose(&["==", "!=", "<", "<=", ">", ">="]);
                let number = self.choose(&["1", "2", "-2", "args.ratio", "args.two"]);
                format!("({decimal} {sign} {number})")
            }
            "any" => self.any(depth),
            leaf => leaf.to_owned(),
        }
    }

    fn pair(&mut self, signs: &[&str], depth: u32, write: fn(&mut Self, u32) -> String) -> String {
        let (a, sign, b) = (write(self, depth), self.choose(signs), write(self, depth));
        format!("({a} {sign} {b})")
    }

    fn each(
        &mut self,
        of: &str,
        what: &str,
        depth: u32,
        write: fn(&mut Self, u32) -> String,
    ) -> String {
        self.locals += 1;
        let body = write(self, depth);
        self.locals -= 1;
        format!("{of}.{what}(x{}, {body})", self.locals)
    }

    fn number(&mut self, depth: u32) -> String {
        let leaf =
            ["1", "0", "-1", "3", "args.count", "9223372036854775807", "-9223372036854775808"];
        let deep = ["op", "op", "flat", "flat", "-", "size", "size", "int", "leaf", "?:"];
        if depth == 0 {
            return self.choose(&leaf).to_owned();
        }
        let depth = depth - 1;
        match self.choose(&deep) {
            "op" => self.pair(&["+", "-", "*", "/", "%"], depth, Self::number),
            "flat" => {
                let mut text = self.number(depth);
                for _ in 0..3 {
                    let sign = self.choose(&["+", "-", "*", "/", "%"]);
                    text = format!("{text} {sign} {}", self.number(depth));
                }
                format!("({text})")
            }
            "-" => format!("-({})", self.number(depth)),
            "size" if self.choose(&["list", "text"]) == "list" => {
                format!("size({})", self.list(depth))
            }
            "size" => format!("{}.size()", self.text(depth)),
            "int" => format!("int({})", self.choose(&["\"12\"", "\"x\"", "\"-7\"", "5"])),
            "?:" => {
                let condition = self.bool(depth);
                format!("(({condition}) ? {} : {})", self.number(depth), self.number(depth))
            }
            _ => self.choose(&leaf).to_owned(),
        }
    }

    fn text(&mut self, depth: u32) -> String {
        let leaf = [
            "\"\"",
            "\"a\"",
            "'é\\n'",
            "r\"\\d\"",
            "path",
            "args.command",
            "program",
            "argv[1]",
            "args.nested.deep.er",
            "args.tags[0]",
            "\"--force\"",
        ];
        if depth == 0 {
            return self.choose(&leaf).to_owned();
        }
        let depth = depth - 1;
        match self.choose(&["+", "string", "leaf", "leaf", "argv"]) {
            "+" => self.pair(&["+"], depth, Self::text),
            "string" => format!("string({})", self.number(depth)),
            "argv" => format!("argv[{}]", self.number(depth)),
            _ => self.choose(&leaf).to_owned(),
        }
    }

    fn list(&mut self, depth: u32) -> String {
        let leaf =
            ["[]", "argv", "args.tags", "args.mixed", "[1, \"a\", null, true]", "[\"a\", \"é\"]"];
        if depth == 0 {
            return self.choose(&leaf).to_owned();
        }
        let depth = depth - 1;
        match self.choose(&["leaf", "+", "filter", "map", "items"]) {
            "+" => self.pair(&["+"], depth, Self::list),
            "filter" => {
                let of = self.items(depth);
                self.each(&of, "filter", depth, Self::bool)
            }
            "map" => {
                let of = self.items(depth);
                self.each(&of, "map", depth, Self::any)
            }
            "items" => format!("[{}, {}]", self.any(depth), self.any(depth)),
            _ => self.choose(&leaf).to_owned(),
        }
    }

    /// Generates the items of a macro. The maps are small, because the order of larger maps differs
    /// from the reference.
    fn items(&mut self, depth: u32) -> String {
        match self.choose(&["list", "list", "list", "map", "any"]) {
            "list" => self.list(depth),
            "map" => self.choose(&["{}", "{\"k\": 1}", "args.nested.deep"]).to_owned(),
            _ => self.choose(&["args.count", "args.none", "args.command"]).to_owned(),
        }
    }

    fn map(&mut self, depth: u32) -> String {
        let leaf = ["{}", "{\"k\": 1}", "args.nested", "args.nested.deep", "args"];
        if depth == 0 || self.choose(&["leaf", "entries"]) == "leaf" {
            return self.choose(&leaf).to_owned();
        }
        format!("{{\"k\": {}, \"a\": {}}}", self.any(depth - 1), self.any(depth - 1))
    }

    /// Generates a value whose type is not visible in the text.
    fn any(&mut self, depth: u32) -> String {
        let known =
            ["args.none", "args.missing", "args.mixed[0]", "args.mixed[1]", "args.mixed[5].k"];
        let value = match self
            .choose(&["known", "local", "local", "n", "t", "l", "m", "b", "index"])
        {
            "local" if self.locals > 0 => {
                let local = usize::from(self.choices.next().copied().unwrap_or(0)) % self.locals;
                return format!("[x{local}, null][0]");
            }
            "n" => self.number(depth.saturating_sub(1)),
            "t" => self.text(depth.saturating_sub(1)),
            "l" => self.list(depth.saturating_sub(1)),
            "m" => self.map(depth.saturating_sub(1)),
            "b" => self.bool(depth.saturating_sub(1)),
            "index" => {
                format!("args.mixed[{}]", self.choose(&["0", "1", "2", "4", "5", "6", "-1"]))
            }
            _ => return self.choose(&known).to_owned(),
        };
        format!("[{value}, null][0]")
    }

    /// Generates a value that is not null. The reference compares two nulls with `<`; here and in
    /// the specification nulls have no order.
    fn any_ordered(&mut self, depth: u32) -> String {
        let value = match self.choose(&["n", "t", "l", "m", "b"]) {
            "n" => self.number(depth),
            "t" => self.text(depth),
            "l" => self.list(depth),
            "m" => self.map(depth),
            _ => self.bool(depth),
        };
        format!("[{value}, null][0]")
    }
}

fn reference_value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(truth) => Value::Bool(*truth),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Value::Int(whole),
            (None, Some(large)) => Value::UInt(large),
            (None, None) => number.as_f64().map_or(Value::Null, Value::Float),
        },
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(items) => {
            Value::List(items.iter().map(reference_value).collect::<Vec<_>>().into())
        }
        serde_json::Value::Object(entries) => {
            let entries: HashMap<Key, Value> = entries
                .iter()
                .map(|(key, value)| (Key::from(key.as_str()), reference_value(value)))
                .collect();
            Value::Map(entries.into())
        }
    }
}

/// Returns the result of the reference; `None` is an error.
fn answer(condition: &str, call: &ConditionCall) -> Option<bool> {
    let mut context = Context::default();
    context.add_variable_from_value("args", reference_value(&call.args));
    context.add_variable_from_value("argv", call.argv.clone());
    context.add_variable_from_value("path", call.path.clone());
    context.add_variable_from_value("program", "git");
    match Program::compile(condition).ok()?.execute(&context) {
        Ok(Value::Bool(truth)) => Some(truth),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_condition_means_what_the_reference_means(choices in prop::collection::vec(any::<u8>(), 1..60)) {
        let condition = ConditionWriter { choices: choices.iter(), locals: 0 }.bool(4);
        prop_assume!(condition.len() < 2_000);
        let call = ConditionCall::push();
        let ours = call.holds(&condition);
        if let Err(jackline_engine::expr::EvaluationError::Failed(why)) = &ours {
            prop_assert!(!why.starts_with("refused"), "{} {}", condition, why);
        }
        prop_assert_eq!(ours.clone().ok(), answer(&condition, &call), "{} {:?}", condition, ours);
    }
}
