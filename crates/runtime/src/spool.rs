//! A spool for faults that could not be recorded in the journal yet.
//!
//! If every event has its own process, a denial by a broken guard would be forgotten with the
//! process. So the fault is written to a small file beside the sessions. The next event that can be
//! recorded adds it to the journal.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jackline_engine::{Digest, FaultKind, SessionId};
use jackline_journal::{JournalNote, directory_name};
use serde::{Deserialize, Serialize};

use crate::redact::redact_text;
use jackline_host::environment::{runtime_directories, state_home};

/// The largest size of the faults of one session.
const SPOOL_BYTES_MAX: u64 = 16 << 10;

/// Additional space for stops, which must not be lost.
const STOPPED_BYTES_MAX: u64 = 4 << 10;

/// The longest stored reason.
const REASON_CHARS_MAX: usize = 1000;

/// The largest number of faults in one record; further ones are only counted.
const NOTES_MAX: usize = 8;

/// The file for faults without a known session.
const UNKNOWN_SESSION_FILE: &str = "_";

/// One line of a spool file.
#[derive(Debug, Serialize, Deserialize)]
struct SpoolLine {
    /// The fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<JournalNote>,
    /// Whether the agent stopped without a decision of a gate.
    #[serde(default)]
    stopped: bool,
}

/// The notes that earlier processes have spooled.
#[derive(Debug, Default)]
pub(crate) struct SpooledNotes {
    /// The first faults.
    pub(crate) notes: Vec<JournalNote>,
    /// The number of further faults.
    pub(crate) more_notes: u64,
    /// Whether the agent stopped without a decision of a gate.
    pub(crate) stopped: bool,
    /// The files that were read, with their lengths.
    files: Vec<(PathBuf, u64)>,
}

impl SpooledNotes {
    /// Reads the spooled notes of a session. Unreadable files are ignored.
    pub(crate) fn read(places: &[SpoolDirectory], session: &SessionId) -> Self {
        let mut notes = Self::default();
        for place in places.iter().filter(|place| place.is_ours()) {
            notes.stopped |= notes.read_file(place.directory.join(directory_name(session)));
            // A stop of an unknown session applies to no session, so it is ignored.
            notes.read_file(place.directory.join(UNKNOWN_SESSION_FILE));
        }
        notes
    }

    /// Reads a file, and returns whether it contains a stop.
    fn read_file(&mut self, path: PathBuf) -> bool {
        let Ok(file) = fs::File::open(&path) else { return false };
        let bytes = file.metadata().map_or(0, |found| found.len());
        let mut text = Vec::new();
        let _ = file.take(SPOOL_BYTES_MAX + STOPPED_BYTES_MAX).read_to_end(&mut text);
        let mut stopped = false;
        for line in text.split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<SpoolLine>(line) else { continue };
            stopped |= line.stopped;
            match line.fault {
                Some(fault) if self.notes.len() < NOTES_MAX => self.notes.push(fault),
                Some(_) => self.more_notes += 1,
                None => {}
            }
        }
        self.files.push((path, bytes));
        stopped
    }

    /// Removes the files whose notes are now in the journal. A file that has grown meanwhile stays.
    /// Some of its notes then appear twice in the journal, which is better than losing one.
    pub(crate) fn remove(&mut self) {
        for (path, bytes) in std::mem::take(self).files {
            if path.metadata().is_ok_and(|found| found.len() == bytes) {
                remove(&path);
            }
        }
    }
}

/// A directory for spooled faults.
#[derive(Debug)]
pub(crate) struct SpoolDirectory {
    directory: PathBuf,
    /// The parent directory, if every user can write above it, so another user may have created it.
    shared: Option<PathBuf>,
}

impl SpoolDirectory {
    /// Whether only this user can write here.
    fn is_ours(&self) -> bool {
        let Some(shared) = &self.shared else { return true };
        let own = rustix::process::getuid().as_raw();
        fs::symlink_metadata(shared)
            .is_ok_and(|found| found.is_dir() && found.uid() == own && found.mode() & 0o022 == 0)
    }

    fn append(&self, name: &str, text: &str, bytes_max: u64) -> io::Result<()> {
        if let Some(shared) = &self.shared {
            make_directory(shared)?;
        }
        if !self.is_ours() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        make_directory(&self.directory)?;
        let path = self.directory.join(name);
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        let bytes = file.metadata()?.len();
        if bytes + text.len() as u64 > bytes_max {
            return Ok(());
        }
        let written = file.write_all(text.as_bytes());
        if written.is_err() && bytes == 0 {
            remove(&path);
        }
        written
    }
}

/// Removes a file, and its directory if it is empty.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    let _ = path.parent().map(fs::remove_dir);
}

