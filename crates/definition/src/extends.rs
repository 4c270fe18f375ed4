//! What a definition builds on: presets, packs and files, put together as
//! trees before anything is lowered, so that every place stays known.
//!
//! A file is named from the file that extends it, and lies in the directory of
//! the definition or below. Absolute paths are refused, for they mean something
//! else on the next machine; so is what leads out, for it is somebody else's.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use jackline_engine::path::canonical;

use crate::builtin::{BuiltIn, PACKS, PRESETS};
use crate::diagnostic::{At, Diagnostics};
use crate::merge::merge_files;
use crate::reader::Reader;
use crate::source::{Origin, Sources};
use crate::yaml::{self, Key, Node, NodeValue};

/// How long a chain of files that extend each other may be.
const DEPTH_MAX: usize = 8;

/// How many files a definition may be made of.
const FILES_MAX: usize = 32;

/// How the files that a definition extends are read.
pub trait Files {
    /// The contents of a file.
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>>;
}

/// A definition put together.
pub(crate) struct Gathered {
    pub(crate) root: Option<Node>,
    pub(crate) sources: Sources,
    /// The files that were read, in order.
    pub(crate) extended: Vec<(PathBuf, Vec<u8>)>,
    /// Whether a file, and not a preset, says which tools there are.
    pub(crate) closed: bool,
}

/// Reads a definition and everything it extends.
pub(crate) fn gather<'f>(
    source: &[u8],
    file: &Path,
    files: Option<&'f mut (dyn Files + 'f)>,
    diagnostics: &mut Diagnostics,
) -> Gathered {
    let directory = file.parent().unwrap_or_else(|| Path::new("")).to_owned();
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut gathering = Gathering {
        directory,
        files,
        diagnostics,
        sources: Sources::default(),
        extended: Vec::new(),
        seen: BTreeSet::new(),
        chain: Vec::new(),
        closed: false,
    };
    let root = gathering.include(0, Origin::File(name), source.to_vec());
    let Gathering { sources, extended, closed, .. } = gathering;
    Gathered { root, sources, extended, closed }
}

struct Gathering<'a, 'f> {
    directory: PathBuf,
    files: Option<&'f mut (dyn Files + 'f)>,
    diagnostics: &'a mut Diagnostics,
    sources: Sources,
    extended: Vec<(PathBuf, Vec<u8>)>,
    /// What has been included; once is enough.
    seen: BTreeSet<String>,
    /// What is being included, the definition first.
    chain: Vec<Origin>,
    closed: bool,
}

impl Gathering<'_, '_> {
    /// A file on top of everything it extends.
    fn include(&mut self, number: u16, origin: Origin, source: Vec<u8>) -> Option<Node> {
        let tree = yaml::parse_file(&source, number, self.diagnostics);
        self.seen.insert(origin.to_string());
        self.sources.add(origin.clone(), source);
        let mut tree = tree?;
        if tree.value == NodeValue::Null {
            tree.value = NodeValue::Map(Vec::new());
        }
        let NodeValue::Map(entries) = &mut tree.value else {
            let message = format!("the definition must be a mapping, not {}", tree.describe());
            self.diagnostics.push(tree.at, message, None);
            return None;
        };
        self.closed |= matches!(origin, Origin::File(_)) && holds(entries, "tools");
        self.version(entries);
        let extends = take(entries, "extends");
        self.chain.push(origin);
        let mut merged: Option<Node> = None;
        for (name, at) in self.named(&extends) {
            if let Some(base) = self.extend(&name, at) {
                merged = Some(self.put_on(merged, base));
            }
        }
        self.chain.pop();
        Some(self.put_on(merged, tree))
    }

    fn put_on(&mut self, base: Option<Node>, own: Node) -> Node {
        match base {
            Some(base) => merge_files(base, own, self.diagnostics),
            None => own,
        }
    }

    /// Each file says for itself which version it is written in.
    fn version(&mut self, entries: &[(Key, Node)]) {
        let reader = &mut Reader::new(&self.sources, self.diagnostics);
        for (_, node) in entries.iter().filter(|(key, _)| key.text == "version") {
            if let Some(version) = reader.count::<u32>(node, "`version`")
                && version != 1
            {
                let message = format!("version {version} is not known");
                reader.complain_hint(node.at, message, "this jackline reads `version: 1`");
            }
        }
    }

    /// What an `extends` names.
    fn named(&mut self, extends: &[Node]) -> Vec<(String, At)> {
        let reader = &mut Reader::new(&self.sources, self.diagnostics);
        let mut names = Vec::new();
        for node in extends {
            let items = match &node.value {
                NodeValue::Text(_) => std::slice::from_ref(node),
                _ => reader.list(node, "`extends`"),
            };
            for item in items {
                if let Some(name) = reader.text(item, "what is extended") {
                    names.push((name.to_owned(), item.at));
                }
            }
        }
        names
    }

