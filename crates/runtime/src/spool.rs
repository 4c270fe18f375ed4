//! Faults that were answered and could not be written down yet.
//!
//! Where every event is a process of its own, a denial because the guard is
//! broken would be forgotten with the process. So it is kept in a small file
//! beside the sessions, and journalled with the next event that can be.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jackline_engine::{Digest, FaultKind, SessionId};
use jackline_journal::{Note, directory_name};
use serde::{Deserialize, Serialize};

use crate::redact::redact_text;
use jackline_host::environment::{runtime_directories, state_home};

/// How much of what could not be written down is kept for a session.
const SPOOL_BYTES_MAX: u64 = 16 << 10;

/// How much more there is room for what must not be forgotten.
const STOPPED_BYTES_MAX: u64 = 4 << 10;

/// How much of one fault is kept.
const REASON_CHARS_MAX: usize = 1000;

/// How many faults are journalled together; of the others it is said how many.
const NOTES_MAX: usize = 8;

/// The file for faults of which nobody knows the session.
const NAMELESS: &str = "_";

/// One line of a spool.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// What happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<Note>,
    /// Whether the agent stopped, and no gate could look.
    #[serde(default)]
    stopped: bool,
}

/// What an earlier process left.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// The faults, the first ones.
    pub(crate) notes: Vec<Note>,
    /// How many there are beyond these.
    pub(crate) more: u64,
    /// Whether the agent stopped, and no gate could look.
    pub(crate) stopped: bool,
    /// The files it lay in, and how long they were.
    files: Vec<(PathBuf, u64)>,
}

impl Left {
    /// Reads what was left for a session. What can't be read is passed over.
    pub(crate) fn read(places: &[Place], session: &SessionId) -> Self {
        let mut left = Self::default();
        for place in places.iter().filter(|place| place.is_ours()) {
            left.stopped |= left.read_file(place.directory.join(directory_name(session)));
            // A stop of nobody knows whom is nobody's.
            left.read_file(place.directory.join(NAMELESS));
        }
        left
    }

    /// Reads a file, and says whether it tells of a stop.
    fn read_file(&mut self, path: PathBuf) -> bool {
        let Ok(file) = fs::File::open(&path) else { return false };
        let bytes = file.metadata().map_or(0, |found| found.len());
        let mut text = Vec::new();
        let _ = file.take(SPOOL_BYTES_MAX + STOPPED_BYTES_MAX).read_to_end(&mut text);
        let mut stopped = false;
        for line in text.split(|byte| *byte == b'\n') {
            let Ok(line) = serde_json::from_slice::<Line>(line) else { continue };
            stopped |= line.stopped;
            match line.fault {
                Some(fault) if self.notes.len() < NOTES_MAX => self.notes.push(fault),
                Some(_) => self.more += 1,
                None => {}
            }
        }
        self.files.push((path, bytes));
        stopped
    }

    /// Forgets what has been journalled. A file that has grown meanwhile stays,
    /// and some of it is journalled twice: better than never.
    pub(crate) fn remove(&mut self) {
        for (path, bytes) in std::mem::take(self).files {
            if path.metadata().is_ok_and(|found| found.len() == bytes) {
                remove(&path);
            }
        }
    }
}

/// A directory that takes faults.
#[derive(Debug)]
pub(crate) struct Place {
    directory: PathBuf,
    /// What others could have made before us, where everybody may write.
    shared: Option<PathBuf>,
}

impl Place {
    /// Whether nobody else has put something here.
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

/// Removes a file, and its directory with the last one.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    let _ = path.parent().map(fs::remove_dir);
}

