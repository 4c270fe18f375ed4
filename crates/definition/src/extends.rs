//! Collects everything that a definition extends: presets, packs and files.
//!
//! The trees are merged before they are lowered, so that every value keeps its position.
//!
//! A path is relative to the file that names it, and must stay in the directory of the definition
//! or below. Absolute paths are refused, because they mean another file on another machine. Paths
//! out of the directory are refused, because those files belong to other people.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use jackline_engine::path::canonical_path;

use crate::builtin::{BuiltInFile, PACKS, PRESETS};
use crate::diagnostic::{Diagnostics, SourcePosition};
use crate::merge::merge_files;
use crate::reader::NodeReader;
use crate::source::{Origin, SourceFiles};
use crate::yaml::{self, YamlKey, YamlNode, YamlValue};

/// The maximum length of a chain of files that extend each other.
const EXTENDS_DEPTH_MAX: usize = 8;

/// The maximum number of files that make up a definition.
const FILES_MAX: usize = 32;

/// Reads the files that a definition extends.
pub trait ExtendedFileReader {
    /// Reads the contents of a file.
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>>;
}

/// A definition merged with everything that it extends.
pub(crate) struct MergedDefinition {
    pub(crate) root: Option<YamlNode>,
    pub(crate) sources: SourceFiles,
    /// The files that were read, in order.
    pub(crate) extended: Vec<(PathBuf, Vec<u8>)>,
    /// Whether a file, not only a preset, declares the tools.
    pub(crate) closed: bool,
}

/// Reads a definition and everything it extends.
pub(crate) fn resolve_extends<'f>(
    source: &[u8],
    file: &Path,
    files: Option<&'f mut (dyn ExtendedFileReader + 'f)>,
    diagnostics: &mut Diagnostics,
) -> MergedDefinition {
    let directory = file.parent().unwrap_or_else(|| Path::new("")).to_owned();
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut gathering = ExtendsResolver {
        directory,
        files,
        diagnostics,
        sources: SourceFiles::default(),
        extended: Vec::new(),
        included: BTreeSet::new(),
        chain: Vec::new(),
        closed: false,
    };
    let root = gathering.include(0, Origin::File(name), source.to_vec());
    let ExtendsResolver { sources, extended, closed, .. } = gathering;
    MergedDefinition { root, sources, extended, closed }
}

struct ExtendsResolver<'a, 'f> {
    directory: PathBuf,
    files: Option<&'f mut (dyn ExtendedFileReader + 'f)>,
    diagnostics: &'a mut Diagnostics,
    sources: SourceFiles,
    extended: Vec<(PathBuf, Vec<u8>)>,
    /// The names of everything included so far. Each is included only once.
    included: BTreeSet<String>,
    /// The chain of files that are being included, the definition first.
    chain: Vec<Origin>,
    closed: bool,
}

impl ExtendsResolver<'_, '_> {
    /// Merges a file on top of everything that it extends.
    fn include(&mut self, number: u16, origin: Origin, source: Vec<u8>) -> Option<YamlNode> {
        let tree = yaml::parse_file(&source, number, self.diagnostics);
        self.included.insert(origin.to_string());
        self.sources.add(origin.clone(), source);
        let mut tree = tree?;
        if tree.value == YamlValue::Null {
            tree.value = YamlValue::Map(Vec::new());
        }
        let YamlValue::Map(entries) = &mut tree.value else {
            let message = format!("the definition must be a mapping, not {}", tree.describe());
            self.diagnostics.push(tree.position, message, None);
            return None;
        };
        self.closed |= matches!(origin, Origin::File(_)) && has_key(entries, "tools");
        self.check_version(entries);
        let extends = take_key(entries, "extends");
        self.chain.push(origin);
        let mut merged: Option<YamlNode> = None;
        for (name, at) in self.read_extends(&extends) {
            if let Some(base) = self.include_base(&name, at) {
                merged = Some(self.merge_onto(merged, base));
            }
        }
        self.chain.pop();
        Some(self.merge_onto(merged, tree))
    }

    fn merge_onto(&mut self, base: Option<YamlNode>, own: YamlNode) -> YamlNode {
        match base {
            Some(base) => merge_files(base, own, self.diagnostics),
            None => own,
        }
    }

    /// Checks the version of one file. Each file declares its own version.
    fn check_version(&mut self, entries: &[(YamlKey, YamlNode)]) {
        let reader = &mut NodeReader::new(&self.sources, self.diagnostics);
        for (_, node) in entries.iter().filter(|(key, _)| key.text == "version") {
            if let Some(version) = reader.count::<u32>(node, "`version`")
                && version != 1
            {
                let message = format!("version {version} is not supported");
                reader.report_with_hint(node.position, message, "this jackline reads `version: 1`");
            }
        }
    }

    /// Returns the names in `extends`, with their positions.
    fn read_extends(&mut self, extends: &[YamlNode]) -> Vec<(String, SourcePosition)> {
        let reader = &mut NodeReader::new(&self.sources, self.diagnostics);
        let mut names = Vec::new();
        for node in extends {
            let items = match &node.value {
                YamlValue::Text(_) => std::slice::from_ref(node),
                _ => reader.list(node, "`extends`"),
            };
            for item in items {
                if let Some(name) = reader.text(item, "an entry of `extends`") {
                    names.push((name.to_owned(), item.position));
                }
            }
        }
        names
    }

