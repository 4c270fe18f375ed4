//! A home and a workspace that nobody else knows, gone afterwards.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use super::LiveError;
use super::installed::search_path;

/// How often another name is tried.
const NAMES_MAX: u32 = 1000;

/// Directories for one run.
#[derive(Debug)]
pub struct Scratch {
    root: PathBuf,
}

impl Scratch {
    /// Makes them where temporary files are.
    pub fn new() -> Result<Self, LiveError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let parent = std::env::temp_dir();
        let failed = |path: &Path, source| LiveError::Scratch { path: path.to_owned(), source };
        let parent = parent.canonicalize().map_err(|error| failed(&parent, error))?;
        let mut made = Err(io::ErrorKind::AlreadyExists.into());
        let mut root = parent.clone();
        for _ in 0..NAMES_MAX {
            // Short, because the client puts sockets inside, whose paths may not be long.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            root = parent.join(format!("jackline-{}-{number}", std::process::id()));
            made = DirBuilder::new().mode(0o700).create(&root);
            let taken = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
            if !made.as_ref().is_err_and(taken) {
                break;
            }
        }
        made.map_err(|error| failed(&root, error))?;
        let scratch = Self { root };
        let [temporary, running] = ["tmp", "run"].map(|name| scratch.root.join(name));
        for directory in [scratch.work(), scratch.home(), temporary, running] {
            let made = DirBuilder::new().mode(0o700).create(&directory);
            made.map_err(|error| failed(&directory, error))?;
        }
        Ok(scratch)
    }

    /// What holds everything else.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The workspace.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The home of the person who is none.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The state home of the guard.
    pub fn state_home(&self) -> PathBuf {
        self.root.join("state")
    }

    /// Writes a file of the workspace, with the directories above it.
    pub fn write(&self, path: &str, text: &str) -> Result<(), LiveError> {
        let path = self.work().join(path);
        let written = match path.parent() {
            Some(parent) => fs::create_dir_all(parent).and_then(|()| fs::write(&path, text)),
            None => fs::write(&path, text),
        };
        written.map_err(|source| LiveError::Scratch { path, source })
    }

    /// Writes the project's settings of the client.
    pub fn write_settings(&self, settings: &Value) -> Result<(), LiveError> {
        self.write(".claude/settings.json", &settings.to_string())
    }

    /// Writes a program beside the workspace.
    pub fn write_program(&self, name: &str, text: &str) -> Result<PathBuf, LiveError> {
        let path = self.root.join(name);
        // Another process writes it, so that no thread that starts a program in the
        // same moment holds it open: the system runs no such file.
        let mut writer = Command::new("/bin/sh");
        writer.args(["-c", r#"printf %s "$1" > "$0" && chmod 700 "$0""#]).arg(&path).arg(text);
        let written = match writer.status() {
            Ok(status) if status.success() => return Ok(path),
            Ok(status) => io::Error::other(format!("its writer ended with {status}")),
            Err(error) => error,
        };
        Err(LiveError::Scratch { path, source: written })
    }

    /// The text of a file of the workspace, if it is there.
    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.work().join(path)).ok()
    }

    /// Whether something is there in the workspace.
    pub fn has(&self, path: &str) -> bool {
        self.work().join(path).symlink_metadata().is_ok()
    }

    /// Lets a command run here, and know of nothing else.
    pub fn enter(&self, command: &mut Command) {
        let home = self.home();
        command.current_dir(self.work()).env_clear();
        let mut set = |name: &str, value: &OsStr| {
            command.env(name, value);
        };
        set("PATH", &search_path());
        set("HOME", home.as_os_str());
        set("USER", OsStr::new("jackline-doctor"));
        set("XDG_CONFIG_HOME", home.join("config").as_os_str());
        set("XDG_STATE_HOME", home.join("state").as_os_str());
        set("XDG_CACHE_HOME", home.join("cache").as_os_str());
        set("XDG_DATA_HOME", home.join("data").as_os_str());
        set("XDG_RUNTIME_DIR", self.root.join("run").as_os_str());
        set("TMPDIR", self.root.join("tmp").as_os_str());
        set("JACKLINE_HOME", self.state_home().as_os_str());
        set("CLAUDE_CONFIG_DIR", home.join(".claude").as_os_str());
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A process that is just ending may still write here.
        for _ in 0..3 {
            if fs::remove_dir_all(&self.root).is_ok() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn every_scratch_is_another_one_private_and_gone_afterwards() {
        let (one, other) = (Scratch::new().unwrap(), Scratch::new().unwrap());
        assert_ne!(one.root(), other.root());
        let mode = fs::metadata(one.root()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        one.write("a/b.txt", "x").unwrap();
        assert_eq!((one.read("a/b.txt").as_deref(), one.has("a/c.txt")), (Some("x"), false));
        let root = one.root().to_owned();
        drop(one);
        assert!(!root.exists());
    }

    #[test]
    fn what_runs_inside_knows_nothing_of_this_machine() {
        let scratch = Scratch::new().unwrap();
        let mut command = Command::new("env");
        scratch.enter(&mut command);
        let output = command.output().unwrap();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let (name, value) = line.split_once('=').unwrap();
            let inside = value.starts_with(scratch.root().to_str().unwrap());
            assert!(inside || ["PATH", "USER"].contains(&name), "{line}");
        }
    }
}
