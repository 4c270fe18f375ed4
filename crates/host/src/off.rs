//! A person's word that switches the guard off for a while.
//!
//! It has to work where nothing else does: on a full disk, with a state home
//! that can't be written, beside a broken journal. So it is a symbolic link whose
//! target is the text, which takes no room of its own, in the first place
//! that has it. Reading it changes nothing and never fails: what can't be
//! understood switches nothing off.

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
use crate::environment::{runtime_directories, state_home};
use crate::stamp::DirectoryStamp;

/// How long the guard is off where nobody says how long.
pub const OFF_MS: u64 = 30 * 60_000;

/// The longest that the guard can be switched off at once.
pub const OFF_MS_MAX: u64 = 24 * 3_600_000;

/// How much of a name or a reason is kept.
const WORDS_CHARS_MAX: usize = 200;

/// How many markers of one place are looked at.
const MARKERS_MAX: usize = 64;

/// That the guard is switched off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Off {
    /// From when on it holds again.
    pub until: Timestamp,
    /// Who switched it off.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Why they did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Where: in this directory and below it; everywhere where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
}

impl From<Off> for OffFact {
    fn from(off: Off) -> Self {
        Self { until: off.until, by: off.by, why: off.why }
    }
}

impl Off {
    /// Off from now on.
    pub fn lasting(ms: u64, by: &str, why: &str, workspace: Option<&Path>) -> Self {
        let short = |text: &str| text.chars().take(WORDS_CHARS_MAX).collect();
        let until = clock::now().wall.plus_ms(ms.min(OFF_MS_MAX));
        let workspace = workspace.map(|path| path.canonicalize().unwrap_or_else(|_| path.into()));
        Self { until, by: short(by), why: short(why), workspace }
    }

    /// Whether it holds in a workspace.
    fn covers(&self, workspace: Option<&Path>) -> bool {
        match (&self.workspace, workspace) {
            (None, _) => true,
            (Some(off), Some(workspace)) => workspace.starts_with(off),
            (Some(_), None) => false,
        }
    }

    /// Whether it holds at a time. A word for longer than anybody can give one
    /// is none.
    fn holds(&self, now: Timestamp) -> bool {
        now < self.until && self.until <= now.plus_ms(OFF_MS_MAX)
    }
}

/// Why the guard can't be switched.
#[derive(Debug, thiserror::Error)]
pub enum OffError {
    /// No place takes the word.
    #[error("the guard can't be switched off: {}", .0.join("; "))]
    Nowhere(Vec<String>),
    /// The word is there and can't be taken back.
    #[error("`{}` can't be removed: {source}", .path.display())]
    Stuck {
        /// The marker.
        path: PathBuf,
        /// What the file system said.
        source: io::Error,
    },
    /// Records are text, and so is this.
    #[error("the workspace `{}` is not UTF-8", .0.display())]
    Workspace(PathBuf),
}

/// The places in which the guard of one state home is switched off. By default there are none, and
/// the guard is always on.
#[derive(Debug, Clone, Default)]
pub struct Switch {
    /// How the names of its markers begin.
    prefix: String,
    home: Option<PathBuf>,
    elsewhere: Vec<PathBuf>,
    seen: Arc<Mutex<Seen>>,
}

/// What whoever asks at every event need not look at each time.
#[derive(Debug, Default)]
struct Seen {
    /// The places without a marker, as long as nobody changes them.
    bare: BTreeMap<PathBuf, DirectoryStamp>,
    /// Until when nothing is looked for outside the state home, since nothing was there.
    elsewhere_until_ms: u64,
}

/// How long nothing is looked for outside the state home: a person who has just
/// switched off does not notice it.
const ELSEWHERE_MS: u64 = 100;

impl Switch {
    /// The switch of a state home. One without a state home has a switch, too.
    pub fn of(home: Option<&Path>) -> Self {
        // Another state home is another guard.
        let name = home.map(|home| home.display().to_string()).unwrap_or_default();
        let prefix = format!("off-{}-", short(&name));
        let elsewhere = runtime_directories().to_vec();
        Self { prefix, home: home.map(Path::to_owned), elsewhere, seen: Arc::default() }
    }