fn make_directory(directory: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Where they are kept: in the state home, and where that takes nothing, in
/// what outlasts the process and is seldom broken for the same reason.
pub(crate) fn places() -> Vec<Place> {
    let Ok(home) = state_home() else { return Vec::new() };
    // Other places serve every state home of a person.
    let digest = Digest::of(home.as_os_str().as_encoded_bytes()).to_string();
    let faults = format!("faults-{}", digest.get(..16).unwrap_or_default());
    let mut places = vec![Place { directory: home.join("faults"), shared: None }];
    places.extend(
        runtime_directories()
            .into_iter()
            .map(|shared| Place { directory: shared.join(&faults), shared: Some(shared) }),
    );
    places
}

/// Keeps a fault for the next process, where there is no runtime to do it.
pub fn keep_fault(session: Option<&SessionId>, kind: FaultKind, reason: &str, stopped: bool) {
    let reason = redact_text(reason).unwrap_or_else(|| reason.to_owned());
    let fault = Note::Fault { kind, reason };
    keep(&places(), session, vec![fault], stopped);
}

/// Keeps faults for the next process, in the first place that takes them.
pub(crate) fn keep(
    places: &[Place],
    session: Option<&SessionId>,
    faults: Vec<Note>,
    stopped: bool,
) {
    let name = session.map_or_else(|| NAMELESS.to_owned(), directory_name);
    let faults =
        faults.into_iter().map(|fault| Line { fault: Some(shorten(fault)), stopped: false });
    let stop = stopped.then_some(Line { fault: None, stopped });
    for line in faults.chain(stop) {
        let Ok(mut text) = serde_json::to_string(&line) else { continue };
        text.push('\n');
        let room = if line.stopped { SPOOL_BYTES_MAX + STOPPED_BYTES_MAX } else { SPOOL_BYTES_MAX };
        // A guard that is broken and can't say so anywhere has still denied.
        let _ = places.iter().any(|place| place.append(&name, &text, room).is_ok());
    }
}

/// A definition may have many mistakes, and one of them is enough to be known.
fn shorten(mut fault: Note) -> Note {
    if let Note::Fault { reason, .. } = &mut fault
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

    fn fault(reason: &str) -> Note {
        Note::Fault { kind: FaultKind::Store, reason: reason.to_owned() }
    }

    fn place(directory: &Path) -> Place {
        Place { directory: directory.join("faults"), shared: None }
    }

    #[test]
    fn what_was_left_is_read_until_it_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let places = [place(home.path())];
        keep(&places, Some(&session()), vec![fault("a")], false);
        keep(&places, None, vec![fault("b")], true);
        for _ in 0..2 {
            let left = Left::read(&places, &session());
            assert_eq!(left.notes, [fault("a"), fault("b")]);
            assert!(!left.stopped, "it was the stop of somebody else");
        }
        keep(&places, Some(&session()), vec![], true);
        let mut left = Left::read(&places, &session());
        assert!(left.stopped);
        // Somebody adds to one of them before they are removed.
        keep(&places, None, vec![fault("c")], false);
        left.remove();
        assert_eq!(Left::read(&places, &session()).notes, [fault("b"), fault("c")]);
    }

    #[test]
    fn a_long_outage_fills_a_small_file_and_the_stop_still_fits() {
        let home = tempfile::tempdir().unwrap();
        let places = [place(home.path())];
        for _ in 0..100 {
            keep(&places, Some(&session()), vec![fault(&"ä".repeat(5_000))], false);
        }
        keep(&places, Some(&session()), vec![], true);
        let path = home.path().join("faults/s");
        let bytes = path.metadata().unwrap().len();
        assert!(bytes <= SPOOL_BYTES_MAX + STOPPED_BYTES_MAX, "{bytes}");
        let mut left = Left::read(&places, &session());
        assert!(left.stopped && !left.notes.is_empty(), "{left:?}");
        left.remove();
        assert!(!path.exists() && left.notes.is_empty());
    }

    #[test]
    fn many_faults_are_counted_and_garbage_is_passed_over() {
        let home = tempfile::tempdir().unwrap();
        let places = [place(home.path())];
        let faults = (0..20).map(|number| fault(&number.to_string())).collect();
        keep(&places, Some(&session()), faults, false);
        let path = home.path().join("faults/s");
        let mut text = fs::read(&path).unwrap();
        text.extend(b"\xff\xfe{\n{\"fault\":3}\n{\"stopped\":tr");
        fs::write(&path, text).unwrap();
        let mut left = Left::read(&places, &session());
        assert_eq!((left.notes.len(), left.more, left.stopped), (NOTES_MAX, 12, false));
        left.remove();
        assert!(!path.exists());
    }

    #[test]
    fn what_somebody_else_has_made_is_neither_read_nor_written() {
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
            let strange = Place { directory, shared: Some(shared) };
            let good = place(&root.path().join("good"));
            let places = [strange, good];
            assert!(!Left::read(&places, &session()).stopped);
            keep(&places, Some(&session()), vec![fault("a")], false);
            let mut left = Left::read(&places, &session());
            assert_eq!(left.notes, [fault("a")]);
            left.remove();
        }
        assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    }
}
