//! Counts the calls that would have been denied or asked about if everything were enforced.
//!
//! `status` counts them from the journal on request, so that the gate does no work for it.

use std::collections::BTreeMap;

use jackline_engine::definition::RuleEffect;
use jackline_engine::verdict::GuardName;
use jackline_engine::{Decision, Definition, Mode};
use jackline_journal::{JournalLine, JournalView, StoreError, parse_record};
use serde_json::{Value, json};

use crate::terminal::{dim, sanitize};

/// How many of the last records are counted.
const RECORDS_MAX: u64 = 20_000;

/// How many rules are named.
const NAMED_MAX: usize = 3;

/// The violations of a session that were observed but not enforced.
#[derive(Default)]
pub(crate) struct ObservedViolations {
    denied: u64,
    asked: u64,
    /// How many of these calls ran only because a person had switched the guard off.
    while_off: u64,
    /// How many violations each rule or guard observed.
    counts: BTreeMap<(ObservedSource, String), u64>,
    /// The number of counted records, if not all were counted.
    records_limit: Option<u64>,
}

/// What decides how a person enforces the violations of a session.
pub(crate) struct EnforcementContext<'a> {
    /// The session, as a person names it.
    pub(crate) session: &'a str,
    /// The definition of the session.
    pub(crate) definition: &'a Definition,
    /// The session's definition file as it is now, if it loads.
    pub(crate) current: Option<&'a Definition>,
    /// Whether the guard is off in the session's workspace now.
    pub(crate) is_off: bool,
}

impl EnforcementContext<'_> {
    /// Whether the session enforces a rule by now, after a reload.
    fn is_enforced_in_session(&self, source: ObservedSource, name: &str) -> bool {
        source == ObservedSource::Rule && is_rule_enforced(self.definition, name)
    }

    /// Whether the file already enforces what the session only observes.
    fn is_enforced_in_file(&self, source: ObservedSource, name: &str) -> bool {
        let Some(current) = self.current else { return false };
        match source {
            ObservedSource::Rule => is_rule_enforced(current, name),
            ObservedSource::Guard => {
                self.definition.mode == Mode::Observe && current.mode == Mode::Enforce
            }
        }
    }
}

fn is_rule_enforced(definition: &Definition, name: &str) -> bool {
    definition.rules.iter().any(|rule| rule.name == name && rule.mode == Mode::Enforce)
}

/// The origin of an observed violation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ObservedSource {
    /// A rule, which can be enforced by name.
    Rule,
    /// A guard, which is enforced with the whole definition.
    Guard,
}

impl ObservedViolations {
    /// Counts the last records of a journal.
    pub(crate) fn count_in(
        journal: &JournalView,
        definition: &Definition,
    ) -> Result<Self, StoreError> {
        // A rule with the effect `observe` never blocks a call, in any mode.
        let observing: Vec<&str> = definition
            .rules
            .iter()
            .filter(|rule| rule.effect == RuleEffect::Observe)
            .map(|rule| rule.name.as_str())
            .collect();
        let mut trial = Self::default();
        journal.for_each_of_last(RECORDS_MAX, |line| {
            if contains_bytes(line, br#""enforced":false"#) {
                trial.add(line, &observing)?;
            }
            Ok::<(), StoreError>(())
        })?;
        let records = journal.last_seq()?.map_or(0, |last| last + 1);
        trial.records_limit = (records > RECORDS_MAX).then_some(RECORDS_MAX);
        Ok(trial)
    }

