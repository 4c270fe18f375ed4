//! What a test runner or a builder says at its end, read from a tool's result.
//!
//! An agent is told "2 failed, 40 passed" and so must the guards be: whether
//! tests pass after a change, whether fewer fail than before. A text is read
//! line by line, once, and only its last part if it is long. What is not
//! understood is unknown, never guessed: a run that failed must not be taken
//! for one that passed, however its output was cut.
//!
//! A text is only a text. A file that is printed and tells of a test run looks
//! like one, so whoever rests a decision on a summary must know from the
//! command that tests were run, and that the end of their output was kept
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

use self::runners::Runners;
use self::text::Line;

/// What a result says of the tests and builds that were run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summaries {
    /// The test runs in it, added.
    pub tests: Option<TestSummary>,
    /// How building went, where the text leaves no doubt.
    pub build: Option<BuildOutcome>,
}

/// What a test run came to. Several runs in one output are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestSummary {
    /// Whose words they are; of several, the first that failed, else the first.
    pub runner: Runner,
    /// How many tests passed, if the runner says so: `go test` does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<u64>,
    /// How many failed, those included that could not be run: at least so many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// How many were skipped, ignored, left for later, or expected to fail.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// Whether the run came to its end, as far as its text shows. Only then can
    /// its counts be compared with another run's.
    pub complete: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What to make of a test run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestVerdict {
    /// Tests were run to the end, and none failed.
    Passing,
    /// At least one failed, or could not be built.
    Failing,
    /// None was run, or the end is missing.
    Unknown,
}

impl TestSummary {
    /// What to make of it.
    pub fn verdict(&self) -> TestVerdict {
        if self.failed > 0 {
            TestVerdict::Failing
        } else if self.complete && self.passed != Some(0) {
            TestVerdict::Passing
        } else {
            TestVerdict::Unknown
        }
    }

    /// Two runs as one.
    fn and(self, other: Self) -> Self {
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

/// Adds a run to those that were heard before.
fn add(heard: &mut Option<TestSummary>, run: TestSummary) {
    *heard = Some(match heard.take() {
        Some(before) => before.and(run),
        None => run,
    });
}

macro_rules! runners {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)*) => {
        /// Whose words a summary is made of.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Runner {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)*
        }

        impl Runner {
            /// Every runner by its word in a record.
            pub const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)*];

            /// Its word in a record.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

runners! {
    /// `pytest`.
    Pytest = "pytest",
    /// Python's `unittest`, Django's tests among them.
    Unittest = "unittest",
    /// `cargo test`.
    CargoTest = "cargo_test",
    /// `cargo nextest`.
    Nextest = "nextest",
    /// `go test`, and `gotestsum` around it.
    GoTest = "go_test",
    /// `jest`.
    Jest = "jest",
    /// `vitest`.
    Vitest = "vitest",
    /// `node --test`.
    Node = "node",
    /// `mocha`.
    Mocha = "mocha",
    /// Anything that speaks the Test Anything Protocol.
    Tap = "tap",
    /// `JUnit` by itself, under Maven's surefire or under Ant, and reports in its XML.
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

/// How building went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuildOutcome {
    /// It came to its end.
    Ok,
    /// It did not.
    Failed,
}

/// One runner's words, heard line by line.
trait Family: Default {
    /// How lines begin that tell it something, blanks aside. Most lines tell nobody
    /// anything, and every line of every result is looked at.
    const FIRST: &'static [u8];
    /// Whether the next line may tell it something, however it begins.
    fn awaits(&self) -> bool {
        false
    }
    /// Hears a line.
    fn line(&mut self, line: &Line<'_>);
    /// What they came to; `None` if they were not the runner's words.
    fn finish(self) -> Option<TestSummary>;
}

#[derive(Default)]
struct Families {
    runners: Runners,
    xml: xml::Xml,
    build: build::Build,
    /// A program of the run died.
    crashed: bool,
    /// The text has the word somewhere: then its lines are searched, too.
    errors: bool,
}

impl Families {
    fn line(&mut self, line: &Line<'_>) {
        let Some(first) = line.trimmed.as_bytes().first() else {
            return self.runners.mocha.blank();
        };
        self.crashed |= text::is_crash(line);
        self.runners.line(line, *first);
        self.xml.line(line);
        self.build.line(line, *first, self.errors);
    }

    /// Lines are left out here, or before all that is heard.
    fn cut(&mut self) {
        self.runners.mocha.cut();
        self.runners.go.cut();
        self.runners.junit.cut();
    }

    fn finish(self, cut: bool) -> Summaries {
        let build = self.build.finish();
        let mut tests = self.runners.finish().reduce(TestSummary::and);
        // A report is the same run told twice, where its runner was heard too.
        tests = tests.or_else(|| self.xml.finish());
        if let Some(tests) = &mut tests {
            // Where something else went wrong, not all of it was told.
            let hidden = tests.failed == 0 && build == Some(BuildOutcome::Failed);
            tests.complete &= !cut && !hidden && !self.crashed;
        }
        Summaries { tests, build }
    }
}

/// Reads what runners and builders say in a tool's result. The work is bounded
/// however long the text is.
pub fn summaries(text: &str) -> Summaries {
    let mut families = Families::default();
    let parts = text::Parts::of(text);
    text::each_line(parts.head, |line| families.xml.line(line));
    if parts.clipped {
        families.xml.gap();
        families.cut();
    }
    families.errors = parts.tail.contains("error");
    let mut cut = false;
    text::each_line(&parts.tail, |line| {
        let mark = text::is_cut_mark(line.trimmed);
        if mark {
            families.cut();
        }
        // Only a mark behind the last words hides the end.
        cut = mark || cut && line.trimmed.is_empty();
        families.line(line);
    });
    families.runners.mocha.end(!parts.tail.ends_with(['\n', '\r']));
    families.finish(cut)
}
