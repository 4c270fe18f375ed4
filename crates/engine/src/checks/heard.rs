//! Whether a summary in the output of a line can only be that of its checks.
//!
//! A text that somebody prints may hold the words of a test runner, and a filter
//! may drop the end of what the runner said. So a summary counts where nothing else
//! in the line prints what it likes, and every filter behind a check keeps the end.

use alloc::vec::Vec;

use jackline_shell::{Access, Command, Line};

use super::{Found, What};
use crate::observe::summaries;

/// Programs that print nothing, or nothing that anybody could choose.
const SILENT: &[&str] = &[
    "cd", "pushd", "popd", "unset", "shopt", "ulimit", "umask", "true", "false", ":", "test", "[",
    "[[", "exit", "return", "break", "continue", "sleep", "wait", "mkdir", "rmdir", "rm", "cp",
    "mv", "ln", "touch", "chmod", "chown", "pwd", "read", "which", "kill",
];

/// Builtins that print what is set, unless they are told what to set.
const SETTING: &[&str] = &["export", "set", "local", "declare", "trap", "readonly"];

/// Subcommands that only say what became of their own work.
const SOBER: &[&str] = &[
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
pub(super) fn mark(line: &Line<'_>, found: &mut [Found]) {
    let checks: Vec<u32> = found.iter().filter_map(|found| found.command).collect();
    let tests: Vec<u32> = found
        .iter()
        .filter(|found| found.check.what == What::Test)
        .filter_map(|found| found.command)
        .collect();
    let same = |a: u32, b: u32| runs(line, a, b) || runs(line, b, a);
    // Of two runs one may have said nothing, and the other's summary is not its own.
    let is_one = tests.iter().all(|a| tests.iter().all(|b| same(*a, *b)));
    let heard = is_one
        && (0..).zip(&line.commands).all(|(number, command)| {
            checks.iter().any(|check| same(*check, number))
                || is_silent(line, command)
                || (tests.iter().any(|test| is_piped(line, *test, number))
                    && keeps_the_end(command))
        });
    for found in found.iter_mut().filter(|found| found.command.is_some()) {
        found.check.heard = heard;
    }
}

fn is_silent(line: &Line<'_>, command: &Command<'_>) -> bool {
    let arguments = command.arguments();
    let is_set = || !arguments.is_empty() && !arguments.iter().any(|word| word.text == "-p");
    let edits = || command.effects.iter().any(|effect| effect.access == Access::Edit);
    match command.program() {
        "" => command.words.is_empty(),
        "echo" if is_plain(command) => true,
        "cat" | "echo" | "printf" => writes_it_away(line, command),
        // It may be told to print what it changes.
        "sed" => edits() && !arguments.iter().any(|word| word.text.contains("/dev/")),
        "." | "source" => arguments.first().is_some_and(|word| word.text.ends_with("/activate")),
        program if SETTING.contains(&program) => is_set(),
        program if SILENT.contains(&program) => true,
        _ => SOBER.iter().any(|known| command.is(known)) && !command.is("git stash show"),
    }
}

/// Whether a file takes all that a command prints: `cat > a.py <<EOF`.
fn writes_it_away(line: &Line<'_>, command: &Command<'_>) -> bool {
    let span = command.span.start as usize..command.span.end as usize;
    let text = line.text.get(span).unwrap_or("").lines().next().unwrap_or("");
    let writes = |access: Access| matches!(access, Access::Write | Access::Append);
    let mut arrows = text.match_indices('>').map(|(at, _)| text.get(..at).unwrap_or("")).peekable();
    command.effects.iter().any(|effect| writes(effect.access))
        && arrows.peek().is_some()
        // `2> file` takes something else.
        && arrows.all(|before| before.ends_with([' ', '>']))
}

/// Whether an `echo` says nothing that a runner could have said: `echo "exit: $?"`.
fn is_plain(command: &Command<'_>) -> bool {
    command.arguments().iter().all(|word| {
        let text = word.text.replace("${PIPESTATUS[0]}", "").replace("$?", "");
        let lower = text.to_ascii_lowercase();
        let said = summaries(&text);
        !text.starts_with('-')
            && !text.contains(['$', '`', '\\', '\t', '\n'])
            && !text.contains(|c: char| c.is_ascii_digit())
            && !["ok", "pass", "success"].iter().any(|word| lower.contains(word))
            && said.tests.is_none()
            && said.build.is_none()
    })
}

/// Whether a filter lets the last lines through as they are.
fn keeps_the_end(command: &Command<'_>) -> bool {
    let mut arguments = command.arguments().iter();
    match command.program() {
        "cat" => command.arguments().is_empty(),
        "tee" => true,
        "tail" => {
            let exact = command.arguments().iter().all(|word| word.exact().is_some());
            let from_file = command.effects.iter().any(|it| matches!(it.access, Access::Read(_)));
            // A number of lines, and not of bytes; none is too few.
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

/// Whether one command is another, or runs it, as `nohup` does.
pub(crate) fn runs(line: &Line<'_>, wrapper: u32, command: u32) -> bool {
    let mut at = Some(command);
    while let Some(number) = at {
        if number == wrapper {
            return true;
        }
        // INVARIANT: a parent comes before what it runs, so this ends.
        at = line.commands.get(number as usize).and_then(|command| command.parent);
    }
    false
}

/// Whether a command stands behind another in one pipe.
pub(crate) fn is_piped(line: &Line<'_>, from: u32, to: u32) -> bool {
    let span = |number: u32| line.commands.get(number as usize).map(|command| command.span);
    let (Some(from), Some(to)) = (span(from), span(to)) else { return false };
    line.text.get(from.end as usize..to.start as usize).is_some_and(|between| {
        between.contains('|')
            && !between.contains("||")
            && !between.contains("&&")
            && !between.contains([';', '\n'])
    })
}
