//! What our own commands have written for a person, so that the gate knows it
//! for theirs.
//!
//! A protected file that changes while a call is under way counts as the agent's
//! doing. A person who runs `jackline enforce` meanwhile must not have it taken
//! back: the command leaves what it writes where in the state home, in which no
//! agent writes. That is worth something for this file and these contents alone,
//! until the next such command, and for an hour: contents that a person wanted
//! once, or elsewhere, are nothing that an agent may put here.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use jackline_engine::{Digest, Timestamp};
use jackline_journal::write_private;

use crate::ancestry::agent_above;
use crate::clock;

/// How long a word holds.
const LASTS_MS: u64 = 60 * 60 * 1000;

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
    let text = format!("{} {}\n", Digest::of(contents), now);
    let _ = write_private(&place(home, path), text.as_bytes());
    let known = fs::read_dir(home.join("edits")).into_iter().flatten().flatten();
    for old in known.map(|entry| entry.path()).filter(|it| !is_recent(it, now)) {
        let _ = fs::remove_file(old);
    }
}

/// Whether the last that one of our commands has written into a file, not long
/// ago, is these contents. Links in the path lead to another file.
pub(crate) fn is_vouched_for(home: &Path, path: &Path, contents: &Digest, now: Timestamp) -> bool {
    let Some((known, at)) = read(&place(home, path)) else { return false };
    known == *contents && holds(at, now)
}

/// One file for each path: a later word replaces the earlier one.
fn place(home: &Path, path: &Path) -> PathBuf {
    home.join("edits").join(Digest::of(path.as_os_str().as_bytes()).to_string())
}

fn read(place: &Path) -> Option<(Digest, Timestamp)> {
    let text = fs::read_to_string(place).ok()?;
    let (contents, at) = text.trim_end().split_once(' ')?;
    Some((Digest::parse(contents)?, Timestamp::parse(at).ok()?))
}

/// A clock that was set back makes a word of the future, which is none.
fn holds(at: Timestamp, now: Timestamp) -> bool {
    at <= now && now.ms_since(at) < LASTS_MS
}

fn is_recent(place: &Path, now: Timestamp) -> bool {
    read(place).is_some_and(|(_, at)| holds(at, now))
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
    fn a_word_holds_for_an_hour_and_is_forgotten() {
        let root = tempfile::tempdir().unwrap();
        let (home, file) = (root.path(), Path::new("/w/jackline.yaml"));
        let one = Digest::of(b"one");
        vouch(home, file, b"one", NOW);
        assert!(is_vouched_for(home, file, &one, NOW.plus_ms(LASTS_MS - 1)));
        assert!(!is_vouched_for(home, file, &one, NOW.plus_ms(LASTS_MS)));
        let before = Timestamp::from_ms(NOW.as_ms() - 1);
        assert!(!is_vouched_for(home, file, &one, before), "the clock was set back");
        vouch(home, Path::new("/w/other"), b"one", NOW.plus_ms(LASTS_MS));
        assert_eq!(fs::read_dir(home.join("edits")).unwrap().count(), 1);
        fs::write(place(home, file), "nonsense").unwrap();
        assert!(!is_vouched_for(home, file, &one, NOW));
    }
}
