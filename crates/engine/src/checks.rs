//! Finds the commands of a call that test, build or document, and what the call's result proves.
//! They are searched in the parsed command line, so `bash -c 'cd x && pytest'` is a test and
//! `echo pytest` is not.

mod check_rows;
mod summary_source;

pub(crate) use self::summary_source::{is_piped, runs_command};

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use jackline_shell::{ExitEvidence, ShellCommand, ShellLine, WorkingDir};
use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::proposal::{Proposal, ProposedRun};

/// The most checks of one call that count.
const CHECKS_MAX: usize = 8;

/// The longest command that is repeated in a message.
const COMMAND_BYTES_MAX: usize = 200;

/// What kind of check a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CheckKind {
    Test,
    Build,
    Docs,
}

/// A check within a call, as the state stores it until the call finishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each flag is an independent observation")]
pub(crate) struct CallCheck {
    #[serde(rename = "what")]
    pub(crate) kind: CheckKind,
    /// Whether a successful call proves that the check succeeded.
    pub(crate) proven: bool,
    /// Whether a failed call proves that the check failed.
    pub(crate) refuted: bool,
    /// Whether the check runs whenever the call does.
    pub(crate) certain: bool,
    /// Whether a summary at the end of the call's output can only come from this check.
    #[serde(rename = "heard")]
    pub(crate) summary_counts: bool,
}

/// A check and its position in the command line.
#[derive(Debug, Clone)]
pub(crate) struct LocatedCheck {
    pub(crate) check: CallCheck,
    /// The number of the simple command; `None` if the tool itself is the check.
    pub(crate) command: Option<u32>,
}

/// Finds the checks of a call. [`Proposal::checks`] caches them.
pub(crate) fn find_checks(definition: &Definition, proposal: &Proposal<'_>) -> Vec<LocatedCheck> {
    let mut found = Vec::new();
    if let Some(what) = declared_kind(definition, |pattern| pattern == proposal.tool.name) {
        let check = CallCheck {
            kind: what,
            proven: true,
            refuted: true,
            certain: true,
            summary_counts: true,
        };
        found.push(LocatedCheck { check, command: None });
    }
    for (number, command) in (0..).zip(proposal.commands()) {
        let named = |pattern: &str| {
            let same_command = |it: &&crate::proposal::RecognisedTool<'_>| it.command == number;
            let named =
                proposal.recognised.iter().filter(same_command).any(|it| it.tool.name == pattern);
            named || command.matches_pattern(pattern)
        };
        let Some(what) = declared_kind(definition, named).or_else(|| builtin_kind(command)) else {
            continue;
        };
        let check = CallCheck {
            kind: what,
            proven: matches!(command.exit_evidence, ExitEvidence::Decides | ExitEvidence::Needed),
            refuted: matches!(command.exit_evidence, ExitEvidence::Decides | ExitEvidence::Enough),
            certain: command.always_runs,
            summary_counts: false,
        };
        found.push(LocatedCheck { check, command: Some(number) });
    }
    if let ProposedRun::Line(line) = &proposal.run {
        summary_source::mark_countable_summaries(line, &mut found);
    }
    found.truncate(CHECKS_MAX);
    found
}

/// The kind of check that the definition declares something to be.
fn declared_kind(definition: &Definition, is: impl Fn(&str) -> bool) -> Option<CheckKind> {
    let bits = &definition.dirty_bits;
    let any = |patterns: &[String]| patterns.iter().any(|pattern| is(pattern));
    if any(&bits.tests) {
        Some(CheckKind::Test)
    } else if any(&bits.builds) {
        Some(CheckKind::Build)
    } else {
        None
    }
}

/// The kind of check that a command is according to the built-in table.
fn builtin_kind(command: &ShellCommand<'_>) -> Option<CheckKind> {
    let program = command.program();
    if program.is_empty() {
        return None;
    }
    let has = |word: &str| command.arguments().iter().any(|argument| argument.text == word);
    let first = program.as_bytes().first();
    let is = |row: &&check_rows::CheckRow| {
        // Comparing the first letter skips most rows cheaply.
        row.command.as_bytes().first() == first
            && row
                .command
                .strip_prefix(program)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            && command.matches_pattern(row.command)
            && (row.required_word.is_empty() || has(row.required_word))
            && !row.excluding_words.iter().any(|word| has(word))
    };
    let row = check_rows::CHECK_ROWS.iter().find(is)?;
    (!check_rows::INFO_FLAGS.iter().any(|word| has(word))).then_some(row.kind)
}