    /// The switch of this person on this machine.
    pub fn here() -> Self {
        Self::of(state_home().ok().as_deref())
    }

    /// The places outside the state home.
    pub fn elsewhere(&self) -> impl Iterator<Item = &Path> {
        self.elsewhere.iter().map(PathBuf::as_path)
    }

    /// What is off in a workspace now; of several, what lasts longest.
    pub fn now(&self, workspace: Option<&Path>) -> Option<Off> {
        let mut found = self.markers_at_home();
        found.extend(self.newest_elsewhere());
        if found.is_empty() {
            return None;
        }
        let now = clock::now().wall;
        found.retain(|(_, off)| off.holds(now) && off.covers(workspace));
        found.into_iter().map(|(_, off)| off).max_by_key(|off| off.until)
    }

    /// Everything that is off now.
    pub fn all(&self) -> Vec<Off> {
        let now = clock::now().wall;
        self.markers().into_iter().map(|(_, off)| off).filter(|off| off.holds(now)).collect()
    }

    /// Switches off; says where that is written down.
    pub fn off(&self, off: &Off) -> Result<PathBuf, OffError> {
        let scope = match &off.workspace {
            None => "everywhere",
            Some(path) => path.to_str().ok_or_else(|| OffError::Workspace(path.clone()))?,
        };
        let name = format!("{}{}", self.prefix, short(scope));
        // On a full disk there may be room for a few words, and not for a reason.
        let brief = Off { by: String::new(), why: String::new(), ..off.clone() };
        let mut refusals = Vec::new();
        for place in self.home.iter().chain(&self.elsewhere) {
            let ready = self.make(place);
            let marked = ready
                .and_then(|()| mark(place, &name, off).or_else(|_| mark(place, &name, &brief)));
            match marked {
                Ok(path) => return Ok(path),
                Err(error) => refusals.push(format!("`{}`: {error}", place.display())),
            }
        }
        Err(OffError::Nowhere(refusals))
    }

    /// Takes back everything that holds in a workspace, or everything; says what
    /// that was.
    pub fn on(&self, workspace: Option<&Path>) -> Result<Vec<Off>, OffError> {
        let mut ended = Vec::new();
        for (path, off) in self.markers() {
            if workspace.is_some() && !off.covers(workspace) {
                continue;
            }
            fs::remove_file(&path).map_err(|source| OffError::Stuck { path, source })?;
            ended.push(off);
        }
        let now = clock::now().wall;
        ended.retain(|off| off.holds(now));
        Ok(ended)
    }

    /// Every marker that can be understood, and where it lies.
    fn markers(&self) -> Vec<(PathBuf, Off)> {
        let mut found = self.markers_at_home();
        found.extend(self.markers_elsewhere());
        found
    }

    fn markers_at_home(&self) -> Vec<(PathBuf, Off)> {
        let before = clock::now().wall;
        let home = self.home.iter().map(|home| (home, fs::metadata(home).ok()));
        home.flat_map(|(home, look)| self.markers_in(home, look.as_ref(), before)).collect()
    }

    fn markers_elsewhere(&self) -> Vec<(PathBuf, Off)> {
        let before = clock::now().wall;
        let usable = self.elsewhere.iter().map(|place| (place, ours(place)));
        usable.flat_map(|(place, look)| self.markers_in(place, look.as_ref(), before)).collect()
    }

