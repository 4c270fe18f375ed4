//! A workspace in memory for the engine driver: files, symbolic links, and stored contents of
//! protected files.

use std::collections::BTreeMap;

use jackline_engine::digest::Digest128;
use jackline_engine::facts::{
    ChangedFile, ControlFiles, FileChangeFact, FileDetails, FileFact, FileKind, FileSearch,
    HookState, TrackedFile, WatchedFact, declares_tests,
};
use jackline_engine::{Digest, Timestamp};
use serde_json::Value;

/// The absolute path of the workspace.
pub(crate) const ROOT: &str = "/workspace";

/// The largest number of links in a path.
const LINKS_MAX: usize = 40;

/// A workspace in memory.
pub(crate) struct WorkspaceModel {
    texts: BTreeMap<String, MemoryFile>,
    links: BTreeMap<String, String>,
    /// The number of writes. It serves as the file stamp, so no two files have the same one.
    writes: u64,
    /// Stored contents of protected files.
    stored: BTreeMap<Digest, String>,
}

struct MemoryFile {
    text: String,
    modified: Timestamp,
    look: u64,
}

/// The absolute form of a path inside the workspace.
pub(crate) fn absolute(path: &str) -> String {
    if path == "." { ROOT.to_owned() } else { format!("{ROOT}/{path}") }
}

impl WorkspaceModel {
    pub(crate) fn new(links: &BTreeMap<String, String>) -> Self {
        Self { texts: BTreeMap::new(), links: links.clone(), writes: 0, stored: BTreeMap::new() }
    }

    pub(crate) fn write(&mut self, path: &str, text: &str, modified: Timestamp) {
        self.writes += 1;
        let path = self.resolve(path);
        let file = MemoryFile { text: text.to_owned(), modified, look: self.writes };
        self.texts.insert(path, file);
    }

    pub(crate) fn remove(&mut self, path: &str) -> Option<()> {
        self.texts.remove(path).map(drop)
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(&self.resolve(path)).map(|file| file.text.as_str())
    }

    /// The fact about a path of a workspace. A path is a directory if files are below it.
    pub(crate) fn file_fact(&self, workspace: &str, path: &str, wants: FileDetails) -> FileFact {
        if workspace != "." && !self.has_below(workspace) {
            return FileFact::without_details(FileKind::NoFilesystem);
        }
        let Some(asked) = from_root(workspace, path) else {
            return FileFact::without_details(FileKind::Missing);
        };
        let real = self.resolve(&asked);
        let target = (real != asked).then(|| to_workspace(workspace, &real));
        if real.starts_with('/') {
            return FileFact { real: target, ..FileFact::without_details(FileKind::Escape) };
        }
        let fact = match self.texts.get(&real) {
            Some(file) => FileFact {
                bytes: file.text.len() as u64,
                modified: Some(file.modified),
                json: wants.json.then(|| serde_json::from_str::<Value>(&file.text).is_ok()),
                declares_tests: wants.declares_tests.then(|| declares_tests(&real, &file.text)),
                stamp: Some(file.look),
                digest: wants.contents.then(|| Digest128::of(file.text.as_bytes())),
                lines: wants.contents.then(|| file.text.lines().count() as u64),
                ..FileFact::without_details(FileKind::File)
            },
            None if self.has_below(&real) => FileFact::without_details(FileKind::Directory),
            None => FileFact::without_details(FileKind::Missing),
        };
        FileFact { real: target, ..fact }
    }

    /// The tracked files whose stamp differs.
    pub(crate) fn changed(
        &self,
        workspace: &str,
        tracked: &[TrackedFile],
    ) -> BTreeMap<String, FileFact> {
        let contents = FileDetails { contents: true, ..FileDetails::default() };
        tracked
            .iter()
            .map(|file| (file, self.file_fact(workspace, &file.path, contents)))
            .filter(|(file, fact)| fact.stamp != Some(file.stamp))
            .map(|(file, fact)| (file.path.clone(), fact))
            .collect()
    }

    /// The protected files whose stamp differs. Their contents are stored.
    pub(crate) fn watched(
        &mut self,
        workspace: &str,
        tracked: &[TrackedFile],
    ) -> BTreeMap<String, WatchedFact> {
        let mut seen = BTreeMap::new();
        for file in tracked {
            let current = from_root(workspace, &file.path)
                .and_then(|path| self.texts.get(&path))
                .map(|file| (file.look, file.text.clone()));
            let look = current.as_ref().map_or(0, |(look, _)| *look);
            if look == file.stamp {
                continue;
            }
            let sha256 = current.map(|(_, text)| {
                let sha256 = Digest::of(text.as_bytes());
                self.stored.insert(sha256, text);
                sha256
            });
            seen.insert(
                file.path.clone(),
                WatchedFact { stamp: look, sha256, ..WatchedFact::default() },
            );
        }
        seen
    }

    /// The first file that a search finds.
    pub(crate) fn find_file(&self, workspace: &str, search: &FileSearch) -> Option<String> {
        let mut paths = self.texts.keys().map(|path| to_workspace(workspace, path));
        paths.find(|path| search.matches(path))
    }

