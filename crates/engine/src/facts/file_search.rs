//! A search for a file that a pattern of a command matches and that is protected.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::guards::path_patterns::{is_hidden_from, matches_pattern, may_match_below};

/// A search for files that match one pattern and one of several entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSearch {
    /// The pattern: relative to the workspace, or absolute if it is outside.
    pub pattern: String,
    /// The patterns of protected files, in the same form.
    pub entries: Vec<String>,
}

impl FileSearch {
    /// The directory below which all matching files are. An empty text means the workspace.
    pub fn root(&self) -> &str {
        let wild = self.pattern.find(['*', '?', '[']).unwrap_or(self.pattern.len());
        let end = self.pattern.get(..wild).and_then(|literal| literal.rfind('/'));
        match end {
            Some(0) => "/",
            Some(end) => self.pattern.get(..end).unwrap_or_default(),
            None => "",
        }
    }

    /// Whether a path is searched for.
    pub fn matches(&self, path: &str) -> bool {
        matches_pattern(path, &self.pattern)
            && !is_hidden_from(path, &self.pattern)
            && self.entries.iter().any(|entry| matches_pattern(path, entry))
    }

    /// Whether a path that is searched for may be below a directory.
    pub fn may_match_below(&self, directory: &str) -> bool {
        may_match_below(directory, &self.pattern)
            && self.entries.iter().any(|entry| may_match_below(directory, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(pattern: &str, entry: &str) -> FileSearch {
        FileSearch { pattern: pattern.into(), entries: Vec::from([entry.into()]) }
    }

    #[test]
    fn a_search_begins_at_the_literal_directories() {
        for (pattern, root) in [("conf/*.pem", "conf"), ("*.pem", ""), ("/*", "/"), ("/a/b?", "/a")]
        {
            assert_eq!(search(pattern, "x").root(), root, "{pattern}");
        }
    }

    #[test]
    fn a_search_enters_only_directories_that_may_hold_a_match() {
        let shallow = search("conf/*.pem", "conf/secret*");
        assert!(shallow.matches("conf/secret-1.pem") && !shallow.matches("conf/a.pem"));
        assert!(shallow.may_match_below("conf") && !shallow.may_match_below("conf/a"));
        let deep = search("**/*.json", "a/**/x.json");
        assert!(deep.may_match_below("a/b/c") && !deep.may_match_below("b"));
        assert!(deep.matches("a/b/x.json"));
    }
}
