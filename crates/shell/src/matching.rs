//! `git push`, `make deploy`, `npm run build`: a program and its subcommands.

use crate::line::{Word, base_name};
use crate::rows;
use crate::scene::{Arg, Args};

/// Whether words are the program and subcommand words of a pattern.
///
/// Options before and between subcommands are skipped, with their values where
/// the program's row says that they take one. A subcommand that ends in `*`
/// stands for all that begin so.
pub(crate) fn matches(words: &[Word<'_>], pattern: &str) -> bool {
    let mut wanted = pattern.split_ascii_whitespace();
    let (Some(program), Some(first)) = (wanted.next(), words.first().and_then(Word::exact)) else {
        return false;
    };
    // Most commands are refused here, before anything is looked up.
    if !first.ends_with(program) && !first.contains("py") {
        return false;
    }
    let name = base_name(first);
    let is_other = name != program && first != program && !name.starts_with("py");
    if is_other || !wanted.clone().all(|target| is_among(words, target)) {
        return false;
    }
    if let Some(module) = module_of(name, words) {
        // `python -m pytest` is `pytest`.
        return matches(module, pattern);
    }
    if name != program && first != program {
        return false;
    }
    let options = rows::find(name).map_or("", |row| row.options);
    let operands = Args::new(words, options).filter_map(|arg| match arg {
        Arg::Operand(index) => words.get(index).map(|word| word.exact().unwrap_or_default()),
        Arg::Option(..) => None,
    });
    if TARGETS.contains(&name) {
        // A run that only shows what it would do is none.
        let shows = |arg: Arg<'_, '_>| {
            matches!(arg, Arg::Option("n" | "dry-run" | "just-print" | "recon", _))
        };
        let named = wanted.clone().next().is_some();
        if named && Args::new(words, options).any(shows) {
            return false;
        }
        // Their targets may stand in any order.
        return wanted.all(|target| operands.clone().any(|operand| fits(operand, target)));
    }
    // `cargo +nightly test`: a toolchain is no subcommand.
    let mut operands =
        operands.filter(|operand| !(matches!(name, "cargo" | "rustc") && operand.starts_with('+')));
    wanted.all(|target| operands.next().is_some_and(|operand| fits(operand, target)))
}

/// Programs whose targets may stand in any order.
const TARGETS: [&str; 10] =
    ["make", "gmake", "ninja", "just", "rake", "ant", "gradle", "gradlew", "mvn", "mvnw"];

/// Whether a subcommand of a pattern is anywhere among words.
fn is_among(words: &[Word<'_>], target: &str) -> bool {
    let mut rest = words.iter().skip(1);
    match target.strip_suffix('*') {
        Some(prefix) => rest.any(|word| word.text.starts_with(prefix)),
        None => rest.any(|word| word.text == target),
    }
}

/// Whether a word is a subcommand of a pattern.
fn fits(word: &str, target: &str) -> bool {
    target.strip_suffix('*').map_or(word == target, |prefix| word.starts_with(prefix))
}

/// The words from the module on, where python runs one.
fn module_of<'w, 'a>(name: &str, words: &'w [Word<'a>]) -> Option<&'w [Word<'a>]> {
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"))?;
    if !version.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let at = words.iter().position(|word| word.text == "-m")?;
    let before = words.get(1..at)?;
    // What stands before it are options; a script would have taken the rest.
    before.iter().all(|word| word.text.starts_with('-')).then(|| words.get(at + 1..)).flatten()
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn is(line: &str, pattern: &str) -> bool {
        let words: Vec<_> = line.split(' ').map(Word::literal).collect();
        matches(&words, pattern)
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
