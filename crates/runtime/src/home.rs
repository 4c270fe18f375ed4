//! The one place that reads the environment: where state lives.

use std::path::PathBuf;

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
        #[expect(clippy::disallowed_methods, reason = "this is the lawful caller")]
        let value = std::env::var_os(variable).filter(|value| !value.is_empty());
        if let Some(value) = value {
            let path = PathBuf::from(value);
            if !path.is_absolute() {
                let value = path.display().to_string();
                return Err(HomeError::Relative { variable, value });
            }
            return Ok(below.iter().fold(path, |path, part| path.join(part)));
        }
    }
    Err(HomeError::Unknown)
}
