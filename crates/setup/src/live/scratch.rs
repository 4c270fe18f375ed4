//! A private home and workspace for one run, removed afterwards.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use jackline_host::environment::search_path;

use super::LiveError;
use crate::install::InstallError;
use jackline_clients::CLIENTS;
use jackline_clients::installation::InstallScope;
use jackline_clients::installation::{HookEntry, Installation};
use jackline_clients::settings_file::SettingsFileError;

/// How many names are tried.
const NAME_TRIES_MAX: u32 = 1000;

/// Waits until no process holds its input open any more, kills the processes of the scratch
/// directory and removes the directory. This works also if this process is interrupted or killed.
const CARETAKER: &str = r#"read -r _
[ ! -f "$0/group" ] || kill -s KILL -- "-$(cat "$0/group")"
for _ in 1 2 3; do rm -rf -- "$0" && break; done"#;

/// Starts a program, after recording its process group.
const STARTER: &str = r#"echo $$ > "$0" && exec "$@""#;

/// The directories of one run.
#[derive(Debug)]
pub struct ScratchHome {
    root: PathBuf,
    caretaker: Child,
}

impl ScratchHome {
    /// Creates them in the directory for temporary files.
    pub fn new() -> Result<Self, LiveError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let parent = std::env::temp_dir();
        let failed = |path: &Path, source| LiveError::Scratch { path: path.to_owned(), source };
        let parent = parent.canonicalize().map_err(|error| failed(&parent, error))?;
        let mut created = Err(io::ErrorKind::AlreadyExists.into());
        let mut root = parent.clone();
        for _ in 0..NAME_TRIES_MAX {
            // The name is short, because the client creates sockets inside, and their paths have a
            // length limit.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            root = parent.join(format!("jackline-{}-{number}", std::process::id()));
            created = DirBuilder::new().mode(0o700).create(&root);
            let taken = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
            if !created.as_ref().is_err_and(taken) {
                break;
            }
        }
        created.map_err(|error| failed(&root, error))?;
        // It has its own process group, so that a keyboard interrupt does not reach it.
        let caretaker = Command::new("/bin/sh")
            .args(["-c", CARETAKER])
            .arg(&root)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        let caretaker = caretaker.map_err(|error| {
            let _ = fs::remove_dir(&root);
            failed(Path::new("/bin/sh"), error)
        })?;
        let scratch = Self { root, caretaker };
        let [temporary, running] = ["tmp", "run"].map(|name| scratch.root.join(name));
        for directory in [scratch.work(), scratch.home(), temporary, running] {
            let made = DirBuilder::new().mode(0o700).create(&directory);
            made.map_err(|error| failed(&directory, error))?;
        }
        Ok(scratch)
    }

    /// The directory that contains all others.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The workspace.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The scratch `$HOME` of the client.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The state home of the guard.
    pub fn state_home(&self) -> PathBuf {
        self.root.join("state")
    }

    /// Writes a file in the workspace, and creates its directories.
    pub fn write(&self, path: &str, text: &str) -> Result<(), LiveError> {
        write_to(self.work().join(path), text)
    }

    /// Installs hooks for the project, like the installer if there are no settings yet.
    pub fn install(
        &self,
        installation: &dyn Installation,
        hooks: &[HookEntry],
    ) -> Result<(), LiveError> {
        let work = self.work();
        let failed = |path: &Path, error: InstallError| LiveError::Scratch {
            path: path.to_owned(),
            source: io::Error::other(error),
        };
        let path = installation.settings_file(&work, InstallScope::Shared);
        let path = path.map_err(|error| failed(&work, error.into()))?;
        let text = installation.add_hooks("", hooks).map_err(|source| {
            failed(&path, SettingsFileError::Settings { path: path.clone(), source }.into())
        })?;
        write_to(path, &text)
    }

    /// Writes a program next to the workspace.
    pub fn write_program(&self, name: &str, text: &str) -> Result<PathBuf, LiveError> {
        let path = self.root.join(name);
        // A child process writes it, because the system refuses to run a file that a process has
        // open for writing. Another thread of this process could start a program at that moment and
        // inherit the open file.
        let mut writer = Command::new("/bin/sh");
        writer.args(["-c", r#"printf %s "$1" > "$0" && chmod 700 "$0""#]).arg(&path).arg(text);
        let written = match writer.status() {
            Ok(status) if status.success() => return Ok(path),
            Ok(status) => {
                io::Error::other(format!("the shell that writes it exited with {status}"))
            }
            Err(error) => error,
        };
        Err(LiveError::Scratch { path, source: written })
    }

    /// The text of a file in the workspace, if it exists.
    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.work().join(path)).ok()
    }

    /// Whether a path exists in the workspace.
    pub fn has_path(&self, path: &str) -> bool {
        self.work().join(path).symlink_metadata().is_ok()
    }

    /// A command that runs the program here, in its own process group. The group does not outlive
    /// this process.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("/bin/sh");
        self.configure_command(&mut command);
        command.args(["-c", STARTER]).arg(self.group_file()).arg(program).process_group(0);
        command
    }

    /// Records that the process group of the last program has ended.
    pub(super) fn forget_group(&self) {
        let _ = fs::remove_file(self.group_file());
    }

    fn group_file(&self) -> PathBuf {
        self.root.join("group")
    }

    /// Makes a command run in the workspace, with only the environment of the scratch directory.
    pub fn configure_command(&self, command: &mut Command) {
        let home = self.home();
        command.current_dir(self.work()).env_clear();
        let mut set = |name: &str, value: &OsStr| {
            command.env(name, value);
        };
        if let Some(path) = search_path() {
            set("PATH", &path);
        }
        set("HOME", home.as_os_str());
        set("USER", OsStr::new("jackline-doctor"));
        set("XDG_CONFIG_HOME", home.join("config").as_os_str());
        set("XDG_STATE_HOME", home.join("state").as_os_str());
        set("XDG_CACHE_HOME", home.join("cache").as_os_str());
        set("XDG_DATA_HOME", home.join("data").as_os_str());
        set("XDG_RUNTIME_DIR", self.root.join("run").as_os_str());
        set("TMPDIR", self.root.join("tmp").as_os_str());
        set("JACKLINE_HOME", self.state_home().as_os_str());
        let variables = CLIENTS.iter().map(|client| client.installation.scratch_variables(&home));
        variables.flatten().for_each(|(name, path)| set(name, path.as_os_str()));
    }
}

