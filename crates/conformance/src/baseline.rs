//! What a driver can't pass yet, with the reason.
//!
//! A baseline only ever shrinks by itself: a failure that is not listed fails,
//! and so does a listed scenario that passes, or one that is gone.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::driver::Failure;
use crate::root;

/// The known failures of one driver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline {
    reasons: BTreeMap<String, String>,
}

/// Why a baseline can't be used, or what a driver did that it does not say.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// The file can't be read.
    #[error("can't read the baseline `{}`: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        source: std::io::Error,
    },
    /// A line says nothing that a baseline can say.
    #[error("line {line} of the baseline is not `scenario: reason`")]
    Malformed {
        /// The line, from 1.
        line: usize,
    },
    /// A scenario is listed twice.
    #[error("line {line} of the baseline lists `{scenario}` again")]
    Twice {
        /// The line, from 1.
        line: usize,
        /// The scenario.
        scenario: String,
    },
    /// A scenario is listed that does not exist.
    #[error("the baseline lists {}, and there is no such scenario; remove it", .0.join(", "))]
    Gone(Vec<String>),
    /// There is nothing to pass.
    #[error("the corpus is empty, so passing it proves nothing")]
    EmptyCorpus,
    /// A listed scenario passes.
    #[error("`{scenario}` passes, and the baseline says it can't ({reason}); remove it there")]
    Passes {
        /// The scenario.
        scenario: String,
        /// Why it was listed.
        reason: String,
    },
    /// A scenario fails that is not listed.
    #[error("{0}")]
    Fails(Box<Failure>),
}

impl Baseline {
    /// Reads the baseline of a driver.
    pub fn load(driver: &str) -> Result<Self, BaselineError> {
        let path = root().join("baselines").join(format!("{driver}.txt"));
        let text = std::fs::read_to_string(&path)
            .map_err(|source| BaselineError::Unreadable { path, source })?;
        Self::parse(&text)
    }

    /// Reads a baseline: `scenario: reason` lines, blank ones, and `#` remarks.
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
                return Err(BaselineError::Twice { line: number, scenario });
            }
            reasons.insert(scenario, reason);
        }
        Ok(Self { reasons })
    }

    /// Whether the baseline fits the corpus it is about.
    pub fn check<'a>(
        &self,
        scenarios: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), BaselineError> {
        let known: Vec<&str> = scenarios.into_iter().collect();
        if known.is_empty() {
            return Err(BaselineError::EmptyCorpus);
        }
        let gone: Vec<String> = self
            .reasons
            .keys()
            .filter(|scenario| !known.contains(&scenario.as_str()))
            .map(|scenario| format!("`{scenario}`"))
            .collect();
        if gone.is_empty() { Ok(()) } else { Err(BaselineError::Gone(gone)) }
    }

    /// Whether what a driver did with a scenario is what the baseline says.
    pub fn judge(
        &self,
        scenario: &str,
        played: Result<(), Box<Failure>>,
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

    fn failed() -> Result<(), Box<Failure>> {
        Err(Box::new(Failure {
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
    fn an_entry_for_a_scenario_that_is_gone_fails() {
        let baseline = Baseline::parse(LISTED).unwrap();
        assert!(baseline.check(["a/listed", "a/other"]).is_ok());
        assert!(matches!(baseline.check(["a/other"]), Err(BaselineError::Gone(_))));
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
        assert!(matches!(twice, BaselineError::Twice { line: 2, .. }));
    }
}
