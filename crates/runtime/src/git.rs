//! The state of a repository, as reported by `git`.
//!
//! Asking must change nothing, run no other program and take little time. If `git` gives no answer,
//! everything counts as unsaved.

mod branch_definition;
mod moved_files;
mod objects;
mod prediction;
#[cfg(test)]
mod test_repository;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use jackline_engine::facts::GitFact;
use rustix::fs::{MemfdFlags, memfd_create};

pub use branch_definition::BranchDefinition;
pub(crate) use objects::{hook_state_at, hook_state_of};
pub(crate) use prediction::AskedFile;

use crate::bounded_child::{BoundedChild, OutputEnd, OutputStream};
use jackline_host::clock::boot_ms;

/// The time limit for all questions of one kind.
const TIMEOUT_MS: u64 = 2000;

/// How much output is read.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// How much error output is read.
const ERROR_BYTES_MAX: usize = 4 << 10;

/// Options so that `git` runs no hooks and no monitors, takes no lock, and fetches nothing.
const SAFE_OPTIONS: [&str; 11] = [
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "status.relativePaths=false",
    "-c",
    "core.quotePath=false",
    "-c",
    "protocol.allow=never",
];

/// Environment variables that would lead `git` to another repository or change its paths.
const REMOVED_VARIABLES: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
];

/// The answer if `git` gives none: a repository in which everything is unsaved.
pub(crate) fn unsaved_fact() -> GitFact {
    GitFact { repository: true, dirty: true, untracked: true, branch: String::new() }
}

/// Selects the whole repository except the directory that Jackline and people use in the workspace.
const WITHOUT_JACKLINE_FILES: [&str; 3] = ["--", ":/", ":(exclude).jackline"];

/// The current commit of the repository around a workspace, and whether its files differ from the
/// commit. Untracked files that are not ignored count as a difference. `None` if there is no
/// commit.
pub fn commit_of(workspace: &Path) -> Option<(String, bool)> {
    let git = GitProgram::default();
    let output = git.run_status(workspace, &[]).ok()??;
    let fact = parse_status(&output)?;
    let is_dirty = fact.dirty || (fact.untracked && git.has_untracked_files(workspace));
    let mut lines = output.output.split(|byte| *byte == b'\n');
    let id = lines.find_map(|line| line.strip_prefix(b"# branch.oid "))?;
    let id = String::from_utf8(id.to_vec()).ok()?;
    id.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some((id, is_dirty))
}

/// The `git` program and its time limit.
pub(crate) struct GitProgram<'a> {
    program: &'a OsStr,
    timeout_ms: u64,
}

/// A question about a repository with several steps, and when all of them must be answered.
#[derive(Clone, Copy)]
pub(crate) struct GitQuestion<'a> {
    git: &'a GitProgram<'a>,
    /// The time since boot at which the answer comes too late.
    until_ms: u64,
}

impl<'a> GitQuestion<'a> {
    /// A question that is asked now.
    pub(crate) fn begin(git: &'a GitProgram<'a>) -> Self {
        Self { git, until_ms: boot_ms() + git.timeout_ms }
    }

    /// Runs `git`. `None` if it fails or takes too long.
    fn run(self, directory: &Path, question: &[&str], input: Stdio) -> Option<Vec<u8>> {
        let remaining_ms = self.until_ms.saturating_sub(boot_ms());
        let output = self.git.run(directory, question, input, remaining_ms).ok().flatten()?;
        let is_whole = output.code == Some(0) && output.output.len() < OUTPUT_BYTES_MAX;
        is_whole.then_some(output.output)
    }
}

impl Default for GitProgram<'_> {
    fn default() -> Self {
        Self { program: OsStr::new("git"), timeout_ms: TIMEOUT_MS }
    }
}

struct GitOutput {
    code: Option<i32>,
    output: Vec<u8>,
    error_output: Vec<u8>,
}

