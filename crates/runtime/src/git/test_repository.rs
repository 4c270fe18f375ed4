//! A directory for tests in which `git` can run. The settings of this machine do not apply there.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// A directory that a test makes a repository.
pub(super) struct TestRepository {
    root: TempDir,
}

impl TestRepository {
    /// An empty directory, which is no repository yet.
    pub(super) fn without_git() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap()
    }

    /// Writes a file and creates its directories.
    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Commits every file.
    pub(super) fn commit(&self) {
        self.git("add -A");
        self.git("commit -q -m x");
    }

    /// Runs `git` with these words.
    pub(super) fn git(&self, words: &str) {
        assert!(self.try_git(words), "{words}");
    }

    /// Runs `git` with these words. Returns whether it succeeded.
    pub(super) fn try_git(&self, words: &str) -> bool {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
        command.args(words.split(' ')).current_dir(self.path());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.output().unwrap().status.success()
    }
}
