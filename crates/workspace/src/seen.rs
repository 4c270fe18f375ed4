//! Which lines of a file an answer has shown.

use jackline_engine::Status;
use jackline_engine::event::Seen;
use serde_json::Value;

use crate::read::LINE_SHOWN;
use crate::tools::ToolOutput;

/// What the result of a call shows of a file, if it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// Whole lines.
    Lines,
    /// The rest of a line that was cut before.
    PartOfLine,
    /// Nothing that would count as read.
    Nothing,
}

impl Shows {
    /// What a call of a tool shows.
    pub fn of(tool: &str, args: &Value) -> Self {
        let begins = args.get("line_offset").filter(|begins| !begins.is_null());
        match (tool, begins) {
            ("read_file", None) => Self::Lines,
            ("read_file", Some(begins)) if matches!(begins.as_u64(), Some(0)) => Self::Lines,
            ("read_file", Some(_)) => Self::PartOfLine,
            _ => Self::Nothing,
        }
    }
}

impl ToolOutput {
    /// How the call came back: a command may have been ended.
    pub fn status(&self) -> Status {
        let flag = |key: &str| self.structured.get(key) == Some(&Value::Bool(true));
        match (flag("cancelled"), flag("timed_out")) {
            (true, _) => Status::Cancelled,
            (_, true) => Status::Timeout,
            _ => Status::Ok,
        }
    }

    /// Which lines a page has shown, a line that was cut left out. Where it has shown no
    /// whole line this says so: who says nothing is taken to have shown what was asked for.
    pub fn seen(&self, shows: Shows) -> Vec<Seen> {
        let page = &self.structured;
        let number = |key: &str| page.get(key).and_then(Value::as_u64);
        let (Some(path), Some(from), Some(shown)) =
            (page.get("path").and_then(Value::as_str), number("offset"), number("lines_shown"))
        else {
            return Vec::new();
        };
        let (from, of) = (from.max(1), number("total_lines"));
        let range = |from: u64, to: u64| Seen { path: path.to_owned(), from, to, of };
        let end = match shows {
            Shows::Lines => from.saturating_add(shown),
            // Or the last piece of one of which all others were shown before.
            Shows::PartOfLine => {
                let whole = page.get(LINE_SHOWN) == Some(&Value::Bool(true));
                from.saturating_add(u64::from(whole))
            }
            Shows::Nothing => return Vec::new(),
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

    fn seen(shows: Shows, page: Value) -> Vec<Seen> {
        ToolOutput { text: String::new(), structured: page }.seen(shows)
    }

    #[test]
    fn a_page_tells_which_lines_were_seen() {
        let page = |from: u64, shown: u64, cut: &[u64]| {
            let cut: Vec<Value> = cut.iter().map(|line| json!({ "line": line })).collect();
            json!({
                "path": "a", "offset": from, "lines_shown": shown, "total_lines": 9, "cut_lines": cut,
            })
        };
        let ranges = |shows: Shows, page: Value| {
            let seen = seen(shows, page);
            assert!(seen.iter().all(|seen| seen.path == "a" && seen.of == Some(9)));
            seen.iter().map(|seen| (seen.from, seen.to)).collect::<Vec<_>>()
        };
        let lines =
            |from: u64, shown: u64, cut: &[u64]| ranges(Shows::Lines, page(from, shown, cut));
        assert_eq!(lines(1, 9, &[]), [(1, 9)]);
        assert_eq!(lines(4, 2, &[]), [(4, 5)]);
        assert_eq!(lines(1, 5, &[1]), [(2, 5)]);
        assert_eq!(lines(1, 5, &[3, 5]), [(1, 2), (4, 4)]);
        assert_eq!(lines(1, 0, &[]), [(1, 0)]);
        assert_eq!(lines(2, 1, &[2]), [(2, 1)]);
        assert_eq!(ranges(Shows::PartOfLine, page(2, 1, &[])), [(2, 1)]);
        assert_eq!(lines(u64::MAX, 0, &[]), [(u64::MAX, u64::MAX - 1)]);
        assert_eq!(lines(u64::MAX, 9, &[u64::MAX]), [(u64::MAX, u64::MAX - 1)]);
        assert_eq!(seen(Shows::Nothing, page(1, 9, &[])), []);
        assert_eq!(seen(Shows::Lines, json!({})), []);
    }

    #[test]
    fn the_rest_of_a_line_is_no_line() {
        let shows = |args: &Value| Shows::of("read_file", args);
        assert_eq!(shows(&json!({ "path": "a" })), Shows::Lines);
        assert_eq!(shows(&json!({ "path": "a", "line_offset": 0 })), Shows::Lines);
        assert_eq!(shows(&json!({ "path": "a", "line_offset": null })), Shows::Lines);
        assert_eq!(shows(&json!({ "path": "a", "line_offset": 7 })), Shows::PartOfLine);
        assert_eq!(shows(&json!({ "path": "a", "line_offset": "7" })), Shows::PartOfLine);
        assert_eq!(Shows::of("search", &json!({})), Shows::Nothing);
    }
}
