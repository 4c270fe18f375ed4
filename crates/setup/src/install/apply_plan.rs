//! Applies a plan: first the backup, then the ledger entry, then the file.

use std::path::{Path, PathBuf};

use jackline_engine::Digest;

use super::ledger::{Ledger, LedgerEntry};
use super::replace_file::{check_replaceable, make_directories, remove_file, replace_file};
use super::{InstallDirection, InstallError, InstallPlan, PlannedChange};
use jackline_clients::settings_file::{SettingsFile, read_file};

/// The result for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenFile {
    /// The file.
    pub path: PathBuf,
    /// The backup of its old content, if it had any.
    pub backup: Option<PathBuf>,
    /// Whether the file was removed.
    pub removed: bool,
}

/// Applies a plan. If any file has changed since the plan was made, nothing is written.
pub fn apply_plan(plan: &InstallPlan, state_home: &Path) -> Result<Vec<WrittenFile>, InstallError> {
    let ledger = Ledger::of(state_home);
    let _lock = ledger.lock()?;
    for change in &plan.changes {
        let file = read_file(&change.path)?;
        if file.bytes != change.before || file.real_path != change.real_path {
            return Err(InstallError::Changed { path: change.path.clone() });
        }
        let failed = |error| InstallError::io(&change.path, "write", error);
        check_replaceable(&file).map_err(failed)?;
    }
    let mut written: Vec<WrittenFile> = Vec::new();
    for change in &plan.changes {
        match write_change(change, &ledger) {
            Ok(done) => written.push(done),
            Err(error) if written.is_empty() => return Err(error),
            Err(error) => {
                let written = written.into_iter().map(|done| done.path).collect();
                return Err(InstallError::PartlyWritten { written, source: Box::new(error) });
            }
        }
    }
    Ok(written)
}

fn write_change(change: &PlannedChange, ledger: &Ledger) -> Result<WrittenFile, InstallError> {
    let failed = |error| InstallError::io(&change.path, "write", error);
    let before = change.before.as_deref();
    let backup = before.map(|bytes| ledger.back_up(&change.real_path, bytes)).transpose()?;
    let created = ledger.read(&change.real_path).map(|entry| entry.made).unwrap_or_default();
    match (&change.after, change.direction) {
        (Some(bytes), InstallDirection::Install) => {
            let entry = ledger_entry(change, bytes, created, ledger)?;
            ledger.write_entry(&entry)?;
            make_directories(&change.real_path).map_err(failed)?;
            replace_file(&change.real_path, bytes).map_err(failed)?;
        }
        (Some(bytes), InstallDirection::Remove) => {
            replace_file(&change.real_path, bytes).map_err(failed)?;
            match (ledger.read(&change.real_path), &change.servers) {
                (Some(entry), Some(_)) => {
                    let servers = change.servers.clone();
                    ledger.write_entry(&LedgerEntry {
                        after: Digest::of(bytes),
                        servers,
                        ..entry
                    })?;
                }
                _ => ledger.remove_entry(&change.real_path),
            }
        }
        (None, _) => {
            remove_file(&change.real_path, &created).map_err(failed)?;
            ledger.remove_entry(&change.real_path);
        }
    }
    let backup = backup.map(|backup| ledger.absolute(&backup));
    Ok(WrittenFile { path: change.path.clone(), backup, removed: change.after.is_none() })
}

/// The ledger entry that is needed to restore a file. If the file is still as we left it, its
/// original is the one from our first change.
fn ledger_entry(
    change: &PlannedChange,
    after: &[u8],
    mut made: Vec<PathBuf>,
    ledger: &Ledger,
) -> Result<LedgerEntry, InstallError> {
    let missing = super::replace_file::missing_directories(&change.real_path);
    made.extend(
        missing.into_iter().filter(|directory| !made.contains(directory)).collect::<Vec<_>>(),
    );
    let previous = ledger
        .read(&change.real_path)
        .filter(|entry| is_unchanged(entry, change.before.as_deref()));
    let original = match previous {
        Some(entry) => entry.original,
        None => {
            let without = change.after_removal.as_deref();
            without.map(|bytes| ledger.back_up(&change.real_path, bytes)).transpose()?
        }
    };
    let (path, servers) = (change.real_path.clone(), change.servers.clone());
    Ok(LedgerEntry { path, original, after: Digest::of(after), made, servers })
}

/// Whether a file still has the content that we wrote.
pub(crate) fn is_unchanged(entry: &LedgerEntry, bytes: Option<&[u8]>) -> bool {
    bytes.is_some_and(|bytes| Digest::of(bytes) == entry.after)
}

/// Whether a change modifies the file.
pub(crate) fn differs(file: &SettingsFile, after: Option<&[u8]>) -> bool {
    file.bytes.as_deref() != after
}
