//! All pages of a file together are the file.

use jackline_workspace::WorkspaceLimits;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::WorkspaceTrial;

/// Small limits, so that small files have many pages.
fn small() -> WorkspaceLimits {
    WorkspaceLimits {
        read_lines_max: 5,
        read_bytes_max: 64,
        line_bytes_max: 24,
        count_bytes_max: 200,
        ..WorkspaceLimits::default()
    }
}

/// All pages joined; cut lines are read to their end.
fn read_all_pages(trial: &WorkspaceTrial, path: &str) -> String {
    let mut joined = String::new();
    let mut next = json!({ "path": path });
    for _ in 0..10_000 {
        let page = trial.ok("read_file", &next);
        let offset = page["offset"].as_u64().unwrap();
        let cut: Vec<(u64, u64)> = page["cut_lines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cut| (cut["line"].as_u64().unwrap(), cut["shown_bytes"].as_u64().unwrap()))
            .collect();
        let content = page["content"].as_str().unwrap();
        // On the last page, only the cut lines are left.
        let is_last = page["lines_remaining"] == 0;
        let ends_within = page["next_line_offset"].is_u64() && !is_last;
        for (number, line) in (offset..).zip(content.split_inclusive('\n')) {
            match cut.iter().find(|(cut, _)| *cut == number) {
                Some((_, shown)) if !(ends_within && page["next_offset"] == number) => {
                    joined.push_str(line.strip_suffix('\n').unwrap_or(line));
                    joined.push_str(&rest_of_line(trial, path, number, *shown));
                }
                _ => joined.push_str(line),
            }
        }
        assert_eq!(page["has_more"], !is_last || !cut.is_empty());
        if is_last {
            return joined;
        }
        next = json!({ "path": path, "offset": page["next_offset"],
            "line_offset": page["next_line_offset"] });
    }
    panic!("the pages do not end");
}

fn rest_of_line(trial: &WorkspaceTrial, path: &str, line: u64, mut at: u64) -> String {
    let mut rest = String::new();
    loop {
        let page =
            trial.ok("read_file", &json!({ "path": path, "offset": line, "line_offset": at }));
        assert_eq!(page["lines_shown"], 1);
        rest.push_str(page["content"].as_str().unwrap());
        match (page["next_offset"] == line, &page["next_line_offset"]) {
            (true, Value::Number(next)) => at = next.as_u64().unwrap(),
            _ => return rest,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn pages_joined_are_the_file(lines in prop::collection::vec(("[a-zé漢🦀 ]{0,20}", "(\n|\r\n)"), 0..60),
                                 last in "[a-z]{0,9}") {
        let mut text: String = lines.iter().flat_map(|(line, end)| [line.as_str(), end.as_str()]).collect();
        text.push_str(&last);
        let trial = WorkspaceTrial::with(small(), &[("file", &text)]);
        prop_assert_eq!(read_all_pages(&trial, "file"), text);
    }

    #[test]
    fn lines_of_any_length_are_read_to_their_end(lines in prop::collection::vec("[a-zé漢🦀]{0,90}", 0..12),
                                                 open in any::<bool>()) {
        let mut text = lines.join("\n");
        if !open && !text.is_empty() { text.push('\n'); }
        let trial = WorkspaceTrial::with(small(), &[("file", &text)]);
        prop_assert_eq!(read_all_pages(&trial, "file"), text);
    }

    #[test]
    fn the_remaining_counts_are_correct(lines in prop::collection::vec("[a-z]{0,8}", 1..40), offset in 1u64..45) {
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let trial = WorkspaceTrial::with(WorkspaceLimits { count_bytes_max: 1 << 20, ..small() }, &[("file", &text)]);
        let page = trial.ok("read_file", &json!({ "path": "file", "offset": offset }));
        let total = lines.len() as u64;
        let shown = page["lines_shown"].as_u64().unwrap();
        prop_assert_eq!(page["total_lines"].as_u64(), Some(total));
        let remaining = total.saturating_sub(offset - 1 + shown);
        prop_assert_eq!(page["lines_remaining"].as_u64(), Some(remaining));
        prop_assert_eq!(page["has_more"].as_bool(), Some(remaining > 0));
        prop_assert!(page["content"].as_str().unwrap().len() <= 64);
    }
}
