//! `jackline violations`: counts violations by guard, type and subtype, over many sessions.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};

use jackline_engine::Violation;
use jackline_journal::{JournalLine, SessionEntry, StoreError, parse_record};
use jackline_task::TRACE_FILE;
use serde::Deserialize;
use serde_json::json;

use super::select;
use crate::args::ViolationsArgs;
use crate::exit::ExitKind;
use crate::terminal::{
    bold, current_directory, dim, fail, format_count, load_sessions, open_journal, print_json_line,
    print_line, print_table, print_warning, sanitize,
};

pub(crate) fn run(args: &ViolationsArgs) -> ExitKind {
    let entries = match selected_sessions(args) {
        Ok(entries) => entries,
        Err(exit) => return exit,
    };
    let mut counts = ViolationCounts::default();
    let mut exit = ExitKind::Success;
    for entry in &entries {
        match counts.add_session(entry) {
            Ok(()) => counts.sessions += 1,
            Err(error) => {
                let name = sanitize(&entry.name, 60);
                print_warning(format!("session `{name}` is not counted: {error}"));
                exit = ExitKind::Broken;
            }
        }
    }
    if args.json {
        print_json_line(counts.as_json());
    } else {
        counts.print();
    }
    exit
}

fn selected_sessions(args: &ViolationsArgs) -> Result<Vec<SessionEntry>, ExitKind> {
    let (_, sessions) = load_sessions()?;
    if args.all {
        return sessions.list().map_err(|error| fail(ExitKind::Broken, error));
    }
    if args.sessions.is_empty() {
        return sessions
            .list_near(&current_directory())
            .map_err(|error| fail(ExitKind::Usage, error));
    }
    args.sessions.iter().map(|name| select(&sessions, Some(name))).collect()
}

/// How often each kind of violation was raised.
#[derive(Default)]
struct ViolationCounts {
    sessions: u64,
    /// By guard, type and subtype.
    in_journals: BTreeMap<(String, String, String), KindCount>,
    /// By subtype. An attempt also raises violations that no journal contains.
    in_attempts: BTreeMap<String, u64>,
}

/// How often one kind of violation was raised.
#[derive(Default, Clone, Copy)]
struct KindCount {
    enforced: u64,
    observed: u64,
}

/// The part of a line of the trace file that is counted.
#[derive(Deserialize)]
struct TraceCounts {
    #[serde(default)]
    guardrail_violation_subtypes: BTreeMap<String, u64>,
}

impl ViolationCounts {
    fn add_session(&mut self, entry: &SessionEntry) -> Result<(), StoreError> {
        open_journal(entry)?.for_each(|line| {
            if let JournalLine::Event(record) = parse_record(line)? {
                record.verdict.violations.iter().for_each(|violation| self.add(violation));
            }
            Ok::<(), StoreError>(())
        })?;
        self.add_attempts(entry);
        Ok(())
    }

    fn add(&mut self, violation: &Violation) {
        let kind = (
            violation.guard.as_str().to_owned(),
            violation.kind.as_str().to_owned(),
            violation.subtype.as_str().to_owned(),
        );
        let count = self.in_journals.entry(kind).or_default();
        if violation.enforced { count.enforced += 1 } else { count.observed += 1 }
    }

    /// Adds the violations in the trace file. Most sessions have none. A line that a killed process
    /// left incomplete is skipped.
    fn add_attempts(&mut self, entry: &SessionEntry) {
        let Some(directory) = entry.directory() else { return };
        let Ok(file) = File::open(directory.join(TRACE_FILE)) else { return };
        for line in BufReader::new(file).lines().map_while(Result::ok) {
            let Ok(counts) = serde_json::from_str::<TraceCounts>(&line) else { continue };
            for (subtype, count) in counts.guardrail_violation_subtypes {
                *self.in_attempts.entry(subtype).or_default() += count;
            }
        }
    }

    fn as_json(&self) -> serde_json::Value {
        let in_journals: Vec<_> = self
            .in_journals
            .iter()
            .map(|((guard, kind, subtype), count)| {
                json!({
                    "guard": guard, "type": kind, "subtype": subtype,
                    "enforced": count.enforced, "observed": count.observed,
                })
            })
            .collect();
        json!({
            "sessions": self.sessions,
            "violations": in_journals,
            "guardrail_violation_subtypes": self.in_attempts,
        })
    }

    fn print(&self) {
        let sessions = format_count(self.sessions, "session");
        if self.in_journals.is_empty() && self.in_attempts.is_empty() {
            print_line(format!("no violations in {sessions}"));
            return;
        }
        print_line(dim(format!("in {sessions}")));
        if !self.in_journals.is_empty() {
            let heads = ["guard", "type", "subtype", "enforced", "observed"];
            let mut rows: Vec<_> = self.in_journals.iter().collect();
            rows.sort_by_key(|(_, count)| std::cmp::Reverse(count.enforced + count.observed));
            let rows = rows.into_iter().map(|((guard, kind, subtype), count)| {
                let words = [guard, kind, subtype].map(|word| sanitize(word, 50)).into_iter();
                words.chain([count.enforced.to_string(), count.observed.to_string()]).collect()
            });
            print_table(&[heads.map(bold).to_vec()].into_iter().chain(rows).collect::<Vec<_>>());
        }
        if !self.in_attempts.is_empty() {
            let mut rows = vec![["raised in attempts", "times"].map(bold).to_vec()];
            for (subtype, count) in &self.in_attempts {
                rows.push(vec![sanitize(subtype, 60), count.to_string()]);
            }
            print_table(&rows);
        }
    }
}
