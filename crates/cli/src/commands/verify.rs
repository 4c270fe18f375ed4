//! `jackline verify`: checks the hash chain of a journal and that every record can be read, or
//! checks an attestation.

mod attestation;

use anstyle::AnsiColor;
use jackline_analysis::{AccountError, find_export_mismatches};
use jackline_engine::Digest;
use jackline_journal::{
    FileStore, JournalProblemKind, ReadMode, SessionEntry, Store as _, StoreError, Verifier,
    VerifyReport,
};
use serde_json::json;

use super::each_session;
use crate::args::VerifyArgs;
use crate::exit::ExitKind;
use crate::terminal::{bold, dim, fail, print_json_line, print_line, styled};

pub(crate) fn run(args: &VerifyArgs) -> ExitKind {
    if let Some(file) = &args.attestation {
        return attestation::run(file, args);
    }
    each_session(&args.sessions, |store, entry| verify_one(store, entry, args.sessions.json))
}

fn verify_one(store: &FileStore, entry: &SessionEntry, as_json: bool) -> ExitKind {
    let name = &entry.name;
    let report = match verify_journal(store, entry) {
        Ok(report) => report,
        Err(error) => {
            return fail(ExitKind::Broken, format!("{name}: {error}; {}", error.remedy()));
        }
    };
    if as_json {
        print_json_line(json!({ "session": name, "clean": report.is_clean(), "report": report }));
    } else {
        let verdict = if report.is_clean() {
            styled(AnsiColor::Green.on_default().bold(), "clean")
        } else {
            styled(AnsiColor::Red.on_default().bold(), "not clean")
        };
        let head = report.head.map_or_else(String::new, |head| dim(format!(", head {head}")));
        print_line(format!("{}: {verdict}, {} records{head}", bold(name), report.records));
        show_findings(&report);
    }
    if report.is_clean() { ExitKind::Success } else { ExitKind::No }
}

fn verify_journal(store: &FileStore, entry: &SessionEntry) -> Result<VerifyReport, StoreError> {
    let journal = store.view(entry, ReadMode::Consistent)?;
    let mut verifier = Verifier::new(journal.saved_head());
    let (mut blobs, mut odd) = (Vec::new(), Vec::new());
    let mut number = 0;
    let torn = journal.for_each(|line| {
        if verifier.check_line(line)
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
        match find_export_mismatches(&journal) {
            Ok(misfits) => {
                misfits
                    .into_iter()
                    .for_each(|(at, why)| report.add(JournalProblemKind::Export, at, why));
            }
            Err(AccountError::Store(error)) => return Err(error),
            Err(error @ AccountError::Changed(_)) => {
                report.add(JournalProblemKind::Tampered, 0, error.to_string());
            }
        }
    }
    // In the state home, the directory of a session must contain the journal of that session.
    if let Ok(opened) = entry.opening()
        && let Some(directory) = entry.directory()
        && directory.starts_with(store.home())
        && directory != store.directory(&opened.session)
    {
        report.add(
            JournalProblemKind::Tampered,
            0,
            "it is the journal of another session".to_owned(),
        );
    }
    // The gate could not continue a session after such a record.
    for (record, reason) in odd {
        report.add(JournalProblemKind::Unreadable, record, reason);
    }
    for (record, blob) in blobs {
        // Blobs may expire, but an existing blob must match its digest.
        if let Some(bytes) = store.blob(&blob)?
            && Digest::of(&bytes) != blob
        {
            report.add(
                JournalProblemKind::Blob,
                record,
                format!("its payload {blob} was changed after it was stored"),
            );
        }
    }
    Ok(report)
}

/// The digests of the payloads that a record refers to.
fn blobs_of(line: &[u8]) -> impl Iterator<Item = Digest> {
    let text = String::from_utf8_lossy(line).into_owned();
    let entry: Vec<Digest> = text
        .split("\"sha256\":\"")
        .skip(1)
        .filter_map(|rest| Digest::parse(rest.get(..64)?))
        .collect();
    entry.into_iter()
}

pub(super) fn show_findings(report: &VerifyReport) {
    for finding in &report.findings {
        let kind = styled(AnsiColor::Red.on_default(), finding.kind.as_str());
        print_line(format!("  record {} {kind}: {}", finding.record, finding.reason));
    }
    if report.more > 0 {
        print_line(format!("  and {} more", report.more));
    }
}
