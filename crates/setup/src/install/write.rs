//! Carrying a plan out: bytes of before first, then what we did, then the file.

use std::path::{Path, PathBuf};

use jackline_engine::Digest;

use super::file::{make_directories, may_replace, remove, replace};
use super::ledger::{Entry, Ledger};
use super::{Change, Direction, InstallError, Plan};
use jackline_clients::settings_file::{SettingsFile, look};

/// What was done to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The file.
    pub path: PathBuf,
    /// Where its bytes from before are, if it had any.
    pub backup: Option<PathBuf>,
    /// Whether it is gone.
    pub removed: bool,
}

/// Does what a plan says. Where a file is no longer what the plan was made
/// for, nothing is done at all.
pub fn carry_out(plan: &Plan, state_home: &Path) -> Result<Vec<Written>, InstallError> {
    let ledger = Ledger::of(state_home);
    let _lock = ledger.lock()?;
    for change in &plan.changes {
        let held = look(&change.path)?;
        if held.bytes != change.before || held.target != change.target {
            return Err(InstallError::Changed { path: change.path.clone() });
        }
        let failed = |error| InstallError::of(&change.path, "write", error);
        may_replace(&held).map_err(failed)?;
    }
    let mut written: Vec<Written> = Vec::new();
    for change in &plan.changes {
        match write(change, &ledger) {
            Ok(done) => written.push(done),
            Err(error) if written.is_empty() => return Err(error),
            Err(error) => {
                let written = written.into_iter().map(|done| done.path).collect();
                return Err(InstallError::Partly { written, source: Box::new(error) });
            }
        }
    }
    Ok(written)
}

fn write(change: &Change, ledger: &Ledger) -> Result<Written, InstallError> {
    let failed = |error| InstallError::of(&change.path, "write", error);
    let before = change.before.as_deref();
    let backup = before.map(|bytes| ledger.back_up(&change.target, bytes)).transpose()?;
    let made = ledger.read(&change.target).map(|entry| entry.made).unwrap_or_default();
    match (&change.after, change.direction) {
        (Some(bytes), Direction::In) => {
            let entry = entry(change, bytes, made, ledger)?;
            ledger.keep(&entry)?;
            make_directories(&change.target).map_err(failed)?;
            replace(&change.target, bytes).map_err(failed)?;
        }
        (Some(bytes), Direction::Out) => {
            replace(&change.target, bytes).map_err(failed)?;
            match (ledger.read(&change.target), &change.servers) {
                (Some(entry), Some(_)) => {
                    let servers = change.servers.clone();
                    ledger.keep(&Entry { after: Digest::of(bytes), servers, ..entry })?;
                }
                _ => ledger.forget(&change.target),
            }
        }
        (None, _) => {
            remove(&change.target, &made).map_err(failed)?;
            ledger.forget(&change.target);
        }
    }
    let backup = backup.map(|backup| ledger.absolute(&backup));
    Ok(Written { path: change.path.clone(), backup, removed: change.after.is_none() })
}

/// What has to be known to give the file back. Where it is as we left it, that
/// is what it was before the first time.
fn entry(
    change: &Change,
    after: &[u8],
    mut made: Vec<PathBuf>,
    ledger: &Ledger,
) -> Result<Entry, InstallError> {
    let missing = super::file::missing_directories(&change.target);
    made.extend(
        missing.into_iter().filter(|directory| !made.contains(directory)).collect::<Vec<_>>(),
    );
    let known =
        ledger.read(&change.target).filter(|entry| is_as_left(entry, change.before.as_deref()));
    let original = match known {
        Some(entry) => entry.original,
        None => {
            let without = change.without.as_deref();
            without.map(|bytes| ledger.back_up(&change.target, bytes)).transpose()?
        }
    };
    let (path, servers) = (change.target.clone(), change.servers.clone());
    Ok(Entry { path, original, after: Digest::of(after), made, servers })
}

/// Whether a file is what we made of it.
pub(crate) fn is_as_left(entry: &Entry, bytes: Option<&[u8]>) -> bool {
    bytes.is_some_and(|bytes| Digest::of(bytes) == entry.after)
}

/// A change of a file that was looked at.
pub(crate) fn differs(held: &SettingsFile, after: Option<&[u8]>) -> bool {
    held.bytes.as_deref() != after
}
