//! What our own commands have written for a person, so that the gate knows it
//! for theirs.
//!
//! A protected file that changes while a call is under way counts as the agent's
//! doing. A person who runs `jackline enforce` meanwhile must not have it taken
//! back: the command leaves what it writes where in the state home, in which no
//! agent writes. That is worth something for this file and these contents alone,
//! until the next such command, and for an hour: contents that a person wanted
//! once, or elsewhere, are nothing that an agent may put here.
//!
//! Of a report it is also kept whose it is: sessions of one workspace share its
//! name, and only the one whose report lay there last goes on when it is removed.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use jackline_engine::{Digest, SessionId, Timestamp};
use jackline_journal::write_private;
use serde::{Deserialize, Serialize};

use jackline_host::agent_above;
use jackline_host::clock;

/// How long a word holds.
const LASTS_MS: u64 = 60 * 60 * 1000;

/// How long it is kept: a report may lie there for a while before it is read.
const KEPT_MS: u64 = 30 * 24 * LASTS_MS;

/// Of how many sessions it is kept that their report was found gone.
const GONE_MAX: usize = 16;

/// What was said of a file last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    contents: Digest,
    pub(crate) at: Timestamp,
    pub(crate) report: Report,
}

impl Word {
    /// Whether it says that we removed the file.
    pub(crate) fn is_removal(&self) -> bool {
        self.contents == Digest::of(REMOVED)
    }
}

/// What is known of a report by those who wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The session that wrote it, or removed it, last.
    pub(crate) by: Option<String>,
    /// Sessions whose report was gone when another wrote its own.
    pub(crate) gone: Vec<String>,
}

/// Remembers what one of our commands is about to write into a file, if a person
/// runs it. What can't be remembered is only compared more strictly.
pub fn vouch_for(home: &Path, path: &Path, contents: &[u8]) {
    if agent_above().is_none() {
        vouch(home, path, contents, clock::now().wall);
    }
}

/// What is remembered of a file that we removed ourselves.
pub(crate) const REMOVED: &[u8] = b"removed";

/// The same, for a file of our own.
pub(crate) fn vouch(home: &Path, path: &Path, contents: &[u8], now: Timestamp) {
    let contents = Digest::of(contents);
    leave(home, path, &Word { contents, at: now, report: Report::default() });
}

/// The same, for the report of a session. `was_gone` says whether a person had
/// removed the one that lay there before.
pub(crate) fn vouch_for_report(
    home: &Path,
    path: &Path,
    contents: &[u8],
    by: &SessionId,
    was_gone: bool,
) {
    let last = last_word(home, path).map(|word| word.report).unwrap_or_default();
    let lost = last.by.filter(|_| was_gone);
    let mut gone: Vec<String> = last.gone.into_iter().chain(lost).collect();
    gone.retain(|session| session != by.as_str());
    gone.dedup();
    gone.drain(..gone.len().saturating_sub(GONE_MAX));
    let report = Report { by: Some(by.as_str().to_owned()), gone };
    let contents = Digest::of(contents);
    leave(home, path, &Word { contents, at: clock::now().wall, report });
}

/// What was said of a file last, however long ago.
pub(crate) fn last_word(home: &Path, path: &Path) -> Option<Word> {
    read(&place(home, path))
}

fn leave(home: &Path, path: &Path, word: &Word) {
    let Word { contents, at, report } = word;
    let report = serde_json::to_string(report).unwrap_or_default();
    let _ = write_private(&place(home, path), format!("{contents} {at}\n{report}\n").as_bytes());
    let known = fs::read_dir(home.join("edits")).into_iter().flatten().flatten();
    for old in known.map(|entry| entry.path()).filter(|it| !is_kept(it, *at)) {
        let _ = fs::remove_file(old);
    }
}

