//! Checks an attestation: its signature, and whether it agrees with the journal.

use jackline_journal::{FileStore, SessionEntry};
use std::path::Path;

use anstyle::AnsiColor;
use jackline_analysis::JournalAccount;
use jackline_evidence::{DsseEnvelope, EnvelopeError, PublicKey, Statement};
use jackline_host::read_regular;
use jackline_runtime::{SelectError, Sessions};
use serde_json::json;

use crate::args::VerifyArgs;
use crate::commands::attest::{PUBLIC_KEY_FILE, key_file, read_key};
use crate::commands::select;
use crate::exit::ExitKind;
use crate::status_label::stop_code_label;
use crate::terminal::{
    bold, current_directory, dim, fail, load_sessions, open_journal, print_json_line, print_line,
    sanitize, styled,
};

/// The maximum size of an attestation.
const ATTESTATION_BYTES_MAX: u64 = 64 << 20;

/// The stop code of a session that achieved its objective.
const ACHIEVED: &str = "OBJECTIVE_ACHIEVED";

pub(super) fn run(file: &Path, args: &VerifyArgs) -> ExitKind {
    match check_attestation(file, args) {
        Ok((statement, differences)) => print_result(&statement, &differences, args.sessions.json),
        Err(exit) => exit,
    }
}

/// The attested statement, and everything in it that is not valid.
fn check_attestation(file: &Path, args: &VerifyArgs) -> Result<(Statement, Vec<String>), ExitKind> {
    let (store, sessions) = load_sessions()?;
    let public = args.public_key.clone().unwrap_or_else(|| key_file(&store, PUBLIC_KEY_FILE));
    let key = read_key(&public, "--public-key", PublicKey::parse)?;
    let bad = |error: &dyn std::fmt::Display| {
        fail(ExitKind::Usage, format!("`{}` is not an attestation: {error}", file.display()))
    };
    let bytes = read_regular(file, ATTESTATION_BYTES_MAX).map_err(|error| bad(&error))?;
    let envelope = DsseEnvelope::parse(&bytes).map_err(|error| bad(&error))?;
    let payload = match envelope.open(&key) {
        Ok(payload) => payload,
        Err(error @ EnvelopeError::NotAnEnvelope(_)) => return Err(bad(&error)),
        // With another signer, or without a signature, the statement is not attested.
        Err(error) => return Err(fail(ExitKind::No, format!("`{}`: {error}", file.display()))),
    };
    let statement = Statement::parse(&payload).map_err(|error| bad(&error))?;
    let mut differences = Vec::new();
    let session = &statement.predicate().session;
    let entry = match args.sessions.sessions.as_slice() {
        [] => match sessions.select(Some(session.as_str()), &current_directory()) {
            Ok(entry) => Some(entry),
            Err(SelectError::Unknown(_) | SelectError::NotAJournal { .. }) => None,
            Err(error) => return Err(fail(ExitKind::Broken, error)),
        },
        [one] => Some(select(&sessions, Some(one))?),
        _ => {
            return Err(fail(
                ExitKind::Usage,
                "an attestation is about one session; name only that one",
            ));
        }
    };
    match entry {
        Some(entry) => differences.extend(journal_differences(&statement, &entry)),
        None => differences.push(format!(
            "the journal of `{session}` was not found; pass it, or an export of it, as SESSION"
        )),
    }
    if let Some(commit) = &args.commit
        && statement.commit() != Some(commit)
    {
        let attested = statement.commit().unwrap_or("none");
        differences.push(format!("the attested commit is {attested}, not {commit}"));
    }
    if args.done {
        // With a named session, the latest session of this workspace does not matter.
        if args.sessions.sessions.is_empty() {
            differences.extend(workspace_difference(&statement, &sessions)?);
        }
        differences.extend(stop_differences(&statement));
    }
    Ok((statement, differences))
}

/// The differences between the statement and the journal.
fn journal_differences(statement: &Statement, entry: &SessionEntry) -> Vec<String> {
    let account = open_journal(entry)
        .map_err(Into::into)
        .and_then(|journal| JournalAccount::from_journal(&journal));
    match account {
        Ok(account) => statement.differences(&account),
        Err(error) => vec![error.to_string()],
    }
}

/// The problem that the session is not the latest of this workspace, if so.
fn workspace_difference(
    statement: &Statement,
    sessions: &Sessions<FileStore>,
) -> Result<Option<String>, ExitKind> {
    let latest = select(sessions, None)?;
    let is_other = latest.name != statement.predicate().session.as_str();
    let name = sanitize(&latest.name, 80);
    Ok(is_other.then(|| format!("the latest session of this workspace is `{name}`")))
}

/// The reasons why the session does not count as done.
fn stop_differences(statement: &Statement) -> Vec<String> {
    let predicate = statement.predicate();
    let mut differences = Vec::new();
    if predicate.stop_code() != Some(ACHIEVED) {
        let code = predicate.stop_code().unwrap_or("none yet");
        differences.push(format!("the stop code of the session is {code}, not {ACHIEVED}"));
    }
    // If git could not tell, the changes do not count as committed.
    let missing = match (statement.commit(), predicate.uncommitted) {
        (Some(_), Some(false)) => None,
        (None, _) => Some(
            "no commit is attested: git reported none for the workspace, so it is unknown whether \
             the changes are committed",
        ),
        (Some(_), Some(true)) => {
            Some("the workspace had uncommitted changes or files when it was attested")
        }
        (Some(_), None) => {
            Some("the attestation does not contain whether everything was committed")
        }
    };
    differences.extend(missing.map(ToOwned::to_owned));
    differences
}

fn print_result(statement: &Statement, differences: &[String], as_json: bool) -> ExitKind {
    let is_valid = differences.is_empty();
    let session = &statement.predicate().session;
    if as_json {
        print_json_line(json!({
            "session": session,
            "holds": is_valid,
            "differences": differences,
            "commit": statement.commit(),
            "predicate": statement.predicate(),
        }));
    } else {
        let verdict = if is_valid {
            styled(AnsiColor::Green.on_default().bold(), "valid")
        } else {
            styled(AnsiColor::Red.on_default().bold(), "not valid")
        };
        let stop = statement.predicate().stop_code();
        let status = stop.map_or_else(|| "not finished yet".to_owned(), stop_code_label);
        let about = statement.commit().map_or_else(String::new, |it| format!(", commit {it}"));
        print_line(format!("{}: {verdict}, {status}{}", bold(session), dim(about)));
        differences.iter().for_each(|it| print_line(format!("  {}", sanitize(it, 400))));
    }
    if is_valid { ExitKind::Success } else { ExitKind::No }
}
