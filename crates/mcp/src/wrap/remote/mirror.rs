//! Parameters of tools that a server wants to see in headers, too.
//!
//! Only clients without a handshake know of it. A server that marks a parameter refuses a
//! call without the header, and the client can't send it: it speaks to us without any.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use ureq::http::HeaderName;

/// What marks a parameter in the schema of a tool.
const MARK: &str = "x-mcp-header";

/// How many tools are remembered, how many marks of each, and how deep they are found.
const TOOLS_MAX: usize = 4096;
const MARKS_MAX: usize = 32;
const DEPTH_MAX: usize = 16;

/// The largest integer that every reader of JSON takes for the same.
const SAFE_MAX: u64 = (1 << 53) - 1;

/// The marked parameters, by tool.
#[derive(Default)]
pub(super) struct Mirrors(BTreeMap<String, Vec<Mirror>>);

struct Mirror {
    header: String,
    /// The keys that lead to the parameter.
    path: Vec<String>,
}

impl Mirrors {
    /// Looks at a list of tools; gives those whose marks nobody can follow.
    pub(super) fn listed<'a>(&mut self, tools: &'a [Value]) -> Vec<&'a str> {
        let mut bad = Vec::new();
        for tool in tools {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            let (mut found, mut path) = (Vec::new(), Vec::new());
            if let Some(schema) = tool.get("inputSchema") {
                find(schema, &mut path, &mut found);
            }
            let headers: Option<BTreeSet<&str>> = found.iter().map(Mirror::is_good).collect();
            let good = headers.is_some_and(|headers| headers.len() == found.len());
            if !good || found.is_empty() {
                self.0.remove(name);
            } else if self.0.len() < TOOLS_MAX {
                self.0.insert(name.to_owned(), found);
            }
            if !good {
                bad.push(name);
            }
        }
        bad
    }

    /// The headers of a call, with their values.
    pub(super) fn of(&self, tool: &str, arguments: &Value) -> Vec<(String, String)> {
        let mirrors = self.0.get(tool).into_iter().flatten();
        let header = |mirror: &Mirror| {
            let value = mirror.path.iter().try_fold(arguments, |value, key| value.get(key))?;
            Some((mirror.header.clone(), written(value)?))
        };
        mirrors.filter_map(header).collect()
    }
}

impl Mirror {
    fn is_good(&self) -> Option<&str> {
        HeaderName::from_bytes(self.header.as_bytes()).ok().map(|_| self.header.as_str())
    }
}

/// Finds what is marked where `properties` alone lead.
fn find(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Mirror>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (key, property) in properties.into_iter().flatten() {
        if found.len() == MARKS_MAX || path.len() == DEPTH_MAX {
            return;
        }
        path.push(key.clone());
        if let Some(mark) = property.get(MARK) {
            // What is no name at all is none that a header can have.
            let name = mark.as_str().filter(|name| !name.is_empty()).unwrap_or(" ");
            let header = format!("mcp-param-{}", name.to_ascii_lowercase());
            found.push(Mirror { header, path: path.clone() });
        }
        find(property, path, found);
        path.pop();
    }
}

fn written(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(yes) => Some(yes.to_string()),
        Value::Number(number) => {
            let safe = number.as_i64().is_some_and(|number| number.unsigned_abs() <= SAFE_MAX);
            safe.then(|| number.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marked_parameters_are_found_by_their_path_and_left_out_where_they_are_not_given() {
        let tool = json!({"name": "sql", "inputSchema": {"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "query": {"type": "string"},
            "at": {"properties": {"shard": {"type": "integer", "x-mcp-header": "Shard"}}},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        }}});
        let mut mirrors = Mirrors::default();
        assert_eq!(mirrors.listed(std::slice::from_ref(&tool)), Vec::<&str>::new());
        let mut headers = mirrors.of(
            "sql",
            &json!({"region": "us-west1", "query": "x", "at": {"shard": -7}, "dry": null}),
        );
        headers.sort();
        let header = |name: &str, value: &str| (format!("mcp-param-{name}"), value.to_owned());
        assert_eq!(headers, [header("region", "us-west1"), header("shard", "-7")]);
        assert_eq!(mirrors.of("other", &json!({"region": "x"})), []);
    }

    #[test]
    fn a_mark_that_no_header_can_have_is_followed_by_nobody() {
        let marked = |a: &str, b: &str| {
            json!([{"name": "t", "inputSchema": {"properties": {
                "a": {"x-mcp-header": a}, "b": {"x-mcp-header": b},
            }}}])
        };
        for (a, b) in [("A", "a"), ("in ject", "b"), ("", "b"), ("x\r\ny", "b")] {
            let mut mirrors = Mirrors::default();
            mirrors.listed(marked("a", "b").as_array().unwrap());
            assert_eq!(mirrors.listed(marked(a, b).as_array().unwrap()), ["t"]);
            assert_eq!(mirrors.of("t", &json!({"a": "1", "b": "2"})), []);
        }
    }
}
