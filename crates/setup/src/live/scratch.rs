//! A home and a workspace that nobody else knows, gone afterwards.

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
use jackline_clients::installation::Scope;
use jackline_clients::installation::{HookEntry, Installation};
use jackline_clients::settings_file::SettingsFileError;

/// How often another name is tried.
const NAMES_MAX: u32 = 1000;

/// Ends what is at work in a scratch and removes it, as soon as nobody holds its
/// input open: also where this process was interrupted or killed.
const CARETAKER: &str = r#"read -r _
[ ! -f "$0/group" ] || kill -s KILL -- "-$(cat "$0/group")"
for _ in 1 2 3; do rm -rf -- "$0" && break; done"#;

/// Starts a program, but not before its process group is written down.
const STARTER: &str = r#"echo $$ > "$0" && exec "$@""#;

/// Directories for one run.
#[derive(Debug)]
pub struct Scratch {
    root: PathBuf,
    caretaker: Child,
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
        // In a group of its own, where no key that a person presses reaches it.
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

    /// What holds everything else.
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

    /// Writes a file of the workspace, with the directories above it.
    pub fn write(&self, path: &str, text: &str) -> Result<(), LiveError> {
        write_to(self.work().join(path), text)
    }

    /// Installs hooks for the project, as the installer does where there are no
    /// settings yet.
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
        let path = installation.settings_file(&work, Scope::Project);
        let path = path.map_err(|error| failed(&work, error.into()))?;
        let text = installation.add("", hooks).map_err(|source| {
            failed(&path, SettingsFileError::Settings { path: path.clone(), source }.into())
        })?;
        write_to(path, &text)
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

    /// A program that runs here, in a process group of its own that does not outlive
    /// this process.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("/bin/sh");
        self.enter(&mut command);
        command.args(["-c", STARTER]).arg(self.group_file()).arg(program).process_group(0);
        command
    }

    /// Says that the group of the last program is gone.
    pub(super) fn forget_group(&self) {
        let _ = fs::remove_file(self.group_file());
    }

    fn group_file(&self) -> PathBuf {
        self.root.join("group")
    }

    /// Lets a command run here, and know of nothing else.
    pub fn enter(&self, command: &mut Command) {
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

impl Drop for Scratch {
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