impl GitProgram<'_> {
    /// The state of the repository that contains a directory.
    pub(crate) fn status(&self, directory: &Path) -> GitFact {
        match self.run_status(directory, &[]) {
            Ok(Some(output)) => parse_status(&output).unwrap_or_else(unsaved_fact),
            Ok(None) | Err(_) => unsaved_fact(),
        }
    }

    /// Whether there are untracked files outside of `.jackline`.
    fn has_untracked_files(&self, workspace: &Path) -> bool {
        let output = self.run_status(workspace, &WITHOUT_JACKLINE_FILES).ok().flatten();
        output.as_ref().and_then(parse_status).is_none_or(|fact| fact.untracked)
    }

    /// Runs `git status` for the whole repository, or for some paths in it.
    fn run_status(&self, directory: &Path, only: &[&str]) -> io::Result<Option<GitOutput>> {
        let question = [
            "status",
            "--porcelain=v2",
            "--branch",
            "--untracked-files=normal",
            "--ignore-submodules=none",
        ];
        let question = [&question, only].concat();
        self.run(nearest_directory(directory), &question, Stdio::null(), self.timeout_ms)
    }

    /// The given paths that their repositories ignore.
    pub(crate) fn ignored<'p>(&self, paths: &[&'p Path]) -> Vec<&'p Path> {
        let mut groups: BTreeMap<&Path, Vec<(&Path, PathBuf)>> = BTreeMap::new();
        for path in paths.iter().copied() {
            let directory = nearest_directory(path.parent().unwrap_or(path));
            // The leading dot keeps `git` from reading a colon as pathspec magic.
            let name = Path::new(".").join(path.strip_prefix(directory).unwrap_or(path));
            groups.entry(directory).or_default().push((path, name));
        }
        let until = boot_ms() + self.timeout_ms;
        let mut ignored = Vec::new();
        for (directory, named) in groups {
            let names: Vec<&Path> = named.iter().map(|(_, name)| name.as_path()).collect();
            let remaining_ms = until.saturating_sub(boot_ms());
            let found = self.ignored_in(directory, &names, remaining_ms).unwrap_or_default();
            let is_found = |name: &Path| found.iter().any(|found| found == name);
            ignored.extend(named.iter().filter(|(_, name)| is_found(name)).map(|(path, _)| *path));
        }
        ignored
    }

    fn ignored_in(
        &self,
        directory: &Path,
        names: &[&Path],
        allowed_ms: u64,
    ) -> io::Result<Vec<OsString>> {
        let names = names.iter().map(|name| name.as_os_str().as_bytes());
        let question = input_of(names, b"\0")?;
        let result =
            self.run(directory, &["check-ignore", "-z", "--stdin"], question, allowed_ms)?;
        let output =
            result.filter(|result| result.code == Some(0)).map_or_else(Vec::new, |s| s.output);
        Ok(output.split(|byte| *byte == 0).map(|name| OsStr::from_bytes(name).into()).collect())
    }

    /// Runs `git`; `None` if it took too long.
    fn run(
        &self,
        directory: &Path,
        question: &[&str],
        input: Stdio,
        allowed_ms: u64,
    ) -> io::Result<Option<GitOutput>> {
        let (output, stdout) = io::pipe()?;
        let (complaint, stderr) = io::pipe()?;
        let mut command = Command::new(self.program);
        command.args(SAFE_OPTIONS).args(question).current_dir(directory);
        command.stdin(input).stdout(stdout).stderr(stderr);
        command.envs([
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("LC_ALL", "C"),
        ]);
        for name in REMOVED_VARIABLES {
            command.env_remove(name);
        }
        let streams = vec![
            OutputStream::new(output, OutputEnd::Head(OUTPUT_BYTES_MAX)),
            OutputStream::new(complaint, OutputEnd::Head(ERROR_BYTES_MAX)),
        ];
        let mut running = BoundedChild::start(command, streams)?;
        let Some(status) = running.wait(Duration::from_millis(allowed_ms))? else {
            return Ok(None);
        };
        let mut outputs = running.take_outputs().into_iter();
        let (output, complaint) = (outputs.next(), outputs.next());
        Ok(Some(GitOutput {
            code: status.code(),
            output: output.unwrap_or_default(),
            error_output: complaint.unwrap_or_default(),
        }))
    }
}

