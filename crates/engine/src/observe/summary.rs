//! What a test run says of itself.

use alloc::string::{String, ToString};

use serde::{Deserialize, Serialize};

/// What a test run said in the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestSummary {
    /// Whose words they are.
    pub runner: String,
    /// Tests that passed, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<u64>,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that were passed over.
    pub skipped: u64,
    /// Whether the run came to its end.
    pub complete: bool,
}

/// What a summary proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestVerdict {
    /// All of them passed.
    Passing,
    /// Some failed.
    Failing,
    /// Nobody can tell.
    Unknown,
}

impl TestSummary {
    /// What it proves.
    pub fn verdict(&self) -> TestVerdict {
        match (self.failed, self.passed) {
            (0, Some(passed)) if passed > 0 && self.complete => TestVerdict::Passing,
            (0, _) => TestVerdict::Unknown,
            _ => TestVerdict::Failing,
        }
    }
}

/// How a build ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuildOutcome {
    /// It was built.
    Ok,
    /// It was not.
    Failed,
}

/// Reads the last line that counts passed and failed tests, as pytest writes it.
pub(super) fn parse_tests(text: &str) -> Option<TestSummary> {
    text.lines().rev().find_map(|line| {
        let count = |word: &str| {
            let mut words = line.split([' ', ',', '=']).filter(|word| !word.is_empty()).peekable();
            while let Some(number) = words.next() {
                if words.peek() == Some(&word) {
                    return number.parse::<u64>().ok();
                }
            }
            None
        };
        let (passed, failed) = (count("passed"), count("failed"));
        (passed.is_some() || failed.is_some()).then(|| TestSummary {
            runner: "pytest".to_string(),
            passed,
            failed: failed.unwrap_or(0),
            skipped: count("skipped").unwrap_or(0),
            complete: true,
        })
    })
}
