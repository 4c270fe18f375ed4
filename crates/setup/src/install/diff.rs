//! What a change does to a text, line by line, for people.

/// How many unchanged lines are shown around a change.
const AROUND: usize = 3;

/// How many pairs of lines are compared before the changed part is shown as
/// gone and come.
const PAIRS_MAX: usize = 4_000_000;

/// One line of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffLine {
    /// It is in both.
    Same(String),
    /// It comes.
    Added(String),
    /// It goes.
    Removed(String),
    /// Lines that are in both are left out here.
    Gap,
}

/// The difference of two texts.
pub fn diff(before: &str, after: &str) -> Vec<DiffLine> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let head = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let (old_rest, new_rest) =
        (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let tail = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(|(one, other)| one == other)
        .count();
    let middle = |lines: &'_ [&'_ str]| lines.len().saturating_sub(tail);
    let (old_middle, new_middle) = (
        old_rest.get(..middle(old_rest)).unwrap_or_default(),
        new_rest.get(..middle(new_rest)).unwrap_or_default(),
    );
    let same = |line: &&str| DiffLine::Same((*line).to_owned());
    let mut lines: Vec<DiffLine> = old.iter().take(head).map(same).collect();
    lines.extend(compare(old_middle, new_middle));
    lines.extend(old.iter().skip(old.len() - tail).map(same));
    fold(lines)
}

/// The longest common lines stay; between them what goes comes first.
fn compare(old: &[&str], new: &[&str]) -> Vec<DiffLine> {
    let added = |line: &&str| DiffLine::Added((*line).to_owned());
    let removed = |line: &&str| DiffLine::Removed((*line).to_owned());
    if old.len().saturating_mul(new.len()) > PAIRS_MAX {
        return old.iter().map(removed).chain(new.iter().map(added)).collect();
    }
    let lengths = common_lengths(old, new);
    let length = |i: usize, j: usize| {
        lengths.get(i).and_then(|row: &Vec<u32>| row.get(j)).copied().unwrap_or(0)
    };
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::new();
    loop {
        match (old.get(i), new.get(j)) {
            (Some(one), Some(other)) if one == other => {
                lines.push(DiffLine::Same((*one).to_owned()));
                (i, j) = (i + 1, j + 1);
            }
            (Some(one), other) if other.is_none() || length(i + 1, j) >= length(i, j + 1) => {
                lines.push(removed(one));
                i += 1;
            }
            (_, Some(other)) => {
                lines.push(added(other));
                j += 1;
            }
            (_, None) => return lines,
        }
    }
}

/// How many lines the rest of both have in common, from every place on.
fn common_lengths(old: &[&str], new: &[&str]) -> Vec<Vec<u32>> {
    let mut rows = vec![vec![0; new.len() + 1]];
    for one in old.iter().rev() {
        let mut row = vec![0; new.len() + 1];
        if let Some(below) = rows.last() {
            for (j, other) in new.iter().enumerate().rev() {
                let at = |row: &[u32], j: usize| row.get(j).copied().unwrap_or(0);
                let best = if one == other {
                    at(below, j + 1) + 1
                } else {
                    at(below, j).max(at(&row, j + 1))
                };
                if let Some(cell) = row.get_mut(j) {
                    *cell = best;
                }
            }
        }
        rows.push(row);
    }
    rows.reverse();
    rows
}

/// Leaves out what is far from any change.
fn fold(lines: Vec<DiffLine>) -> Vec<DiffLine> {
    let changed: Vec<usize> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| !matches!(line, DiffLine::Same(_)))
        .map(|(at, _)| at)
        .collect();
    let near = |at: usize| {
        let next = changed.partition_point(|change| *change < at);
        let close = |place: Option<&usize>| place.is_some_and(|place| place.abs_diff(at) <= AROUND);
        close(changed.get(next))
            || close(next.checked_sub(1).and_then(|before| changed.get(before)))
    };
    let mut folded = Vec::new();
    for (at, line) in lines.into_iter().enumerate() {
        if near(at) {
            folded.push(line);
        } else if folded.last() != Some(&DiffLine::Gap) {
            folded.push(DiffLine::Gap);
        }
    }
    folded
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
    fn changes_are_shown_with_what_is_around_them() {
        assert_eq!(shown("", "a\nb\n"), ["+a", "+b"]);
        assert_eq!(shown("a\n", "a\n"), ["…"]);
        assert_eq!(shown("a\nb\nc\n", "a\nx\nc\n"), [" a", "-b", "+x", " c"]);
        let long = (0..20).map(|n| n.to_string()).collect::<Vec<String>>().join("\n");
        let changed = long.replace("10", "ten");
        let expected = ["…", " 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13", "…"];
        assert_eq!(shown(&long, &changed), expected);
    }

    #[test]
    fn a_line_that_moved_is_not_all_lines() {
        assert_eq!(shown("a\nb\nc\nd\n", "b\nc\nd\na\n"), ["-a", " b", " c", " d", "+a"]);
        assert_eq!(shown("{\n}\n", "{\n  x\n}\n"), [" {", "+  x", " }"]);
    }
}