/// An input for `git`: parts, each with an end mark.
fn input_of<'n>(parts: impl Iterator<Item = &'n [u8]>, end: &[u8]) -> io::Result<Stdio> {
    let mut input = File::from(memfd_create("input", MemfdFlags::CLOEXEC)?);
    for part in parts {
        input.write_all(part)?;
        input.write_all(end)?;
    }
    input.rewind()?;
    Ok(input.into())
}

/// Parses the output of `git status`; `None` if it is not valid.
fn parse_status(git_output: &GitOutput) -> Option<GitFact> {
    if git_output.code == Some(128)
        && git_output.error_output.starts_with(b"fatal: not a git repository (or any")
    {
        return Some(GitFact::default());
    }
    if git_output.code != Some(0) {
        return None;
    }
    let mut fact = GitFact { repository: true, ..GitFact::default() };
    let mut has_branch = false;
    for line in git_output.output.split(|byte| *byte == b'\n') {
        match line {
            [] => {}
            [b'#', b' ', header @ ..] => {
                if let Some(branch) = header.strip_prefix(b"branch.head ") {
                    has_branch = true;
                    if branch != b"(detached)" {
                        fact.branch = String::from_utf8_lossy(branch).into_owned();
                    }
                }
            }
            [b'1' | b'2' | b'u', b' ', ..] => fact.dirty = true,
            [b'?', b' ', ..] => fact.untracked = true,
            _ => return None,
        }
    }
    // Truncated output lists files. Untracked files come last, so they may be missing.
    fact.untracked |= git_output.output.len() >= OUTPUT_BYTES_MAX;
    has_branch.then_some(fact)
}