    /// Returns the tree of an extended source, unless it is already included.
    fn include_base(&mut self, name: &str, at: SourcePosition) -> Option<YamlNode> {
        let found = match name.strip_prefix("pack/") {
            Some(pack) => {
                find_built_in(PACKS, pack).map(|pack| (Origin::Pack(pack.name), Some(pack.source)))
            }
            None => find_built_in(PRESETS, name)
                .map(|preset| (Origin::Preset(preset.name), Some(preset.source)))
                .or_else(|| self.resolve_path(name, at).map(|path| (Origin::File(path), None))),
        };
        let Some((origin, source)) = found else {
            if !is_file_name(name) {
                self.report_unknown(name, at);
            }
            return None;
        };
        if self.chain.contains(&origin) {
            self.report(at, format!("this file extends itself: {}", self.format_chain(&origin)));
            return None;
        }
        if self.included.contains(&origin.to_string()) {
            return None;
        }
        if self.chain.len() > EXTENDS_DEPTH_MAX {
            let way = self.format_chain(&origin);
            self.report(
                at,
                format!("files extend each other more than {EXTENDS_DEPTH_MAX} deep: {way}"),
            );
            return None;
        }
        if self.sources.len() >= FILES_MAX {
            let way = self.format_chain(&origin);
            let message = format!("a definition is made of more than {FILES_MAX} files: {way}");
            self.report(at, message);
            return None;
        }
        let (shown, source) = match source {
            Some(source) => (origin.to_string(), source.as_bytes().to_vec()),
            None => self.read_file(name, &origin, at)?,
        };
        let number = self.diagnostics.add_file(&shown);
        self.include(number, origin, source)
    }

    /// Returns the path of a file, relative to the directory of the definition.
    fn resolve_path(&mut self, name: &str, at: SourcePosition) -> Option<String> {
        if !is_file_name(name) {
            return None;
        }
        if name.starts_with(['/', '~']) {
            let hint = "write a path relative to the file that extends it, such as ./base.yaml";
            self.report_with_hint(at, format!("`{name}` is not a relative path"), hint);
            return None;
        }
        let beside = match self.chain.last() {
            Some(Origin::File(path)) => {
                path.rsplit_once('/').map_or("", |(directory, _)| directory)
            }
            _ => "",
        };
        match canonical_path(&format!("./{beside}/{name}"), None) {
            Ok(path) => Some(path),
            Err(_) => {
                let message = format!("`{name}` is outside the directory of the definition");
                self.report_with_hint(at, message, "extend files in that directory or below it");
                None
            }
        }
    }

    fn read_file(
        &mut self,
        name: &str,
        origin: &Origin,
        at: SourcePosition,
    ) -> Option<(String, Vec<u8>)> {
        let Origin::File(path) = origin else { return None };
        let path = self.directory.join(path);
        let Some(files) = &mut self.files else {
            let hint =
                "only a definition that is itself a file can extend files; use presets and packs";
            self.report_with_hint(at, format!("`{name}` can't be extended here"), hint);
            return None;
        };
        match files.read(&path) {
            Ok(source) => {
                self.extended.push((path.clone(), source.clone()));
                Some((path.display().to_string(), source))
            }
            Err(error) => {
                self.report(at, format!("can't read `{}`: {error}", path.display()));
                None
            }
        }
    }

    fn report_unknown(&mut self, name: &str, at: SourcePosition) {
        let presets = || PRESETS.iter().map(|preset| preset.name.to_owned());
        let all: Vec<String> =
            presets().chain(PACKS.iter().map(|pack| format!("pack/{}", pack.name))).collect();
        let reader = NodeReader::new(&self.sources, self.diagnostics);
        let hint = reader.suggest(name, all.iter().map(String::as_str), || {
            format!("available: {}; write a file as ./base.yaml", all.join(", "))
        });
        self.report_with_hint(at, format!("unknown preset, pack or file `{name}`"), hint);
    }

    /// Formats the chain of files that leads to `last`.
    fn format_chain(&self, last: &Origin) -> String {
        let all = self.chain.iter().chain([last]);
        all.map(|origin| format!("`{}`", short_name(origin))).collect::<Vec<_>>().join(" → ")
    }

    fn report(&mut self, at: SourcePosition, message: String) {
        self.diagnostics.push(at, message, None);
    }

    fn report_with_hint(&mut self, at: SourcePosition, message: String, hint: impl Into<String>) {
        self.diagnostics.push(at, message, Some(hint.into()));
    }
}

fn short_name(origin: &Origin) -> String {
    match origin {
        Origin::File(name) => name.clone(),
        Origin::Preset(name) => (*name).to_owned(),
        Origin::Pack(name) => format!("pack/{name}"),
    }
}

fn find_built_in(all: &'static [BuiltInFile], name: &str) -> Option<&'static BuiltInFile> {
    all.iter().find(|built_in| built_in.name == name)
}

fn is_file_name(name: &str) -> bool {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    let is_yaml = matches!(ending, Some("yaml" | "yml"));
    name.starts_with(['.', '/', '~']) || is_yaml
}

fn has_key(entries: &[(YamlKey, YamlNode)], name: &str) -> bool {
    entries.iter().any(|(key, _)| key.text == name)
}

fn take_key(entries: &mut Vec<(YamlKey, YamlNode)>, name: &str) -> Vec<YamlNode> {
    let (taken, rest) = std::mem::take(entries).into_iter().partition(|(key, _)| key.text == name);
    *entries = rest;
    let taken: Vec<(YamlKey, YamlNode)> = taken;
    taken.into_iter().map(|(_, node)| node).collect()
}
