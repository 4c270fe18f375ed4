//! A workspace in memory, for the engine's driver: files, symbolic links, and
//! what is kept of protected files.

use std::collections::BTreeMap;

use jackline_engine::digest::Digest128;
use jackline_engine::facts::{FileFact, FileKind, Markers, Tracked, Wants, WatchedFact};
use jackline_engine::{Digest, Timestamp};
use serde_json::Value;

/// Where the workspace lies, as far as anybody can tell.
pub(crate) const ROOT: &str = "/workspace";

/// How many links are followed.
const LINKS_MAX: usize = 40;

/// A workspace in memory.
pub(crate) struct Files {
    texts: BTreeMap<String, File>,
    links: BTreeMap<String, String>,
    /// How often something was written: no two files look the same by chance.
    writes: u64,
    /// Contents of protected files.
    kept: BTreeMap<Digest, String>,
}

struct File {
    text: String,
    modified: Timestamp,
    look: u64,
}

/// The absolute form of a path inside the workspace.
pub(crate) fn absolute(path: &str) -> String {
    if path == "." { ROOT.to_owned() } else { format!("{ROOT}/{path}") }
}

impl Files {
    pub(crate) fn new(links: &BTreeMap<String, String>) -> Self {
        Self { texts: BTreeMap::new(), links: links.clone(), writes: 0, kept: BTreeMap::new() }
    }

    pub(crate) fn write(&mut self, path: &str, text: &str, modified: Timestamp) {
        self.writes += 1;
        let path = self.real(path);
        let file = File { text: text.to_owned(), modified, look: self.writes };
        self.texts.insert(path, file);
    }

    pub(crate) fn remove(&mut self, path: &str) -> Option<()> {
        self.texts.remove(path).map(drop)
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(&self.real(path)).map(|file| file.text.as_str())
    }

    /// What is at a path of a workspace; a directory is what has files in it.
    pub(crate) fn look(&self, workspace: &str, path: &str, wants: Wants) -> FileFact {
        if workspace != "." && !self.has_below(workspace) {
            return FileFact::of(FileKind::NoFilesystem);
        }
        let Some(asked) = from_root(workspace, path) else {
            return FileFact::of(FileKind::Missing);
        };
        let real = self.real(&asked);
        let elsewhere = (real != asked).then(|| to_workspace(workspace, &real));
        if real.starts_with('/') {
            return FileFact { real: elsewhere, ..FileFact::of(FileKind::Escape) };
        }
        let fact = match self.texts.get(&real) {
            Some(file) => FileFact {
                bytes: file.text.len() as u64,
                modified: Some(file.modified),
                json: wants.json.then(|| serde_json::from_str::<Value>(&file.text).is_ok()),
                look: Some(file.look),
                digest: wants.contents.then(|| Digest128::of(file.text.as_bytes())),
                lines: wants.contents.then(|| file.text.lines().count() as u64),
                ..FileFact::of(FileKind::File)
            },
            None if self.has_below(&real) => FileFact::of(FileKind::Directory),
            None => FileFact::of(FileKind::Missing),
        };
        FileFact { real: elsewhere, ..fact }
    }

    /// Those of the tracked files that look different.
    pub(crate) fn changed(
        &self,
        workspace: &str,
        tracked: &[Tracked],
    ) -> BTreeMap<String, FileFact> {
        let contents = Wants { json: false, contents: true };
        tracked
            .iter()
            .map(|file| (file, self.look(workspace, &file.path, contents)))
            .filter(|(file, fact)| fact.look != Some(file.look))
            .map(|(file, fact)| (file.path.clone(), fact))
            .collect()
    }

    /// Those of the protected files that look different; their contents are kept.
    pub(crate) fn watched(
        &mut self,
        workspace: &str,
        tracked: &[Tracked],
    ) -> BTreeMap<String, WatchedFact> {
        let mut seen = BTreeMap::new();
        for file in tracked {
            let found = from_root(workspace, &file.path)
                .and_then(|path| self.texts.get(&path))
                .map(|file| (file.look, file.text.clone()));
            let look = found.as_ref().map_or(0, |(look, _)| *look);
            if look == file.look {
                continue;
            }
            let sha256 = found.map(|(_, text)| {
                let sha256 = Digest::of(text.as_bytes());
                self.kept.insert(sha256, text);
                sha256
            });
            seen.insert(file.path.clone(), WatchedFact { look, sha256, ..WatchedFact::default() });
        }
        seen
    }

    /// The files by which a person steers; a directory of that name is one, too.
    pub(crate) fn markers(&self, workspace: &str) -> Markers {
        let there = |name: &str| {
            let path = from_root(workspace, name).map(|path| self.above(&path));
            path.is_some_and(|path| {
                self.texts.contains_key(&path)
                    || self.links.contains_key(&path)
                    || self.has_below(&path)
            })
        };
        Markers { stop: there(Markers::STOP), pause: there(Markers::PAUSE), fault: None }
    }

    /// A path whose own name may be a link, by where the links above it lead.
    fn above(&self, path: &str) -> String {
        match path.rsplit_once('/') {
            Some((above, name)) => format!("{}/{name}", self.real(above)),
            None => path.to_owned(),
        }
    }

    /// Writes a file of the guard's own, or removes it; gives how it looks then.
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
        let tracked = Tracked { path: path.to_owned(), look: 0 };
        self.watched(workspace, &[tracked]).remove(path).unwrap_or(gone)
    }

    /// Gives a protected file back as it was.
    pub(crate) fn give_back(
        &mut self,
        workspace: &str,
        path: &str,
        contents: Option<Digest>,
        now: Timestamp,
    ) {
        let Some(path) = from_root(workspace, path) else { return };
        match contents.and_then(|contents| self.kept.get(&contents).cloned()) {
            Some(text) => self.write(&path, &text, now),
            None => drop(self.texts.remove(&path)),
        }
    }

    /// Where links lead: a path from the root, or an absolute one outside.
    fn real(&self, path: &str) -> String {
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
            path = match jackline_engine::path::canonical(&joined, Some("/")) {
                Ok(inside) if !target.starts_with('/') => inside,
                Ok(absolute) => {
                    match jackline_engine::path::canonical(&format!("/{absolute}"), Some(ROOT)) {
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

/// A path of a workspace as a path from the root of this world.
fn from_root(workspace: &str, path: &str) -> Option<String> {
    if path.starts_with('/') {
        return jackline_engine::path::canonical(path, Some(ROOT)).ok();
    }
    let joined = if workspace == "." { path.to_owned() } else { format!("{workspace}/{path}") };
    jackline_engine::path::canonical(&joined, None).ok()
}

/// A path from the root of this world as a path of a workspace.
fn to_workspace(workspace: &str, path: &str) -> String {
    match path.strip_prefix(workspace).and_then(|rest| rest.strip_prefix('/')) {
        Some(inside) => inside.to_owned(),
        None if workspace == "." || path.starts_with('/') => path.to_owned(),
        None => absolute(path),
    }
}
