//! What would have been denied or asked about, had everything been enforced.
//!
//! It is counted from the journal when somebody asks: whoever observes wants
//! to know what enforcing would cost, and nobody else should pay for it.

use std::collections::BTreeMap;

use jackline_engine::definition::Effect;
use jackline_engine::verdict::GuardName;
use jackline_engine::{Decision, Definition, Mode};
use jackline_journal::{JournalView, Line, StoreError, parse_record};
use serde_json::{Value, json};

use crate::terminal::{dim, plain};

/// How many of the last records are looked at.
const RECORDS_MAX: u64 = 20_000;

/// How many rules are named.
const NAMED_MAX: usize = 3;

/// What was only observed in a session.
#[derive(Default)]
pub(crate) struct Trial {
    denied: u64,
    asked: u64,
    /// How often each rule would have held, those of guards under their name.
    by: BTreeMap<(Source, String), u64>,
    /// How many records were looked at, where that is not all of them.
    of_last: Option<u64>,
}

/// What is on trial.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    /// A rule, which can be enforced by its name.
    Rule,
    /// A guard, which holds with the definition.
    Guard,
}

impl Trial {
    /// Counts the end of a journal.
    pub(crate) fn of(journal: &JournalView, definition: &Definition) -> Result<Self, StoreError> {
        // A rule that says `observe` would not hold anybody up either way.
        let watching: Vec<&str> = definition
            .rules
            .iter()
            .filter(|rule| rule.effect == Effect::Observe)
            .map(|rule| rule.name.as_str())
            .collect();
        let mut trial = Self::default();
        journal.for_each_of_last(RECORDS_MAX, |line| {
            if holds(line, br#""enforced":false"#) {
                trial.add(line, &watching)?;
            }
            Ok::<(), StoreError>(())
        })?;
        let records = journal.last_seq()?.map_or(0, |last| last + 1);
        trial.of_last = (records > RECORDS_MAX).then_some(RECORDS_MAX);
        Ok(trial)
    }

    fn add(&mut self, line: &[u8], watching: &[&str]) -> Result<(), StoreError> {
        let Line::Event(record) = parse_record(line)? else { return Ok(()) };
        let mut strongest = None;
        for found in record.verdict.violations.iter().filter(|found| !found.enforced) {
            let is_rule = found.guard == GuardName::Rules;
            if found.decision < Decision::Ask
                || (is_rule && watching.contains(&found.subtype.word()))
            {
                continue;
            }
            strongest = strongest.max(Some(found.decision));
            let (source, name) = if is_rule {
                (Source::Rule, found.subtype.word())
            } else {
                (Source::Guard, found.guard.word())
            };
            *self.by.entry((source, name.to_owned())).or_default() += 1;
        }
        match strongest {
            None => {}
            Some(Decision::Ask) => self.asked += 1,
            Some(_) => self.denied += 1,
        }
        Ok(())
    }

    /// The names, the one that would have held most often first.
    fn named(&self) -> Vec<(Source, &str, u64)> {
        let mut named: Vec<_> = self
            .by
            .iter()
            .map(|((source, name), count)| (*source, name.as_str(), *count))
            .collect();
        named.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
        named
    }

    pub(crate) fn as_json(&self) -> Value {
        let by = |(_, name, count): (Source, &str, u64)| (name.to_owned(), json!(count));
        json!({
            "would_deny": self.denied,
            "would_ask": self.asked,
            "by": self.named().into_iter().map(by).collect::<serde_json::Map<_, _>>(),
            "of_last_records": self.of_last,
        })
    }

    /// The rows of `status`; none where nothing is on trial.
    pub(crate) fn rows(&self, mode: Mode) -> Vec<(&'static str, String)> {
        let named = self.named();
        let Some((source, most, _)) = named.first() else { return Vec::new() };
        let of_last = self.of_last.map_or_else(String::new, |records| {
            format!(" {}", dim(format!("(in the last {records} records)")))
        });
        let listed: Vec<String> = named
            .iter()
            .take(NAMED_MAX)
            .map(|(_, name, count)| format!("{} {}", plain(name, 60), dim(format!("{count}×"))))
            .collect();
        let more = named.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let enforce = match source {
            Source::Rule => {
                format!("`jackline enforce {}`, or all with `jackline enforce`", plain(most, 60))
            }
            // What is on trial in a file that enforces has a mode of its own.
            Source::Guard if mode == Mode::Enforce => "`loops: {}` in `jackline.yaml`".to_owned(),
            Source::Guard => "`jackline enforce`".to_owned(),
        };
        vec![
            (
                "on trial",
                format!("would have been denied: {}, asked: {}{of_last}", self.denied, self.asked),
            ),
            ("most by", format!("{}{more}", listed.join(", "))),
            ("to enforce", enforce),
        ]
    }
}

fn holds(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).any(|part| part == word)
}