    /// The same for whoever asks at every event: not again at once where there was none.
    fn newest_elsewhere(&self) -> Vec<(PathBuf, Off)> {
        let now = clock::boot_ms();
        if now < self.seen().elsewhere_until_ms {
            return Vec::new();
        }
        let found = self.markers_elsewhere();
        self.seen().elsewhere_until_ms = if found.is_empty() { now + ELSEWHERE_MS } else { 0 };
        found
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn markers_in(
        &self,
        place: &Path,
        look: Option<&Metadata>,
        before: Timestamp,
    ) -> Vec<(PathBuf, Off)> {
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
        let mine: Vec<_> = mine.take(MARKERS_MAX).map(|entry| entry.path()).collect();
        if mine.is_empty() && stamp.tells(place, before) {
            bare.insert(place.to_owned(), stamp);
        } else {
            bare.remove(place);
        }
        mine.into_iter().filter_map(|path| Some((path.clone(), understand(&path)?))).collect()
    }

    /// Makes a place ready to be written to.
    fn make(&self, place: &Path) -> io::Result<()> {
        let home = self.home.as_deref() == Some(place);
        let made = DirBuilder::new().mode(0o700).recursive(home).create(place);
        match made {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if home || ours(place).is_some() {
            return Ok(());
        }
        Err(io::Error::other("it is not a directory of yours alone"))
    }
}

/// What is off in a workspace now.
pub fn off_now(workspace: Option<&Path>) -> Option<Off> {
    Switch::here().now(workspace)
}

/// Switches the guard of this person off; says where that is written down.
pub fn switch_off(off: &Off) -> Result<PathBuf, OffError> {
    Switch::here().off(off)
}

/// Switches the guard of this person on again; says what was off.
pub fn switch_on(workspace: Option<&Path>) -> Result<Vec<Off>, OffError> {
    Switch::here().on(workspace)
}

/// How a directory looks, if it is one that nobody else can have prepared.
fn ours(place: &Path) -> Option<Metadata> {
    let user = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(place).ok().filter(|metadata| {
        metadata.is_dir() && metadata.uid() == user && metadata.mode() & 0o777 == 0o700
    })
}

fn mark(place: &Path, name: &str, off: &Off) -> io::Result<PathBuf> {
    let text = serde_json::to_string(off).map_err(io::Error::other)?;
    let path = place.join(name);
    // Replaced at once: there is no moment in which neither holds.
    let fresh = place.join(format!("{}.new", std::process::id()));
    let _ = fs::remove_file(&fresh);
    symlink(&text, &fresh)?;
    fs::rename(&fresh, &path).inspect_err(|_| {
        let _ = fs::remove_file(&fresh);
    })?;
    Ok(path)
}

/// What a marker says, if it is ours and says anything.
fn understand(path: &Path) -> Option<Off> {
    let user = rustix::process::geteuid().as_raw();
    let metadata = fs::symlink_metadata(path).ok()?;
    if !metadata.is_symlink() || metadata.uid() != user {
        return None;
    }
    serde_json::from_str(fs::read_link(path).ok()?.to_str()?).ok()
}

/// A name of fixed length for a path.
fn short(text: &str) -> String {
    Digest::of(text.as_bytes()).to_string().chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(root: &Path) -> Switch {
        Switch {
            prefix: "off-x-".to_owned(),
            home: Some(root.join("home")),
            elsewhere: ["one", "two", "three"].map(|name| root.join(name)).to_vec(),
            seen: Arc::default(),
        }
    }

    #[test]
    fn it_holds_where_it_was_said_and_below() {
        let root = tempfile::tempdir().unwrap();
        let switch = switch(root.path());
        let work = root.path().canonicalize().unwrap().join("work");
        assert_eq!(switch.now(Some(&work)), None);
        let off = Off::lasting(60_000, "dana", "lunch", Some(&work));
        let path = switch.off(&off).unwrap();
        assert_eq!(path.parent(), Some(root.path().join("home").as_path()));
        assert_eq!(switch.now(Some(&work.join("sub"))), Some(off.clone()));
        assert_eq!(switch.now(Some(root.path())), None);
        assert_eq!(switch.now(None), None);

        let everywhere = Off::lasting(120_000, "dana", "all day", None);
        switch.off(&everywhere).unwrap();
        assert_eq!(switch.now(Some(&work)), Some(everywhere.clone()), "the longer one");
        assert_eq!(switch.all().len(), 2);
        assert_eq!(switch.on(Some(root.path())).unwrap(), [everywhere]);
        assert_eq!(switch.now(Some(&work)), Some(off));
        assert_eq!(switch.on(None).unwrap().len(), 1);
        assert_eq!(switch.now(Some(&work)), None);
    }

    #[test]
    fn a_place_that_had_no_marker_is_looked_at_again_when_it_has_one() {
        let root = tempfile::tempdir().unwrap();
        let switch = switch(root.path());
        let home = root.path().join("home");
        fs::create_dir(&home).unwrap();
        // Left alone for so long that its time says everything.
        std::thread::sleep(std::time::Duration::from_millis(crate::stamp::SETTLED_MS + 20));
        assert_eq!(switch.now(None), None);
        assert!(switch.seen.lock().unwrap().bare.contains_key(&home));
        let off = Off::lasting(60_000, "dana", "lunch", None);
        switch.off(&off).unwrap();
        assert_eq!(switch.clone().now(None), Some(off));
        switch.on(None).unwrap();
        assert_eq!(switch.now(None), None);
        let off = Off::lasting(90_000, "dana", "tea", None);
        switch.off(&off).unwrap();
        assert_eq!(switch.now(None), Some(off), "at once");
    }

    #[test]
    fn what_is_not_ours_or_not_understood_switches_nothing_off() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let switch = switch(root.path());
        fs::create_dir(root.path().join("home")).unwrap();
        let place = root.path().join("home/off-x-1");
        let far = Off::lasting(OFF_MS_MAX, "a", "b", None);
        let far = Off { until: far.until.plus_ms(60_000), ..far };
        let over = Off { until: Timestamp::from_ms(0), ..far.clone() };
        let texts = [
            "garbage".to_owned(),
            r#"{"until":7}"#.to_owned(),
            r#"{"until":"2999-01-01T00:00:00Z","more":1}"#.to_owned(),
            serde_json::to_string(&far).unwrap(),
            serde_json::to_string(&over).unwrap(),
        ];
        for text in &texts {
            symlink(text, &place).unwrap();
            assert_eq!(switch.now(None), None, "{text}");
            fs::remove_file(&place).unwrap();
        }
        let good = serde_json::to_string(&Off::lasting(60_000, "a", "b", None)).unwrap();
        fs::write(&place, &good).unwrap();
        assert_eq!(switch.now(None), None, "a file is no marker");
        // A directory that others can write to, and one behind a link.
        let one = root.path().join("one");
        fs::create_dir(&one).unwrap();
        symlink(&good, one.join("off-x-2")).unwrap();
        fs::set_permissions(&one, fs::Permissions::from_mode(0o777)).unwrap();
        let wait = || std::thread::sleep(std::time::Duration::from_millis(ELSEWHERE_MS + 1));
        wait();
        assert_eq!(switch.now(None), None, "anybody can have put it there");
        symlink(&one, root.path().join("two")).unwrap();
        fs::set_permissions(&one, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(switch.markers().len(), 1, "only through the directory itself");
        wait();
        assert!(switch.now(None).is_some());
    }

    #[test]
    fn the_next_place_is_taken_where_one_is_not_to_be_had() {
        let root = tempfile::tempdir().unwrap();
        let switch = switch(root.path());
        fs::write(root.path().join("home"), "a file").unwrap();
        let off = Off::lasting(60_000, "a", "b", None);
        let path = switch.off(&off).unwrap();
        assert_eq!(path.parent(), Some(root.path().join("one").as_path()));
        assert_eq!(switch.now(None), Some(off.clone()));
        fs::remove_dir_all(root.path().join("one")).unwrap();
        for place in ["one", "two", "three"] {
            fs::write(root.path().join(place), "a file").unwrap();
        }
        let error = switch.off(&off).unwrap_err().to_string();
        assert!(error.starts_with("the guard can't be switched off: `"), "{error}");
    }
}
