//! Tool parameters that a server also requires in headers.
//!
//! Only clients without a handshake know of them. The server refuses a call without the header, and
//! the client can't send headers, because it has no HTTP connection to the proxy.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use ureq::http::HeaderName;

/// The key that marks a parameter in the schema of a tool.
const HEADER_MARK: &str = "x-mcp-header";

/// How many tools are remembered, how many marks of each, and how deep marks may be nested.
const TOOLS_MAX: usize = 4096;
const MARKS_MAX: usize = 32;
const DEPTH_MAX: usize = 16;

/// The largest integer that every JSON parser reads exactly.
const SAFE_MAX: u64 = (1 << 53) - 1;

/// The marked parameters, by tool.
#[derive(Default)]
pub(super) struct ParamHeaders(BTreeMap<String, Vec<ParamHeader>>);

struct ParamHeader {
    header: String,
    /// The keys that lead to the parameter.
    path: Vec<String>,
}

impl ParamHeaders {
    /// Reads the marks of a list of tools. Returns the tools whose marks are invalid.
    pub(super) fn read_tools<'a>(&mut self, tools: &'a [Value]) -> Vec<&'a str> {
        let mut bad = Vec::new();
        for tool in tools {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            let (mut mirrors, mut path) = (Vec::new(), Vec::new());
            if let Some(schema) = tool.get("inputSchema") {
                find_marked(schema, &mut path, &mut mirrors);
            }
            let headers: Option<BTreeSet<&str>> =
                mirrors.iter().map(ParamHeader::valid_name).collect();
            let good = headers.is_some_and(|headers| headers.len() == mirrors.len());
            if !good || mirrors.is_empty() {
                self.0.remove(name);
            } else if self.0.len() < TOOLS_MAX {
                self.0.insert(name.to_owned(), mirrors);
            }
            if !good {
                bad.push(name);
            }
        }
        bad
    }

    /// The headers of a call, with their values.
    pub(super) fn headers_of_call(&self, tool: &str, arguments: &Value) -> Vec<(String, String)> {
        let mirrors = self.0.get(tool).into_iter().flatten();
        let header = |mirror: &ParamHeader| {
            let value = mirror.path.iter().try_fold(arguments, |value, key| value.get(key))?;
            Some((mirror.header.clone(), header_value(value)?))
        };
        mirrors.filter_map(header).collect()
    }
}

impl ParamHeader {
    fn valid_name(&self) -> Option<&str> {
        HeaderName::from_bytes(self.header.as_bytes()).ok().map(|_| self.header.as_str())
    }
}

/// Finds marked parameters in nested `properties`.
fn find_marked(schema: &Value, path: &mut Vec<String>, found: &mut Vec<ParamHeader>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (key, property) in properties.into_iter().flatten() {
        if found.len() == MARKS_MAX || path.len() == DEPTH_MAX {
            return;
        }
        path.push(key.clone());
        if let Some(mark) = property.get(HEADER_MARK) {
            // An invalid mark becomes an invalid header name.
            let name = mark.as_str().filter(|name| !name.is_empty()).unwrap_or(" ");
            let header = format!("mcp-param-{}", name.to_ascii_lowercase());
            found.push(ParamHeader { header, path: path.clone() });
        }
        find_marked(property, path, found);
        path.pop();
    }
}

fn header_value(value: &Value) -> Option<String> {
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
    fn marked_parameters_become_headers_if_the_call_has_them() {
        let tool = json!({"name": "sql", "inputSchema": {"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "query": {"type": "string"},
            "at": {"properties": {"shard": {"type": "integer", "x-mcp-header": "Shard"}}},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        }}});
        let mut mirrors = ParamHeaders::default();
        assert_eq!(mirrors.read_tools(std::slice::from_ref(&tool)), Vec::<&str>::new());
        let mut headers = mirrors.headers_of_call(
            "sql",
            &json!({"region": "us-west1", "query": "x", "at": {"shard": -7}, "dry": null}),
        );
        headers.sort();
        let header = |name: &str, value: &str| (format!("mcp-param-{name}"), value.to_owned());
        assert_eq!(headers, [header("region", "us-west1"), header("shard", "-7")]);
        assert_eq!(mirrors.headers_of_call("other", &json!({"region": "x"})), []);
    }

    #[test]
    fn a_tool_with_an_invalid_mark_is_reported_and_gets_no_header() {
        let marked = |a: &str, b: &str| {
            json!([{"name": "t", "inputSchema": {"properties": {
                "a": {"x-mcp-header": a}, "b": {"x-mcp-header": b},
            }}}])
        };
        for (a, b) in [("A", "a"), ("in ject", "b"), ("", "b"), ("x\r\ny", "b")] {
            let mut mirrors = ParamHeaders::default();
            mirrors.read_tools(marked("a", "b").as_array().unwrap());
            assert_eq!(mirrors.read_tools(marked(a, b).as_array().unwrap()), ["t"]);
            assert_eq!(mirrors.headers_of_call("t", &json!({"a": "1", "b": "2"})), []);
        }
    }
}