    /// The tree of something that is extended, unless it is there already.
    fn extend(&mut self, name: &str, at: At) -> Option<Node> {
        let found = match name.strip_prefix("pack/") {
            Some(pack) => {
                find(PACKS, pack).map(|pack| (Origin::Pack(pack.name), Some(pack.source)))
            }
            None => find(PRESETS, name)
                .map(|preset| (Origin::Preset(preset.name), Some(preset.source)))
                .or_else(|| self.file(name, at).map(|path| (Origin::File(path), None))),
        };
        let Some((origin, source)) = found else {
            if !names_a_file(name) {
                self.unknown(name, at);
            }
            return None;
        };
        if self.chain.contains(&origin) {
            self.complain(at, format!("this extends itself: {}", self.way(&origin)));
            return None;
        }
        if self.seen.contains(&origin.to_string()) {
            return None;
        }
        if self.chain.len() > DEPTH_MAX {
            let way = self.way(&origin);
            self.complain(at, format!("files extend each other more than {DEPTH_MAX} deep: {way}"));
            return None;
        }
        if self.sources.len() >= FILES_MAX {
            let way = self.way(&origin);
            let message = format!("a definition is made of more than {FILES_MAX} files: {way}");
            self.complain(at, message);
            return None;
        }
        let (shown, source) = match source {
            Some(source) => (origin.to_string(), source.as_bytes().to_vec()),
            None => self.read(name, &origin, at)?,
        };
        let number = self.diagnostics.add_file(&shown);
        self.include(number, origin, source)
    }

    /// The path of a file, from the directory of the definition.
    fn file(&mut self, name: &str, at: At) -> Option<String> {
        if !names_a_file(name) {
            return None;
        }
        if name.starts_with(['/', '~']) {
            let hint = "name it from the file that extends it, such as ./base.yaml";
            self.complain_hint(at, format!("`{name}` is not in this directory"), hint);
            return None;
        }
        let beside = match self.chain.last() {
            Some(Origin::File(path)) => {
                path.rsplit_once('/').map_or("", |(directory, _)| directory)
            }
            _ => "",
        };
        match canonical(&format!("./{beside}/{name}"), None) {
            Ok(path) => Some(path),
            Err(_) => {
                let message = format!("`{name}` leads out of the directory of the definition");
                self.complain_hint(at, message, "extend files in that directory or below it");
                None
            }
        }
    }

    fn read(&mut self, name: &str, origin: &Origin, at: At) -> Option<(String, Vec<u8>)> {
        let Origin::File(path) = origin else { return None };
        let path = self.directory.join(path);
        let Some(files) = &mut self.files else {
            let hint = "only a definition that is a file itself can; use presets and packs";
            self.complain_hint(at, format!("`{name}` can't be extended here"), hint);
            return None;
        };
        match files.read(&path) {
            Ok(source) => {
                self.extended.push((path.clone(), source.clone()));
                Some((path.display().to_string(), source))
            }
            Err(error) => {
                self.complain(at, format!("can't read `{}`: {error}", path.display()));
                None
            }
        }
    }

    fn unknown(&mut self, name: &str, at: At) {
        let presets = || PRESETS.iter().map(|preset| preset.name.to_owned());
        let all: Vec<String> =
            presets().chain(PACKS.iter().map(|pack| format!("pack/{}", pack.name))).collect();
        let reader = Reader::new(&self.sources, self.diagnostics);
        let hint = reader.meant(name, all.iter().map(String::as_str), || {
            format!("there are {}; a file is written as ./base.yaml", all.join(", "))
        });
        self.complain_hint(at, format!("nothing named `{name}` can be extended"), hint);
    }

    /// The chain of files that leads to one.
    fn way(&self, last: &Origin) -> String {
        let all = self.chain.iter().chain([last]);
        all.map(|origin| format!("`{}`", short(origin))).collect::<Vec<_>>().join(" → ")
    }

    fn complain(&mut self, at: At, message: String) {
        self.diagnostics.push(at, message, None);
    }

    fn complain_hint(&mut self, at: At, message: String, hint: impl Into<String>) {
        self.diagnostics.push(at, message, Some(hint.into()));
    }
}

fn short(origin: &Origin) -> String {
    match origin {
        Origin::File(name) => name.clone(),
        Origin::Preset(name) => (*name).to_owned(),
        Origin::Pack(name) => format!("pack/{name}"),
    }
}

fn find(all: &'static [BuiltIn], name: &str) -> Option<&'static BuiltIn> {
    all.iter().find(|built_in| built_in.name == name)
}

fn names_a_file(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    let is_yaml = matches!(ending, Some("yaml" | "yml"));
    name.starts_with(['.', '/', '~']) || is_yaml
}

fn holds(entries: &[(Key, Node)], name: &str) -> bool {
    entries.iter().any(|(key, _)| key.text == name)
}

fn take(entries: &mut Vec<(Key, Node)>, name: &str) -> Vec<Node> {
    let (taken, kept) = std::mem::take(entries).into_iter().partition(|(key, _)| key.text == name);
    *entries = kept;
    let taken: Vec<(Key, Node)> = taken;
    taken.into_iter().map(|(_, node)| node).collect()
}
