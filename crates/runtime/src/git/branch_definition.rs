//! A definition that another branch has.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use jackline_definition::FILE_NAME;

use super::objects::work_tree_root;
use super::{GitProgram, GitQuestion, nearest_directory};

/// Lists the branches with the latest commits.
const BRANCHES: [&str; 5] = [
    "for-each-ref",
    "--sort=-committerdate",
    "--count=32",
    "--format=%(refname:short)",
    "refs/heads",
];

/// Asks for the branch that was checked out before.
const EARLIER_BRANCH: [&str; 3] = ["rev-parse", "--abbrev-ref", "@{-1}"];

/// A definition that a branch has and the work tree does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchDefinition {
    /// The branch.
    pub branch: String,
    /// The path of the file, relative to the directory that was asked about.
    pub path: String,
    /// Whether this branch was checked out before.
    is_earlier: bool,
}

impl BranchDefinition {
    /// The definition that another branch has for a directory: the branch that was checked out before,
    /// or the one with the latest commit.
    pub fn of(directory: &Path) -> Option<Self> {
        let directory = nearest_directory(directory).canonicalize().ok()?;
        let root = work_tree_root(&directory)?;
        let git = GitProgram::default();
        let question = GitQuestion::begin(&git);
        let ask = |words: &[&str]| {
            let answer = question.run(&root, words, Stdio::null()).unwrap_or_default();
            String::from_utf8(answer).unwrap_or_default()
        };
        let (earlier, all) = (ask(&EARLIER_BRANCH), ask(&BRANCHES));
        let branches: Vec<&str> = earlier.lines().take(1).chain(all.lines()).collect();
        let above = directory.ancestors().take_while(|above| above.starts_with(&root));
        let files: Vec<PathBuf> = above
            .filter_map(|above| Some(above.strip_prefix(&root).ok()?.join(FILE_NAME)))
            .collect();
        let files: Vec<&str> = files.iter().filter_map(|file| file.to_str()).collect();
        let versions = question.versions(&root, &branches, &files)?;
        let (branch, depth) = branches.iter().zip(versions).find_map(|(branch, versions)| {
            let depth = versions?.iter().position(|version| !version.is_missing())?;
            Some((*branch, depth))
        })?;
        let path = format!("{}{FILE_NAME}", "../".repeat(depth));
        let is_earlier = earlier.lines().next() == Some(branch);
        Some(Self { branch: branch.to_owned(), path, is_earlier })
    }

    /// How the file comes back.
    pub fn remedy(&self) -> String {
        let Self { branch, path, .. } = self;
        format!(
            "git has the file on the branch `{branch}`: `git switch {branch}` checks that branch \
             out, and `git checkout {branch} -- {path}` takes only the file"
        )
    }

    /// Whether a command line does only that.
    pub(crate) fn is_brought_back_by(&self, line: &str) -> bool {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_branch = |word: &str| word == self.branch || (word == "-" && self.is_earlier);
        match words.as_slice() {
            ["git", "switch" | "checkout", branch] => is_branch(branch),
            ["git", "checkout", branch, "--", path] => *branch == self.branch && *path == self.path,
            ["git", "restore", "--source", branch, path] => {
                *branch == self.branch && *path == self.path
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_that_bring_the_file_back_count() {
        let found = BranchDefinition {
            branch: "main".to_owned(),
            path: FILE_NAME.to_owned(),
            is_earlier: true,
        };
        for line in [
            "git switch main",
            "git checkout main",
            "git switch -",
            "git checkout main -- jackline.yaml",
            "git restore --source main jackline.yaml",
        ] {
            assert!(found.is_brought_back_by(line), "{line}");
        }
        for line in [
            "git switch other",
            "git switch main; ls",
            "git switch -f main",
            "git checkout main -- .",
            "git -c core.hooksPath=x switch main",
            "ls",
            "",
        ] {
            assert!(!found.is_brought_back_by(line), "{line}");
        }
    }
}
