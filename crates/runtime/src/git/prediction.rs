//! What a git command would do to some files, found out by reading the repository.
//!
//! Nothing is checked out, and git runs no hook, filter or other program of the repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use jackline_engine::facts::{GitChange, GitChangeFact, GitFileChange, HookState};

use super::GitQuestion;
use super::objects::{FileVersion, hook_state_at, work_tree_root};

/// A file and its path on this machine.
pub(crate) struct AskedFile {
    /// The canonical path of the session.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// A file of the repository, in the work tree.
struct RepositoryFile<'a> {
    name: &'a str,
    path: &'a Path,
    /// The path from the root of the repository.
    relative: &'a str,
    now: FileVersion,
}

/// What a command makes of one file.
enum Outcome<'v> {
    Same,
    /// It would have this version.
    Becomes(&'v FileVersion),
    /// It would change, but the contents are not known.
    Changes,
}

/// The files and revisions of a repository that a prediction compares.
struct Prediction<'a> {
    question: GitQuestion<'a>,
    root: &'a Path,
    directory: &'a Path,
    files: Vec<RepositoryFile<'a>>,
}

type Versions = Option<Vec<FileVersion>>;

impl GitQuestion<'_> {
    /// What a command that runs in a directory would do to files.
    pub(crate) fn predict(
        self,
        directory: &Path,
        change: &GitChange,
        asked: &[AskedFile],
    ) -> GitChangeFact {
        let directory = super::nearest_directory(directory);
        let Some(root) = work_tree_root(directory) else { return GitChangeFact::Unknown };
        let files: Vec<RepositoryFile<'_>> =
            asked.iter().filter_map(|file| RepositoryFile::of(file, &root)).collect();
        // Without a file that exists, git is not asked. The command line says enough.
        if files.iter().all(|file| file.now.is_missing()) {
            return GitChangeFact::Unknown;
        }
        let prediction = Prediction { question: self, root: &root, directory, files };
        match prediction.of_change(change) {
            Some(files) => GitChangeFact::Known { files },
            None => GitChangeFact::Unknown,
        }
    }
}

impl<'a> RepositoryFile<'a> {
    /// The file, if the repository contains it, and not one inside of it.
    fn of(asked: &'a AskedFile, root: &Path) -> Option<Self> {
        let path = &asked.path;
        if work_tree_root(path.parent()?)? != root {
            return None;
        }
        let relative = path.strip_prefix(root).ok()?.to_str()?;
        Some(Self { name: &asked.name, path, relative, now: FileVersion::of_work_tree(path) })
    }
}

