//! Strict JSON: a duplicate key is an error, so the last one does not silently win.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use sha2::Digest as _;

use crate::digest::Digest128;

/// How deep values may nest. A record wraps the values it stores, and its reader accepts at most
/// 128 levels.
pub(crate) const DEPTH_MAX: u8 = 100;

/// The type of a value, for people.
pub fn describe_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Parses one document. Duplicate keys at any depth and too deep nesting are errors.
pub fn parse_strict(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = StrictValueSeed { depth: 0 }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// The value at a JSON pointer. A pointer of one level is the common case and allocates nothing.
pub(crate) fn value_at<'v>(value: &'v Value, pointer: &str) -> Option<&'v Value> {
    match pointer.strip_prefix('/') {
        Some(key) if !key.contains(['/', '~']) && value.is_object() => value.get(key),
        _ => value.pointer(pointer),
    }
}

/// A digest of a value. It ignores the order of keys, white space, and whether a whole number is
/// written with a fraction.
pub fn canonical_digest(value: &Value) -> Digest128 {
    let mut hasher = CanonicalHasher(sha2::Sha256::new());
    write_canonical(value, &mut hasher);
    crate::digest::Digest::from_bytes(hasher.0.finalize().into()).half()
}

struct CanonicalHasher(sha2::Sha256);

impl fmt::Write for CanonicalHasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

// Lengths before texts and counts before collections make the encoding unambiguous without
// escaping.
fn write_canonical(value: &Value, out: &mut CanonicalHasher) {
    use fmt::Write as _;
    // Writing into a hasher can't fail.
    let _ = match value {
        Value::Null => out.write_str("n"),
        Value::Bool(b) => write!(out, "b{b}"),
        Value::Number(n) if n.is_f64() => {
            let text = n.to_string();
            write!(out, "#{};", text.strip_suffix(".0").unwrap_or(&text))
        }
        Value::Number(n) => write!(out, "#{n};"),
        Value::String(s) => write!(out, "s{}:{s}", s.len()),
        Value::Array(items) => {
            let _ = write!(out, "a{}:", items.len());
            items.iter().for_each(|item| write_canonical(item, out));
            Ok(())
        }
        Value::Object(map) => {
            let _ = write!(out, "o{}:", map.len());
            let mut entry = |(key, item): (&String, &Value)| {
                let _ = write!(out, "{}:{key}", key.len());
                write_canonical(item, out);
            };
            // A feature of `serde_json`, which any crate may enable, decides whether its maps are
            // sorted.
            if map.keys().is_sorted() {
                map.iter().for_each(entry);
            } else {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                entries.into_iter().for_each(&mut entry);
            }
            Ok(())
        }
    };
}

#[derive(Clone, Copy)]
struct StrictValueSeed {
    depth: u8,
}

impl StrictValueSeed {
    /// The seed for the values one level deeper.
    fn one_level_deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth >= DEPTH_MAX {
            return Err(E::custom(format_args!("nested deeper than {DEPTH_MAX}")));
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for StrictValueSeed {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictValueSeed {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(String::from(value)))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let inside = self.one_level_deeper()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(inside)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inside = self.one_level_deeper()?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("duplicate key `{key}`")));
            }
            let value = access.next_value_seed(inside)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn duplicate_keys_are_found_at_every_depth() {
        let error = parse_strict(br#"{"a":{"b":1,"b":2}}"#).unwrap_err();
        assert!(error.to_string().contains("duplicate key `b`"), "{error}");
        assert!(parse_strict(br#"{"a":{"b":1},"b":2}"#).is_ok());
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(parse_strict(nested(100).as_bytes()).is_ok());
        let error = parse_strict(nested(101).as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with("nested deeper than 100"), "{error}");
        assert!(parse_strict(nested(100_000).as_bytes()).is_err());
    }

    #[test]
    fn a_digest_ignores_only_how_a_value_is_written() {
        let of = |text: &str| canonical_digest(&parse_strict(text.as_bytes()).unwrap());
        assert_eq!(of(r#"{"a":1,"b":[true,null]}"#), of(r#"{ "b" : [true, null], "a": 1 }"#));
        assert_eq!(of(r#"{"\u0061":5}"#), of(r#"{"a":5.0}"#));
        assert_eq!(of("[100]"), of("[1e2]"));
        assert_ne!(of("[5]"), of("[5.5]"));
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":"1"}"#));
        assert_ne!(of(r#"["ab","c"]"#), of(r#"["a","bc"]"#));
        assert_ne!(of(r"[[],[]]"), of(r"[[[]]]"));
    }
}
