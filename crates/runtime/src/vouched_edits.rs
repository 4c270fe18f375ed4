//! Records which files our own commands have written for a person, so that the gate accepts these
//! changes.
//!
//! A protected file that changes during a call counts as changed by the agent. If a person runs
//! `jackline enforce` meanwhile, that change must not be undone. So the command leaves a note in
//! the state home, where agents can't write. The note is valid for one file with exactly these
//! contents, until the next such command, and for one hour. Contents that a person wanted earlier
//! or for another file do not let an agent write them here.
//!
//! For a report, the note also names the session that owns it. The sessions of a workspace share
//! the report's file name. When the report is removed, only the session that wrote it last resumes.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use jackline_engine::{Digest, SessionId, Timestamp};
use jackline_journal::write_private;
use serde::{Deserialize, Serialize};

use jackline_host::check_person;
use jackline_host::clock;

/// How long a note makes a change acceptable.
const VALID_MS: u64 = 60 * 60 * 1000;

/// How long a note is stored. A report may exist for a while before a person reads it.
const STORED_MS: u64 = 30 * 24 * VALID_MS;

/// For how many sessions a removed report is remembered.
const REMOVED_SESSIONS_MAX: usize = 16;

/// The latest note for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VouchedEdit {
    contents: Digest,
    pub(crate) at: Timestamp,
    pub(crate) report: ReportOwnership,
}

impl VouchedEdit {
    /// Whether our own code removed the file.
    pub(crate) fn is_removal(&self) -> bool {
        self.contents == Digest::of(REMOVED)
    }
}

/// The sessions that own a report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReportOwnership {
    /// The session that last wrote or removed it.
    pub(crate) by: Option<String>,
    /// Sessions whose report was already removed when another session wrote its own.
    pub(crate) gone: Vec<String>,
}

/// Records the contents that one of our commands is about to write, if a person runs the command.
/// If this fails, the change is only checked more strictly.
pub fn vouch_for(home: &Path, path: &Path, contents: &[u8]) {
    if check_person().is_ok() {
        vouch(home, path, contents, clock::now().wall);
    }
}

/// Records that one of our commands is about to remove a file, if a person runs the command.
pub fn vouch_for_removal(home: &Path, path: &Path) {
    vouch_for(home, path, REMOVED);
}

/// The contents that a note names for a file that our own code removed.
pub(crate) const REMOVED: &[u8] = b"removed";

/// Records the contents of one of our own files.
pub(crate) fn vouch(home: &Path, path: &Path, contents: &[u8], now: Timestamp) {
    let contents = Digest::of(contents);
    store_edit(home, path, &VouchedEdit { contents, at: now, report: ReportOwnership::default() });
}

/// Records the contents of a session's report. `was_gone` says whether a person had removed the
/// previous report.
pub(crate) fn vouch_for_report(
    home: &Path,
    path: &Path,
    contents: &[u8],
    by: &SessionId,
    was_gone: bool,
) {
    let last = last_vouched_edit(home, path).map(|word| word.report).unwrap_or_default();
    let removed = last.by.filter(|_| was_gone);
    let mut gone: Vec<String> = last.gone.into_iter().chain(removed).collect();
    gone.retain(|session| session != by.as_str());
    gone.dedup();
    gone.drain(..gone.len().saturating_sub(REMOVED_SESSIONS_MAX));
    let report = ReportOwnership { by: Some(by.as_str().to_owned()), gone };
    let contents = Digest::of(contents);
    store_edit(home, path, &VouchedEdit { contents, at: clock::now().wall, report });
}

/// The latest note for a file, however old it is.
pub(crate) fn last_vouched_edit(home: &Path, path: &Path) -> Option<VouchedEdit> {
    read_edit(&edit_path(home, path))
}

fn store_edit(home: &Path, path: &Path, word: &VouchedEdit) {
    let VouchedEdit { contents, at, report } = word;
    let report = serde_json::to_string(report).unwrap_or_default();
    let _ =
        write_private(&edit_path(home, path), format!("{contents} {at}\n{report}\n").as_bytes());
    let entries = fs::read_dir(home.join("edits")).into_iter().flatten().flatten();
    for old in entries.map(|entry| entry.path()).filter(|it| !is_stored_edit(it, *at)) {
        let _ = fs::remove_file(old);
    }
}

