//! Tells which lines of a file a tool answer has shown.

use jackline_engine::CallStatus;
use jackline_engine::event::ShownLines;
use serde_json::Value;

use crate::read::LINE_SHOWN_FIELD;
use crate::tools::ToolAnswer;

/// Which lines the result of a call can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownContent {
    /// Complete lines.
    Lines,
    /// The rest of a line that was cut before.
    RestOfLine,
    /// Nothing that counts as read.
    Nothing,
}

impl ShownContent {
    /// What a call of this tool with these arguments can show.
    pub fn of(tool: &str, args: &Value) -> Self {
        let line_offset = args.get("line_offset").filter(|line_offset| !line_offset.is_null());
        match (tool, line_offset) {
            ("read_file", None) => Self::Lines,
            ("read_file", Some(offset)) if matches!(offset.as_u64(), Some(0)) => Self::Lines,
            ("read_file", Some(_)) => Self::RestOfLine,
            _ => Self::Nothing,
        }
    }
}

impl ToolAnswer {
    /// The status of the call: a command may have been cancelled or timed out.
    pub fn status(&self) -> CallStatus {
        let flag = |key: &str| self.structured.get(key) == Some(&Value::Bool(true));
        match (flag("cancelled"), flag("timed_out")) {
            (true, _) => CallStatus::Cancelled,
            (_, true) => CallStatus::Timeout,
            _ => CallStatus::Ok,
        }
    }

    /// The lines that a page has shown, without lines that were cut. If the page shows no complete
    /// line, the result is one empty range. Without any range, the caller would assume that all
    /// requested lines were shown.
    pub fn shown_lines(&self, shows: ShownContent) -> Vec<ShownLines> {
        let page = &self.structured;
        let number = |key: &str| page.get(key).and_then(Value::as_u64);
        let (Some(path), Some(from), Some(shown)) =
            (page.get("path").and_then(Value::as_str), number("offset"), number("lines_shown"))
        else {
            return Vec::new();
        };
        let (from, of) = (from.max(1), number("total_lines"));
        let range = |from: u64, to: u64| ShownLines { path: path.to_owned(), from, to, of };
        let end = match shows {
            ShownContent::Lines => from.saturating_add(shown),
            // The last piece of a line whose other pieces were all shown before completes it.
            ShownContent::RestOfLine => {
                let whole = page.get(LINE_SHOWN_FIELD) == Some(&Value::Bool(true));
                from.saturating_add(u64::from(whole))
            }
            ShownContent::Nothing => return Vec::new(),
        };
        let cut = page.get("cut_lines").and_then(Value::as_array);
        let mut cut: Vec<u64> =
            cut.into_iter().flatten().filter_map(|cut| cut.get("line")?.as_u64()).collect();
        cut.sort_unstable();
        let mut ranges = Vec::new();
        let mut next = from;
        for line in cut.into_iter().chain([end]).filter(|line| (from..=end).contains(line)) {
            if line > next {
                ranges.push(range(next, line - 1));
            }
            next = line.saturating_add(1);
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

    fn seen(shows: ShownContent, page: Value) -> Vec<ShownLines> {
        ToolAnswer { text: String::new(), structured: page }.shown_lines(shows)
    }

    #[test]
    fn a_page_reports_which_lines_it_has_shown() {
        let page = |from: u64, shown: u64, cut: &[u64]| {
            let cut: Vec<Value> = cut.iter().map(|line| json!({ "line": line })).collect();
            json!({
                "path": "a", "offset": from, "lines_shown": shown, "total_lines": 9, "cut_lines": cut,
            })
        };
        let ranges = |shows: ShownContent, page: Value| {
            let seen = seen(shows, page);
            assert!(seen.iter().all(|seen| seen.path == "a" && seen.of == Some(9)));
            seen.iter().map(|seen| (seen.from, seen.to)).collect::<Vec<_>>()
        };
        let lines = |from: u64, shown: u64, cut: &[u64]| {
            ranges(ShownContent::Lines, page(from, shown, cut))
        };
        assert_eq!(lines(1, 9, &[]), [(1, 9)]);
        assert_eq!(lines(4, 2, &[]), [(4, 5)]);
        assert_eq!(lines(1, 5, &[1]), [(2, 5)]);
        assert_eq!(lines(1, 5, &[3, 5]), [(1, 2), (4, 4)]);
        assert_eq!(lines(1, 0, &[]), [(1, 0)]);
        assert_eq!(lines(2, 1, &[2]), [(2, 1)]);
        assert_eq!(ranges(ShownContent::RestOfLine, page(2, 1, &[])), [(2, 1)]);
        assert_eq!(lines(u64::MAX, 0, &[]), [(u64::MAX, u64::MAX - 1)]);
        assert_eq!(lines(u64::MAX, 9, &[u64::MAX]), [(u64::MAX, u64::MAX - 1)]);
        assert_eq!(seen(ShownContent::Nothing, page(1, 9, &[])), []);
        assert_eq!(seen(ShownContent::Lines, json!({})), []);
    }

    #[test]
    fn the_rest_of_a_line_does_not_count_as_a_line() {
        let shows = |args: &Value| ShownContent::of("read_file", args);
        assert_eq!(shows(&json!({ "path": "a" })), ShownContent::Lines);
        assert_eq!(shows(&json!({ "path": "a", "line_offset": 0 })), ShownContent::Lines);
        assert_eq!(shows(&json!({ "path": "a", "line_offset": null })), ShownContent::Lines);
        assert_eq!(shows(&json!({ "path": "a", "line_offset": 7 })), ShownContent::RestOfLine);
        assert_eq!(shows(&json!({ "path": "a", "line_offset": "7" })), ShownContent::RestOfLine);
        assert_eq!(ShownContent::of("search", &json!({})), ShownContent::Nothing);
    }
}
