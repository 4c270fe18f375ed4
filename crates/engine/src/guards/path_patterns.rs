//! Patterns of paths as a shell and a definition write them.

use alloc::vec::Vec;

/// Returns whether a path matches a pattern in which `**` matches any depth.
pub(crate) fn matches_pattern(path: &str, pattern: &str) -> bool {
    let path: Vec<&str> = path.split('/').collect();
    let pattern: Vec<&str> = pattern.split('/').collect();
    let fits = |have: &&str, segment: &&str| matches_segment(have, segment);
    matches_sequence(&path, &pattern, |segment| *segment == "**", fits)
}

/// Returns whether a name matches a pattern with `*`, `?` and sets. A set matches any character,
/// because it is better to protect too much.
pub(crate) fn matches_segment(name: &str, pattern: &str) -> bool {
    if !pattern.contains(['*', '?', '[']) {
        return name.eq_ignore_ascii_case(pattern);
    }
    let name: Vec<char> = name.chars().collect();
    let fits = |have: &char, piece: &PatternPiece| match piece {
        PatternPiece::Any | PatternPiece::One => true,
        PatternPiece::Letter(letter) => have.eq_ignore_ascii_case(letter),
    };
    matches_sequence(
        &name,
        &parse_pattern(pattern),
        |piece| matches!(piece, PatternPiece::Any),
        fits,
    )
}

/// Returns whether a sequence matches a pattern. Some parts of the pattern match any number of
/// items, and each other part matches one item that fits.
fn matches_sequence<Item, Part>(
    items: &[Item],
    pattern: &[Part],
    is_any: impl Fn(&Part) -> bool,
    fits: impl Fn(&Item, &Part) -> bool,
) -> bool {
    let (mut at, mut want) = (0, 0);
    // Where to continue if the latest part for any number must match one more item.
    let mut retry: Option<(usize, usize)> = None;
    while let Some(item) = items.get(at) {
        match pattern.get(want) {
            Some(part) if is_any(part) => {
                retry = Some((at, want));
                want += 1;
            }
            Some(part) if fits(item, part) => {
                at += 1;
                want += 1;
            }
            _ => {
                let Some((from, any)) = retry else { return false };
                retry = Some((from + 1, any));
                (at, want) = (from + 1, any + 1);
            }
        }
    }
    pattern.get(want..).is_some_and(|rest| rest.iter().all(is_any))
}

enum PatternPiece {
    Any,
    One,
    Letter(char),
}

fn parse_pattern(pattern: &str) -> Vec<PatternPiece> {
    let mut pieces = Vec::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        pieces.push(match letter {
            '*' => PatternPiece::Any,
            '?' => PatternPiece::One,
            '[' if letters.as_str().get(1..).is_some_and(|rest| rest.contains(']')) => {
                // The first character of a set may be a literal `]`.
                letters.next();
                let _ = letters.by_ref().find(|letter| *letter == ']');
                PatternPiece::One
            }
            letter => PatternPiece::Letter(letter),
        });
    }
    pieces
}

/// Returns whether a name with a leading dot keeps a path out of a shell pattern: `*` does not match
/// `.git`. A pattern with `**` comes from a program that finds hidden files too.
pub(crate) fn is_hidden_from(path: &str, pattern: &str) -> bool {
    let is_wild = |segment: &str| segment.starts_with(['*', '?', '[']);
    let mut pairs = path.split('/').zip(pattern.split('/'));
    !pattern.contains("**")
        && pairs.any(|(name, segment)| name.starts_with('.') && is_wild(segment))
}

/// Returns whether a path below a directory may match a pattern. An empty text is the workspace.
pub(crate) fn may_match_below(directory: &str, pattern: &str) -> bool {
    let mut segments = pattern.split('/');
    let above = directory.split('/').filter(|_| !directory.is_empty() && directory != "/");
    let above = core::iter::once("").filter(|_| directory == "/").chain(above);
    for name in above {
        match segments.next() {
            Some("**") => return true,
            Some(segment) if matches_segment(name, segment) => {}
            _ => return false,
        }
    }
    segments.next().is_some()
}

/// Returns whether some path may match both patterns. A set matches any character.
pub(crate) fn may_overlap(one: &str, other: &str) -> bool {
    let one: Vec<&str> = one.split('/').collect();
    let other: Vec<&str> = other.split('/').collect();
    overlap(&one, &other, |segment| *segment == "**", |a, b| segments_overlap(a, b))
}

fn segments_overlap(one: &str, other: &str) -> bool {
    let one = parse_pattern(one);
    let other = parse_pattern(other);
    let is_same = |a: &PatternPiece, b: &PatternPiece| match (a, b) {
        (PatternPiece::Letter(a), PatternPiece::Letter(b)) => a.eq_ignore_ascii_case(b),
        _ => true,
    };
    overlap(&one, &other, |piece| matches!(piece, PatternPiece::Any), is_same)
}

/// Returns whether two lists with parts that stand for any number of parts can be equal.
fn overlap<T>(
    one: &[T],
    other: &[T],
    is_any: impl Fn(&T) -> bool,
    is_same: impl Fn(&T, &T) -> bool,
) -> bool {
    // `reached[b]`: the parts of `one` so far and the first `b` parts of `other` can be equal.
    let mut reached: Vec<bool> = Vec::from([true]);
    for part in other {
        reached.push(reached.last() == Some(&true) && is_any(part));
    }
    for left in one {
        let mut next: Vec<bool> = Vec::from([is_any(left) && reached.first() == Some(&true)]);
        for (right, pair) in other.iter().zip(reached.windows(2)) {
            let (diagonal, above) = (pair.first() == Some(&true), pair.last() == Some(&true));
            let before = next.last() == Some(&true);
            let is_open = is_any(left) || is_any(right);
            next.push(if is_open { above || before } else { diagonal && is_same(left, right) });
        }
        reached = next;
    }
    reached.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_a_shell_would() {
        for (path, pattern) in [
            ("jackline.yaml", "*.yaml"),
            ("jackline.yaml", "j?ckline.[xy]aml"),
            ("a/b/jackline.yaml", "**/jackline.yaml"),
            ("jackline.yaml", "**/jackline.yaml"),
            ("a/b/c", "a/**"),
            (".claude/settings.json", ".*/*"),
        ] {
            assert!(matches_pattern(path, pattern), "{path} {pattern}");
        }
        for (path, pattern) in [("a/b", "*"), ("jackline.yaml", "*.yml"), ("a", "a/**/b")] {
            assert!(!matches_pattern(path, pattern), "{path} {pattern}");
        }
    }

    #[test]
    fn patterns_overlap_if_one_path_can_match_both() {
        for (one, other) in [
            ("conf/*.pem", "conf/secret*"),
            ("conf/*1.pem", "conf/secret*"),
            (".claude/*.json", "**/.claude/settings*.json"),
            ("**/*.json", "a/**"),
            ("a", "a"),
            ("a*c", "*b*"),
            ("[ab]x", "ax"),
        ] {
            assert!(may_overlap(one, other) && may_overlap(other, one), "{one} {other}");
        }
        for (one, other) in [
            ("src/*.rs", "**/jackline.yaml"),
            ("build/*.o", "build/*.lock"),
            ("a/*", "b/*"),
            ("*", "a/b"),
            ("a", "ab"),
        ] {
            assert!(!may_overlap(one, other) && !may_overlap(other, one), "{one} {other}");
        }
    }
}
