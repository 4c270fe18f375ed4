//! What stays of an installation after its hooks are removed: the definition that a person changed,
//! the reports, and the journals of the sessions.

use std::fs;
use std::path::{Path, PathBuf};

use jackline_clients::installation::InstallScope;
use jackline_clients::settings_file::{is_same_file, read_file};
use jackline_host::clock::boot_number;
use jackline_host::{FileStateHome, TrustStore};
use jackline_journal::{FileStore, OpeningRecord, SessionEntry};

use super::ledger::Ledger;
use super::plan::ProjectSite;
use super::removal::is_last_installation;
use super::replace_file::remove_file;
use super::{InstallPlan, InstallRequest};

/// The directory with reports and control files.
const REPORTS: &str = ".jackline";

/// A file or directory that stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// What it is.
    pub kind: LeftoverKind,
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
}

/// What stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftoverKind {
    /// The definition that `init` wrote and that changed since.
    Definition,
    /// Reports and control files.
    Reports,
    /// The state of a session.
    Session,
}

/// What stays after a plan that removes the guard; nothing while another installation needs it.
pub fn leftovers(wish: &InstallRequest, removal: &InstallPlan) -> Vec<Leftover> {
    let site = ProjectSite::of(&wish.directory);
    if !is_last_installation(&site, wish.scope) {
        return Vec::new();
    }
    let definition = site.definition_of(wish.scope);
    let own_definition = definition
        .as_deref()
        .filter(|path| removal.changes.iter().all(|change| change.path != *path))
        .and_then(|path| changed_definition(path, &Ledger::of(&wish.state_home)));
    let project = real_path(&site.project);
    let is_of_project = |opened: &OpeningRecord| {
        let workspace = opened.place.workspace.as_deref();
        workspace.is_some_and(|workspace| Path::new(workspace).starts_with(&project))
    };
    // The user's definition alone decides in the sessions that belong to it.
    let is_of_user = |opened: &OpeningRecord| {
        let first = opened.place.definition.first().map(Path::new);
        first.zip(definition.as_deref()).is_some_and(|(first, own)| is_same_file(first, own))
    };
    let store = FileStore::new(&wish.state_home, boot_number());
    let sessions: Vec<SessionEntry> = store
        .directories()
        .unwrap_or_default()
        .iter()
        .filter_map(|directory| store.entry_at(directory))
        .filter(|entry| {
            entry.opening().is_ok_and(|opened| match wish.scope {
                InstallScope::User => is_of_user(opened),
                InstallScope::Local | InstallScope::Shared => is_of_project(opened),
            })
        })
        .collect();
    let mut reports: Vec<PathBuf> = sessions
        .iter()
        .filter_map(|entry| entry.opening().ok()?.place.workspace.as_deref().map(PathBuf::from))
        .chain((wish.scope != InstallScope::User).then_some(project))
        .map(|workspace| workspace.join(REPORTS))
        .filter(|directory| directory.is_dir())
        .collect();
    reports.sort();
    reports.dedup();
    let reports = reports.into_iter().map(|path| {
        let bytes = directory_bytes(&path);
        Leftover { kind: LeftoverKind::Reports, path, bytes }
    });
    let sessions = sessions.iter().filter_map(SessionEntry::directory).map(|directory| Leftover {
        kind: LeftoverKind::Session,
        path: directory.to_owned(),
        bytes: FileStore::session_bytes(directory),
    });
    own_definition.into_iter().chain(reports).chain(sessions).collect()
}

/// The definition, if `init` created it.
fn changed_definition(path: &Path, ledger: &Ledger) -> Option<Leftover> {
    let file = read_file(path).ok()?;
    let bytes = u64::try_from(file.bytes?.len()).ok()?;
    let entry = ledger.read(&file.real_path)?;
    let is_ours = entry.original.is_none();
    is_ours.then(|| Leftover { kind: LeftoverKind::Definition, path: path.to_owned(), bytes })
}

/// What became of leftovers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovedLeftovers {
    /// What could not be removed, with the reason.
    pub failures: Vec<(PathBuf, String)>,
    /// The removed definition and the path of its backup.
    pub backup: Option<(PathBuf, PathBuf)>,
}

/// Removes what stays. A person has changed the definition, so it is backed up first.
pub fn remove_leftovers(wish: &InstallRequest, all: &[Leftover]) -> RemovedLeftovers {
    let ledger = Ledger::of(&wish.state_home);
    let trust = TrustStore::of(std::sync::Arc::new(FileStateHome::new(&wish.state_home)));
    let mut backup = None;
    let mut remove = |leftover: &Leftover| {
        let path = &leftover.path;
        match leftover.kind {
            LeftoverKind::Definition => {
                let real = real_path(path);
                let bytes = fs::read(&real).map_err(|error| error.to_string())?;
                let saved = ledger.back_up(&real, &bytes).map_err(|error| error.to_string())?;
                backup = Some((path.clone(), ledger.absolute(&saved)));
                let made = ledger.read(&real).map(|entry| entry.made).unwrap_or_default();
                remove_file(&real, &made).map_err(|error| error.to_string())?;
                ledger.remove_entry(&real);
                trust.revoke(&real).map(|_| ()).map_err(|error| error.to_string())
            }
            LeftoverKind::Reports => fs::remove_dir_all(path).map_err(|error| error.to_string()),
            LeftoverKind::Session if FileStore::remove_session(path) => Ok(()),
            LeftoverKind::Session => Err("a process still uses this session".to_owned()),
        }
    };
    let failure =
        |leftover: &Leftover| remove(leftover).err().map(|reason| (leftover.path.clone(), reason));
    let failures = all.iter().filter_map(failure).collect();
    RemovedLeftovers { failures, backup }
}

fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The size of the files in a directory and below it.
fn directory_bytes(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => directory_bytes(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