/// The directory itself, or its nearest parent that exists.
fn nearest_directory(path: &Path) -> &Path {
    path.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::test_repository::TestRepository;
    use super::*;
    use crate::bounded_child::tests::write_script;

    /// Without a tight time limit.
    fn git() -> GitProgram<'static> {
        GitProgram { timeout_ms: 60_000, ..GitProgram::default() }
    }

    impl TestRepository {
        fn status(&self) -> GitFact {
            git().status(&self.path())
        }

        fn ignored(&self, names: &[&str]) -> Vec<String> {
            let root = self.path();
            let paths: Vec<PathBuf> = names.iter().map(|name| root.join(name)).collect();
            let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
            let ignored = git().ignored(&paths);
            let name = |path: &&Path| path.strip_prefix(&root).unwrap().display().to_string();
            ignored.iter().map(name).collect()
        }
    }

    /// An empty repository.
    fn empty_repository() -> TestRepository {
        let repository = TestRepository::without_git();
        repository.git("init -q -b main");
        repository
    }

    /// A repository with a commit that contains `kept` and ignores `build/`.
    fn repository_with_commit() -> TestRepository {
        let repository = empty_repository();
        repository.write("kept", "1");
        repository.write(".gitignore", "build/\n*.log\n");
        repository.commit();
        repository
    }

    fn fact(dirty: bool, untracked: bool, branch: &str) -> GitFact {
        GitFact { repository: true, dirty, untracked, branch: branch.to_owned() }
    }

    #[test]
    fn a_repository_reports_unsaved_files() {
        let repository = empty_repository();
        assert_eq!(repository.status(), fact(false, false, "main"));
        let repository = repository_with_commit();
        assert_eq!(repository.status(), fact(false, false, "main"));
        repository.write("build/x", "ignored");
        assert_eq!(repository.status(), fact(false, false, "main"));
        repository.write("kept", "changed");
        assert_eq!(repository.status(), fact(true, false, "main"));
        repository.write("new", "untracked");
        assert_eq!(repository.status(), fact(true, true, "main"));
        repository.commit();
        repository.git("mv kept moved");
        assert_eq!(repository.status(), fact(true, false, "main"));
    }

    #[test]
    fn the_branch_is_the_one_that_is_checked_out() {
        let repository = repository_with_commit();
        repository.git("checkout -q -b feat/grün");
        assert_eq!(repository.status(), fact(false, false, "feat/grün"));
        repository.git("checkout -q --detach");
        assert_eq!(repository.status(), fact(false, false, ""));
    }

    #[test]
    fn a_directory_that_is_not_there_yet_belongs_to_the_repository_around_it() {
        let repository = repository_with_commit();
        let git = git();
        assert_eq!(git.status(&repository.path().join("a/b")), fact(false, false, "main"));
        assert_eq!(git.status(&repository.path().join("kept")), fact(false, false, "main"));
    }

    #[test]
    fn without_a_repository_there_is_none() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(git().status(root.path()), GitFact::default());
    }

    #[test]
    fn a_repository_that_git_cannot_read_is_unsaved() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(".git"), "gitdir: /nowhere/at/all\n").unwrap();
        assert_eq!(git().status(root.path()), unsaved_fact());
    }

    #[test]
    fn looking_runs_nothing_and_changes_nothing() {
        let repository = repository_with_commit();
        let marks = repository.path().join("ran");
        let script = format!("#!/bin/sh\ntouch {}\n", marks.display());
        for name in ["post-index-change", "fsmonitor"] {
            let hook = repository.path().join(".git/hooks").join(name);
            fs::create_dir_all(hook.parent().unwrap()).unwrap();
            fs::write(&hook, &script).unwrap();
            fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        }
        repository.git("config core.fsmonitor .git/hooks/fsmonitor");
        let index = fs::read(repository.path().join(".git/index")).unwrap();
        // Rewriting the same contents changes the time, which makes `git` want to update the index.
        repository.write("kept", "1");
        assert_eq!(repository.status(), fact(false, false, "main"));
        assert!(!marks.exists());
        assert_eq!(fs::read(repository.path().join(".git/index")).unwrap(), index);
    }

    #[test]
    fn a_broken_git_leaves_everything_unsaved() {
        let root = tempfile::tempdir().unwrap();
        let script =
            |name: &str, text: &str| write_script(&root.path().join(name), text).into_os_string();
        for program in [
            OsString::from("/nowhere/git"),
            script("hangs", "sleep 1000"),
            script("rambles", "echo hello"),
            script("silent", "exit 0"),
            script("fails", "echo fatal: who knows >&2; exit 128"),
            script("endless", "yes"),
        ] {
            let git = GitProgram { program: &program, timeout_ms: 300 };
            assert_eq!(git.status(root.path()), unsaved_fact(), "{}", program.display());
            assert_eq!(git.ignored(&[&root.path().join("x")]).len(), 0, "{}", program.display());
        }
    }

    #[test]
    fn truncated_output_may_hide_untracked_files() {
        let mut output = b"# branch.head main\n".to_vec();
        output.extend(b"1 .M x\n".iter().cycle().take(OUTPUT_BYTES_MAX - output.len() - 3));
        output.extend(b"\n?");
        let git_output =
            |output: Vec<u8>| GitOutput { code: Some(0), output, error_output: Vec::new() };
        assert_eq!(parse_status(&git_output(output.clone())), None);
        output.truncate(OUTPUT_BYTES_MAX - 2);
        output.extend(b"\n\n");
        assert_eq!(parse_status(&git_output(output)), Some(fact(true, true, "main")));
    }

    #[test]
    fn ignored_paths_are_asked_together() {
        let repository = repository_with_commit();
        repository.write("build/x", "ignored");
        repository.write("sub/deep/y", "kept");
        let names = [
            "build",
            "kept",
            "build/x",
            "a.log",
            "sub/new/b.log",
            "sub/deep/y",
            ":(top)c.log",
            ".",
        ];
        let mut ignored = repository.ignored(&names);
        ignored.sort();
        assert_eq!(ignored, [":(top)c.log", "a.log", "build", "build/x", "sub/new/b.log"]);
        assert_eq!(repository.ignored(&["kept", "new"]), [""; 0]);
    }

    #[test]
    fn without_a_repository_nothing_is_ignored() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(git().ignored(&[&root.path().join("x")]).len(), 0);
    }
}
