//! Searches for protected files that a pattern of a call matches.

use std::fs;

use jackline_engine::facts::FileSearch;

use super::files::FileInspector;

/// How many names one search reads.
const NAMES_MAX: usize = 20_000;

/// The first file that a search finds. If there are too many names, or a directory can't be read,
/// this is the pattern, so that the call counts as one that touches a protected file.
pub(super) fn find_file(files: &FileInspector<'_>, search: &FileSearch) -> Option<String> {
    let mut directories = vec![search.root().to_owned()];
    let mut left = NAMES_MAX;
    while let Some(directory) = directories.pop() {
        let Some(absolute) = files.absolute_path(&directory) else { continue };
        let entries = match fs::read_dir(&absolute) {
            Ok(entries) => entries,
            Err(_) if !absolute.is_dir() => continue,
            Err(_) => return Some(search.pattern.clone()),
        };
        for entry in entries {
            left = left.saturating_sub(1);
            let Some(entry) = entry.ok().filter(|_| left > 0) else {
                return Some(search.pattern.clone());
            };
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let path = match &*directory {
                "" => name.into_owned(),
                "/" => format!("/{name}"),
                above => format!("{above}/{name}"),
            };
            if search.matches(&path) {
                return Some(path);
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && search.may_match_below(&path) {
                directories.push(path);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_finds_only_what_both_patterns_match() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("conf/deep")).unwrap();
        fs::write(root.path().join("conf/secret-1.pem"), "x").unwrap();
        fs::write(root.path().join("conf/deep/secret-2.pem"), "x").unwrap();
        let files = FileInspector::of(Some(root.path()));
        for (pattern, entry, found) in [
            ("conf/*.pem", "conf/secret*", Some("conf/secret-1.pem")),
            ("conf/*.txt", "conf/secret*", None),
            ("**/*2.pem", "conf/**", Some("conf/deep/secret-2.pem")),
            ("none/*", "none/*", None),
        ] {
            let search = FileSearch { pattern: pattern.into(), entries: vec![entry.into()] };
            assert_eq!(find_file(&files, &search).as_deref(), found, "{pattern} {entry}");
        }
    }
}
