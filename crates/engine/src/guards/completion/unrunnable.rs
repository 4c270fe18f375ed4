//! Checks that can't be run, because a program is missing: what a shell says about it.

use alloc::format;
use alloc::string::{String, ToString};

/// What to do about a check that can't be run.
pub(super) const CORRECTION: &str = "if you can't repair this, tell the person: they can install \
     the program, start the agent with a `PATH` that contains it, or change the check";

/// The exit status of a shell that found a program but can't execute it.
const NOT_EXECUTABLE: i64 = 126;

/// The exit status of a shell that did not find a program.
const NOT_FOUND: i64 = 127;

/// How many characters of a program name are shown.
const PROGRAM_CHARS_MAX: usize = 80;

/// The ends of lines in which a shell names a program that it can't run.
const LINE_ENDS: [&str; 5] = [
    ": command not found",
    ": not found",
    ": No such file or directory",
    ": Permission denied",
    ": cannot execute",
];

/// Returns why a command could not be run, if its exit status says so. `output` is what it printed.
pub(crate) fn describe_unrunnable(exit: i64, output: &str) -> Option<String> {
    if ![NOT_EXECUTABLE, NOT_FOUND].contains(&exit) {
        return None;
    }
    let program = output.lines().rev().find_map(missing_program);
    Some(match (exit, program) {
        (NOT_FOUND, Some(program)) if program.contains('/') => {
            format!("`{program}` does not exist")
        }
        (NOT_FOUND, Some(program)) => format!("`{program}` is not on the `PATH`"),
        (NOT_FOUND, None) => "exit status 127 means that a program is missing".to_string(),
        (_, Some(program)) => format!("`{program}` is not executable"),
        (_, None) => "exit status 126 means that a program is not executable".to_string(),
    })
}

/// Returns the program that a line of a shell names as missing.
fn missing_program(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let named = match line.rsplit_once("command not found: ") {
        Some((_, named)) => named,
        None => {
            let rest = LINE_ENDS.iter().find_map(|end| line.strip_suffix(end))?;
            rest.rsplit(": ").next().unwrap_or(rest)
        }
    };
    let program = named.trim_matches(['\'', '"', '`', '‘', '’']);
    let is_name = !program.is_empty()
        && !program.contains(char::is_whitespace)
        && program.chars().count() <= PROGRAM_CHARS_MAX;
    is_name.then_some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_program_is_named_in_the_words_of_each_shell() {
        for (exit, output, why) in [
            (127, "sh: 1: cargo: not found\n", "`cargo` is not on the `PATH`"),
            (127, "building\nsh: line 1: cargo: command not found", "`cargo` is not on the `PATH`"),
            (127, "sh: cargo: not found", "`cargo` is not on the `PATH`"),
            (127, "zsh:1: command not found: cargo", "`cargo` is not on the `PATH`"),
            (127, "env: ‘pytest’: No such file or directory", "`pytest` is not on the `PATH`"),
            (127, "sh: 1: ./test.sh: not found", "`./test.sh` does not exist"),
            (126, "sh: 1: ./test.sh: Permission denied", "`./test.sh` is not executable"),
            (126, "", "exit status 126 means that a program is not executable"),
            (127, "it was not found", "exit status 127 means that a program is missing"),
            (127, "a b: not found", "exit status 127 means that a program is missing"),
        ] {
            assert_eq!(describe_unrunnable(exit, output).as_deref(), Some(why), "{output}");
        }
        for exit in [0, 1, 2, 125, 128] {
            assert_eq!(describe_unrunnable(exit, "sh: 1: cargo: not found"), None, "{exit}");
        }
    }
}
