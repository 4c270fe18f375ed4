//! The one place that reads the environment: where state and definitions live.

use std::ffi::OsString;
use std::iter;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::agent_names::{SESSION_VARIABLES, SETTINGS, SettingsPlace};

/// Where the owner of a machine puts a definition.
const MANAGED: &str = "/etc/jackline/jackline.yaml";

/// The name of a definition file.
const FILE_NAME: &str = "jackline.yaml";

/// Why there is no state home.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HomeError {
    /// Nothing says where it is.
    #[error("no state home: set JACKLINE_HOME, XDG_STATE_HOME or HOME")]
    Unknown,
    /// It would depend on where a command is started.
    #[error("`{variable}` must be an absolute path, not `{value}`")]
    Relative {
        /// The variable.
        variable: &'static str,
        /// What it says.
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

/// Where a person's programs leave small things until the machine is started
/// again, in case the state home takes nothing: the best place first.
pub fn runtime_directories() -> [PathBuf; 3] {
    let user = rustix::process::geteuid().as_raw();
    let session = variable_path("XDG_RUNTIME_DIR").filter(|path| path.is_absolute());
    // A program that is not told finds what was left by one that was.
    let session = session.unwrap_or_else(|| PathBuf::from(format!("/run/user/{user}")));
    let own = |everybody: &str| PathBuf::from(format!("{everybody}/jackline-{user}"));
    [session.join("jackline"), own("/dev/shm"), own("/tmp")]
}

/// The definitions of a machine and its person, above every repository's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerFiles {
    /// The owner of the machine's; it must be there.
    pub managed: Option<PathBuf>,
    /// The person's; it may be there.
    pub user: Option<PathBuf>,
}

impl LayerFiles {
    /// Where they are on this machine.
    pub fn of_machine() -> Self {
        // Who can't look into the directory must not take it for empty.
        let installed = Path::new(MANAGED).try_exists().unwrap_or(true);
        let managed = if installed {
            Some(PathBuf::from(MANAGED))
        } else {
            // For whoever packages or tests it, and no way around the real one.
            variable_path("JACKLINE_MANAGED")
        };
        let configuration = variable_path("XDG_CONFIG_HOME")
            .filter(|path| path.is_absolute())
            .or_else(|| home().map(|home| home.join(".config")));
        Self { managed, user: configuration.map(|path| path.join("jackline").join(FILE_NAME)) }
    }
}

/// The home directory of the person.
pub fn home() -> Option<PathBuf> {
    variable_path("HOME").filter(|path| path.is_absolute())
}

/// How much of a person's name is taken.
const NAME_CHARS_MAX: usize = 200;

/// What the person is called on this machine.
pub fn person() -> String {
    let named = ["USER", "LOGNAME"].into_iter().find_map(variable_path);
    let number = || format!("user {}", rustix::process::getuid().as_raw());
    let short = |name: PathBuf| name.display().to_string().chars().take(NAME_CHARS_MAX).collect();
    named.map_or_else(number, short)
}

/// The session that started this process, where a person or the client names it. A client names
/// its session as its hooks do.
pub fn parent_session() -> Option<String> {
    let variables = iter::once("JACKLINE_PARENT").chain(SESSION_VARIABLES);
    let named = variables.into_iter().find_map(variable_path);
    named.and_then(|id| id.into_os_string().into_string().ok())
}

/// The directories in which programs are found by their name.
pub fn search_path() -> Option<OsString> {
    variable_path("PATH").map(PathBuf::into_os_string)
}

/// Where a program is that is started by its name alone.
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

/// The settings of this person by which clients start their hooks everywhere.
pub(crate) fn client_settings() -> Vec<PathBuf> {
    let directory = |place: &SettingsPlace| {
        directory_variable(place.variable)
            .or_else(|| home().map(|home| home.join(place.below_home)))
    };
    let files = |place: &SettingsPlace| {
        let directory = directory(place)?;
        Some(place.files.iter().map(move |file| directory.join(file)))
    };
    SETTINGS.iter().filter_map(files).flatten().collect()
}

/// The directory that a variable names, where it is absolute.
pub fn directory_variable(name: &str) -> Option<PathBuf> {
    variable_path(name).filter(|path| path.is_absolute())
}

/// What a variable says that a person has named; it may be secret.
pub fn named_variable(name: &str) -> Option<String> {
    variable_path(name).and_then(|value| value.into_os_string().into_string().ok())
}

/// The same, also where it is set to nothing.
pub fn set_variable(name: &str) -> Option<String> {
    variable(name).and_then(|value| value.into_string().ok())
}

/// Whether a variable says anything; what it says may be secret.
pub(crate) fn is_set(name: &str) -> bool {
    variable_path(name).is_some()
}

fn variable_path(name: &str) -> Option<PathBuf> {
    variable(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn variable(name: &str) -> Option<OsString> {
    #[expect(clippy::disallowed_methods, reason = "this is the lawful caller")]
    std::env::var_os(name)
}
