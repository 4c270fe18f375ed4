//! What a repository says about a place, asked of `git` itself.
//!
//! Looking must change nothing, run nothing and take no time that is worth
//! mentioning. Where nobody could say, everything counts as unsaved.

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

use crate::child::{Keep, Running, Stream};
use jackline_host::clock::boot_ms;

/// How long all the questions of one kind may take.
const ALLOWED_MS: u64 = 2000;

/// How much of an answer is read.
const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// How much of a complaint is read.
const COMPLAINT_BYTES_MAX: usize = 4 << 10;

/// Neither hooks nor monitors run, and no lock is taken.
const QUIETLY: [&str; 7] = [
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "status.relativePaths=false",
];

/// What would lead elsewhere.
const MISLEADING: [&str; 9] = [
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

/// Where nobody could say: a repository in which everything is unsaved.
pub(crate) fn unsaved() -> GitFact {
    GitFact { repository: true, dirty: true, untracked: true, branch: String::new() }
}

/// All of the repository but what the guard and people leave each other in the workspace.
const BUT_OURS: [&str; 3] = ["--", ":/", ":(exclude).jackline"];

/// The commit that the repository around a workspace is at, and whether files are not as in
/// it, those included that it does not know and nobody ignores; none where there is no commit.
pub fn commit_of(workspace: &Path) -> Option<(String, bool)> {
    let git = Git::default();
    let said = git.ask_status(workspace, &[]).ok()??;
    let fact = read_status(&said)?;
    let is_dirty = fact.dirty || (fact.untracked && git.has_new_work(workspace));
    let mut lines = said.output.split(|byte| *byte == b'\n');
    let id = lines.find_map(|line| line.strip_prefix(b"# branch.oid "))?;
    let id = String::from_utf8(id.to_vec()).ok()?;
    id.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some((id, is_dirty))
}

/// The program and how long it may take.
pub(crate) struct Git<'a> {
    program: &'a OsStr,
    allowed_ms: u64,
}

impl Default for Git<'_> {
    fn default() -> Self {
        Self { program: OsStr::new("git"), allowed_ms: ALLOWED_MS }
    }
}

struct Said {
    code: Option<i32>,
    output: Vec<u8>,
    complaint: Vec<u8>,
}