/// Whether the last that one of our commands has written into a file, not long
/// ago, is these contents. Links in the path lead to another file.
pub(crate) fn is_vouched_for(home: &Path, path: &Path, contents: &Digest, now: Timestamp) -> bool {
    let Some(word) = last_word(home, path) else { return false };
    word.contents == *contents && lasts(word.at, now, LASTS_MS)
}

/// One file for each path: a later word replaces the earlier one.
fn place(home: &Path, path: &Path) -> PathBuf {
    home.join("edits").join(Digest::of(path.as_os_str().as_bytes()).to_string())
}

fn read(place: &Path) -> Option<Word> {
    let text = fs::read_to_string(place).ok()?;
    let (word, report) = text.trim_end().split_once('\n').unwrap_or((text.trim_end(), ""));
    let (contents, at) = word.split_once(' ')?;
    let report = serde_json::from_str(report).unwrap_or_default();
    Some(Word { contents: Digest::parse(contents)?, at: Timestamp::parse(at).ok()?, report })
}

/// A clock that was set back makes a word of the future, which is none.
fn lasts(at: Timestamp, now: Timestamp, ms: u64) -> bool {
    at <= now && now.ms_since(at) < ms
}

fn is_kept(place: &Path, now: Timestamp) -> bool {
    read(place).is_some_and(|word| lasts(word.at, now, KEPT_MS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    #[test]
    fn a_word_is_for_one_file_and_these_contents() {
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
    fn a_later_word_takes_the_earlier_one_back() {
        let root = tempfile::tempdir().unwrap();
        let (home, file) = (root.path(), Path::new("/w/jackline.yaml"));
        vouch(home, file, b"one", NOW);
        vouch(home, file, b"two", NOW.plus_ms(1));
        assert!(!is_vouched_for(home, file, &Digest::of(b"one"), NOW.plus_ms(2)));
        assert!(is_vouched_for(home, file, &Digest::of(b"two"), NOW.plus_ms(2)));
    }

    #[test]
    fn a_report_belongs_to_who_wrote_it_last_and_is_remembered_as_gone() {
        let root = tempfile::tempdir().unwrap();
        let (home, file) = (root.path(), Path::new("/w/.jackline/BLOCKER_REPORT.md"));
        let [one, two] = ["s 1", "s\n2"].map(|id| SessionId::parse(id).unwrap());
        let known =
            || last_word(home, file).map(|word| (word.report.by.unwrap(), word.report.gone));
        assert_eq!(known(), None);
        vouch_for_report(home, file, b"of one", &one, false);
        vouch_for_report(home, file, b"of two", &two, false);
        assert_eq!(known(), Some(("s\n2".to_owned(), vec![])));
        vouch_for_report(home, file, b"of one", &one, true);
        assert_eq!(known(), Some(("s 1".to_owned(), vec!["s\n2".to_owned()])));
        assert!(is_vouched_for(home, file, &Digest::of(b"of one"), clock::now().wall));
        vouch_for_report(home, file, b"of two", &two, false);
        assert_eq!(known(), Some(("s\n2".to_owned(), vec![])), "it has one again");
    }

    #[test]
    fn a_word_holds_for_an_hour_and_is_forgotten() {
        let root = tempfile::tempdir().unwrap();
        let (home, file) = (root.path(), Path::new("/w/jackline.yaml"));
        let one = Digest::of(b"one");
        vouch(home, file, b"one", NOW);
        assert!(is_vouched_for(home, file, &one, NOW.plus_ms(LASTS_MS - 1)));
        assert!(!is_vouched_for(home, file, &one, NOW.plus_ms(LASTS_MS)));
        let before = Timestamp::from_ms(NOW.as_ms() - 1);
        assert!(!is_vouched_for(home, file, &one, before), "the clock was set back");
        vouch(home, Path::new("/w/other"), b"one", NOW.plus_ms(KEPT_MS));
        assert_eq!(fs::read_dir(home.join("edits")).unwrap().count(), 1);
        fs::write(place(home, file), "nonsense").unwrap();
        assert!(!is_vouched_for(home, file, &one, NOW));
    }
}
