//! All runners that are listened to, and who of them is told which line.

use super::text::Line;
use super::{Family, TestSummary};
use super::{cargo, ctest, gotest, jest, junit, mocha, phpunit, python, rspec, tap, vitest};

macro_rules! runners {
    ($($name:ident: $family:ty,)*) => {
        /// The runners, in the order in which their words are put together.
        #[derive(Default)]
        pub(super) struct Runners {
            $(pub(super) $name: $family,)*
        }

        /// Who listens to lines that begin with a byte: a bit each.
        const LISTENERS: [u16; 256] = listeners(&[$(<$family>::FIRST,)*]);

        impl Runners {
            /// Tells a line to those whom it may tell something; `first` is the byte it
            /// begins with, blanks aside.
            pub(super) fn line(&mut self, line: &Line<'_>, first: u8) {
                let mut listeners = LISTENERS.get(usize::from(first)).copied().unwrap_or(0);
                let mut listens = || {
                    let listens = listeners & 1 == 1;
                    listeners >>= 1;
                    listens
                };
                $(if listens() || self.$name.awaits() {
                    self.$name.line(line);
                })*
            }

            /// Tells a line to everybody.
            #[cfg(test)]
            pub(super) fn everybody(&mut self, line: &Line<'_>) {
                $(self.$name.line(line);)*
            }

            /// What they came to, those that were heard.
            pub(super) fn finish(self) -> impl Iterator<Item = TestSummary> {
                [$(self.$name.finish(),)*].into_iter().flatten()
            }
        }
    };
}

runners! {
    pytest: python::Pytest,
    unittest: python::Unittest,
    cargo: cargo::Cargo,
    go: gotest::GoTest,
    jest: jest::Jest,
    vitest: vitest::Vitest,
    mocha: mocha::Mocha,
    tap: tap::Tap,
    junit: junit::Junit,
    gradle: junit::Gradle,
    rspec: rspec::Rspec,
    phpunit: phpunit::Phpunit,
    ctest: ctest::Ctest,
}

#[expect(clippy::indexing_slicing, reason = "runs when it is compiled, and would fail there")]
const fn listeners(families: &[&[u8]]) -> [u16; 256] {
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

    /// What runners say, and beginnings that may hide it.
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
        fn nobody_is_spared_a_line_that_tells_something(
            picks in prop::collection::vec((0..BEFORE.len(), 0..SAID.len() + MORE.len()), 0..12)
        ) {
            let said: Vec<&str> = SAID.into_iter().chain(MORE).collect();
            let lines = picks.iter().map(|(before, at)| [BEFORE[*before], said[*at], "\n"].concat());
            let text: String = lines.collect();
            let (mut some, mut all) = (Runners::default(), Runners::default());
            each_line(&text, |line| {
                if let Some(first) = line.trimmed.as_bytes().first() {
                    some.line(line, *first);
                    all.everybody(line);
                }
            });
            let (some, all): (Vec<_>, Vec<_>) = (some.finish().collect(), all.finish().collect());
            prop_assert_eq!(some, all, "{}", text);
        }
    }
}
