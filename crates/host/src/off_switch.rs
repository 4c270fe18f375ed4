//! The off switch: a person turns the guard off for a while.
//!
//! The switch must work where nothing else does: on a full disk, with a state home that can't be
//! written, with a broken journal. So it is a symbolic link whose target is the text. Such a link
//! often needs no disk block. It is stored in the first directory that accepts it. Reading changes
//! nothing and never fails; an invalid link does not turn the guard off.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jackline_engine::facts::OffFact;
use jackline_engine::{Digest, Timestamp};
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::directory_stamp::DirectoryStamp;
use crate::environment::{runtime_directories, state_home};

/// How long the guard is off by default.
pub const OFF_MS: u64 = 30 * 60_000;

/// The longest time for which the guard can be turned off at once.
pub const OFF_MS_MAX: u64 = 24 * 3_600_000;

/// The longest name or reason that is stored.
const TEXT_CHARS_MAX: usize = 200;

/// How many markers of one directory are read.
const MARKERS_READ_MAX: usize = 64;

/// A period in which the guard is off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OffPeriod {
    /// The end of the period.
    pub until: Timestamp,
    /// The person who turned it off.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The reason.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The directory in which, and below which, the guard is off; `None` means everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
}

impl From<OffPeriod> for OffFact {
    fn from(off: OffPeriod) -> Self {
        Self { until: off.until, by: off.by, why: off.why }
    }
}

impl OffPeriod {
    /// A period that begins now.
    pub fn starting_now(ms: u64, by: &str, why: &str, workspace: Option<&Path>) -> Self {
        let short = |text: &str| text.chars().take(TEXT_CHARS_MAX).collect();
        let until = clock::now().wall.plus_ms(ms.min(OFF_MS_MAX));
        let workspace = workspace.map(|path| path.canonicalize().unwrap_or_else(|_| path.into()));
        Self { until, by: short(by), why: short(why), workspace }
    }

    /// Whether the period applies to a workspace.
    fn applies_to(&self, workspace: Option<&Path>) -> bool {
        match (&self.workspace, workspace) {
            (None, _) => true,
            (Some(off), Some(workspace)) => workspace.starts_with(off),
            (Some(_), None) => false,
        }
    }

    /// Whether the guard is off at a time. A period that is longer than the maximum is invalid.
    fn is_active(&self, now: Timestamp) -> bool {
        now < self.until && self.until <= now.plus_ms(OFF_MS_MAX)
    }
}

/// Why the guard can't be switched.
#[derive(Debug, thiserror::Error)]
pub enum OffError {
    /// No directory accepts the marker.
    #[error("the guard can't be switched off: {}", .0.join("; "))]
    NoDirectory(Vec<String>),
    /// The marker exists and can't be removed.
    #[error("`{}` can't be removed: {source}", .path.display())]
    NotRemovable {
        /// The marker.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// Records are text, and so is the marker.
    #[error("the workspace `{}` is not UTF-8", .0.display())]
    Workspace(PathBuf),
}

/// The directories of the off markers of one state home. By default there are none, and the guard
/// is always on.
#[derive(Debug, Clone, Default)]
pub struct OffSwitch {
    /// The prefix of its marker names.
    prefix: String,
    home: Option<PathBuf>,
    fallback_directories: Vec<PathBuf>,
    seen: Arc<Mutex<OffCache>>,
}

/// What the switch remembers, so that it need not read all directories at every event.
#[derive(Debug, Default)]
struct OffCache {
    /// Directories without a marker, as long as they do not change.
    bare: BTreeMap<PathBuf, DirectoryStamp>,
    /// Until this time, fallback directories are not read, since they had no marker.
    elsewhere_until_ms: u64,
}

/// How long the fallback directories are not read again. A person who turns the guard off does not
/// notice this delay.
const FALLBACK_CHECK_MS: u64 = 100;

impl OffSwitch {
    /// The switch of a state home. It also works without a state home.
    pub fn for_state_home(home: Option<&Path>) -> Self {
        // Another state home has a switch of its own.
        let name = home.map(|home| home.display().to_string()).unwrap_or_default();
        let prefix = format!("off-{}-", path_key(&name));
        let elsewhere = runtime_directories().to_vec();
        Self {
            prefix,
            home: home.map(Path::to_owned),
            fallback_directories: elsewhere,
            seen: Arc::default(),
        }
    }