impl Prediction<'_> {
    fn of_change(&self, change: &GitChange) -> Option<BTreeMap<String, GitFileChange>> {
        match change {
            GitChange::Move { to, discards } => self.moved(to, *discards),
            GitChange::Checkout { operands, discards } => self.checked_out(operands, *discards),
            GitChange::Restore { from, paths, removes } => {
                self.restored(from.as_deref(), paths, *removes)
            }
            GitChange::Stash { paths, untracked, ignored } => {
                self.stashed(paths, *untracked, *ignored)
            }
            GitChange::Unstash { entry } => self.unstashed(entry),
            GitChange::Clean { args } => self.cleaned(args),
            GitChange::Merge { with } => self.merged(with),
            GitChange::Pick { commits, reverts } => self.picked(commits, *reverts),
            GitChange::Patch { files } => self.patched(files),
        }
    }

    /// The versions of all files in some revisions.
    fn versions<const N: usize>(&self, revisions: [&str; N]) -> Option<[Versions; N]> {
        let files: Vec<&str> = self.files.iter().map(|file| file.relative).collect();
        self.question.versions(self.root, &revisions, &files)?.try_into().ok()
    }

    fn missing(&self) -> Vec<FileVersion> {
        vec![FileVersion::Missing; self.files.len()]
    }

    /// Another commit is checked out.
    fn moved(&self, to: &str, discards: bool) -> Option<BTreeMap<String, GitFileChange>> {
        let remote = format!("origin/{to}");
        let [head, index, target, tracked] = self.versions(["HEAD", ":0", to, &remote])?;
        let (head, index) = (head.unwrap_or_else(|| self.missing()), index?);
        let target = target.or(tracked)?;
        let mut changes = BTreeMap::new();
        for (((file, head), index), target) in self.files.iter().zip(&head).zip(&index).zip(&target)
        {
            let is_tracked = !head.is_missing() || !index.is_missing();
            let stays = if discards {
                target.is_missing() && !is_tracked
            } else {
                head.is_same(target) || (target.is_missing() && !is_tracked)
            };
            let outcome = if stays { Outcome::Same } else { Outcome::Becomes(target) };
            // Git refuses to overwrite local changes of tracked files, unless it discards them.
            let kept = file.now.is_same(head) || (!discards && is_tracked);
            file.add_change(&mut changes, &outcome, kept);
        }
        Some(changes)
    }

    /// `git checkout` with a commit, with paths, or with both.
    fn checked_out(
        &self,
        operands: &[String],
        discards: bool,
    ) -> Option<BTreeMap<String, GitFileChange>> {
        let (first, rest) = operands.split_first()?;
        let remote = format!("origin/{first}");
        let [here, remote] = self.versions([first, &remote])?;
        let is_file = || self.directory.join(first).symlink_metadata().is_ok();
        match (here, rest) {
            (Some(_), []) => self.moved(first, discards),
            (None, []) if remote.is_some() && !is_file() => self.moved(first, discards),
            (Some(_), paths) => self.restored(Some(first), paths, false),
            (None, _) => self.restored(None, operands, false),
        }
    }

    fn restored(
        &self,
        from: Option<&str>,
        paths: &[String],
        removes: bool,
    ) -> Option<BTreeMap<String, GitFileChange>> {
        let [head, index, source] = self.versions(["HEAD", ":0", from.unwrap_or(":0")])?;
        let (head, index) = (head.unwrap_or_else(|| self.missing()), index?);
        let source = source?;
        let selected = self.selected(paths);
        let mut changes = BTreeMap::new();
        for (number, file) in self.files.iter().enumerate() {
            let (head, index, source) =
                (head.get(number)?, index.get(number)?, source.get(number)?);
            let is_removed = removes && from.is_some() && !index.is_missing();
            let stays = source.is_missing() && !is_removed;
            let outcome = if stays || !*selected.get(number)? {
                Outcome::Same
            } else {
                Outcome::Becomes(source)
            };
            file.add_change(&mut changes, &outcome, file.now.is_same(head));
        }
        Some(changes)
    }

    fn stashed(
        &self,
        paths: &[String],
        untracked: bool,
        ignored: bool,
    ) -> Option<BTreeMap<String, GitFileChange>> {
        let [head, index] = self.versions(["HEAD", ":0"])?;
        // Git stashes nothing in a repository without commits.
        let (Some(head), index) = (head, index?) else { return Some(BTreeMap::new()) };
        let selected = self.selected(paths);
        let ignored_paths = if untracked && !ignored {
            let all: Vec<&Path> = self.files.iter().map(|file| file.path).collect();
            self.question.git.ignored(&all)
        } else {
            Vec::new()
        };
        let mut changes = BTreeMap::new();
        for (number, file) in self.files.iter().enumerate() {
            let (head, index) = (head.get(number)?, index.get(number)?);
            let is_tracked = !head.is_missing() || !index.is_missing();
            let is_taken = is_tracked || (untracked && !ignored_paths.contains(&file.path));
            let outcome = if is_taken && *selected.get(number)? {
                Outcome::Becomes(head)
            } else {
                Outcome::Same
            };
            file.add_change(&mut changes, &outcome, false);
        }
        Some(changes)
    }

    fn unstashed(&self, entry: &str) -> Option<BTreeMap<String, GitFileChange>> {
        let (base, untracked) = (format!("{entry}^1"), format!("{entry}^3"));
        let [head, stash, base, untracked] = self.versions(["HEAD", entry, &base, &untracked])?;
        let (head, stash, base) = (head?, stash?, base?);
        let untracked = untracked.unwrap_or_else(|| self.missing());
        let mut changes = BTreeMap::new();
        for (number, file) in self.files.iter().enumerate() {
            let (stash, base) = (stash.get(number)?, base.get(number)?);
            let untracked = untracked.get(number)?;
            let outcome = if !stash.is_same(base) {
                Outcome::Becomes(stash)
            } else if !untracked.is_missing() {
                Outcome::Becomes(untracked)
            } else {
                Outcome::Same
            };
            file.add_change(&mut changes, &outcome, file.now.is_same(head.get(number)?));
        }
        Some(changes)
    }

    /// Git tells by a dry run what it would remove.
    fn cleaned(&self, args: &[String]) -> Option<BTreeMap<String, GitFileChange>> {
        let args = args.iter().map(String::as_str);
        let question: Vec<&str> = ["clean", "-n"].into_iter().chain(args).collect();
        let output = self.question.run(self.directory, &question, Stdio::null())?;
        let output = String::from_utf8(output).ok()?;
        let directory = self.directory.canonicalize().ok()?;
        let removed = output.lines().filter_map(|line| line.strip_prefix("Would remove "));
        let removed: Vec<PathBuf> = removed.map(|path| directory.join(path)).collect();
        let mut changes = BTreeMap::new();
        for file in &self.files {
            let is_hit =
                |path: &PathBuf| file.path.starts_with(path) || path.starts_with(file.path);
            let is_removed = removed.iter().any(is_hit);
            let outcome =
                if is_removed { Outcome::Becomes(&FileVersion::Missing) } else { Outcome::Same };
            file.add_change(&mut changes, &outcome, false);
        }
        Some(changes)
    }

    /// What a commit changed since the common ancestor.
    fn merged(&self, with: &[String]) -> Option<BTreeMap<String, GitFileChange>> {
        let mut changes = BTreeMap::new();
        for tip in with {
            let [head, target] = self.versions(["HEAD", tip])?;
            let (head, target) = (head?, target?);
            if head.iter().zip(&target).all(|(head, target)| head.is_same(target)) {
                continue;
            }
            let base = self.merge_base(tip).unwrap_or_default();
            let [base] = self.versions([&base])?;
            let base = base.unwrap_or_else(|| self.missing());
            for (number, file) in self.files.iter().enumerate() {
                let (head, target) = (head.get(number)?, target.get(number)?);
                let stays = head.is_same(target) || base.get(number)?.is_same(target);
                let outcome = if stays { Outcome::Same } else { Outcome::Becomes(target) };
                let kept = file.now.is_same(head) || !head.is_missing();
                file.add_change(&mut changes, &outcome, kept);
            }
        }
        Some(changes)
    }

    fn merge_base(&self, tip: &str) -> Option<String> {
        let question = ["merge-base", "--end-of-options", "HEAD", tip];
        let output = self.question.run(self.root, &question, Stdio::null())?;
        let text = String::from_utf8(output).ok()?;
        text.lines().next().map(ToOwned::to_owned)
    }

    fn picked(&self, commits: &[String], reverts: bool) -> Option<BTreeMap<String, GitFileChange>> {
        let mut changes = BTreeMap::new();
        for commit in commits {
            let parent = format!("{commit}^1");
            let [head, commit, parent] = self.versions(["HEAD", commit, &parent])?;
            let parent = parent.unwrap_or_else(|| self.missing());
            let (head, commit) = (head?, commit?);
            let (from, to) = if reverts { (commit, parent) } else { (parent, commit) };
            for (number, file) in self.files.iter().enumerate() {
                let (from, to) = (from.get(number)?, to.get(number)?);
                let outcome = if from.is_same(to) { Outcome::Same } else { Outcome::Becomes(to) };
                file.add_change(&mut changes, &outcome, file.now.is_same(head.get(number)?));
            }
        }
        Some(changes)
    }

    /// Git tells which files patches name.
    fn patched(&self, patches: &[String]) -> Option<BTreeMap<String, GitFileChange>> {
        let patches = patches.iter().map(String::as_str);
        let question: Vec<&str> =
            ["apply", "--numstat", "-z", "--"].into_iter().chain(patches).collect();
        let output = self.question.run(self.directory, &question, Stdio::null())?;
        let output = String::from_utf8(output).ok()?;
        let named: Vec<&str> =
            output.split('\0').filter_map(|entry| entry.rsplit('\t').next()).collect();
        let mut changes = BTreeMap::new();
        for file in &self.files {
            // In a directory below the root, the names begin there.
            let is_named = named.iter().any(|name| {
                let below = file.relative.strip_suffix(name);
                !name.is_empty() && below.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
            });
            let outcome = if is_named { Outcome::Changes } else { Outcome::Same };
            file.add_change(&mut changes, &outcome, false);
        }
        Some(changes)
    }

    /// Which files the paths of a command select. All of them without a path.
    fn selected(&self, paths: &[String]) -> Vec<bool> {
        let is_plain = |path: &String| !path.starts_with(':') && !path.contains(['*', '?', '[']);
        if paths.is_empty() {
            return vec![true; self.files.len()];
        }
        if paths.iter().all(is_plain) {
            let directory = self.directory.canonicalize().unwrap_or_default();
            let selected: Vec<PathBuf> =
                paths.iter().map(|path| normal(&directory, path)).collect();
            let is_selected =
                |file: &RepositoryFile<'_>| selected.iter().any(|path| file.path.starts_with(path));
            return self.files.iter().map(is_selected).collect();
        }
        // Git reads its own patterns. If it fails, the paths may select everything.
        let paths = paths.iter().map(String::as_str);
        let question = ["ls-files", "-z", "--full-name", "--"].into_iter().chain(paths);
        let question: Vec<&str> = question.collect();
        let output = self.question.run(self.directory, &question, Stdio::null());
        let is_listed = |file: &RepositoryFile<'_>| {
            output.as_ref().is_none_or(|output| {
                output.split(|byte| *byte == 0).any(|name| name == file.relative.as_bytes())
            })
        };
        self.files.iter().map(is_listed).collect()
    }
}

impl RepositoryFile<'_> {
    fn add_change(
        &self,
        changes: &mut BTreeMap<String, GitFileChange>,
        outcome: &Outcome<'_>,
        kept: bool,
    ) {
        let before = hook_state_at(self.path);
        let (removed, after) = match outcome {
            Outcome::Same => return,
            Outcome::Becomes(version) if version.is_same(&self.now) => return,
            // The contents of a directory are not compared.
            Outcome::Becomes(FileVersion::Other) if self.now == FileVersion::Other => return,
            Outcome::Becomes(version) => (version.is_missing(), version.hook_state()),
            Outcome::Changes => (false, before),
        };
        if self.now.is_missing() && after != HookState::Disabled {
            return;
        }
        changes.insert(self.name.to_owned(), GitFileChange { removed, kept, before, after });
    }
}

/// A path from a directory, without `.` and `..`.
fn normal(directory: &Path, path: &str) -> PathBuf {
    let mut normal = directory.to_owned();
    for part in Path::new(path).components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

#[cfg(test)]
mod tests;
