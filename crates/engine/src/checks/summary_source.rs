//! Decides whether a summary in the output of a line can only come from its checks.
//! Other commands may print a text that looks like a test summary, and a filter may drop the end of
//! the real one. So a summary counts only if nothing else in the line can print free text, and
//! every filter after a check keeps the end of its output.

use alloc::vec::Vec;

use jackline_shell::{Access, ShellCommand, ShellLine};

use super::{CheckKind, LocatedCheck};
use crate::observe::parse_summaries;

/// Programs that print nothing, or nothing that the agent could choose.
const SILENT_PROGRAMS: &[&str] = &[
    "cd", "pushd", "popd", "unset", "shopt", "ulimit", "umask", "true", "false", ":", "test", "[",
    "[[", "exit", "return", "break", "continue", "sleep", "wait", "mkdir", "rmdir", "rm", "cp",
    "mv", "ln", "touch", "chmod", "chown", "pwd", "read", "which", "kill",
];

/// Builtins that print the settings, unless they have arguments that set something.
const SETTING_BUILTINS: &[&str] = &["export", "set", "local", "declare", "trap", "readonly"];

/// Subcommands that only report the result of their own work.
const STATUS_ONLY_SUBCOMMANDS: &[&str] = &[
    "git add",
    "git stash",
    "git checkout",
    "git switch",
    "git restore",
    "git reset",
    "git apply",
    "git clean",
    "pip install",
    "uv sync",
    "uv pip install",
];

/// Marks the checks whose summary counts.
pub(super) fn mark_countable_summaries(line: &ShellLine<'_>, found: &mut [LocatedCheck]) {
    let checks: Vec<u32> = found.iter().filter_map(|found| found.command).collect();
    let tests: Vec<u32> = found
        .iter()
        .filter(|found| found.check.kind == CheckKind::Test)
        .filter_map(|found| found.command)
        .collect();
    let same = |a: u32, b: u32| runs_command(line, a, b) || runs_command(line, b, a);
    // If there are two test runs, one may have printed nothing, so a summary can't be assigned.
    let is_one = tests.iter().all(|a| tests.iter().all(|b| same(*a, *b)));
    let counts = is_one
        && (0..).zip(&line.commands).all(|(number, command)| {
            checks.iter().any(|check| same(*check, number))
                || is_silent(line, command)
                || (tests.iter().any(|test| is_piped(line, *test, number))
                    && passes_the_end(command))
        });
    for found in found.iter_mut().filter(|found| found.command.is_some()) {
        found.check.summary_counts = counts;
    }
}

fn is_silent(line: &ShellLine<'_>, command: &ShellCommand<'_>) -> bool {
    let arguments = command.arguments();
    let is_set = || !arguments.is_empty() && !arguments.iter().any(|word| word.text == "-p");
    let edits = || command.effects.iter().any(|effect| effect.access == Access::Edit);
    match command.program() {
        "" => command.words.is_empty(),
        "echo" if is_plain_echo(command) => true,
        "cat" | "echo" | "printf" => is_redirected_to_file(line, command),
        // An edit that writes to `/dev/…` could print the text.
        "sed" => edits() && !arguments.iter().any(|word| word.text.contains("/dev/")),
        "." | "source" => arguments.first().is_some_and(|word| word.text.ends_with("/activate")),
        program if SETTING_BUILTINS.contains(&program) => is_set(),
        program if SILENT_PROGRAMS.contains(&program) => true,
        _ => {
            STATUS_ONLY_SUBCOMMANDS.iter().any(|known| command.matches_pattern(known))
                && !command.matches_pattern("git stash show")
        }
    }
}

/// Whether a file takes all that a command prints: `cat > a.py <<EOF`.
fn is_redirected_to_file(line: &ShellLine<'_>, command: &ShellCommand<'_>) -> bool {
    let span = command.span.start as usize..command.span.end as usize;
    let text = line.text.get(span).unwrap_or("").lines().next().unwrap_or("");
    let writes = |access: Access| matches!(access, Access::Write | Access::Append);
    let mut arrows = text.match_indices('>').map(|(at, _)| text.get(..at).unwrap_or("")).peekable();
    command.effects.iter().any(|effect| writes(effect.access))
        && arrows.peek().is_some()
        // `2> file` redirects only the errors.
        && arrows.all(|before| before.ends_with([' ', '>']))
}

/// Whether an `echo` prints nothing that a test runner could have printed: `echo "exit: $?"`.
fn is_plain_echo(command: &ShellCommand<'_>) -> bool {
    command.arguments().iter().all(|word| {
        let text = word.text.replace("${PIPESTATUS[0]}", "").replace("$?", "");
        let lower = text.to_ascii_lowercase();
        let found = parse_summaries(&text);
        !text.starts_with('-')
            && !text.contains(['$', '`', '\\', '\t', '\n'])
            && !text.contains(|c: char| c.is_ascii_digit())
            && !["ok", "pass", "success"].iter().any(|word| lower.contains(word))
            && found.tests.is_none()
            && found.build.is_none()
    })
}

/// Whether a filter passes the last lines through unchanged.
fn passes_the_end(command: &ShellCommand<'_>) -> bool {
    let mut arguments = command.arguments().iter();
    match command.program() {
        "cat" => command.arguments().is_empty(),
        "tee" => true,
        "tail" => {
            let exact = command.arguments().iter().all(|word| word.exact_text().is_some());
            let from_file = command.effects.iter().any(|it| matches!(it.access, Access::Read(_)));
            // The option must be a number of lines, not of bytes, and at least one line.
            let counts = arguments.all(|word| {
                let number = word.text.trim_start_matches("--lines=").trim_start_matches("-n");
                let number = number.trim_start_matches(['-', '+']);
                number.is_empty() || number.parse::<u32>().is_ok_and(|lines| lines > 0)
            });
            exact && !from_file && counts
        }
        _ => false,
    }
}

/// Whether `wrapper` is `command`, or runs it, as `nohup` does.
pub(crate) fn runs_command(line: &ShellLine<'_>, wrapper: u32, command: u32) -> bool {
    let mut at = Some(command);
    while let Some(number) = at {
        if number == wrapper {
            return true;
        }
        // INVARIANT: a parent comes before the commands it runs, so this loop ends.
        at = line.commands.get(number as usize).and_then(|command| command.parent);
    }
    false
}

/// Whether a command reads from another one through a pipe.
pub(crate) fn is_piped(line: &ShellLine<'_>, from: u32, to: u32) -> bool {
    let span = |number: u32| line.commands.get(number as usize).map(|command| command.span);
    let (Some(from), Some(to)) = (span(from), span(to)) else { return false };
    line.text.get(from.end as usize..to.start as usize).is_some_and(|between| {
        between.contains('|')
            && !between.contains("||")
            && !between.contains("&&")
            && !between.contains([';', '\n'])
    })
}