/// The command that runs the first test of a call again.
pub(crate) fn test_command(definition: &Definition, proposal: &Proposal<'_>) -> Option<String> {
    let test =
        proposal.checks(definition).iter().find(|found| found.check.kind == CheckKind::Test)?;
    let Some(number) = test.command else { return Some(proposal.tool.name.into()) };
    let ProposedRun::Line(line) = &proposal.run else { return None };
    let command = line.commands.get(number as usize)?;
    let text = command_text(line, command)?;
    let text = match &command.dir {
        // `make -C sub test` already names its directory.
        WorkingDir::Path(dir) if !text.contains(&**dir) => format!("cd {dir} && {text}"),
        _ => text.into(),
    };
    // A command that is cut off can't be run again, so it is not repeated.
    (text.len() <= COMMAND_BYTES_MAX && !text.contains('\n')).then_some(text)
}

/// The text of a simple command as it is written in the line.
fn command_text<'l>(line: &ShellLine<'l>, command: &ShellCommand<'_>) -> Option<&'l str> {
    let text = line.text.get(command.span.start as usize..command.span.end as usize)?.trim();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::DirtyBits;
    use crate::proposal::ProposalSource;
    use crate::session_location::SessionLocation;
    use crate::wire::parse_line;
    use alloc::string::ToString;
    use serde_json::json;

    fn with<T>(line: &str, inspect: impl Fn(&Definition, &Proposal<'_>) -> T) -> T {
        let definition = Definition {
            dirty_bits: DirtyBits {
                tests: Vec::from(["./test.sh".to_string(), "bin/ci".to_string()]),
                ..DirtyBits::default()
            },
            ..Definition::default()
        };
        let event = json!({"session":"s","event":"tool_proposed","call":"c","tool":"Bash",
                           "args":{"command":line}});
        let event = parse_line(event.to_string().as_bytes(), None).unwrap();
        let heard = ProposalSource::of(&definition, &event).unwrap();
        let proposal = Proposal::of(&definition, &SessionLocation::default(), &heard);
        inspect(&definition, &proposal)
    }

    fn check_kinds(line: &str) -> Vec<CheckKind> {
        with(line, |definition, proposal| {
            let found = proposal.checks(definition);
            let mut kinds: Vec<CheckKind> = found.iter().map(|found| found.check.kind).collect();
            kinds.dedup();
            kinds
        })
    }

    #[test]
    fn tests_are_recognised_behind_wrappers() {
        for line in [
            "cargo test",
            "cargo +nightly test -p x",
            "cargo t",
            "cargo nextest run",
            "pytest -q",
            "python -m pytest",
            "python3.12 -m unittest discover",
            "uv run pytest",
            "uv run python -m pytest -x",
            "poetry run pytest",
            "tox",
            "nox -s tests",
            "go test ./...",
            "npm test",
            "npm t",
            "npm run test:unit",
            "yarn test",
            "pnpm test",
            "pnpm run test:e2e",
            "bun test",
            "npx jest",
            "npx vitest run",
            "npx mocha",
            "node --test",
            "deno test",
            "make test",
            "make -C sub check",
            "mvn -q test",
            "mvn clean verify",
            "gradle test",
            "./gradlew clean check",
            "ctest",
            "rspec",
            "bundle exec rspec",
            "phpunit",
            "vendor/bin/phpunit",
            "dotnet test",
            "swift test",
            "mix test",
            "bash -c 'cargo test'",
            "bash -lc \"cd x && pytest\"",
            "cd x && go test ./...",
            "env A=1 cargo test",
            "A=1 cargo test",
            "time cargo test",
            "timeout 60 cargo test",
            "cargo test 2>&1 | tail -20",
            "(cd sub; npm test)",
            "./test.sh --fast",
            "bin/ci",
        ] {
            assert_eq!(check_kinds(line), [CheckKind::Test], "{line}");
        }
    }

    #[test]
    fn commands_that_run_no_test_are_not_checks() {
        for line in [
            "echo cargo test",
            "cargo run test",
            "pytest --collect-only",
            "pytest --version",
            "npm test --help",
            "npx jest --listTests",
            "go test -c ./x",
            "ctest -N",
            "make -n test",
            "mvn test -DskipTests",
            "gradle check -x test",
            "grep -rn 'cargo test' .",
            "cat test.sh",
            "git commit -m 'cargo test'",
            "npm run start",
            "node test.js",
            "./other.sh",
        ] {
            assert_eq!(check_kinds(line), [], "{line}");
        }
        assert_eq!(check_kinds("cargo test --no-run"), [CheckKind::Build]);
    }

    #[test]
    fn builds_and_documents_are_recognised() {
        for line in ["cargo build --release", "npm run build", "go vet ./...", "cmake --build ."] {
            assert_eq!(check_kinds(line), [CheckKind::Build], "{line}");
        }
        for line in ["cargo doc --no-deps", "mkdocs build", "make docs", "npm run docs:build"] {
            assert_eq!(check_kinds(line), [CheckKind::Docs], "{line}");
        }
    }

    #[test]
    fn only_a_line_whose_exit_status_comes_from_the_test_proves_it() {
        let proves = |line: &str| {
            with(line, |definition, proposal| {
                let check = proposal.checks(definition).first().unwrap().check;
                (check.proven, check.refuted)
            })
        };
        assert_eq!(proves("pytest"), (true, true));
        assert_eq!(proves("cd x && pytest"), (true, false));
        assert_eq!(proves("pytest | tail"), (false, false));
        assert_eq!(proves("pytest || true"), (false, true));
        assert_eq!(proves("pytest; echo $?"), (false, false));
        assert_eq!(proves("set -o pipefail; pytest | tail"), (true, false));
    }

    #[test]
    fn a_summary_counts_if_only_the_test_can_have_printed_it() {
        let counts = |line: &str| {
            with(line, |definition, proposal| {
                let found = proposal.checks(definition);
                found.iter().all(|found| found.check.summary_counts)
            })
        };
        for line in [
            "pytest",
            "pytest 2>&1 | tail",
            "pytest | tail -5",
            "pytest | tail --lines=5",
            "timeout 60 pytest | tail -n 3",
            "bash -c 'cd x && pytest | tail -3'",
            "bash -lc \"pytest 2>&1 | tail -3\"",
            "(cd sub && pytest) | tail -3",
            "uv run pytest -q 2>&1 | tee log | tail -1",
            "cargo build && cargo test | tail -3",
            "echo running; pytest | tail -3; echo \"exit $?\"",
            "echo 'x = 1' > a.py; pytest | tail -1",
            "export A=1; A=2 pytest | cat",
            "set -o pipefail; pytest | tail",
            "source .venv/bin/activate && pytest | tail -3",
        ] {
            assert!(counts(line), "{line}");
        }
        for line in [
            "pytest | head -3",
            "pytest | grep passed",
            "pytest | tail -c 40",
            "pytest | tail -c40",
            "pytest | tail --bytes=40",
            "pytest | tail -0",
            "pytest | tail -n0",
            "pytest | tail -n 0",
            "pytest | tail -n $N",
            "pytest | tail old.log",
            "pytest | tail -r",
            "pytest | cat old.log -",
            "pytest | sort",
            "pytest | tr a b",
            "pytest | python -c 'print(1)'",
            "pytest | grep x | tail -1",
            "pytest | tail -1 | sed s/a/b/",
            "pytest > /dev/null; cat log",
            "pytest > /dev/null; tail -1 < log",
            "echo '3 passed in 1s'; pytest | tail",
            "echo '3 passed in 1s' 2> x; pytest | tail",
            "echo -e 'a\\x33'; pytest | tail",
            "echo $X; pytest | tail",
            "env; pytest | tail",
            "set; pytest | tail",
            "declare -p X; pytest | tail",
            "bash say.sh; pytest | tail",
            "source say.sh; pytest | tail",
            "git stash show -p; pytest | tail",
            "git log -1; pytest | tail",
            "f() { cat log; }; f; pytest | tail -0",
            "pytest | tail -1 & cat log",
            "pytest a > /dev/null; pytest b | tail -1",
            "pytest a | tail -1; pytest b | tail -1",
            "echo \"$(pytest)\"",
        ] {
            assert!(!counts(line), "{line}");
        }
    }

    #[test]
    fn a_test_command_is_quoted_as_it_was_run() {
        let quoted = |line: &str| with(line, test_command).unwrap_or_default();
        assert_eq!(quoted("uv run pytest -q 2>&1 | tail"), "uv run pytest -q 2>&1");
        assert_eq!(quoted("cd x && go test ./..."), "cd x && go test ./...");
        assert_eq!(quoted("bash -c 'cargo test | tail'"), "cargo test");
        assert_eq!(quoted("make -C sub test"), "make -C sub test");
        assert_eq!(quoted(&format!("pytest {}", "x".repeat(300))), "");
    }
}
