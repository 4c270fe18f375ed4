//! Which commands of a call test, build or document, and what its end proves.
//!
//! They are found in the parsed command line, so that `bash -c 'cd x && pytest'`
//! is a test and `echo pytest` is none.

mod heard;
mod table;

pub(crate) use self::heard::{is_piped, runs};

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use jackline_shell::{Command, Dir, Exit, Line};
use serde::{Deserialize, Serialize};

use crate::definition::Definition;
use crate::proposal::{Proposal, Run};

/// How many of them one call can have that count.
const CHECKS_MAX: usize = 8;

/// How long a command may be that is said again.
const COMMAND_BYTES_MAX: usize = 200;

/// What a command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum What {
    Test,
    Build,
    Docs,
}

/// A check within a call, as it is kept until the call comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate thing to know")]
pub(crate) struct Check {
    pub(crate) what: What,
    /// Whether it succeeded if the call did.
    pub(crate) proven: bool,
    /// Whether it failed if the call did.
    pub(crate) refuted: bool,
    /// Whether it runs whenever the call does.
    pub(crate) certain: bool,
    /// Whether what the call says at its end can only be its summary.
    pub(crate) heard: bool,
}

/// A check, and where it stands in the line.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) check: Check,
    /// The simple command; none where the tool itself is the check.
    pub(crate) command: Option<u32>,
}

/// The checks of a call; [`Proposal::checks`] keeps them.
pub(crate) fn found(definition: &Definition, proposal: &Proposal<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    if let Some(what) = told(definition, |pattern| pattern == proposal.tool.name) {
        let check = Check { what, proven: true, refuted: true, certain: true, heard: true };
        found.push(Found { check, command: None });
    }
    for (number, command) in (0..).zip(proposal.commands()) {
        let named = |pattern: &str| {
            let known = |it: &&crate::proposal::Recognised<'_>| it.command == number;
            let named = proposal.recognised.iter().filter(known).any(|it| it.tool.name == pattern);
            named || command.is(pattern)
        };
        let Some(what) = told(definition, named).or_else(|| listed(command)) else { continue };
        let check = Check {
            what,
            proven: matches!(command.exit, Exit::Decides | Exit::Needed),
            refuted: matches!(command.exit, Exit::Decides | Exit::Enough),
            certain: command.certain,
            heard: false,
        };
        found.push(Found { check, command: Some(number) });
    }
    if let Run::Line(line) = &proposal.run {
        heard::mark(line, &mut found);
    }
    found.truncate(CHECKS_MAX);
    found
}

/// What the definition says that something is for.
fn told(definition: &Definition, is: impl Fn(&str) -> bool) -> Option<What> {
    let bits = &definition.dirty_bits;
    let any = |patterns: &[String]| patterns.iter().any(|pattern| is(pattern));
    if any(&bits.tests) {
        Some(What::Test)
    } else if any(&bits.builds) {
        Some(What::Build)
    } else {
        None
    }
}

/// What everybody knows that a command is for.
fn listed(command: &Command<'_>) -> Option<What> {
    let program = command.program();
    if program.is_empty() {
        return None;
    }
    let has = |word: &str| command.arguments().iter().any(|argument| argument.text == word);
    let first = program.as_bytes().first();
    let is = |row: &&table::Row| {
        // Most rows are passed over by their first letter.
        row.command.as_bytes().first() == first
            && row
                .command
                .strip_prefix(program)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            && command.is(row.command)
            && (row.with.is_empty() || has(row.with))
            && !row.without.iter().any(|word| has(word))
    };
    let row = table::ROWS.iter().find(is)?;
    (!table::IDLE.iter().any(|word| has(word))).then_some(row.what)
}

/// How to run the first test of a call again.
pub(crate) fn test_command(definition: &Definition, proposal: &Proposal<'_>) -> Option<String> {
    let test = proposal.checks(definition).iter().find(|found| found.check.what == What::Test)?;
    let Some(number) = test.command else { return Some(proposal.tool.name.into()) };
    let Run::Line(line) = &proposal.run else { return None };
    let command = line.commands.get(number as usize)?;
    let text = written(line, command)?;
    let text = match &command.dir {
        // `make -C sub test` says itself where it works.
        Dir::In(dir) if !text.contains(&**dir) => format!("cd {dir} && {text}"),
        _ => text.into(),
    };
    // Half a command is none.
    (text.len() <= COMMAND_BYTES_MAX && !text.contains('\n')).then_some(text)
}

/// A simple command as it stands in the line.
fn written<'l>(line: &Line<'l>, command: &Command<'_>) -> Option<&'l str> {
    let text = line.text.get(command.span.start as usize..command.span.end as usize)?.trim();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::DirtyBits;
    use crate::place::Place;
    use crate::proposal::Heard;
    use crate::wire::parse_line;
    use alloc::string::ToString;
    use serde_json::json;

    fn with<T>(line: &str, look: impl Fn(&Definition, &Proposal<'_>) -> T) -> T {
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
        let heard = Heard::of(&definition, &event).unwrap();
        let proposal = Proposal::of(&definition, &Place::default(), &heard);
        look(&definition, &proposal)
    }

    fn whats(line: &str) -> Vec<What> {
        with(line, |definition, proposal| {
            let found = proposal.checks(definition);
            let mut whats: Vec<What> = found.iter().map(|found| found.check.what).collect();
            whats.dedup();
            whats
        })
    }

    #[test]
    fn tests_are_known_through_whatever_runs_them() {
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
            assert_eq!(whats(line), [What::Test], "{line}");
        }
    }

    #[test]
    fn what_does_not_run_a_test_is_none() {
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
            assert_eq!(whats(line), [], "{line}");
        }
        assert_eq!(whats("cargo test --no-run"), [What::Build]);
    }

    #[test]
    fn builds_and_documents_are_known() {
        for line in ["cargo build --release", "npm run build", "go vet ./...", "cmake --build ."] {
            assert_eq!(whats(line), [What::Build], "{line}");
        }
        for line in ["cargo doc --no-deps", "mkdocs build", "make docs", "npm run docs:build"] {
            assert_eq!(whats(line), [What::Docs], "{line}");
        }
    }

    #[test]
    fn only_a_line_that_hangs_on_the_test_proves_it() {
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
    fn a_summary_counts_where_only_the_test_can_have_said_it() {
        let heard = |line: &str| {
            with(line, |definition, proposal| {
                let found = proposal.checks(definition);
                found.iter().all(|found| found.check.heard)
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
            assert!(heard(line), "{line}");
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
            assert!(!heard(line), "{line}");
        }
    }

    #[test]
    fn a_test_is_said_again_as_it_was_run() {
        let said = |line: &str| with(line, test_command).unwrap_or_default();
        assert_eq!(said("uv run pytest -q 2>&1 | tail"), "uv run pytest -q 2>&1");
        assert_eq!(said("cd x && go test ./..."), "cd x && go test ./...");
        assert_eq!(said("bash -c 'cargo test | tail'"), "cargo test");
        assert_eq!(said("make -C sub test"), "make -C sub test");
        assert_eq!(said(&format!("pytest {}", "x".repeat(300))), "");
    }
}
