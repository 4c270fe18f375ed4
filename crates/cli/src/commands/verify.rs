//! `jackline verify`: checks the hash chain of a journal, and that it can be read; or an
//! attestation.

mod attestation;

use anstyle::AnsiColor;
use jackline_analysis::{AccountError, misfits};
use jackline_engine::Digest;
use jackline_journal::{
    FileStore, FindingKind, Reading, Report, SessionEntry, Store as _, StoreError, Verifier,
};
use serde_json::json;

use super::each_session;
use crate::args::VerifyArgs;
use crate::exit::Exit;
use crate::terminal::{bold, dim, fail, say, say_json, styled};

pub(crate) fn run(args: &VerifyArgs) -> Exit {
    if let Some(file) = &args.attestation {
        return attestation::run(file, args);
    }
    each_session(&args.sessions, |store, found| one(store, found, args.sessions.json))
}

fn one(store: &FileStore, found: &SessionEntry, as_json: bool) -> Exit {
    let name = &found.name;
    let report = match verify(store, found) {
        Ok(report) => report,
        Err(error) => return fail(Exit::Broken, format!("{name}: {error}; {}", error.remedy())),
    };
    if as_json {
        say_json(json!({ "session": name, "clean": report.is_clean(), "report": report }));
    } else {
        let verdict = if report.is_clean() {
            styled(AnsiColor::Green.on_default().bold(), "clean")
        } else {
            styled(AnsiColor::Red.on_default().bold(), "not clean")
        };
        let head = report.head.map_or_else(String::new, |head| dim(format!(", head {head}")));
        say(format!("{}: {verdict}, {} records{head}", bold(name), report.records));
        show_findings(&report);
    }
    if report.is_clean() { Exit::Fine } else { Exit::No }
}

fn verify(store: &FileStore, found: &SessionEntry) -> Result<Report, StoreError> {
    let journal = store.view(found, Reading::Consistent)?;
    let mut verifier = Verifier::new(journal.saved());
    let (mut blobs, mut odd) = (Vec::new(), Vec::new());
    let mut number = 0;
    let torn = journal.for_each(|line| {
        if verifier.line(line)
            && let Err(error) = journal.parse(line)
        {
            let reason = match error {
                StoreError::Record(error) => error.reason,
                error => error.to_string(),
            };
            odd.push((number, reason));
        }
        blobs.extend(blobs_of(line).map(|blob| (number, blob)));
        number += 1;
        Ok::<(), StoreError>(())
    })?;
    let mut report = verifier.finish(torn);
    if report.is_clean() && odd.is_empty() {
        match misfits(&journal) {
            Ok(misfits) => {
                misfits.into_iter().for_each(|(at, why)| report.add(FindingKind::Export, at, why));
            }
            Err(AccountError::Store(error)) => return Err(error),
            Err(error @ AccountError::NotWhole(_)) => {
                report.add(FindingKind::Tampered, 0, error.to_string());
            }
        }
    }
    // In its place in the state home, a journal must be that session's.
    if let Ok(opened) = found.opened()
        && let Some(directory) = found.directory()
        && directory.starts_with(store.home())
        && directory != store.directory(&opened.session)
    {
        report.add(FindingKind::Tampered, 0, "it is the journal of another session".to_owned());
    }
    // The gate would not go on after such a record.
    for (record, reason) in odd {
        report.add(FindingKind::Unreadable, record, reason);
    }
    for (record, blob) in blobs {
        // Blobs may expire; what is there must be what its name says.
        if let Some(bytes) = store.blob(&blob)?
            && Digest::of(&bytes) != blob
        {
            report.add(
                FindingKind::Blob,
                record,
                format!("its payload {blob} is not what was kept"),
            );
        }
    }
    Ok(report)
}

/// The payloads that a record points to.
fn blobs_of(line: &[u8]) -> impl Iterator<Item = Digest> {
    let text = String::from_utf8_lossy(line).into_owned();
    let found: Vec<Digest> = text
        .split("\"sha256\":\"")
        .skip(1)
        .filter_map(|rest| Digest::parse(rest.get(..64)?))
        .collect();
    found.into_iter()
}

pub(super) fn show_findings(report: &Report) {
    for finding in &report.findings {
        let kind = styled(AnsiColor::Red.on_default(), finding.kind.word());
        say(format!("  record {} {kind}: {}", finding.record, finding.reason));
    }
    if report.more > 0 {
        say(format!("  and {} more", report.more));
    }
}
