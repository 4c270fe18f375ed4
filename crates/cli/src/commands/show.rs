//! `jackline show`: prints one complete record.

use jackline_journal::{EventRecord, JournalLine, SessionEntry, StoreError, parse_record};

use super::select;
use crate::args::ShowArgs;
use crate::exit::ExitKind;
use crate::terminal::{
    bold, decision_style, dim, fail, format_age, load_sessions, open_journal, print_json_line,
    print_line, print_table, sanitize, styled,
};

pub(crate) fn run(args: &ShowArgs) -> ExitKind {
    // `show 7` is record 7 of the latest session; `show s1 7` is record 7 of session `s1`.
    let (session, record) = match args.session_and_record.as_slice() {
        [] => (None, None),
        [one] => match parse_record_number(one) {
            Some(record) => (None, Some(record)),
            None => (Some(one.as_str()), None),
        },
        [session, record, ..] => match parse_record_number(record) {
            Some(record) => (Some(session.as_str()), Some(record)),
            None => {
                return fail(ExitKind::Usage, format!("`{record}` is not a record number"));
            }
        },
    };
    let entry = match load_sessions().and_then(|(_, all)| select(&all, session)) {
        Ok(entry) => entry,
        Err(exit) => return exit,
    };
    if record == Some(0) {
        return show_opening(&entry, args.json);
    }
    match find_record(&entry, record) {
        Ok(Some((line, _))) if args.json => {
            print_json_line(line);
            ExitKind::Success
        }
        Ok(Some((_, record))) => {
            show(&record);
            ExitKind::Success
        }
        Ok(None) => {
            let which = record.map_or_else(String::new, |record| format!(" {record}"));
            fail(ExitKind::Usage, format!("session `{}` has no record{which}", entry.name))
        }
        Err(error) => fail(ExitKind::Broken, format!("{error}; {}", error.remedy())),
    }
}

/// Parses a record number, or the id of a violation in the record, such as `v9.1`.
fn parse_record_number(word: &str) -> Option<u64> {
    let of_violation = word.strip_prefix('v').and_then(|id| id.split_once('.'));
    of_violation.map_or(word, |(record, _)| record).parse().ok()
}

/// Prints the first record, which contains how the session was opened.
fn show_opening(entry: &SessionEntry, as_json: bool) -> ExitKind {
    let opened = match entry.opening() {
        Ok(opened) => opened,
        Err(error) => return fail(ExitKind::Broken, format!("{error}; {}", error.remedy())),
    };
    if as_json {
        let first = open_journal(entry).and_then(|journal| journal.record(0));
        return match first {
            Ok(line) => {
                print_json_line(String::from_utf8_lossy(&line.unwrap_or_default()));
                ExitKind::Success
            }
            Err(error) => fail(ExitKind::Broken, error),
        };
    }
    let definition = &opened.definition;
    let named = open_journal(entry).and_then(|it| it.definition(&definition.lowered.digest()));
    let name = named.map_or_else(|error| error.to_string(), |named| named.name.clone());
    print_line(format!(
        "{} opened {}",
        bold("#0"),
        dim(format!("{} ({})", format_age(opened.at), opened.at))
    ));
    let mut rows = vec![
        ("session", opened.session.to_string()),
        ("definition", name),
        ("checksum", definition.checksum.to_string()),
    ];
    rows.extend(opened.place.definition.first().cloned().map(|file| ("file", file)));
    rows.extend(opened.place.workspace.clone().map(|workspace| ("workspace", workspace)));
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(name, value)| vec![format!("  {}", dim(name)), sanitize(&value, 200)])
        .collect();
    print_table(&rows);
    ExitKind::Success
}

/// Finds the record with a number, else the last record with a violation, else the last record.
fn find_record(
    entry: &SessionEntry,
    number: Option<u64>,
) -> Result<Option<(String, Box<EventRecord>)>, StoreError> {
    let mut last: Option<(String, Box<EventRecord>)> = None;
    open_journal(entry)?.for_each(|line| {
        let JournalLine::Event(record) = parse_record(line)? else { return Ok(()) };
        let is_better = match (number, &last) {
            (Some(number), _) => record.seq == number,
            (None, Some((_, last))) => {
                last.verdict.violations.is_empty() || !record.verdict.violations.is_empty()
            }
            (None, None) => true,
        };
        if is_better {
            last = Some((String::from_utf8_lossy(line).into_owned(), record));
        }
        Ok::<(), StoreError>(())
    })?;
    Ok(last)
}

fn show(record: &EventRecord) {
    let verdict = &record.verdict;
    let at = record.event.at.unwrap_or(record.facts.now.wall);
    print_line(format!(
        "{} {} {} {}",
        bold(format!("#{}", record.seq)),
        record.event.kind.name(),
        dim(format!("by {}", sanitize(record.event.actor.as_str(), 40))),
        dim(format!("{} ({at})", format_age(at)))
    ));
    let would = if verdict.enforced == Some(false) { "would " } else { "" };
    print_line(format!(
        "{}{}",
        would,
        styled(decision_style(verdict.decision), verdict.decision.as_str())
    ));
    for violation in &verdict.violations {
        print_line(format!(
            "\n{} {} {}",
            dim(&violation.id),
            bold(violation.guard.as_str()),
            dim(format!("{} / {}", violation.kind, violation.subtype))
        ));
        print_line(format!("  {}", sanitize(&violation.message, 400)));
        if let Some(correction) = &violation.correction {
            print_line(format!("  -> {}", sanitize(correction, 400)));
        }
    }
    for (name, value) in [
        ("completion", serde_json::to_value(&verdict.completion)),
        ("stop", serde_json::to_value(&verdict.stop)),
        ("event", serde_json::to_value(&record.event)),
        ("facts", serde_json::to_value(&record.facts)),
    ] {
        if let Ok(value) = value
            && !value.is_null()
        {
            let pretty = serde_json::to_string_pretty(&value).unwrap_or_default();
            let shown: Vec<String> = pretty.lines().map(|line| sanitize(line, 200)).collect();
            print_line(format!("\n{}\n{}", bold(name), shown.join("\n")));
        }
    }
    for note in &record.notes {
        print_line(format!("\n{} {}", bold("note"), super::log::describe_note(note)));
    }
    print_line(dim(format!(
        "\ndecided by engine {} (semantics {})",
        record.engine, record.semantics
    )));
}
