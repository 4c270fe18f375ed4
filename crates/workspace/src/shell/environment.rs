//! Which variables a command gets.
//!
//! Nobody knows what a build needs, so it gets what we got, but for what looks
//! like a secret by its name or is known to be one, and with the words that keep programs from waiting
//! for a person.

use std::ffi::{OsStr, OsString};
use std::process::Command;

/// Parts of names that secrets have.
const SECRET: [&str; 7] =
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY"];

/// Words of names that secrets have, if they stand between underscores.
const SECRET_WORDS: [&str; 5] = ["AUTH", "KEY", "KEYS", "PASS", "PWD"];

/// Names that only look like it.
const HARMLESS: [&str; 3] = ["PWD", "OLDPWD", "SSH_AUTH_SOCK"];

/// Nobody is there to answer, and nothing draws.
const QUIET: [(&str, &str); 5] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// Gives the command the variables it may have: those in `passed` although they look like
/// secrets, and none of those in `hidden`.
pub(super) fn give(command: &mut Command, passed: &[String], hidden: &[String]) {
    for name in std::env::vars_os().map(|(name, _)| name).filter(is_secret) {
        if !passed.iter().any(|passed| OsStr::new(passed) == name) {
            command.env_remove(name);
        }
    }
    for name in hidden {
        command.env_remove(name);
    }
    command.envs(QUIET);
}

fn is_secret(name: &OsString) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    !HARMLESS.contains(&name.as_str())
        && (SECRET.iter().any(|part| name.contains(part))
            || name.split('_').any(|word| SECRET_WORDS.contains(&word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
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
