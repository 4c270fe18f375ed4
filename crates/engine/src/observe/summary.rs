//! The summary that a test runner or a builder prints at the end, parsed from a tool's result.
//!
//! The agent sees "2 failed, 40 passed", and the guards need the same information: whether tests
//! pass after a change, and whether fewer tests fail than before. The text is read once, line by
//! line, and only its last part if it is long. A summary that is not understood is unknown and
//! never guessed: a failed run must not count as passed, however its output was cut.
//!
//! A file that is printed can contain text that looks like a test run. So code that decides on a
//! summary must check that the command ran tests and that the end of their output was not dropped
//! (`| head` drops it).

mod build;
mod cargo;
mod count;
mod ctest;
mod gotest;
mod jest;
mod junit;
mod mocha;
mod phpunit;
mod python;
mod rspec;
mod runners;
mod tap;
mod text;
mod vitest;
mod xml;

use serde::{Deserialize, Serialize};

use self::runners::RunnerParsers;
use self::text::OutputLine;

/// The summaries of the tests and builds in a result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summaries {
    /// The sum of all test runs in it.
    pub tests: Option<TestSummary>,
    /// How the build ended, if the text is unambiguous.
    pub build: Option<BuildOutcome>,
}

/// The summary of a test run. Several runs in one output are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestSummary {
    /// The runner that printed it. If there are several, the first that failed, otherwise the
    /// first.
    pub runner: TestRunner,
    /// How many tests passed, if the runner prints it; `go test` does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<u64>,
    /// The minimum number of failed tests, including those that could not be run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// How many tests were skipped, ignored, postponed, or expected to fail.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// Whether the text shows that the run finished. Only then can its counts be compared with
    /// those of another run.
    pub complete: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The judgement of a test run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestVerdict {
    /// All tests were run and none failed.
    Passing,
    /// At least one failed or could not be built.
    Failing,
    /// No test was run, or the end of the output is missing.
    Unknown,
}

impl TestSummary {
    /// The judgement of this run.
    pub fn verdict(&self) -> TestVerdict {
        if self.failed > 0 {
            TestVerdict::Failing
        } else if self.complete && self.passed != Some(0) {
            TestVerdict::Passing
        } else {
            TestVerdict::Unknown
        }
    }

    /// A run that found no tests.
    fn without_tests(runner: TestRunner) -> Self {
        Self { runner, passed: Some(0), failed: 0, skipped: 0, complete: true }
    }

    /// The sum of two runs.
    fn combine(self, other: Self) -> Self {
        let runner = if self.failed == 0 && other.failed > 0 { other.runner } else { self.runner };
        Self {
            runner,
            passed: self.passed.zip(other.passed).map(|(a, b)| a.saturating_add(b)),
            failed: self.failed.saturating_add(other.failed),
            skipped: self.skipped.saturating_add(other.skipped),
            complete: self.complete && other.complete,
        }
    }
}

/// Adds a run to the sum of the earlier ones.
fn add_run(sum: &mut Option<TestSummary>, run: TestSummary) {
    *sum = Some(match sum.take() {
        Some(before) => before.combine(run),
        None => run,
    });
}

macro_rules! runners {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)*) => {
        /// The test runners whose output is recognised.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum TestRunner {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)*
        }

        impl TestRunner {
            /// Every runner by its word in a record.
            pub const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)*];

            /// The JSON word in a record.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

runners! {
    /// `pytest`.
    Pytest = "pytest",
    /// Python's `unittest`, including Django's tests.
    Unittest = "unittest",
    /// `cargo test`.
    CargoTest = "cargo_test",
    /// `cargo nextest`.
    Nextest = "nextest",
    /// `go test`, also run by `gotestsum`.
    GoTest = "go_test",
    /// `jest`.
    Jest = "jest",
    /// `vitest`.
    Vitest = "vitest",
    /// `node --test`.
    Node = "node",
    /// `mocha`.
    Mocha = "mocha",
    /// Any program that prints the Test Anything Protocol.
    Tap = "tap",
    /// `JUnit` on its own, under Maven's surefire or under Ant, and reports in its XML format.
    Junit = "junit",
    /// Gradle's test tasks.
    Gradle = "gradle",
    /// `rspec`.
    Rspec = "rspec",
    /// `phpunit`.
    Phpunit = "phpunit",
    /// `ctest`.
    Ctest = "ctest",
}

/// How a build ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuildOutcome {
    /// It finished.
    Ok,
    /// It failed.
    Failed,
}

/// Parses the output of one kind of runner, line by line.
trait RunnerParser: Default {
    /// The first bytes (without indentation) of the lines that this parser needs. Every line of
    /// every result is checked, and most lines are needed by no parser.
    const FIRST_BYTES: &'static [u8];
    /// Whether this parser needs the next line, whatever its first byte is.
    fn needs_next_line(&self) -> bool {
        false
    }
    /// Reads a line.
    fn read_line(&mut self, line: &OutputLine<'_>);
    /// The summary; `None` if the text is not output of this runner.
    fn finish(self) -> Option<TestSummary>;
}

#[derive(Default)]
struct SummaryParsers {
    runners: RunnerParsers,
    xml: xml::JunitXmlParser,
    build: build::BuildParser,
    /// Whether a program of the run crashed.
    crashed: bool,
    /// Whether the text contains the word `error`. Only then are its lines searched for compiler
    /// errors.
    mentions_error: bool,
}

impl SummaryParsers {
    fn read_line(&mut self, line: &OutputLine<'_>) {
        let Some(first) = line.trimmed.as_bytes().first() else {
            return self.runners.mocha.read_empty_line();
        };
        self.crashed |= text::is_crash(line);
        self.runners.read_line(line, *first);
        self.xml.read_line(line);
        self.build.read_line(line, *first, self.mentions_error);
    }

    /// Lines are missing here, or before everything that was read.
    fn mark_gap(&mut self) {
        self.runners.mocha.mark_gap();
        self.runners.go.mark_gap();
        self.runners.junit.mark_gap();
    }

    fn finish(self, cut: bool) -> Summaries {
        let build = self.build.finish();
        let mut tests = self.runners.finish().reduce(TestSummary::combine);
        // If the output of the runner was read too, its XML report repeats the same run.
        tests = tests.or_else(|| self.xml.finish());
        if let Some(tests) = &mut tests {
            // If the build failed although no test did, the summary is not the whole result.
            let hidden = tests.failed == 0 && build == Some(BuildOutcome::Failed);
            tests.complete &= !cut && !hidden && !self.crashed;
        }
        Summaries { tests, build }
    }
}

/// Reads the summaries of runners and builders in a tool's result. The work is bounded, whatever
/// the length of the text is.
pub fn parse_summaries(text: &str) -> Summaries {
    let mut families = SummaryParsers::default();
    let parts = text::TextParts::of(text);
    text::each_line(parts.head, |line| families.xml.read_line(line));
    if parts.clipped {
        families.xml.mark_gap();
        families.mark_gap();
    }
    families.mentions_error = parts.tail.contains("error");
    let mut cut = false;
    text::each_line(&parts.tail, |line| {
        let mark = text::is_cut_mark(line.trimmed);
        if mark {
            families.mark_gap();
        }
        // A cut mark hides the end only if no text follows it.
        cut = mark || cut && line.trimmed.is_empty();
        families.read_line(line);
    });
    families.runners.mocha.mark_trimmed(!parts.tail.ends_with(['\n', '\r']));
    families.finish(cut)
}