impl Git<'_> {
    /// The state of the repository that holds a directory.
    pub(crate) fn status(&self, directory: &Path) -> GitFact {
        match self.ask_status(directory, &[]) {
            Ok(Some(said)) => read_status(&said).unwrap_or_else(unsaved),
            Ok(None) | Err(_) => unsaved(),
        }
    }

    /// Whether there are untracked files that are not our own.
    fn has_new_work(&self, workspace: &Path) -> bool {
        let said = self.ask_status(workspace, &BUT_OURS).ok().flatten();
        said.as_ref().and_then(read_status).is_none_or(|fact| fact.untracked)
    }

    /// Asks about all of a repository, or only about some paths of it.
    fn ask_status(&self, directory: &Path, only: &[&str]) -> io::Result<Option<Said>> {
        let question = [
            "status",
            "--porcelain=v2",
            "--branch",
            "--untracked-files=normal",
            "--ignore-submodules=none",
        ];
        let question = [&question, only].concat();
        self.ask(nearest_directory(directory), &question, Stdio::null(), self.allowed_ms)
    }

    /// Which of these paths their repositories ignore.
    pub(crate) fn ignored<'p>(&self, paths: &[&'p Path]) -> Vec<&'p Path> {
        let mut groups: BTreeMap<&Path, Vec<(&Path, PathBuf)>> = BTreeMap::new();
        for path in paths.iter().copied() {
            let directory = nearest_directory(path.parent().unwrap_or(path));
            // The dot keeps a colon from being taken for magic.
            let name = Path::new(".").join(path.strip_prefix(directory).unwrap_or(path));
            groups.entry(directory).or_default().push((path, name));
        }
        let until = boot_ms() + self.allowed_ms;
        let mut ignored = Vec::new();
        for (directory, named) in groups {
            let names: Vec<&Path> = named.iter().map(|(_, name)| name.as_path()).collect();
            let left_ms = until.saturating_sub(boot_ms());
            let found = self.ignored_in(directory, &names, left_ms).unwrap_or_default();
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
        let mut question = File::from(memfd_create("names", MemfdFlags::CLOEXEC)?);
        for name in names {
            question.write_all(name.as_os_str().as_bytes())?;
            question.write_all(b"\0")?;
        }
        question.rewind()?;
        let said =
            self.ask(directory, &["check-ignore", "-z", "--stdin"], question.into(), allowed_ms)?;
        let output = said.filter(|said| said.code == Some(0)).map_or_else(Vec::new, |s| s.output);
        Ok(output.split(|byte| *byte == 0).map(|name| OsStr::from_bytes(name).into()).collect())
    }

    /// Runs `git`; nothing if it took too long.
    fn ask(
        &self,
        directory: &Path,
        question: &[&str],
        input: Stdio,
        allowed_ms: u64,
    ) -> io::Result<Option<Said>> {
        let (output, stdout) = io::pipe()?;
        let (complaint, stderr) = io::pipe()?;
        let mut command = Command::new(self.program);
        command.args(QUIETLY).args(question).current_dir(directory);
        command.stdin(input).stdout(stdout).stderr(stderr);
        command.envs([("GIT_OPTIONAL_LOCKS", "0"), ("GIT_TERMINAL_PROMPT", "0"), ("LC_ALL", "C")]);
        for name in MISLEADING {
            command.env_remove(name);
        }
        let streams = vec![
            Stream::new(output, Keep::Head(OUTPUT_BYTES_MAX)),
            Stream::new(complaint, Keep::Head(COMPLAINT_BYTES_MAX)),
        ];
        let mut running = Running::start(command, streams)?;
        let Some(status) = running.wait(Duration::from_millis(allowed_ms))? else {
            return Ok(None);
        };
        let mut outputs = running.outputs().into_iter();
        let (output, complaint) = (outputs.next(), outputs.next());
        Ok(Some(Said {
            code: status.code(),
            output: output.unwrap_or_default(),
            complaint: complaint.unwrap_or_default(),
        }))
    }
}