    /// The control files of a person. A directory of that name counts too.
    pub(crate) fn markers(&self, workspace: &str) -> ControlFiles {
        let exists = |name: &str| {
            let path = from_root(workspace, name).map(|path| self.resolve_parent(&path));
            path.is_some_and(|path| {
                self.texts.contains_key(&path)
                    || self.links.contains_key(&path)
                    || self.has_below(&path)
            })
        };
        ControlFiles {
            stop: exists(ControlFiles::STOP),
            pause: exists(ControlFiles::PAUSE),
            fault: None,
        }
    }

    /// Resolves the links above a path, but not the path itself.
    fn resolve_parent(&self, path: &str) -> String {
        match path.rsplit_once('/') {
            Some((above, name)) => format!("{}/{name}", self.resolve(above)),
            None => path.to_owned(),
        }
    }

    /// Writes or removes a file of the guard, and returns the fact about it.
    pub(crate) fn put(
        &mut self,
        workspace: &str,
        path: &str,
        text: Option<String>,
        now: Timestamp,
    ) -> WatchedFact {
        if let Some(from_root) = from_root(workspace, path) {
            match text {
                Some(text) => self.write(&from_root, &text, now),
                None => drop(self.texts.remove(&from_root)),
            }
        }
        let gone = WatchedFact::default();
        let tracked = TrackedFile { path: path.to_owned(), stamp: 0 };
        self.watched(workspace, &[tracked]).remove(path).unwrap_or(gone)
    }

    /// Whether settings of a client name the guard.
    pub(crate) fn hook_state(&self, workspace: &str, path: &str) -> HookState {
        let file = from_root(workspace, path).and_then(|path| self.texts.get(&path));
        file.map_or(HookState::Absent, |file| hook_state_of(&file.text))
    }

    /// How protected files changed. There is no repository.
    pub(crate) fn file_changes(
        &self,
        workspace: &str,
        changed: &[ChangedFile],
    ) -> BTreeMap<String, FileChangeFact> {
        let change = |file: &ChangedFile| {
            let before = file.before.and_then(|digest| self.stored.get(&digest));
            let before = before.map_or(HookState::Absent, |text| hook_state_of(text));
            let after = self.hook_state(workspace, &file.path);
            (file.path.clone(), FileChangeFact { before, after, ..FileChangeFact::default() })
        };
        changed.iter().map(change).collect()
    }

    /// Restores a protected file.
    pub(crate) fn restore(
        &mut self,
        workspace: &str,
        path: &str,
        contents: Option<Digest>,
        now: Timestamp,
    ) {
        let Some(path) = from_root(workspace, path) else { return };
        match contents.and_then(|contents| self.stored.get(&contents).cloned()) {
            Some(text) => self.write(&path, &text, now),
            None => drop(self.texts.remove(&path)),
        }
    }

    /// Resolves links: the result is relative to the root, or absolute if it is outside.
    fn resolve(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for _ in 0..LINKS_MAX {
            let mut ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
            let link = ends.find_map(|end| Some((end, self.links.get(path.get(..end)?)?)));
            let Some((end, target)) = link else { return path };
            let above = path.get(..end).and_then(|link| link.rsplit_once('/'));
            let base =
                if target.starts_with('/') { "" } else { above.map_or("", |(above, _)| above) };
            let rest = path.get(end..).unwrap_or_default();
            let joined = format!("{base}/{target}{rest}");
            path = match jackline_engine::path::canonical_path(&joined, Some("/")) {
                Ok(inside) if !target.starts_with('/') => inside,
                Ok(absolute) => {
                    match jackline_engine::path::canonical_path(&format!("/{absolute}"), Some(ROOT))
                    {
                        Ok(inside) => inside,
                        Err(_) => return format!("/{absolute}"),
                    }
                }
                Err(_) => return format!("/{target}"),
            };
        }
        path
    }

    fn has_below(&self, directory: &str) -> bool {
        directory == "."
            || self
                .texts
                .keys()
                .any(|path| path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/')))
    }
}

/// Whether a settings text makes a client run the guard.
fn hook_state_of(text: &str) -> HookState {
    if text.contains("\"disableAllHooks\": true") {
        HookState::Disabled
    } else if text.contains("jackline") {
        HookState::Present
    } else {
        HookState::Absent
    }
}

/// Converts a path of a workspace to a path from the root.
fn from_root(workspace: &str, path: &str) -> Option<String> {
    if path.starts_with('/') {
        return jackline_engine::path::canonical_path(path, Some(ROOT)).ok();
    }
    let joined = if workspace == "." { path.to_owned() } else { format!("{workspace}/{path}") };
    jackline_engine::path::canonical_path(&joined, None).ok()
}

/// Converts a path from the root to a path of a workspace.
fn to_workspace(workspace: &str, path: &str) -> String {
    match path.strip_prefix(workspace).and_then(|rest| rest.strip_prefix('/')) {
        Some(inside) => inside.to_owned(),
        None if workspace == "." || path.starts_with('/') => path.to_owned(),
        None => absolute(path),
    }
}
