//! Shows the changes of a text, line by line, for people.

use similar::{Algorithm, ChangeTag, DiffOp, capture_diff_slices, group_diff_ops};

/// How many unchanged lines are shown around a change.
const CONTEXT_LINES: usize = 3;

/// If there are more pairs of lines than this, the changed part is shown as removed and added.
const LINE_PAIRS_MAX: usize = 4_000_000;

/// One line of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffLine {
    /// It is in both texts.
    Same(String),
    /// It is only in the new text.
    Added(String),
    /// It is only in the old text.
    Removed(String),
    /// Lines of both texts that are not shown.
    Gap,
}

/// The difference of two texts.
pub fn diff(before: &str, after: &str) -> Vec<DiffLine> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let mut lines = Vec::new();
    // How many lines of the old text are shown or skipped.
    let mut done = 0;
    for group in group_diff_ops(compare(&old, &new), CONTEXT_LINES) {
        for op in &group {
            if op.old_range().start > done {
                lines.push(DiffLine::Gap);
            }
            lines.extend(op.iter_changes(old.as_slice(), new.as_slice()).map(|change| {
                let text = change.value().to_owned();
                match change.tag() {
                    ChangeTag::Equal => DiffLine::Same(text),
                    ChangeTag::Insert => DiffLine::Added(text),
                    ChangeTag::Delete => DiffLine::Removed(text),
                }
            }));
            done = op.old_range().end;
        }
    }
    if done < old.len() {
        lines.push(DiffLine::Gap);
    }
    lines
}

/// The edit operations. Beyond the limit, the whole changed part is replaced.
fn compare(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let is_same = |(one, other): &(&&str, &&str)| one == other;
    let head = old.iter().zip(new).take_while(is_same).count();
    let shorter = old.len().min(new.len());
    let both_ends = old.iter().rev().zip(new.iter().rev());
    let tail = both_ends.take(shorter - head).take_while(is_same).count();
    let (old_len, new_len) = (old.len() - head - tail, new.len() - head - tail);
    if old_len.saturating_mul(new_len) <= LINE_PAIRS_MAX {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let (old_index, new_index) = (old.len() - tail, new.len() - tail);
    vec![
        DiffOp::Equal { old_index: 0, new_index: 0, len: head },
        DiffOp::Replace { old_index: head, old_len, new_index: head, new_len },
        DiffOp::Equal { old_index, new_index, len: tail },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> Vec<String> {
        let line = |line: DiffLine| match line {
            DiffLine::Same(text) => format!(" {text}"),
            DiffLine::Added(text) => format!("+{text}"),
            DiffLine::Removed(text) => format!("-{text}"),
            DiffLine::Gap => "…".to_owned(),
        };
        diff(before, after).into_iter().map(line).collect()
    }

    #[test]
    fn changes_are_shown_with_the_lines_around_them() {
        assert_eq!(shown("", "a\nb\n"), ["+a", "+b"]);
        assert_eq!(shown("a\n", "a\n"), ["…"]);
        assert_eq!(shown("a\nb\nc\n", "a\nx\nc\n"), [" a", "-b", "+x", " c"]);
        let long = (0..20).map(|n| n.to_string()).collect::<Vec<String>>().join("\n");
        let changed = long.replace("10", "ten");
        let expected = ["…", " 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13", "…"];
        assert_eq!(shown(&long, &changed), expected);
    }

    #[test]
    fn distant_changes_have_a_gap_between_them() {
        let long = |first: &str, second: &str| format!("{first}\n1\n2\n3\n4\n5\n6\n7\n{second}\n");
        let expected = ["-a", "+b", " 1", " 2", " 3", "…", " 5", " 6", " 7", "-c", "+d"];
        assert_eq!(shown(&long("a", "c"), &long("b", "d")), expected);
        let near = |first: &str, second: &str| long(first, second).replace("4\n", "");
        assert!(!shown(&near("a", "c"), &near("b", "d")).contains(&"…".to_owned()));
        assert!(shown("", "").is_empty());
    }

    #[test]
    fn a_change_of_too_many_lines_is_shown_as_removed_and_added() {
        let line = |word: &str, n: usize| format!("{word}{n}\nsame\n");
        let lines = |word: &str| (0..2100).map(|n| line(word, n)).collect::<Vec<_>>().concat();
        let text = |word: &str| format!("first\n{}last\n", lines(word));
        let diff = shown(&text("a"), &text("b"));
        // The last `same` belongs to the unchanged end.
        let removed = diff.iter().filter(|line| line.starts_with('-')).count();
        let added = diff.iter().filter(|line| line.starts_with('+')).count();
        assert_eq!((removed, added, diff.len()), (4199, 4199, 2 * 4199 + 3));
        assert!(diff[1].starts_with('-') && diff[1 + 4199].starts_with('+'));
    }

    #[test]
    fn a_moved_line_is_removed_and_added_alone() {
        assert_eq!(shown("a\nb\nc\nd\n", "b\nc\nd\na\n"), ["-a", " b", " c", " d", "+a"]);
        assert_eq!(shown("{\n}\n", "{\n  x\n}\n"), [" {", "+  x", " }"]);
    }
}
