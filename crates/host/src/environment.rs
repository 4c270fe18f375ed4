//! The only place that reads the environment: it finds state and definitions.

use std::ffi::OsString;
use std::iter;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::agent_names::{CLIENT_SETTINGS, ClientSettingsLocation, SESSION_VARIABLES};

/// The definition of the machine's owner.
const MANAGED_FILE: &str = "/etc/jackline/jackline.yaml";

/// The name of a definition file.
const FILE_NAME: &str = "jackline.yaml";

/// Why there is no state home.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HomeError {
    /// No variable names it.
    #[error("no state home: set JACKLINE_HOME, XDG_STATE_HOME or HOME")]
    Unknown,
    /// A relative path would depend on the directory in which a command starts.
    #[error("`{variable}` must be an absolute path, not `{value}`")]
    Relative {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
}

/// `$JACKLINE_HOME`, else `jackline` in the XDG state directory.
pub fn state_home() -> Result<PathBuf, HomeError> {
    let tries: [(&'static str, &[&str]); 3] = [
        ("JACKLINE_HOME", &[]),
        ("XDG_STATE_HOME", &["jackline"]),
        ("HOME", &[".local", "state", "jackline"]),
    ];
    for (variable, below) in tries {
        if let Some(path) = variable_path(variable) {
            if !path.is_absolute() {
                let value = path.display().to_string();
                return Err(HomeError::Relative { variable, value });
            }
            return Ok(below.iter().fold(path, |path, part| path.join(part)));
        }
    }
    Err(HomeError::Unknown)
}

/// Directories for small files that need to last only until the machine restarts. They are used
/// when the state home can't be written. The best directory comes first.
pub fn runtime_directories() -> [PathBuf; 3] {
    let user = rustix::process::geteuid().as_raw();
    let session = variable_path("XDG_RUNTIME_DIR").filter(|path| path.is_absolute());
    // A program without this variable must find what another program with it has written.
    let session = session.unwrap_or_else(|| PathBuf::from(format!("/run/user/{user}")));
    let in_shared = |parent: &str| PathBuf::from(format!("{parent}/jackline-{user}"));
    [session.join("jackline"), in_shared("/dev/shm"), in_shared("/tmp")]
}

/// The definition files of a machine and its user, above those of every repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerFiles {
    /// The file of the machine's owner. If a path is given, the file must exist.
    pub managed: Option<PathBuf>,
    /// The file of the user. It may be missing.
    pub user: Option<PathBuf>,
}

impl LayerFiles {
    /// The paths on this machine.
    pub fn of_machine() -> Self {
        // A directory that can't be read must not count as empty.
        let installed = Path::new(MANAGED_FILE).try_exists().unwrap_or(true);
        let managed = if installed {
            Some(PathBuf::from(MANAGED_FILE))
        } else {
            // For packagers and tests. It can't replace an installed managed definition.
            variable_path("JACKLINE_MANAGED")
        };
        let configuration = variable_path("XDG_CONFIG_HOME")
            .filter(|path| path.is_absolute())
            .or_else(|| home().map(|home| home.join(".config")));
        Self { managed, user: configuration.map(|path| path.join("jackline").join(FILE_NAME)) }
    }
}

/// The home directory of the user.
pub fn home() -> Option<PathBuf> {
    variable_path("HOME").filter(|path| path.is_absolute())
}

/// The longest user name that is kept.
const NAME_CHARS_MAX: usize = 200;

/// The name of the user on this machine.
pub fn user_name() -> String {
    let named = ["USER", "LOGNAME"].into_iter().find_map(variable_path);
    let number = || format!("user {}", rustix::process::getuid().as_raw());
    let short = |name: PathBuf| name.display().to_string().chars().take(NAME_CHARS_MAX).collect();
    named.map_or_else(number, short)
}

/// The parent session, where a person or the client names it. A client gives the same session id as
/// in its hooks.
pub fn parent_session() -> Option<String> {
    let variables = iter::once("JACKLINE_PARENT").chain(SESSION_VARIABLES);
    let named = variables.into_iter().find_map(variable_path);
    named.and_then(|id| id.into_os_string().into_string().ok())
}

/// The value of `PATH`: directories in which programs are found by name.
pub fn search_path() -> Option<OsString> {
    variable_path("PATH").map(PathBuf::into_os_string)
}

/// The path of a program that is started by its name only.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let directories = search_path()?;
    let runs = |path: &PathBuf| {
        std::fs::metadata(path)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&directories)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(runs)
}

/// The user's settings files in which clients list hooks for all projects.
pub(crate) fn client_settings() -> Vec<PathBuf> {
    let directory = |place: &ClientSettingsLocation| {
        directory_variable(place.variable)
            .or_else(|| home().map(|home| home.join(place.below_home)))
    };
    let files = |place: &ClientSettingsLocation| {
        let directory = directory(place)?;
        Some(place.files.iter().map(move |file| directory.join(file)))
    };
    CLIENT_SETTINGS.iter().filter_map(files).flatten().collect()
}

/// The directory that a variable names, if the path is absolute.
pub fn directory_variable(name: &str) -> Option<PathBuf> {
    variable_path(name).filter(|path| path.is_absolute())
}

/// The value of a variable that a person has named, unless it is empty. The value may be secret.
pub fn named_variable(name: &str) -> Option<String> {
    variable_path(name).and_then(|value| value.into_os_string().into_string().ok())
}

/// The value of a variable, also if it is empty.
pub fn set_variable(name: &str) -> Option<String> {
    variable(name).and_then(|value| value.into_string().ok())
}

fn variable_path(name: &str) -> Option<PathBuf> {
    variable(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn variable(name: &str) -> Option<OsString> {
    #[expect(clippy::disallowed_methods, reason = "this is the lawful caller")]
    std::env::var_os(name)
}
