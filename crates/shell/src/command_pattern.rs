//! Compares a command with a pattern such as `git push` or `npm run build`.

use crate::command_context::{ArgReader, CommandArg};
use crate::rows;
use crate::shell_line::{ShellWord, base_name};

/// Whether words are the program and the subcommands of a pattern.
///
/// Options before and between subcommands are skipped, with their values if the
/// program's row lists them as options with a value. A subcommand that ends in `*`
/// matches every subcommand with that prefix.
pub(crate) fn matches_pattern(words: &[ShellWord<'_>], pattern: &str) -> bool {
    let mut wanted = pattern.split_ascii_whitespace();
    let (Some(program), Some(first)) =
        (wanted.next(), words.first().and_then(ShellWord::exact_text))
    else {
        return false;
    };
    // This cheap test rejects most commands before any lookup.
    if !first.ends_with(program) && !first.contains("py") {
        return false;
    }
    let name = base_name(first);
    let is_other = name != program && first != program && !name.starts_with("py");
    if is_other || !wanted.clone().all(|target| has_target(words, target)) {
        return false;
    }
    if let Some(module) = module_words(name, words) {
        // `python -m pytest` is `pytest`.
        return matches_pattern(module, pattern);
    }
    if name != program && first != program {
        return false;
    }
    let options = rows::find_row(name).map_or("", |row| row.options);
    let operands = ArgReader::new(words, options).filter_map(|arg| match arg {
        CommandArg::Operand(index) => {
            words.get(index).map(|word| word.exact_text().unwrap_or_default())
        }
        CommandArg::Option(..) => None,
    });
    if TARGET_PROGRAMS.contains(&name) {
        // A dry run does not count.
        let shows = |arg: CommandArg<'_, '_>| {
            matches!(arg, CommandArg::Option("n" | "dry-run" | "just-print" | "recon", _))
        };
        let named = wanted.clone().next().is_some();
        if named && ArgReader::new(words, options).any(shows) {
            return false;
        }
        // Targets may be in any order.
        return wanted.all(|target| operands.clone().any(|operand| is_target(operand, target)));
    }
    // `cargo +nightly test`: a toolchain is not a subcommand.
    let mut operands =
        operands.filter(|operand| !(matches!(name, "cargo" | "rustc") && operand.starts_with('+')));
    wanted.all(|target| operands.next().is_some_and(|operand| is_target(operand, target)))
}

/// Programs whose targets may be in any order.
const TARGET_PROGRAMS: [&str; 10] =
    ["make", "gmake", "ninja", "just", "rake", "ant", "gradle", "gradlew", "mvn", "mvnw"];

/// Whether any word matches a subcommand of a pattern.
fn has_target(words: &[ShellWord<'_>], target: &str) -> bool {
    let mut rest = words.iter().skip(1);
    match target.strip_suffix('*') {
        Some(prefix) => rest.any(|word| word.text.starts_with(prefix)),
        None => rest.any(|word| word.text == target),
    }
}

/// Whether a word matches a subcommand of a pattern.
fn is_target(word: &str, target: &str) -> bool {
    target.strip_suffix('*').map_or(word == target, |prefix| word.starts_with(prefix))
}

/// The words from the module name on, if python runs a module (`python -m module`).
fn module_words<'w, 'a>(name: &str, words: &'w [ShellWord<'a>]) -> Option<&'w [ShellWord<'a>]> {
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"))?;
    if !version.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let at = words.iter().position(|word| word.text == "-m")?;
    let before = words.get(1..at)?;
    // Only options may be in front of `-m`: behind a script, `-m` belongs to the script.
    before.iter().all(|word| word.text.starts_with('-')).then(|| words.get(at + 1..)).flatten()
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn is(line: &str, pattern: &str) -> bool {
        let words: Vec<_> = line.split(' ').map(ShellWord::literal).collect();
        matches_pattern(&words, pattern)
    }

    #[test]
    fn options_before_a_subcommand_are_skipped() {
        for (line, pattern) in [
            ("git push", "git push"),
            ("git -C dir push -f", "git push"),
            ("git -c a=b --no-pager push", "git push"),
            ("/usr/bin/git push", "git push"),
            ("cargo +nightly test", "cargo test"),
            ("cargo --color never test", "cargo test"),
            ("npm --prefix x run build", "npm run build"),
            ("npm run --silent build", "npm run build"),
            ("make -C sub FOO=1 deploy", "make deploy"),
            ("make test deploy", "make deploy"),
            ("pytest -x tests", "pytest"),
            ("python3.12 -m pytest -x", "pytest"),
            ("python -u -m twine upload x", "twine upload"),
            ("./manage.py test", "./manage.py test"),
            ("./gradlew clean test", "gradlew test"),
            ("npm run test:unit", "npm run test*"),
            ("npm run test", "npm run test*"),
        ] {
            assert!(is(line, pattern), "{line} is {pattern}");
        }
    }

    #[test]
    fn other_words_do_not_match() {
        for (line, pattern) in [
            ("git commit -m push", "git push"),
            ("git log push", "git push"),
            ("git -C push status", "git push"),
            ("npm run test", "npm run build"),
            ("npm build", "npm run build"),
            ("make -C deploy test", "make deploy"),
            ("make -n deploy", "make deploy"),
            ("python x.py -m pytest", "pytest"),
            ("echo git push", "git push"),
            ("git", "git push"),
            ("npm run build", "npm run test*"),
            ("npm run pretest", "npm run test*"),
        ] {
            assert!(!is(line, pattern), "{line} is not {pattern}");
        }
    }
}