    /// The switch of this user on this machine.
    pub fn for_machine() -> Self {
        Self::for_state_home(state_home().ok().as_deref())
    }

    /// The directories outside the state home.
    pub fn fallback_directories(&self) -> impl Iterator<Item = &Path> {
        self.fallback_directories.iter().map(PathBuf::as_path)
    }

    /// The period that applies to a workspace now. If there are several, the one that ends last.
    pub fn current_period(&self, workspace: Option<&Path>) -> Option<OffPeriod> {
        let mut found = self.home_markers();
        found.extend(self.newest_fallback_markers());
        if found.is_empty() {
            return None;
        }
        let now = clock::now().wall;
        found.retain(|(_, off)| off.is_active(now) && off.applies_to(workspace));
        found.into_iter().map(|(_, off)| off).max_by_key(|off| off.until)
    }

    /// Every period that is active now.
    pub fn active_periods(&self) -> Vec<OffPeriod> {
        let now = clock::now().wall;
        self.markers().into_iter().map(|(_, off)| off).filter(|off| off.is_active(now)).collect()
    }

    /// Turns the guard off. Returns the path of the marker.
    pub fn turn_off(&self, off: &OffPeriod) -> Result<PathBuf, OffError> {
        let scope = match &off.workspace {
            None => "everywhere",
            Some(path) => path.to_str().ok_or_else(|| OffError::Workspace(path.clone()))?,
        };
        let name = format!("{}{}", self.prefix, path_key(scope));
        // A full disk may have room for a short marker, but not for one with a reason.
        let brief = OffPeriod { by: String::new(), why: String::new(), ..off.clone() };
        let mut refusals = Vec::new();
        for place in self.home.iter().chain(&self.fallback_directories) {
            let ready = self.create_directory(place);
            let marked = ready.and_then(|()| {
                write_marker(place, &name, off).or_else(|_| write_marker(place, &name, &brief))
            });
            match marked {
                Ok(path) => return Ok(path),
                Err(error) => refusals.push(format!("`{}`: {error}", place.display())),
            }
        }
        Err(OffError::NoDirectory(refusals))
    }

    /// Removes every marker that applies to a workspace, or all markers. Returns the periods that
    /// were active.
    pub fn turn_on(&self, workspace: Option<&Path>) -> Result<Vec<OffPeriod>, OffError> {
        let mut ended = Vec::new();
        for (path, off) in self.markers() {
            if workspace.is_some() && !off.applies_to(workspace) {
                continue;
            }
            fs::remove_file(&path).map_err(|source| OffError::NotRemovable { path, source })?;
            ended.push(off);
        }
        let now = clock::now().wall;
        ended.retain(|off| off.is_active(now));
        Ok(ended)
    }

    /// Every valid marker with its path.
    fn markers(&self) -> Vec<(PathBuf, OffPeriod)> {
        let mut found = self.home_markers();
        found.extend(self.fallback_markers());
        found
    }

    fn home_markers(&self) -> Vec<(PathBuf, OffPeriod)> {
        let before = clock::now().wall;
        let home = self.home.iter().map(|home| (home, fs::metadata(home).ok()));
        home.flat_map(|(home, look)| self.markers_in(home, look.as_ref(), before)).collect()
    }

    fn fallback_markers(&self) -> Vec<(PathBuf, OffPeriod)> {
        let before = clock::now().wall;
        let usable =
            self.fallback_directories.iter().map(|place| (place, private_directory(place)));
        usable.flat_map(|(place, look)| self.markers_in(place, look.as_ref(), before)).collect()
    }

    /// The same for callers that ask at every event: an empty result is cached for a short time.
    fn newest_fallback_markers(&self) -> Vec<(PathBuf, OffPeriod)> {
        let now = clock::boot_ms();
        if now < self.seen().elsewhere_until_ms {
            return Vec::new();
        }
        let found = self.fallback_markers();
        self.seen().elsewhere_until_ms = if found.is_empty() { now + FALLBACK_CHECK_MS } else { 0 };
        found
    }