/// Whether a recent note of one of our commands names these contents for the file. A path through
/// links leads to another file and has no note.
pub(crate) fn is_vouched_for(home: &Path, path: &Path, contents: &Digest, now: Timestamp) -> bool {
    let Some(word) = last_vouched_edit(home, path) else { return false };
    word.contents == *contents && is_within(word.at, now, VALID_MS)
}

/// One note file for each path: a later note replaces the earlier one.
fn edit_path(home: &Path, path: &Path) -> PathBuf {
    home.join("edits").join(Digest::of(path.as_os_str().as_bytes()).to_string())
}

fn read_edit(place: &Path) -> Option<VouchedEdit> {
    let text = fs::read_to_string(place).ok()?;
    let (word, report) = text.trim_end().split_once('\n').unwrap_or((text.trim_end(), ""));
    let (contents, at) = word.split_once(' ')?;
    let report = serde_json::from_str(report).unwrap_or_default();
    Some(VouchedEdit { contents: Digest::parse(contents)?, at: Timestamp::parse(at).ok()?, report })
}

/// After the clock was set back, a note may be in the future. Such a note is not valid.
fn is_within(at: Timestamp, now: Timestamp, ms: u64) -> bool {
    at <= now && now.ms_since(at) < ms
}

fn is_stored_edit(place: &Path, now: Timestamp) -> bool {
    read_edit(place).is_some_and(|word| is_within(word.at, now, STORED_MS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    #[test]
    fn a_note_is_valid_for_one_file_and_its_contents() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path();
        let (file, other) = (Path::new("/w/jackline.yaml"), Path::new("/w/settings.json"));
        let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
        assert!(!is_vouched_for(home, file, &one, NOW));
        vouch(home, file, b"one", NOW);
        assert!(is_vouched_for(home, file, &one, NOW));
        assert!(!is_vouched_for(home, file, &two, NOW));
        assert!(!is_vouched_for(home, other, &one, NOW));
        let mode = fs::metadata(home.join("edits")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_later_note_replaces_the_earlier_one() {
        let root = tempfile::tempdir().unwrap();
        let (home, file) = (root.path(), Path::new("/w/jackline.yaml"));
        vouch(home, file, b"one", NOW);
        vouch(home, file, b"two", NOW.plus_ms(1));
        assert!(!is_vouched_for(home, file, &Digest::of(b"one"), NOW.plus_ms(2)));
        assert!(is_vouched_for(home, file, &Digest::of(b"two"), NOW.plus_ms(2)));
    }

    #[test]
    fn a_report_belongs_to_its_last_writer_and_removals_are_remembered() {
        let root = tempfile::tempdir().unwrap();
        let (home, file) = (root.path(), Path::new("/w/.jackline/BLOCKER_REPORT.md"));
        let [one, two] = ["s 1", "s\n2"].map(|id| SessionId::parse(id).unwrap());
        let stored = || {
            last_vouched_edit(home, file).map(|word| (word.report.by.unwrap(), word.report.gone))
        };
        assert_eq!(stored(), None);
        vouch_for_report(home, file, b"of one", &one, false);
        vouch_for_report(home, file, b"of two", &two, false);
        assert_eq!(stored(), Some(("s\n2".to_owned(), vec![])));
        vouch_for_report(home, file, b"of one", &one, true);
        assert_eq!(stored(), Some(("s 1".to_owned(), vec!["s\n2".to_owned()])));
        assert!(is_vouched_for(home, file, &Digest::of(b"of one"), clock::now().wall));
        vouch_for_report(home, file, b"of two", &two, false);
        assert_eq!(stored(), Some(("s\n2".to_owned(), vec![])), "the session has a report again");
    }

    #[test]
    fn a_note_is_valid_for_an_hour_and_is_removed_later() {
        let root = tempfile::tempdir().unwrap();
        let (home, file) = (root.path(), Path::new("/w/jackline.yaml"));
        let one = Digest::of(b"one");
        vouch(home, file, b"one", NOW);
        assert!(is_vouched_for(home, file, &one, NOW.plus_ms(VALID_MS - 1)));
        assert!(!is_vouched_for(home, file, &one, NOW.plus_ms(VALID_MS)));
        let before = Timestamp::from_ms(NOW.as_ms() - 1);
        assert!(!is_vouched_for(home, file, &one, before), "the clock was set back");
        vouch(home, Path::new("/w/other"), b"one", NOW.plus_ms(STORED_MS));
        assert_eq!(fs::read_dir(home.join("edits")).unwrap().count(), 1);
        fs::write(edit_path(home, file), "nonsense").unwrap();
        assert!(!is_vouched_for(home, file, &one, NOW));
    }
}
