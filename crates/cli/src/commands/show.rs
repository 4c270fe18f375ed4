//! `jackline show`: one record whole.

use jackline_journal::{EventRecord, Line, SessionEntry, StoreError, parse_record};

use super::select;
use crate::args::ShowArgs;
use crate::exit::Exit;
use crate::terminal::{
    ago, bold, dim, fail, open_journal, plain, say, say_json, sessions, style_of, styled, table,
};

pub(crate) fn run(args: &ShowArgs) -> Exit {
    // `show 7` is record 7 of the latest session; `show s1 7` is one of `s1`.
    let (session, record) = match args.what.as_slice() {
        [] => (None, None),
        [one] => match number(one) {
            Some(record) => (None, Some(record)),
            None => (Some(one.as_str()), None),
        },
        [session, record, ..] => match number(record) {
            Some(record) => (Some(session.as_str()), Some(record)),
            None => {
                return fail(Exit::Usage, format!("`{record}` is not the number of a record"));
            }
        },
    };
    let found = match sessions().and_then(|(_, all)| select(&all, session)) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    if record == Some(0) {
        return opening(&found, args.json);
    }
    match find(&found, record) {
        Ok(Some((line, _))) if args.json => {
            say_json(line);
            Exit::Fine
        }
        Ok(Some((_, record))) => {
            show(&record);
            Exit::Fine
        }
        Ok(None) => {
            let which = record.map_or_else(String::new, |record| format!(" {record}"));
            fail(Exit::Usage, format!("session `{}` has no record{which}", found.name))
        }
        Err(error) => fail(Exit::Broken, format!("{error}; {}", error.remedy())),
    }
}

/// A record by its number, or by the id of a violation in it, such as `v9.1`.
fn number(word: &str) -> Option<u64> {
    let of_violation = word.strip_prefix('v').and_then(|id| id.split_once('.'));
    of_violation.map_or(word, |(record, _)| record).parse().ok()
}

/// The first record: what the session was opened with.
fn opening(found: &SessionEntry, as_json: bool) -> Exit {
    let opened = match found.opened() {
        Ok(opened) => opened,
        Err(error) => return fail(Exit::Broken, format!("{error}; {}", error.remedy())),
    };
    if as_json {
        let first = open_journal(found).and_then(|journal| journal.record(0));
        return match first {
            Ok(line) => {
                say_json(String::from_utf8_lossy(&line.unwrap_or_default()));
                Exit::Fine
            }
            Err(error) => fail(Exit::Broken, error),
        };
    }
    let definition = &opened.definition;
    let named = open_journal(found).and_then(|it| it.definition(&definition.lowered.digest()));
    let name = named.map_or_else(|error| error.to_string(), |named| named.name.clone());
    say(format!("{} opened {}", bold("#0"), dim(format!("{} ({})", ago(opened.at), opened.at))));
    let mut rows = vec![
        ("session", opened.session.to_string()),
        ("definition", name),
        ("checksum", definition.checksum.to_string()),
    ];
    rows.extend(opened.place.definition.first().cloned().map(|file| ("file", file)));
    rows.extend(opened.place.workspace.clone().map(|workspace| ("workspace", workspace)));
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(name, value)| vec![format!("  {}", dim(name)), plain(&value, 200)])
        .collect();
    table(&rows);
    Exit::Fine
}

/// The record with a number; else the last with an objection; else the last.
fn find(
    found: &SessionEntry,
    number: Option<u64>,
) -> Result<Option<(String, Box<EventRecord>)>, StoreError> {
    let mut last: Option<(String, Box<EventRecord>)> = None;
    open_journal(found)?.for_each(|line| {
        let Line::Event(record) = parse_record(line)? else { return Ok(()) };
        let better = match (number, &last) {
            (Some(number), _) => record.seq == number,
            (None, Some((_, last))) => {
                last.verdict.violations.is_empty() || !record.verdict.violations.is_empty()
            }
            (None, None) => true,
        };
        if better {
            last = Some((String::from_utf8_lossy(line).into_owned(), record));
        }
        Ok::<(), StoreError>(())
    })?;
    Ok(last)
}

fn show(record: &EventRecord) {
    let verdict = &record.verdict;
    let at = record.event.at.unwrap_or(record.facts.now.wall);
    say(format!(
        "{} {} {} {}",
        bold(format!("#{}", record.seq)),
        record.event.kind.name(),
        dim(format!("by {}", plain(record.event.actor.as_str(), 40))),
        dim(format!("{} ({at})", ago(at)))
    ));
    let would = if verdict.enforced == Some(false) { "would " } else { "" };
    say(format!("{}{}", would, styled(style_of(verdict.decision), verdict.decision.word())));
    for violation in &verdict.violations {
        say(format!(
            "\n{} {} {}",
            dim(&violation.id),
            bold(violation.guard.word()),
            dim(format!("{} / {}", violation.kind, violation.subtype))
        ));
        say(format!("  {}", plain(&violation.message, 400)));
        if let Some(correction) = &violation.correction {
            say(format!("  -> {}", plain(correction, 400)));
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
            let shown: Vec<String> = pretty.lines().map(|line| plain(line, 200)).collect();
            say(format!("\n{}\n{}", bold(name), shown.join("\n")));
        }
    }
    for note in &record.notes {
        say(format!("\n{} {}", bold("note"), super::log::describe(note)));
    }
    say(dim(format!("\ndecided by engine {} (semantics {})", record.engine, record.semantics)));
}