    fn seen(&self) -> MutexGuard<'_, OffCache> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn markers_in(
        &self,
        place: &Path,
        look: Option<&Metadata>,
        before: Timestamp,
    ) -> Vec<(PathBuf, OffPeriod)> {
        let Some(stamp) = look.map(DirectoryStamp::of) else { return Vec::new() };
        let bare = &mut self.seen().bare;
        if bare.get(place) == Some(&stamp) {
            return Vec::new();
        }
        let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
        let names = entries.filter_map(Result::ok);
        let mine = names.filter(|entry| {
            entry.file_name().to_str().is_some_and(|name| name.starts_with(&self.prefix))
        });
        let mine: Vec<_> = mine.take(MARKERS_READ_MAX).map(|entry| entry.path()).collect();
        if mine.is_empty() && stamp.is_reliable(place, before) {
            bare.insert(place.to_owned(), stamp);
        } else {
            bare.remove(place);
        }
        mine.into_iter().filter_map(|path| Some((path.clone(), parse_marker(&path)?))).collect()
    }

    /// Creates a directory for markers if it is missing.
    fn create_directory(&self, place: &Path) -> io::Result<()> {
        let home = self.home.as_deref() == Some(place);
        let made = DirBuilder::new().mode(0o700).recursive(home).create(place);
        match made {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if home || private_directory(place).is_some() {
            return Ok(());
        }
        Err(io::Error::other("it is not a directory of yours alone"))
    }
}

/// The period that applies to a workspace now.
pub fn current_off_period(workspace: Option<&Path>) -> Option<OffPeriod> {
    OffSwitch::for_machine().current_period(workspace)
}

/// Turns the guard of this user off. Returns the path of the marker.
pub fn turn_guard_off(off: &OffPeriod) -> Result<PathBuf, OffError> {
    OffSwitch::for_machine().turn_off(off)
}

/// Turns the guard of this user on again. Returns the periods that were active.
pub fn turn_guard_on(workspace: Option<&Path>) -> Result<Vec<OffPeriod>, OffError> {
    OffSwitch::for_machine().turn_on(workspace)
}

/// The metadata of a directory, if it is private to this user, so that no other user can have
/// prepared it.
fn private_directory(place: &Path) -> Option<Metadata> {
    let user = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(place).ok().filter(|metadata| {
        metadata.is_dir() && metadata.uid() == user && metadata.mode() & 0o777 == 0o700
    })
}

fn write_marker(place: &Path, name: &str, off: &OffPeriod) -> io::Result<PathBuf> {
    let text = serde_json::to_string(off).map_err(io::Error::other)?;
    let path = place.join(name);
    // The rename replaces the old marker at once: there is no moment without a marker.
    let fresh = place.join(format!("{}.new", std::process::id()));
    let _ = fs::remove_file(&fresh);
    symlink(&text, &fresh)?;
    fs::rename(&fresh, &path).inspect_err(|_| {
        let _ = fs::remove_file(&fresh);
    })?;
    Ok(path)
}

/// The period in a marker, if the marker is valid and belongs to this user.
fn parse_marker(path: &Path) -> Option<OffPeriod> {
    let user = rustix::process::geteuid().as_raw();
    let metadata = fs::symlink_metadata(path).ok()?;
    if !metadata.is_symlink() || metadata.uid() != user {
        return None;
    }
    serde_json::from_str(fs::read_link(path).ok()?.to_str()?).ok()
}

/// A name of fixed length for a path.
fn path_key(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string().chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(root: &Path) -> OffSwitch {
        OffSwitch {
            prefix: "off-x-".to_owned(),
            home: Some(root.join("home")),
            fallback_directories: ["one", "two", "three"].map(|name| root.join(name)).to_vec(),
            seen: Arc::default(),
        }
    }

    #[test]
    fn a_period_applies_to_its_workspace_and_below() {
        let root = tempfile::tempdir().unwrap();
        let switch = switch(root.path());
        let work = root.path().canonicalize().unwrap().join("work");
        assert_eq!(switch.current_period(Some(&work)), None);
        let off = OffPeriod::starting_now(60_000, "dana", "lunch", Some(&work));
        let path = switch.turn_off(&off).unwrap();
        assert_eq!(path.parent(), Some(root.path().join("home").as_path()));
        assert_eq!(switch.current_period(Some(&work.join("sub"))), Some(off.clone()));
        assert_eq!(switch.current_period(Some(root.path())), None);
        assert_eq!(switch.current_period(None), None);

        let everywhere = OffPeriod::starting_now(120_000, "dana", "all day", None);
        switch.turn_off(&everywhere).unwrap();
        assert_eq!(switch.current_period(Some(&work)), Some(everywhere.clone()), "the longer one");
        assert_eq!(switch.active_periods().len(), 2);
        assert_eq!(switch.turn_on(Some(root.path())).unwrap(), [everywhere]);
        assert_eq!(switch.current_period(Some(&work)), Some(off));
        assert_eq!(switch.turn_on(None).unwrap().len(), 1);
        assert_eq!(switch.current_period(Some(&work)), None);
    }

    #[test]
    fn a_new_marker_is_seen_in_a_cached_directory() {
        let root = tempfile::tempdir().unwrap();
        let switch = switch(root.path());
        let home = root.path().join("home");
        fs::create_dir(&home).unwrap();
        // Unchanged for so long that its time is conclusive.
        std::thread::sleep(std::time::Duration::from_millis(
            crate::directory_stamp::SETTLED_MS + 20,
        ));
        assert_eq!(switch.current_period(None), None);
        assert!(switch.seen.lock().unwrap().bare.contains_key(&home));
        let off = OffPeriod::starting_now(60_000, "dana", "lunch", None);
        switch.turn_off(&off).unwrap();
        assert_eq!(switch.clone().current_period(None), Some(off));
        switch.turn_on(None).unwrap();
        assert_eq!(switch.current_period(None), None);
        let off = OffPeriod::starting_now(90_000, "dana", "tea", None);
        switch.turn_off(&off).unwrap();
        assert_eq!(switch.current_period(None), Some(off), "at once");
    }

    #[test]
    fn a_foreign_or_invalid_marker_is_ignored() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let switch = switch(root.path());
        fs::create_dir(root.path().join("home")).unwrap();
        let place = root.path().join("home/off-x-1");
        let far = OffPeriod::starting_now(OFF_MS_MAX, "a", "b", None);
        let far = OffPeriod { until: far.until.plus_ms(60_000), ..far };
        let over = OffPeriod { until: Timestamp::from_ms(0), ..far.clone() };
        let texts = [
            "garbage".to_owned(),
            r#"{"until":7}"#.to_owned(),
            r#"{"until":"2999-01-01T00:00:00Z","more":1}"#.to_owned(),
            serde_json::to_string(&far).unwrap(),
            serde_json::to_string(&over).unwrap(),
        ];
        for text in &texts {
            symlink(text, &place).unwrap();
            assert_eq!(switch.current_period(None), None, "{text}");
            fs::remove_file(&place).unwrap();
        }
        let good = serde_json::to_string(&OffPeriod::starting_now(60_000, "a", "b", None)).unwrap();
        fs::write(&place, &good).unwrap();
        assert_eq!(switch.current_period(None), None, "a file is no marker");
        // A directory that others can write to, and one behind a symbolic link.
        let one = root.path().join("one");
        fs::create_dir(&one).unwrap();
        symlink(&good, one.join("off-x-2")).unwrap();
        fs::set_permissions(&one, fs::Permissions::from_mode(0o777)).unwrap();
        let wait = || std::thread::sleep(std::time::Duration::from_millis(FALLBACK_CHECK_MS + 1));
        wait();
        assert_eq!(switch.current_period(None), None, "another user can have written the marker");
        symlink(&one, root.path().join("two")).unwrap();
        fs::set_permissions(&one, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(switch.markers().len(), 1, "only through the directory itself");
        wait();
        assert!(switch.current_period(None).is_some());
    }

    #[test]
    fn the_next_directory_is_used_if_one_fails() {
        let root = tempfile::tempdir().unwrap();
        let switch = switch(root.path());
        fs::write(root.path().join("home"), "a file").unwrap();
        let off = OffPeriod::starting_now(60_000, "a", "b", None);
        let path = switch.turn_off(&off).unwrap();
        assert_eq!(path.parent(), Some(root.path().join("one").as_path()));
        assert_eq!(switch.current_period(None), Some(off.clone()));
        fs::remove_dir_all(root.path().join("one")).unwrap();
        for place in ["one", "two", "three"] {
            fs::write(root.path().join(place), "a file").unwrap();
        }
        let error = switch.turn_off(&off).unwrap_err().to_string();
        assert!(error.starts_with("the guard can't be switched off: `"), "{error}");
    }
}
