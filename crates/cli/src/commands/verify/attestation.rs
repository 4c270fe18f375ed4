//! Checks what `jackline attest` wrote: who signed it, and whether the journal says the same.

use jackline_journal::{FileStore, SessionEntry};
use std::fs;
use std::path::Path;

use anstyle::AnsiColor;
use jackline_analysis::Account;
use jackline_evidence::{Envelope, EnvelopeError, PublicKey, Statement};
use jackline_runtime::{SelectError, Sessions};
use serde_json::json;

use crate::args::VerifyArgs;
use crate::commands::attest::{PUBLIC, key_file, read_key};
use crate::commands::select;
use crate::exit::Exit;
use crate::terminal::{
    bold, dim, fail, here, open_journal, plain, say, say_json, sessions, styled,
};

/// The code of a session that did what it was to do.
const ACHIEVED: &str = "OBJECTIVE_ACHIEVED";

pub(super) fn run(file: &Path, args: &VerifyArgs) -> Exit {
    match check(file, args) {
        Ok((statement, differences)) => tell(&statement, &differences, args.sessions.json),
        Err(exit) => exit,
    }
}

/// What was attested, and everything that does not hold of it.
fn check(file: &Path, args: &VerifyArgs) -> Result<(Statement, Vec<String>), Exit> {
    let (store, sessions) = sessions()?;
    let public = args.public_key.clone().unwrap_or_else(|| key_file(&store, PUBLIC));
    let key = read_key(&public, "--public-key", PublicKey::parse)?;
    let bad = |error: &dyn std::fmt::Display| {
        fail(Exit::Usage, format!("`{}` is no attestation: {error}", file.display()))
    };
    let bytes = fs::read(file).map_err(|error| bad(&error))?;
    let envelope = Envelope::parse(&bytes).map_err(|error| bad(&error))?;
    let payload = match envelope.open(&key) {
        Ok(payload) => payload,
        Err(error @ EnvelopeError::None(_)) => return Err(bad(&error)),
        // Whoever signed something else, or nothing, has attested nothing.
        Err(error) => return Err(fail(Exit::No, format!("`{}`: {error}", file.display()))),
    };
    let statement = Statement::parse(&payload).map_err(|error| bad(&error))?;
    let mut differences = Vec::new();
    let session = &statement.predicate().session;
    let found = match args.sessions.sessions.as_slice() {
        [] => match sessions.select(Some(session.as_str()), &here()) {
            Ok(found) => Some(found),
            Err(SelectError::Unknown(_)) => None,
            Err(error) => return Err(fail(Exit::Broken, error)),
        },
        [one] => Some(select(&sessions, Some(one))?),
        _ => return Err(fail(Exit::Usage, "an attestation is about one session; name only that")),
    };
    match found {
        Some(found) => differences.extend(of_journal(&statement, &found)),
        None => differences.push(format!(
            "the journal of `{session}` is not here; name it, or an export of it, as SESSION"
        )),
    }
    if let Some(commit) = &args.commit
        && statement.commit() != Some(commit)
    {
        let attested = statement.commit().unwrap_or("none");
        differences.push(format!("the commit is attested as {attested}, and not {commit}"));
    }
    if args.done {
        // Who names the session knows which one is meant, and may have no other here.
        if args.sessions.sessions.is_empty() {
            differences.extend(of_workspace(&statement, &sessions)?);
        }
        differences.extend(of_end(&statement));
    }
    Ok((statement, differences))
}

/// What the journal says otherwise.
fn of_journal(statement: &Statement, found: &SessionEntry) -> Vec<String> {
    let account = open_journal(found).map_err(Into::into).and_then(|journal| Account::of(&journal));
    match account {
        Ok(account) => statement.differences(&account),
        Err(error) => vec![error.to_string()],
    }
}

/// What keeps the session from being the last word on this workspace.
fn of_workspace(
    statement: &Statement,
    sessions: &Sessions<FileStore>,
) -> Result<Option<String>, Exit> {
    let latest = select(sessions, None)?;
    let is_other = latest.name != statement.predicate().session.as_str();
    let name = plain(&latest.name, 80);
    Ok(is_other.then(|| format!("the latest session of this workspace is `{name}`")))
}

/// What keeps the session from being done.
fn of_end(statement: &Statement) -> Vec<String> {
    let predicate = statement.predicate();
    let mut differences = Vec::new();
    if predicate.stop_code() != Some(ACHIEVED) {
        let code = predicate.stop_code().unwrap_or("nothing yet");
        differences.push(format!("the session ended with {code}, and not {ACHIEVED}"));
    }
    // What nobody could tell is not known to be committed.
    let missing = match (statement.commit(), predicate.uncommitted) {
        (Some(_), Some(false)) => None,
        (None, _) => Some(
            "no commit is attested: git could name none of the workspace, so nothing is known to \
             be committed",
        ),
        (Some(_), Some(true)) => Some(
            "files of the workspace were not as in the commit, or not in it, when it was attested",
        ),
        (Some(_), None) => Some("whether everything was committed is not attested"),
    };
    differences.extend(missing.map(ToOwned::to_owned));
    differences
}

fn tell(statement: &Statement, differences: &[String], as_json: bool) -> Exit {
    let holds = differences.is_empty();
    let session = &statement.predicate().session;
    if as_json {
        say_json(json!({
            "session": session,
            "holds": holds,
            "differences": differences,
            "commit": statement.commit(),
            "predicate": statement.predicate(),
        }));
    } else {
        let verdict = if holds {
            styled(AnsiColor::Green.on_default().bold(), "holds")
        } else {
            styled(AnsiColor::Red.on_default().bold(), "does not hold")
        };
        let code = statement.predicate().stop_code().unwrap_or("no stop code yet");
        let about = statement.commit().map_or_else(String::new, |it| format!(", commit {it}"));
        say(format!("{}: {verdict}, {code}{}", bold(session), dim(about)));
        differences.iter().for_each(|it| say(format!("  {}", plain(it, 400))));
    }
    if holds { Exit::Fine } else { Exit::No }
}
