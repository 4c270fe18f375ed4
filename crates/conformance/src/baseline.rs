//! The scenarios that a driver can't pass yet, with reasons.
//!
//! A baseline can only become smaller unnoticed: an unlisted failure is an error, and so is a
//! listed scenario that passes or no longer exists.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::driver::ScenarioFailure;
use crate::root;

/// The expected failures of one driver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline {
    reasons: BTreeMap<String, String>,
}

/// Why a baseline is invalid, or how a result differs from it.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// The file can't be read.
    #[error("can't read the baseline `{}`: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// A line has another format.
    #[error("line {line} of the baseline must be `scenario: reason`")]
    Malformed {
        /// The line, from 1.
        line: usize,
    },
    /// A scenario is listed twice.
    #[error("line {line} of the baseline lists `{scenario}` again")]
    Duplicate {
        /// The line, from 1.
        line: usize,
        /// The scenario.
        scenario: String,
    },
    /// A scenario is listed that does not exist.
    #[error("the baseline lists {}, but there is no such scenario; remove the line", .0.join(", "))]
    MissingScenarios(Vec<String>),
    /// The corpus contains no scenario.
    #[error("the corpus is empty, so no scenario was checked")]
    EmptyCorpus,
    /// A listed scenario passes.
    #[error(
        "`{scenario}` passes, but the baseline lists it as failing ({reason}); remove the line"
    )]
    Passes {
        /// The scenario.
        scenario: String,
        /// The reason in the baseline.
        reason: String,
    },
    /// An unlisted scenario fails.
    #[error("{0}")]
    Fails(Box<ScenarioFailure>),
}

impl Baseline {
    /// Reads the baseline of a driver.
    pub fn load(driver: &str) -> Result<Self, BaselineError> {
        let path = root().join("baselines").join(format!("{driver}.txt"));
        let text = std::fs::read_to_string(&path)
            .map_err(|source| BaselineError::Unreadable { path, source })?;
        Self::parse(&text)
    }

    /// Parses a baseline: lines of the form `scenario: reason`, blank lines, and comments with `#`.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        let mut reasons = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let (line, number) = (line.trim(), number + 1);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let malformed = BaselineError::Malformed { line: number };
            let (scenario, reason) = line.split_once(':').ok_or(malformed)?;
            let (scenario, reason) = (scenario.trim().to_owned(), reason.trim().to_owned());
            if scenario.is_empty() || reason.is_empty() {
                return Err(BaselineError::Malformed { line: number });
            }
            if reasons.contains_key(&scenario) {
                return Err(BaselineError::Duplicate { line: number, scenario });
            }
            reasons.insert(scenario, reason);
        }
        Ok(Self { reasons })
    }

    /// Whether all listed scenarios exist.
    pub fn check<'a>(
        &self,
        scenarios: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), BaselineError> {
        let known: Vec<&str> = scenarios.into_iter().collect();
        if known.is_empty() {
            return Err(BaselineError::EmptyCorpus);
        }
        let missing: Vec<String> = self
            .reasons
            .keys()
            .filter(|scenario| !known.contains(&scenario.as_str()))
            .map(|scenario| format!("`{scenario}`"))
            .collect();
        if missing.is_empty() { Ok(()) } else { Err(BaselineError::MissingScenarios(missing)) }
    }

    /// Whether the result of a scenario agrees with the baseline.
    pub fn judge(
        &self,
        scenario: &str,
        played: Result<(), Box<ScenarioFailure>>,
    ) -> Result<(), BaselineError> {
        match (self.reasons.get(scenario), played) {
            (None, Ok(())) | (Some(_), Err(_)) => Ok(()),
            (None, Err(failure)) => Err(BaselineError::Fails(failure)),
            (Some(reason), Ok(())) => {
                Err(BaselineError::Passes { scenario: scenario.to_owned(), reason: reason.clone() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "# remark\n\n a/listed : it needs: a journal\n";

    fn failed() -> Result<(), Box<ScenarioFailure>> {
        Err(Box::new(ScenarioFailure {
            driver: "engine",
            scenario: "a/b".to_owned(),
            story: "A story.".to_owned(),
            step: None,
            problem: "no".to_owned(),
        }))
    }

    #[test]
    fn an_unlisted_failure_fails_and_so_does_a_listed_pass() {
        let baseline = Baseline::parse(LISTED).unwrap();
        assert!(baseline.judge("a/other", Ok(())).is_ok());
        assert!(baseline.judge("a/listed", failed()).is_ok());
        assert!(matches!(baseline.judge("a/other", failed()), Err(BaselineError::Fails(_))));
        let passes = baseline.judge("a/listed", Ok(())).unwrap_err().to_string();
        assert!(passes.contains("(it needs: a journal)"), "{passes}");
    }

    #[test]
    fn an_entry_for_a_missing_scenario_fails() {
        let baseline = Baseline::parse(LISTED).unwrap();
        assert!(baseline.check(["a/listed", "a/other"]).is_ok());
        assert!(matches!(baseline.check(["a/other"]), Err(BaselineError::MissingScenarios(_))));
    }

    #[test]
    fn an_empty_corpus_fails() {
        assert!(matches!(Baseline::default().check([]), Err(BaselineError::EmptyCorpus)));
    }

    #[test]
    fn a_line_without_a_reason_is_refused() {
        for text in ["a/b", "a/b:", ": reason"] {
            let error = Baseline::parse(text).unwrap_err();
            assert!(matches!(error, BaselineError::Malformed { line: 1 }), "{text}");
        }
        let twice = Baseline::parse("a/b: x\na/b: y").unwrap_err();
        assert!(matches!(twice, BaselineError::Duplicate { line: 2, .. }));
    }
}
