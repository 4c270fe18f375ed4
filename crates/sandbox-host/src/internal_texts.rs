//! Texts of guards and delegates that a program got, and that its answer must not repeat.

use std::collections::BTreeSet;

use jackline_attempt::{ArtifactOutcome, AttemptViolation, InternalOutcome};
use serde_json::Value;

/// Shorter internal texts reveal nothing, and answers contain them by chance.
const TEXT_CHARS_MIN: usize = 12;

/// An answer that has so many words in a row in common with an internal text repeats it.
const WORDS_IN_A_ROW: usize = 6;

/// The internal texts that the programs of a call got.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InternalTexts {
    /// The texts, with normal spaces and in lower case.
    texts: BTreeSet<String>,
}

impl InternalTexts {
    /// Adds the texts of a refused call.
    pub(crate) fn add_violations(&mut self, violations: &[AttemptViolation]) {
        for violation in violations {
            self.add(&violation.message);
            self.add(&violation.correction);
        }
    }

    /// Adds the texts of a delegate that failed internally.
    pub(crate) fn add_outcome(&mut self, outcome: &InternalOutcome) {
        outcome.internal_texts().into_iter().for_each(|text| self.add(text));
    }

    fn add(&mut self, text: &str) {
        let text = normalized(text);
        if text.chars().count() >= TEXT_CHARS_MIN {
            self.texts.insert(text);
        }
    }

    /// Whether an answer repeats one of the texts, or a long part of it. An internal outcome that
    /// is passed on unchanged is filtered at the border instead.
    pub(crate) fn is_repeated_in(&self, outcome: &ArtifactOutcome) -> bool {
        if self.texts.is_empty() {
            return false;
        }
        let mut said = Vec::new();
        match outcome {
            ArtifactOutcome::Ok { value, sources } => add_answer(value, sources, &mut said),
            ArtifactOutcome::Error(error) => {
                said.extend([&*error.error_type, &*error.error_message]);
            }
            ArtifactOutcome::Child(child) => match &**child {
                InternalOutcome::Ok { value, sources } => add_answer(value, sources, &mut said),
                InternalOutcome::Error(error) => {
                    said.extend([&*error.error_type, &*error.error_message]);
                }
                InternalOutcome::InternalError { .. } => return false,
            },
        }
        let said = normalized(&said.join("\n"));
        let words: Vec<&str> = said.split(' ').collect();
        let runs: BTreeSet<&[&str]> = words.windows(WORDS_IN_A_ROW).collect();
        self.texts.iter().any(|text| {
            said.contains(text.as_str())
                || own_runs(text).iter().any(|run| runs.contains(run.as_slice()))
        })
    }
}

/// The words of a text that follow each other. Text in backticks alone is user text: a path or a
/// command that an answer may name.
fn own_runs(text: &str) -> Vec<Vec<&str>> {
    let mut is_quoted = false;
    let mut words = Vec::new();
    for word in text.split(' ') {
        let ticks = word.matches('`').count();
        let is_user_text = is_quoted || ticks > 0;
        is_quoted ^= ticks % 2 == 1;
        words.push((word, is_user_text));
    }
    let has_own_words = |run: &&[(&str, bool)]| run.iter().any(|(_, is_user_text)| !is_user_text);
    let runs = words.windows(WORDS_IN_A_ROW).filter(has_own_words);
    runs.map(|run| run.iter().map(|(word, _)| *word).collect()).collect()
}

fn normalized(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

fn add_answer<'v>(value: &'v Value, sources: &'v [Value], said: &mut Vec<&'v str>) {
    add_texts(value, said);
    sources.iter().for_each(|source| add_texts(source, said));
}

/// Adds all texts in a value.
fn add_texts<'v>(value: &'v Value, said: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => said.push(text),
        Value::Array(items) => items.iter().for_each(|item| add_texts(item, said)),
        Value::Object(fields) => {
            for (key, value) in fields {
                said.push(key);
                add_texts(value, said);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use jackline_attempt::{OutcomeError, Subtype};
    use serde_json::json;

    use super::*;

    const MESSAGE: &str = "file `src/a.txt` was not read before this call overwrites it";

    fn repeats(answer: Value) -> bool {
        let mut texts = InternalTexts::default();
        texts.add_violations(&[AttemptViolation::new(Subtype::ToolDenied, MESSAGE)]);
        texts.is_repeated_in(&ArtifactOutcome::Ok { value: answer, sources: Vec::new() })
    }

    #[test]
    fn a_text_is_found_whole_cut_and_in_other_spelling() {
        assert!(repeats(json!({ "why": [format!("It said: {MESSAGE}")] })));
        assert!(repeats(json!({ MESSAGE: 1 })));
        assert!(repeats(json!(&MESSAGE[4..50])));
        assert!(repeats(json!(MESSAGE.to_uppercase().replace(' ', "\n"))));
        assert!(repeats(json!(Subtype::ToolDenied.correction())));
    }

    #[test]
    fn an_answer_may_name_the_file_and_use_the_same_words() {
        assert!(!repeats(json!("`src/a.txt` was not read, so I did not change it")));
        assert!(!repeats(json!("tool_denied")));
        let command = "`git push --force origin main --no-verify` is refused by the rule";
        let mut texts = InternalTexts::default();
        texts.add_violations(&[AttemptViolation::new(Subtype::ToolDenied, command)]);
        let named = json!("I left out `git push --force origin main --no-verify` here");
        let answer = ArtifactOutcome::Ok { value: named, sources: Vec::new() };
        assert!(!texts.is_repeated_in(&answer));
    }

    #[test]
    fn sources_error_types_and_outcomes_that_are_passed_on_are_checked() {
        let mut texts = InternalTexts::default();
        texts.add_violations(&[AttemptViolation::new(Subtype::ToolDenied, MESSAGE)]);
        let sources = vec![json!({ "uri": MESSAGE })];
        assert!(texts.is_repeated_in(&ArtifactOutcome::Ok { value: Value::Null, sources }));
        let error = OutcomeError::new(MESSAGE, "no", false);
        assert!(texts.is_repeated_in(&ArtifactOutcome::Error(error)));
        let value = json!(MESSAGE);
        let child = Box::new(InternalOutcome::Ok { value, sources: Vec::new() });
        assert!(texts.is_repeated_in(&ArtifactOutcome::Child(child)));
    }
}