/// Understands an answer, or nothing where it is none.
fn read_status(said: &Said) -> Option<GitFact> {
    if said.code == Some(128) && said.complaint.starts_with(b"fatal: not a git repository (or any")
    {
        return Some(GitFact::default());
    }
    if said.code != Some(0) {
        return None;
    }
    let mut fact = GitFact { repository: true, ..GitFact::default() };
    let mut has_branch = false;
    for line in said.output.split(|byte| *byte == b'\n') {
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
    // What was cut off are files; the untracked ones come last.
    fact.untracked |= said.output.len() >= OUTPUT_BYTES_MAX;
    has_branch.then_some(fact)
}

/// The directory itself, or the one above that is there.
fn nearest_directory(path: &Path) -> &Path {
    path.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use tempfile::TempDir;

    use super::*;
    use crate::child::tests::write_script;

    /// Nobody minds here how long it takes.
    fn git() -> Git<'static> {
        Git { allowed_ms: 60_000, ..Git::default() }
    }

    struct Repository {
        root: TempDir,
    }

    impl Repository {
        fn new() -> Self {
            let repository = Self { root: tempfile::tempdir().unwrap() };
            repository.git(&["init", "-q", "-b", "main"]);
            repository
        }

        /// One with a commit that holds `kept` and ignores `build/`.
        fn with_commit() -> Self {
            let repository = Self::new();
            repository.write("kept", "1");
            repository.write(".gitignore", "build/\n*.log\n");
            repository.commit();
            repository
        }

        fn path(&self) -> PathBuf {
            self.root.path().canonicalize().unwrap()
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn commit(&self) {
            self.git(&["add", "-A"]);
            let who = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
            self.git(&[&who[..], &["commit", "-q", "-m", "x"]].concat());
        }

        fn git(&self, args: &[&str]) {
            let mut command = Command::new("git");
            command.args(args).current_dir(self.path());
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
            assert!(command.status().unwrap().success(), "{args:?}");
        }

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

    fn fact(dirty: bool, untracked: bool, branch: &str) -> GitFact {
        GitFact { repository: true, dirty, untracked, branch: branch.to_owned() }
    }

    #[test]
    fn a_repository_says_what_is_unsaved() {
        let repository = Repository::new();
        assert_eq!(repository.status(), fact(false, false, "main"));
        let repository = Repository::with_commit();
        assert_eq!(repository.status(), fact(false, false, "main"));
        repository.write("build/x", "ignored");
        assert_eq!(repository.status(), fact(false, false, "main"));
        repository.write("kept", "changed");
        assert_eq!(repository.status(), fact(true, false, "main"));
        repository.write("new", "untracked");
        assert_eq!(repository.status(), fact(true, true, "main"));
        repository.commit();
        repository.git(&["mv", "kept", "moved"]);
        assert_eq!(repository.status(), fact(true, false, "main"));
    }

    #[test]
    fn the_branch_is_the_one_that_is_checked_out() {
        let repository = Repository::with_commit();
        repository.git(&["checkout", "-q", "-b", "feat/grün"]);
        assert_eq!(repository.status(), fact(false, false, "feat/grün"));
        repository.git(&["checkout", "-q", "--detach"]);
        assert_eq!(repository.status(), fact(false, false, ""));
    }

    #[test]
    fn a_directory_that_is_not_there_yet_belongs_to_the_repository_around_it() {
        let repository = Repository::with_commit();
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
        assert_eq!(git().status(root.path()), unsaved());
    }

    #[test]
    fn looking_runs_nothing_and_changes_nothing() {
        let repository = Repository::with_commit();
        let marks = repository.path().join("ran");
        let script = format!("#!/bin/sh\ntouch {}\n", marks.display());
        for name in ["post-index-change", "fsmonitor"] {
            let hook = repository.path().join(".git/hooks").join(name);
            fs::create_dir_all(hook.parent().unwrap()).unwrap();
            fs::write(&hook, &script).unwrap();
            fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        }
        repository.git(&["config", "core.fsmonitor", ".git/hooks/fsmonitor"]);
        let index = fs::read(repository.path().join(".git/index")).unwrap();
        // The same contents with another time would be written to the index.
        repository.write("kept", "1");
        assert_eq!(repository.status(), fact(false, false, "main"));
        assert!(!marks.exists());
        assert_eq!(fs::read(repository.path().join(".git/index")).unwrap(), index);
    }

    #[test]
    fn a_git_that_is_missing_hangs_or_rambles_leaves_everything_unsaved() {
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
            let git = Git { program: &program, allowed_ms: 300 };
            assert_eq!(git.status(root.path()), unsaved(), "{}", program.display());
            assert_eq!(git.ignored(&[&root.path().join("x")]).len(), 0, "{}", program.display());
        }
    }

    #[test]
    fn a_cut_answer_may_hide_files_that_are_not_tracked() {
        let mut output = b"# branch.head main\n".to_vec();
        output.extend(b"1 .M x\n".iter().cycle().take(OUTPUT_BYTES_MAX - output.len() - 3));
        output.extend(b"\n?");
        let said = |output: Vec<u8>| Said { code: Some(0), output, complaint: Vec::new() };
        assert_eq!(read_status(&said(output.clone())), None);
        output.truncate(OUTPUT_BYTES_MAX - 2);
        output.extend(b"\n\n");
        assert_eq!(read_status(&said(output)), Some(fact(true, true, "main")));
    }

    #[test]
    fn what_is_ignored_is_asked_together() {
        let repository = Repository::with_commit();
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
