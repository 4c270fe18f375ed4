//! Whether git moved files to other contents, for example when another branch was checked out.

use std::path::Path;
use std::process::Stdio;

use super::GitQuestion;
use super::objects::{FileVersion, work_tree_root};

/// Revisions in which git may still have the earlier contents of a file, and the latest commits that
/// were checked out.
const EARLIER_REVISIONS: [&str; 4] = ["ORIG_HEAD", "refs/stash", "refs/stash^2", "refs/stash^3"];

/// Lists the latest commits that were checked out. Git checks no signature, because a program of the
/// configuration would do that.
const CHECKED_OUT: [&str; 7] =
    ["log", "--walk-reflogs", "--no-show-signature", "--max-count=8", "--format=%H", "HEAD", "--"];

impl GitQuestion<'_> {
    /// Whether git moved a file: it is what the commit that is checked out says, and git has the
    /// earlier contents in a commit or in a stash. `None` means that there was no file.
    pub(crate) fn has_moved(self, path: &Path, earlier: Option<&[u8]>) -> bool {
        self.find_move(path, earlier).unwrap_or_default()
    }

    fn find_move(self, path: &Path, earlier: Option<&[u8]>) -> Option<bool> {
        let root = work_tree_root(path.parent()?)?;
        let relative = path.strip_prefix(&root).ok()?.to_str()?;
        let commits = self.run(&root, &CHECKED_OUT, Stdio::null()).unwrap_or_default();
        let commits = String::from_utf8(commits).ok()?;
        let earlier_revisions = EARLIER_REVISIONS.into_iter().chain(commits.lines());
        let revisions: Vec<&str> = ["HEAD"].into_iter().chain(earlier_revisions).collect();
        let versions = self.versions(&root, &revisions, &[relative])?;
        let mut versions = versions.into_iter().map(|version| version?.pop());
        let head = versions.next()??;
        let now = FileVersion::of_work_tree(path);
        let had = earlier.map(|text| FileVersion::Text(text.to_vec()));
        Some(
            now.is_same(&head)
                && match had {
                    Some(had) => versions.flatten().any(|version| version.is_same(&had)),
                    None => !head.is_missing(),
                },
        )
    }
}
