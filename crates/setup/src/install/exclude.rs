//! The line that keeps `.jackline/` out of a repository, without touching
//! anything that is shared.

/// What is kept out.
const LINE: &str = ".jackline/";

/// The list with our line in it; none where it is there already.
pub(crate) fn with_line(text: &str) -> Option<String> {
    let known = [LINE, ".jackline", "/.jackline/", "/.jackline"];
    if text.lines().any(|line| known.contains(&line.trim_end())) {
        return None;
    }
    let end = line_end(text);
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { end };
    Some(format!("{text}{gap}{LINE}{end}"))
}

/// The list without our line; none where it is not there.
pub(crate) fn without_line(text: &str) -> Option<String> {
    let is_ours = |line: &&str| line.trim_end_matches(['\r', '\n']) == LINE;
    let ours = text.split_inclusive('\n').position(|line| is_ours(&line))?;
    let rest = text.split_inclusive('\n').enumerate().filter(|(at, _)| *at != ours);
    Some(rest.map(|(_, line)| line).collect())
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_comes_once_and_goes_again() {
        for (before, after) in [
            ("", ".jackline/\n"),
            ("# git\n*.o\n", "# git\n*.o\n.jackline/\n"),
            ("*.o", "*.o\n.jackline/\n"),
            ("*.o\r\n", "*.o\r\n.jackline/\r\n"),
        ] {
            assert_eq!(with_line(before).as_deref(), Some(after));
            assert_eq!(with_line(after), None);
            let back = without_line(after).unwrap();
            assert_eq!(back.trim_end(), before.trim_end());
        }
        assert_eq!(with_line("/.jackline/ \n"), None);
        assert_eq!(without_line("a\n"), None);
    }
}