    fn add(&mut self, line: &[u8], observing: &[&str]) -> Result<(), StoreError> {
        let JournalLine::Event(record) = parse_record(line)? else { return Ok(()) };
        let mut strongest = None;
        for violation in record.verdict.violations.iter().filter(|violation| !violation.enforced) {
            let is_rule = violation.guard == GuardName::Rules;
            if violation.decision < Decision::Ask
                || (is_rule && observing.contains(&violation.subtype.as_str()))
            {
                continue;
            }
            strongest = strongest.max(Some(violation.decision));
            let (source, name) = if is_rule {
                (ObservedSource::Rule, violation.subtype.as_str())
            } else {
                (ObservedSource::Guard, violation.guard.as_str())
            };
            *self.counts.entry((source, name.to_owned())).or_default() += 1;
        }
        match strongest {
            None => return Ok(()),
            Some(Decision::Ask) => self.asked += 1,
            Some(_) => self.denied += 1,
        }
        self.while_off += u64::from(record.facts.is_off());
        Ok(())
    }

    /// The rules and guards, the one with the most violations first.
    fn names_by_count(&self) -> Vec<(ObservedSource, &str, u64)> {
        let mut named: Vec<_> = self
            .counts
            .iter()
            .map(|((source, name), count)| (*source, name.as_str(), *count))
            .collect();
        named.sort_by_key(|(_, _, count)| std::cmp::Reverse(*count));
        named
    }

    pub(crate) fn as_json(&self) -> Value {
        let by = |(_, name, count): (ObservedSource, &str, u64)| (name.to_owned(), json!(count));
        json!({
            "would_deny": self.denied,
            "would_ask": self.asked,
            "while_off": self.while_off,
            "by": self.names_by_count().into_iter().map(by).collect::<serde_json::Map<_, _>>(),
            "of_last_records": self.records_limit,
        })
    }

    /// The rows of `status`; empty if nothing was observed.
    pub(crate) fn rows(&self, context: &EnforcementContext<'_>) -> Vec<(&'static str, String)> {
        let named = self.names_by_count();
        let Some((source, most, _)) = named.first() else { return Vec::new() };
        let remarks = [
            (self.while_off > 0).then(|| format!("{} while the guard was off", self.while_off)),
            self.records_limit.map(|records| format!("in the last {records} records")),
        ];
        let remarks: Vec<String> = remarks.into_iter().flatten().collect();
        let remarks = match remarks.as_slice() {
            [] => String::new(),
            remarks => format!(" {}", dim(format!("({})", remarks.join("; ")))),
        };
        let listed: Vec<String> = named
            .iter()
            .take(NAMED_MAX)
            .map(|(_, name, count)| format!("{} {}", sanitize(name, 60), dim(format!("{count}×"))))
            .collect();
        let more = named.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        vec![
            (
                "observed",
                format!("would have been denied: {}, asked: {}{remarks}", self.denied, self.asked),
            ),
            ("mostly by", format!("{}{more}", listed.join(", "))),
            ("to enforce", self.how_to_enforce(*source, most, context)),
        ]
    }

    /// What a person has to do to enforce the rule or guard with the most violations.
    fn how_to_enforce(
        &self,
        source: ObservedSource,
        name: &str,
        context: &EnforcementContext<'_>,
    ) -> String {
        let was_always_off = self.while_off == self.denied + self.asked;
        match source {
            _ if was_always_off && context.is_off => "`jackline on`".to_owned(),
            _ if was_always_off => "nothing to do: the guard is on again".to_owned(),
            _ if context.is_enforced_in_session(source, name) => {
                "nothing to do: the session enforces this rule now".to_owned()
            }
            _ if context.is_enforced_in_file(source, name) => format!(
                "the definition enforces now, but this session keeps the mode it started with: \
                 `jackline reload {}`, or start a new session",
                sanitize(context.session, 60)
            ),
            ObservedSource::Rule => {
                format!("`jackline enforce {}`, or all with `jackline enforce`", sanitize(name, 60))
            }
            // In a definition that enforces, an observed guard has its own mode.
            ObservedSource::Guard if context.definition.mode == Mode::Enforce => {
                "`loops: {}` in `jackline.yaml`".to_owned()
            }
            ObservedSource::Guard => "`jackline enforce`".to_owned(),
        }
    }
}

fn contains_bytes(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).any(|part| part == word)
}
