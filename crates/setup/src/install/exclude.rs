//! Adds lines to git's local ignore list, which is not shared with others.

use jackline_clients::CLIENTS;
use jackline_clients::installation::InstallScope;

/// The directory with reports and control files.
const REPORTS_LINE: &str = ".jackline/";

/// The lines that an installation needs: for the reports, and for the settings of one user, which
/// are not for the repository.
pub(crate) fn needed_lines(scope: InstallScope) -> Vec<&'static str> {
    let settings = (scope == InstallScope::Local).then(settings_lines);
    [REPORTS_LINE].into_iter().chain(settings.into_iter().flatten()).collect()
}

fn settings_lines() -> impl Iterator<Item = &'static str> {
    CLIENTS.into_iter().filter_map(|client| client.installation.local_settings_pattern())
}

/// The list with these lines added; nothing if it has all of them already.
pub(crate) fn add_lines(text: &str, lines: &[&str]) -> Option<String> {
    let is_there =
        |line: &str| text.lines().any(|listed| ignored_path(listed) == ignored_path(line));
    let missing: Vec<&str> = lines.iter().copied().filter(|line| !is_there(line)).collect();
    if missing.is_empty() {
        return None;
    }
    let end = line_end(text);
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { end };
    let added: String = missing.iter().flat_map(|line| [line, end]).collect();
    Some(format!("{text}{gap}{added}"))
}

/// The list without our lines; nothing if it has none of them. Lines of `original` stay.
pub(crate) fn remove_lines(text: &str, original: &str) -> Option<String> {
    let ours: Vec<&str> = [REPORTS_LINE].into_iter().chain(settings_lines()).collect();
    let is_ours = |line: &str| {
        let line = line.trim_end_matches(['\r', '\n']);
        ours.contains(&line) && !original.lines().any(|kept| kept == line)
    };
    let rest: String = text.split_inclusive('\n').filter(|line| !is_ours(line)).collect();
    (rest != text).then_some(rest)
}

/// The path in a line, without the ways to anchor it.
fn ignored_path(line: &str) -> &str {
    let line = line.trim_end();
    let line = line.strip_prefix("**").unwrap_or(line);
    line.trim_start_matches('/').trim_end_matches('/')
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_once_and_removed_again() {
        let lines = needed_lines(InstallScope::Local);
        for (before, after) in [
            ("", ".jackline/\n**/.claude/settings.local.json\n"),
            ("# git\n*.o\n", "# git\n*.o\n.jackline/\n**/.claude/settings.local.json\n"),
            ("*.o", "*.o\n.jackline/\n**/.claude/settings.local.json\n"),
            ("*.o\r\n", "*.o\r\n.jackline/\r\n**/.claude/settings.local.json\r\n"),
        ] {
            assert_eq!(add_lines(before, &lines).as_deref(), Some(after));
            assert_eq!(add_lines(after, &lines), None);
            let back = remove_lines(after, before).unwrap();
            assert_eq!(back.trim_end(), before.trim_end());
        }
    }

    #[test]
    fn lines_of_the_person_are_recognised_and_stay() {
        assert_eq!(needed_lines(InstallScope::Shared), [".jackline/"]);
        assert_eq!(add_lines("/.jackline/ \n", &[".jackline/"]), None);
        let lines = needed_lines(InstallScope::Local);
        let added = add_lines(".jackline/\n", &lines).unwrap();
        assert_eq!(added, ".jackline/\n**/.claude/settings.local.json\n");
        assert_eq!(remove_lines(&added, ".jackline/\n").as_deref(), Some(".jackline/\n"));
        assert_eq!(remove_lines("a\n", ""), None);
    }
}
