//! Adds `.jackline/` to git's local ignore list, which is not shared with others.

/// The ignored directory.
const IGNORE_LINE: &str = ".jackline/";

/// The list with our line added; nothing if it has the line already.
pub(crate) fn add_line(text: &str) -> Option<String> {
    let variants = [IGNORE_LINE, ".jackline", "/.jackline/", "/.jackline"];
    if text.lines().any(|line| variants.contains(&line.trim_end())) {
        return None;
    }
    let end = line_end(text);
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { end };
    Some(format!("{text}{gap}{IGNORE_LINE}{end}"))
}

/// The list without our line; nothing if it does not have the line.
pub(crate) fn remove_line(text: &str) -> Option<String> {
    let is_ours = |line: &&str| line.trim_end_matches(['\r', '\n']) == IGNORE_LINE;
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
    fn the_line_is_added_once_and_removed_again() {
        for (before, after) in [
            ("", ".jackline/\n"),
            ("# git\n*.o\n", "# git\n*.o\n.jackline/\n"),
            ("*.o", "*.o\n.jackline/\n"),
            ("*.o\r\n", "*.o\r\n.jackline/\r\n"),
        ] {
            assert_eq!(add_line(before).as_deref(), Some(after));
            assert_eq!(add_line(after), None);
            let back = remove_line(after).unwrap();
            assert_eq!(back.trim_end(), before.trim_end());
        }
        assert_eq!(add_line("/.jackline/ \n"), None);
        assert_eq!(remove_line("a\n"), None);
    }
}
