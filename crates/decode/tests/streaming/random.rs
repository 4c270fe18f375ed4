//! Random schemas, documents and damage, all from one seed.

use std::fmt::Write;

use serde_json::{Map, Value, json};

/// A random generator that the seed determines completely.
pub(crate) struct RandomSource(pub(crate) u64);

/// The keywords that random schemas use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeywordSet {
    /// All keywords that the streaming check supports.
    All,
    /// Only keywords for which the check finds the exact byte.
    ExactOnly,
}

const NAMES: [&str; 6] = ["a", "b", "ab", "ba", "é", "😀x"];
const TEXTS: [&str; 8] = ["", "a", "b", "ab", "abb", "é", "\"\\", "😀"];
const NUMBERS: [&str; 10] = ["0", "5", "12", "-3", "2.5", "120", "7", "-0.5", "33", "4e2"];

impl RandomSource {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }

    pub(crate) fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub(crate) fn of<'t, T: ?Sized>(&mut self, list: &[&'t T]) -> &'t T {
        list[self.below(list.len())]
    }

    pub(crate) fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 5 } else { 8 }) {
            0 => Value::Null,
            1 => Value::Bool(self.one_in(2)),
            2 | 3 => Value::from(self.of(&TEXTS)),
            4 => serde_json::from_str(self.of(&NUMBERS)).unwrap(),
            5 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let mut map = Map::new();
                for _ in 0..self.below(4) {
                    map.insert(self.of(&NAMES).to_owned(), self.value(depth - 1));
                }
                Value::Object(map)
            }
        }
    }

    /// A schema that this value satisfies in most cases.
    pub(crate) fn schema(&mut self, value: &Value, part: KeywordSet, depth: usize) -> Value {
        if depth == 0 {
            return json!(true);
        }
        match self.below(12) {
            0 => json!(true),
            1 => json!({ "const": value }),
            2 => {
                let mut list: Vec<Value> = (0..self.below(4)).map(|_| self.value(2)).collect();
                list.push(value.clone());
                json!({ "enum": list })
            }
            3 | 4 => {
                let mut list: Vec<Value> =
                    (0..self.below(3)).map(|_| self.other(part, depth - 1)).collect();
                list.insert(self.below(list.len() + 1), self.schema(value, part, depth - 1));
                match self.below(3) {
                    0 if part == KeywordSet::All => json!({ "oneOf": list }),
                    _ => json!({ "anyOf": list }),
                }
            }
            5 if part == KeywordSet::All => {
                let mut whole = self.plain(value, part, depth);
                whole["allOf"] = json!([self.schema(value, part, depth - 1)]);
                whole["anyOf"] =
                    json!([self.other(part, depth - 1), self.schema(value, part, depth - 1)]);
                if self.one_in(2) {
                    whole["enum"] = json!([self.value(1), value, self.value(1)]);
                }
                whole
            }
            6 => json!({ "$ref": self.of(&["#/$defs/tree", "#/$defs/any", "#/$defs/text"]) }),
            _ => self.plain(value, part, depth),
        }
    }

    /// A schema that is independent of the value.
    fn other(&mut self, part: KeywordSet, depth: usize) -> Value {
        let value = self.value(2);
        if self.one_in(8) { json!(false) } else { self.schema(&value, part, depth) }
    }

    fn plain(&mut self, value: &Value, part: KeywordSet, depth: usize) -> Value {
        let mut schema = Map::new();
        let mut set = |key: &str, value: Value| schema.insert(key.to_owned(), value);
        match value {
            Value::Null => drop(set("type", json!("null"))),
            Value::Bool(_) => drop(set("type", json!(["boolean", "null"]))),
            Value::Number(number) => {
                let whole = number.as_f64().is_some_and(|number| number.fract() == 0.0);
                set("type", json!(if whole { "integer" } else { "number" }));
                match self.below(4) {
                    0 => drop(set("minimum", value.clone())),
                    1 => drop(set("maximum", value.clone())),
                    2 if part == KeywordSet::All => {
                        set("multipleOf", json!(self.below(3) + 1));
                        set("exclusiveMinimum", json!(-5));
                        set("maximum", json!(13.5));
                    }
                    _ => {}
                }
            }
            Value::String(text) => {
                let length = text.chars().count();
                if self.one_in(2) {
                    set("type", json!("string"));
                }
                if self.one_in(2) {
                    set("minLength", json!(length.saturating_sub(self.below(2))));
                }
                if self.one_in(2) {
                    set("maxLength", json!(length + self.below(2)));
                }
                if part == KeywordSet::All && self.one_in(3) {
                    set("pattern", json!(self.of(&["^a", "b$", "^[ab]*$", "."])));
                }
            }
            Value::Array(items) => {
                if self.one_in(2) {
                    set("type", json!("array"));
                }
                let named = self.below(items.len() + 1);
                let prefix: Vec<Value> =
                    items[..named].iter().map(|item| self.schema(item, part, depth - 1)).collect();
                if !prefix.is_empty() {
                    set("prefixItems", prefix.into());
                }
                if named == items.len() {
                    let rest =
                        if self.one_in(2) { json!(false) } else { self.other(part, depth - 1) };
                    set("items", rest);
                } else if named + 1 == items.len() {
                    set("items", self.schema(&items[named], part, depth - 1));
                }
                if self.one_in(2) {
                    set("minItems", json!(items.len().saturating_sub(self.below(2))));
                }
                if self.one_in(2) {
                    set("maxItems", json!(items.len() + self.below(2)));
                }
            }
            Value::Object(map) => return self.object(map, part, depth),
        }
        Value::Object(schema)
    }

    fn object(&mut self, map: &Map<String, Value>, part: KeywordSet, depth: usize) -> Value {
        let mut schema = json!({});
        if self.one_in(2) {
            schema["type"] = json!("object");
        }
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, value) in map {
            if !self.one_in(4) {
                properties.insert(name.clone(), self.schema(value, part, depth - 1));
            }
            if self.one_in(2) {
                required.push(name.clone());
            }
        }
        if self.one_in(2) {
            let name = self.of(&NAMES);
            if !map.contains_key(name) {
                properties.insert(name.to_owned(), self.other(part, depth - 1));
            }
        }
        if map.keys().all(|name| properties.contains_key(name)) {
            match self.below(4) {
                0 | 1 => schema["additionalProperties"] = json!(false),
                2 => schema["additionalProperties"] = self.other(part, depth - 1),
                _ => {}
            }
        }
        schema["properties"] = Value::Object(properties);
        match self.below(4) {
            0 => schema["minProperties"] = json!(map.len()),
            1 if part == KeywordSet::All || required.is_empty() => {
                schema["maxProperties"] = json!(map.len());
            }
            2 if part == KeywordSet::All => schema["propertyNames"] = json!({ "maxLength": 2 }),
            3 if part == KeywordSet::All => {
                schema["patternProperties"] = json!({ "^a": self.other(part, depth - 1) });
            }
            _ => {
                if self.one_in(4) && map.len() < 3 {
                    let names: Vec<&str> = NAMES
                        .into_iter()
                        .filter(|name| name.len() == 1 || map.contains_key(*name))
                        .collect();
                    schema["propertyNames"] = json!({ "enum": names });
                }
            }
        }
        schema["required"] = json!(required);
        schema
    }

    /// A whole schema, with the definitions for its references.
    pub(crate) fn document_schema(&mut self, value: &Value, part: KeywordSet) -> Value {
        let schema = self.schema(value, part, 4);
        json!({
            "allOf": [schema],
            "$defs": {
                "any": true,
                "text": { "type": ["string", "integer"], "maxLength": 2 },
                "tree": { "anyOf": [
                    { "type": "array", "items": { "$ref": "#/$defs/tree" }, "maxItems": 2 },
                    { "type": "object", "additionalProperties": { "$ref": "#/$defs/tree" } },
                    { "type": ["number", "null", "string"] },
                ]},
            },
        })
    }

    /// A value as text, with random white space and escapes.
    pub(crate) fn written(&mut self, value: &Value) -> String {
        let mut text = String::new();
        self.write(value, &mut text);
        text
    }

    fn write(&mut self, value: &Value, out: &mut String) {
        self.space(out);
        match value {
            Value::String(text) => self.write_text(text, out),
            Value::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    self.write(item, out);
                }
                self.space(out);
                out.push(']');
            }
            Value::Object(map) => {
                let mut members: Vec<_> = map.iter().collect();
                let offset = self.below(members.len().max(1));
                members.rotate_left(offset);
                out.push('{');
                for (at, (name, item)) in members.into_iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    self.space(out);
                    self.write_text(name, out);
                    self.space(out);
                    out.push(':');
                    self.write(item, out);
                }
                self.space(out);
                out.push('}');
            }
            other => out.push_str(&other.to_string()),
        }
        self.space(out);
    }

    fn space(&mut self, out: &mut String) {
        if self.one_in(6) {
            out.push_str(self.of(&[" ", "\n", "\t\r "]));
        }
    }

    fn write_text(&mut self, text: &str, out: &mut String) {
        if !self.one_in(4) {
            out.push_str(&Value::from(text).to_string());
            return;
        }
        out.push('"');
        for unit in text.encode_utf16() {
            write!(out, "\\u{unit:04x}").unwrap();
        }
        out.push('"');
    }

    /// Removes, inserts or replaces a few bytes.
    pub(crate) fn damage(&mut self, text: &str, part: KeywordSet) -> Vec<u8> {
        const BYTES: &[u8] = b"\"\"{}[],,:\\ntf013579-.ab u\xc3\xa9\x01eE+";
        let byte_count = if part == KeywordSet::ExactOnly { BYTES.len() - 3 } else { BYTES.len() };
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len() + 1);
            let byte = BYTES[self.below(byte_count)];
            match self.below(3) {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => bytes[at] = byte,
                _ if at < bytes.len() => drop(bytes.remove(at)),
                _ => {}
            }
        }
        bytes
    }
}