fn make_directory(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// The spool directories. The state home comes first. The others outlast the process and rarely
/// fail for the same reason.
pub(crate) fn spool_directories() -> Vec<SpoolDirectory> {
    let Ok(home) = state_home() else { return Vec::new() };
    // The other directories are shared by all state homes of a user.
    let digest = Digest::of(home.as_os_str().as_encoded_bytes()).to_string();
    let faults = format!("faults-{}", digest.get(..16).unwrap_or_default());
    let mut places = vec![SpoolDirectory { directory: home.join("faults"), shared: None }];
    places.extend(
        runtime_directories()
            .into_iter()
            .map(|shared| SpoolDirectory { directory: shared.join(&faults), shared: Some(shared) }),
    );
    places
}

/// Spools a fault for the next process, when there is no runtime.
pub fn spool_fault(session: Option<&SessionId>, kind: FaultKind, reason: &str, stopped: bool) {
    let reason = redact_text(reason).unwrap_or_else(|| reason.to_owned());
    let fault = JournalNote::Fault { kind, reason };
    write_spool(&spool_directories(), session, vec![fault], stopped);
}

/// Spools faults for the next process, in the first directory that accepts them.
pub(crate) fn write_spool(
    places: &[SpoolDirectory],
    session: Option<&SessionId>,
    faults: Vec<JournalNote>,
    stopped: bool,
) {
    let name = session.map_or_else(|| UNKNOWN_SESSION_FILE.to_owned(), directory_name);
    let faults =
        faults.into_iter().map(|fault| SpoolLine { fault: Some(shorten(fault)), stopped: false });
    let stop = stopped.then_some(SpoolLine { fault: None, stopped });
    for line in faults.chain(stop) {
        let Ok(mut text) = serde_json::to_string(&line) else { continue };
        text.push('\n');
        let room = if line.stopped { SPOOL_BYTES_MAX + STOPPED_BYTES_MAX } else { SPOOL_BYTES_MAX };
        // If no directory accepts it, the fault is lost, but the denial has been given.
        let _ = places.iter().any(|place| place.append(&name, &text, room).is_ok());
    }
}

/// A definition may have many errors; the first ones are enough.
fn shorten(mut fault: JournalNote) -> JournalNote {
    if let JournalNote::Fault { reason, .. } = &mut fault
        && let Some((end, _)) = reason.char_indices().nth(REASON_CHARS_MAX)
    {
        reason.truncate(end);
        reason.push('…');
    }
    fault
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn session() -> SessionId {
        SessionId::parse("s").unwrap()
    }

    fn fault(reason: &str) -> JournalNote {
        JournalNote::Fault { kind: FaultKind::Store, reason: reason.to_owned() }
    }

    fn place(directory: &Path) -> SpoolDirectory {
        SpoolDirectory { directory: directory.join("faults"), shared: None }
    }

    #[test]
    fn spooled_notes_are_read_until_they_are_removed() {
        let home = tempfile::tempdir().unwrap();
        let places = [place(home.path())];
        write_spool(&places, Some(&session()), vec![fault("a")], false);
        write_spool(&places, None, vec![fault("b")], true);
        for _ in 0..2 {
            let spooled = SpooledNotes::read(&places, &session());
            assert_eq!(spooled.notes, [fault("a"), fault("b")]);
            assert!(!spooled.stopped, "the stop belongs to another session");
        }
        write_spool(&places, Some(&session()), vec![], true);
        let mut spooled = SpooledNotes::read(&places, &session());
        assert!(spooled.stopped);
        // Another process adds a note before the files are removed.
        write_spool(&places, None, vec![fault("c")], false);
        spooled.remove();
        assert_eq!(SpooledNotes::read(&places, &session()).notes, [fault("b"), fault("c")]);
    }

    #[test]
    fn a_long_outage_fills_a_small_file_and_the_stop_still_fits() {
        let home = tempfile::tempdir().unwrap();
        let places = [place(home.path())];
        for _ in 0..100 {
            write_spool(&places, Some(&session()), vec![fault(&"ä".repeat(5_000))], false);
        }
        write_spool(&places, Some(&session()), vec![], true);
        let path = home.path().join("faults/s");
        let bytes = path.metadata().unwrap().len();
        assert!(bytes <= SPOOL_BYTES_MAX + STOPPED_BYTES_MAX, "{bytes}");
        let mut spooled = SpooledNotes::read(&places, &session());
        assert!(spooled.stopped && !spooled.notes.is_empty(), "{spooled:?}");
        spooled.remove();
        assert!(!path.exists() && spooled.notes.is_empty());
    }

    #[test]
    fn many_faults_are_counted_and_invalid_lines_are_ignored() {
        let home = tempfile::tempdir().unwrap();
        let places = [place(home.path())];
        let faults = (0..20).map(|number| fault(&number.to_string())).collect();
        write_spool(&places, Some(&session()), faults, false);
        let path = home.path().join("faults/s");
        let mut text = fs::read(&path).unwrap();
        text.extend(b"\xff\xfe{\n{\"fault\":3}\n{\"stopped\":tr");
        fs::write(&path, text).unwrap();
        let mut spooled = SpooledNotes::read(&places, &session());
        assert_eq!(
            (spooled.notes.len(), spooled.more_notes, spooled.stopped),
            (NOTES_MAX, 12, false)
        );
        spooled.remove();
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_of_another_user_is_neither_read_nor_written() {
        let root = tempfile::tempdir().unwrap();
        let (open, link) = (root.path().join("open"), root.path().join("link"));
        fs::create_dir_all(open.join("faults")).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(open.join("faults/s"), "{\"stopped\":true}\n").unwrap();
        let target = root.path().join("target");
        fs::create_dir(&target).unwrap();
        symlink(&target, &link).unwrap();
        for shared in [open, link] {
            let directory = shared.join("faults");
            let unsafe_directory = SpoolDirectory { directory, shared: Some(shared) };
            let safe_directory = place(&root.path().join("safe_directory"));
            let places = [unsafe_directory, safe_directory];
            assert!(!SpooledNotes::read(&places, &session()).stopped);
            write_spool(&places, Some(&session()), vec![fault("a")], false);
            let mut spooled = SpooledNotes::read(&places, &session());
            assert_eq!(spooled.notes, [fault("a")]);
            spooled.remove();
        }
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    }
}
