//! Compares the output that a page shows with the output of the command.

/// Stands for any text in a line, or for any lines where it is alone.
const ANY: &str = "…";

/// Whether the output is the one that is shown. A command shown without output may print anything.
pub(crate) fn matches(shown: &str, output: &str) -> bool {
    let shown: Vec<&str> = shown.lines().map(str::trim_end).collect();
    let output: Vec<&str> = output.lines().map(str::trim_end).collect();
    shown.is_empty() || lines_match(&shown, &output)
}

fn lines_match(shown: &[&str], output: &[&str]) -> bool {
    match shown.split_first() {
        None => output.is_empty(),
        Some((first, rest)) if first.trim() == ANY => {
            (0..=output.len()).any(|skipped| lines_match(rest, &output[skipped..]))
        }
        Some((first, rest)) => output
            .split_first()
            .is_some_and(|(line, more)| line_matches(first, line) && lines_match(rest, more)),
    }
}

fn line_matches(shown: &str, line: &str) -> bool {
    let mut parts = shown.split(ANY);
    let Some(mut rest) = parts.next().and_then(|start| line.strip_prefix(start)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

/// The output for a page that is rewritten: what is shown stays where it matches.
pub(crate) fn merged(shown: &str, output: &str) -> String {
    if matches(shown, output) { shown.to_owned() } else { output.to_owned() }
}

#[test]
fn an_ellipsis_matches_text_and_lines() {
    assert!(matches("a … c\n", "a b c\n"));
    assert!(matches("first\n…\nlast\n", "first\nx\ny\nlast\n"));
    assert!(matches("", "anything\n"));
    assert!(!matches("a\n", "a\nb\n"));
    assert!(!matches("a … c\n", "a b d\n"));
    assert!(!matches("a\n…\n", "b\n"));
}
