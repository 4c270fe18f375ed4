//! Decides which environment variables a command gets.
//!
//! A build may need any variable, so a command gets all of them except secrets: those with a name
//! that looks like one, and those that are listed as hidden. Additional variables prevent programs
//! from waiting for user input.

use std::ffi::{OsStr, OsString};
use std::process::Command;

/// Parts of variable names that indicate a secret.
const SECRET_NAME_PARTS: [&str; 7] =
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY"];

/// Words of variable names that indicate a secret, if underscores separate them.
const SECRET_NAME_WORDS: [&str; 5] = ["AUTH", "KEY", "KEYS", "PASS", "PWD"];

/// Names that match the lists above but are no secrets.
const HARMLESS_NAMES: [&str; 3] = ["PWD", "OLDPWD", "SSH_AUTH_SOCK"];

/// Variables that prevent prompts and terminal output.
const NON_INTERACTIVE: [(&str, &str); 5] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// Sets the variables of the command: those in `passed` although they look like secrets, and none
/// of those in `hidden`.
pub(super) fn set_variables(command: &mut Command, passed: &[String], hidden: &[String]) {
    for name in std::env::vars_os().map(|(name, _)| name).filter(is_secret) {
        if !passed.iter().any(|passed| OsStr::new(passed) == name) {
            command.env_remove(name);
        }
    }
    for name in hidden {
        command.env_remove(name);
    }
    command.envs(NON_INTERACTIVE);
}

fn is_secret(name: &OsString) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    !HARMLESS_NAMES.contains(&name.as_str())
        && (SECRET_NAME_PARTS.iter().any(|part| name.contains(part))
            || name.split('_').any(|word| SECRET_NAME_WORDS.contains(&word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_names_of_secrets_are_recognised() {
        for name in ["ANTHROPIC_API_KEY", "github_token", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY"] {
            assert!(is_secret(&name.into()), "{name}");
        }
        for name in
            ["PATH", "HOME", "PWD", "SSH_AUTH_SOCK", "CARGO_HOME", "GIT_AUTHOR_NAME", "MONKEY"]
        {
            assert!(!is_secret(&name.into()), "{name}");
        }
    }
}