fn write_to(path: PathBuf, text: &str) -> Result<(), LiveError> {
    let written = match path.parent() {
        Some(parent) => fs::create_dir_all(parent).and_then(|()| fs::write(&path, text)),
        None => fs::write(&path, text),
    };
    written.map_err(|source| LiveError::Scratch { path, source })
}

impl Drop for ScratchHome {
    fn drop(&mut self) {
        drop(self.caretaker.stdin.take());
        let _ = self.caretaker.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn every_scratch_is_unique_private_and_removed_afterwards() {
        let (one, other) = (ScratchHome::new().unwrap(), ScratchHome::new().unwrap());
        assert_ne!(one.root(), other.root());
        let mode = fs::metadata(one.root()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        one.write("a/b.txt", "x").unwrap();
        assert_eq!((one.read("a/b.txt").as_deref(), one.has_path("a/c.txt")), (Some("x"), false));
        let root = one.root().to_owned();
        drop(one);
        assert!(!root.exists());
    }

    #[test]
    fn a_command_gets_no_variables_of_this_machine() {
        let scratch = ScratchHome::new().unwrap();
        let mut command = Command::new("env");
        scratch.configure_command(&mut command);
        let output = command.output().unwrap();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let (name, value) = line.split_once('=').unwrap();
            let inside = value.starts_with(scratch.root().to_str().unwrap());
            assert!(inside || ["PATH", "USER"].contains(&name), "{line}");
        }
    }
}
