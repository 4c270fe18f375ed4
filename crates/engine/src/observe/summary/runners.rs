//! All runners whose output is recognised, and which parser reads which line.

use super::text::OutputLine;
use super::{RunnerParser, TestSummary};
use super::{cargo, ctest, gotest, jest, junit, mocha, phpunit, python, rspec, tap, vitest};

macro_rules! runners {
    ($($name:ident: $family:ty,)*) => {
        /// The parsers, in the order in which their summaries are added.
        #[derive(Default)]
        pub(super) struct RunnerParsers {
            $(pub(super) $name: $family,)*
        }

        /// The parsers that need lines with a given first byte: one bit for each parser.
        const PARSERS_BY_FIRST_BYTE: [u16; 256] = parsers_by_first_byte(&[$(<$family>::FIRST_BYTES,)*]);

        impl RunnerParsers {
            /// Passes a line to the parsers that may need it. `first` is the first byte of the line
            /// without indentation.
            pub(super) fn read_line(&mut self, line: &OutputLine<'_>, first: u8) {
                let mut listeners = PARSERS_BY_FIRST_BYTE.get(usize::from(first)).copied().unwrap_or(0);
                let mut listens = || {
                    let listens = listeners & 1 == 1;
                    listeners >>= 1;
                    listens
                };
                $(if listens() || self.$name.needs_next_line() {
                    self.$name.read_line(line);
                })*
            }

            /// Passes a line to all parsers.
            #[cfg(test)]
            pub(super) fn read_line_in_all(&mut self, line: &OutputLine<'_>) {
                $(self.$name.read_line(line);)*
            }

            /// The summaries of the parsers that recognised something.
            pub(super) fn finish(self) -> impl Iterator<Item = TestSummary> {
                [$(self.$name.finish(),)*].into_iter().flatten()
            }
        }
    };
}

runners! {
    pytest: python::PytestParser,
    unittest: python::UnittestParser,
    cargo: cargo::CargoParser,
    go: gotest::GoTestParser,
    jest: jest::JestParser,
    vitest: vitest::VitestParser,
    mocha: mocha::MochaParser,
    tap: tap::TapParser,
    junit: junit::JunitParser,
    gradle: junit::GradleParser,
    rspec: rspec::RspecParser,
    phpunit: phpunit::PhpunitParser,
    ctest: ctest::CtestParser,
}

#[expect(
    clippy::indexing_slicing,
    reason = "it runs at compile time, where an error stops the build"
)]
const fn parsers_by_first_byte(families: &[&[u8]]) -> [u16; 256] {
    let mut listeners = [0; 256];
    let mut family = 0;
    while family < families.len() {
        let mut at = 0;
        while at < families[family].len() {
            listeners[families[family][at] as usize] |= 1 << family;
            at += 1;
        }
        family += 1;
    }
    listeners
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::super::text::each_line;
    use super::*;

    /// Lines that runners print, and prefixes that may hide them.
    const SAID: [&str; 38] = [
        "=== 1 failed, 3 passed in 0.03s ===",
        "2 passed in 0.1s",
        "no tests ran in 0.01s",
        "=== short test summary info ===",
        "FAILED a.py::b",
        "!!! stopping after 1 failures !!!",
        "INTERNALERROR> x",
        "Ran 5 tests in 0.001s",
        "OK",
        "FAILED (errors=1)",
        "running 2 tests",
        "test result: ok. 2 passed; 0 failed; 0 ignored",
        "error: test failed, to rerun pass `--lib`",
        "Running unittests src/lib.rs (target/debug/a)",
        "Doc-tests a",
        "Summary [   0.125s] 6 tests run: 4 passed, 2 failed, 1 skipped",
        "--- FAIL: TestA (0.00s)",
        "=== RUN   TestA",
        "ok\texample.com/a\t0.002s",
        "FAIL",
        "# example.com/a [example.com/a.test]",
        "x: ./a.go:2:23: undefined",
        "{\"Action\":\"pass\",\"Test\":\"A\"}",
        "DONE 10 tests, 1 skipped, 4 failures, 1 error in 0.426s",
        "Test Suites: 1 failed, 2 passed, 3 total",
        "Tests: 1 failed, 2 passed, 3 total",
        "Time: 1.2 s",
        "Test Files  1 failed | 2 passed (3)",
        "Tests  2 failed | 4 passed (6)",
        "Duration  1.2s",
        "3 passing (5ms)",
        "2 failing",
        "not ok 2 - fails",
        "1..2",
        "# pass 5",
        "Tests run: 3, Failures: 1, Errors: 0, Skipped: 0",
        "3 tests completed, 1 failed",
        "50% tests passed, 2 tests failed out of 4",
    ];
    const MORE: [&str; 14] = [
        "Errors  1 error",
        ".,!",
        "Bail out!",
        "ℹ cancelled 0",
        "ℹ suites 1",
        "[ 3 tests successful ]",
        "BUILD SUCCESSFUL in 1s",
        "> Task :test FAILED",
        "Execution failed for task ':compileTestJava'.",
        "6 examples, 2 failures, 1 pending",
        "OK (2 tests, 2 assertions)",
        "Tests: 6, Assertions: 2, Failures: 1.",
        "WARNINGS!",
        "The following tests FAILED:",
    ];
    const BEFORE: [&str; 12] =
        ["", "", "", " ", "\t", "=", "x", "1", "\u{b}", "\u{a0}", "\u{2003}", "[INFO] "];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn every_parser_gets_each_line_it_needs(
            picks in prop::collection::vec((0..BEFORE.len(), 0..SAID.len() + MORE.len()), 0..12)
        ) {
            let lines_of_runners: Vec<&str> = SAID.into_iter().chain(MORE).collect();
            let lines = picks.iter().map(|(before, at)| [BEFORE[*before], lines_of_runners[*at], "\n"].concat());
            let text: String = lines.collect();
            let (mut some, mut all) = (RunnerParsers::default(), RunnerParsers::default());
            each_line(&text, |line| {
                if let Some(first) = line.trimmed.as_bytes().first() {
                    some.read_line(line, *first);
                    all.read_line_in_all(line);
                }
            });
            let (some, all): (Vec<_>, Vec<_>) = (some.finish().collect(), all.finish().collect());
            prop_assert_eq!(some, all, "{}", text);
        }
    }
}
