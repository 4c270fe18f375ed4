//! Which lines of a file an answer has shown.

use jackline_engine::Seen;
use serde_json::Value;

use crate::tools::ToolOutput;

impl ToolOutput {
    /// Which whole lines a page has shown; nothing where it is none. A page without any says
    /// so: who says nothing is taken to have shown what was asked for.
    pub fn seen(&self, tool: &str, args: &Value) -> Vec<Seen> {
        let page = &self.structured;
        let number = |key: &str| page.get(key).and_then(Value::as_u64);
        let (Some(path), Some(from), Some(shown)) =
            (page.get("path").and_then(Value::as_str), number("offset"), number("lines_shown"))
        else {
            return Vec::new();
        };
        if tool != "read_file" {
            return Vec::new();
        }
        // The rest of a line that was cut before is no line.
        let begins = args.get("line_offset").filter(|begins| !begins.is_null());
        let is_whole = begins.is_none_or(|begins| begins.as_u64() == Some(0));
        let (from, of) = (from.max(1), number("total_lines"));
        let end = if is_whole { from.saturating_add(shown) } else { from };
        let cut = page.get("cut_lines").and_then(Value::as_array).into_iter().flatten();
        let mut cut: Vec<u64> = cut.filter_map(|cut| cut.get("line")?.as_u64()).collect();
        cut.sort_unstable();
        let range = |from: u64, to: u64| Seen { path: path.to_owned(), from, to, of };
        let mut ranges = Vec::new();
        let mut next = from;
        for line in cut.into_iter().chain([end]).filter(|line| (from..=end).contains(line)) {
            if line > next {
                ranges.push(range(next, line - 1));
            }
            next = line + 1;
        }
        if ranges.is_empty() {
            ranges.push(range(from, from - 1));
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_tells_which_whole_lines_were_seen() {
        let seen = |args: Value, cut: &[u64]| {
            let cut: Vec<Value> = cut.iter().map(|line| json!({ "line": line })).collect();
            let page = json!({ "path": "a", "offset": 2, "lines_shown": 3, "cut_lines": cut });
            let output = ToolOutput { text: String::new(), structured: page };
            output.seen("read_file", &args).iter().map(|it| (it.from, it.to)).collect::<Vec<_>>()
        };
        assert_eq!(seen(json!({}), &[]), [(2, 4)]);
        assert_eq!(seen(json!({}), &[3]), [(2, 2), (4, 4)]);
        assert_eq!(seen(json!({ "line_offset": 7 }), &[]), [(2, 1)]);
        let output = ToolOutput { text: String::new(), structured: json!({ "path": "a" }) };
        assert_eq!(output.seen("write_file", &json!({})), []);
    }
}
