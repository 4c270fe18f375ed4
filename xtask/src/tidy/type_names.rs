//! A type name is used in at most two modules, so that symbol search finds the type.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{read, show, sources};
use crate::shell::root;

/// How many modules may define a type of the same name: the same idea at two levels.
const MODULES_MAX: usize = 2;

const KEYWORDS: [&str; 5] = ["struct ", "enum ", "trait ", "union ", "type "];

pub(super) fn check(problems: &mut Vec<String>) {
    for (name, modules) in names() {
        if modules.len() > MODULES_MAX {
            let list = modules.into_iter().collect::<Vec<_>>().join(", ");
            problems.push(format!("the type name `{name}` is used in several modules: {list}"));
        }
    }
    for file in
        ["crates", "xtask", "fuzz", "examples"].iter().flat_map(|part| sources(&root().join(part)))
    {
        if file.file_name().is_some_and(|name| name == "mod.rs") {
            problems.push(format!(
                "{} hides what the module is for; name it after the module",
                show(&file)
            ));
        }
    }
}

/// Every type name with the files that define it.
fn names() -> BTreeMap<String, BTreeSet<String>> {
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for directory in ["crates", "xtask", "fuzz", "examples"] {
        for file in sources(&root().join(directory)) {
            for name in defined_in(&file) {
                names.entry(name).or_default().insert(show(&file));
            }
        }
    }
    names
}

fn defined_in(file: &Path) -> Vec<String> {
    read(file).lines().filter_map(defined_by).collect()
}

/// The type that a line defines. An associated type, which is indented, is no type of its own.
fn defined_by(line: &str) -> Option<String> {
    let mut rest = line.trim_start();
    if let Some(public) = rest.strip_prefix("pub") {
        let public = public
            .strip_prefix('(')
            .and_then(|scope| scope.split_once(')'))
            .map_or(public, |(_, rest)| rest);
        rest = public.strip_prefix(' ')?;
    }
    let keyword = KEYWORDS.into_iter().find(|keyword| rest.starts_with(keyword))?;
    if keyword == "type " && line.starts_with(' ') {
        return None;
    }
    let name: String =
        rest[keyword.len()..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    name.starts_with(char::is_uppercase).then_some(name)
}

#[test]
fn types_are_found_and_associated_types_are_not() {
    let cases = [
        ("pub struct PendingCall {", Some("PendingCall")),
        ("    pub(super) enum Kind<'a> {", Some("Kind")),
        ("type Rows = Vec<u8>;", Some("Rows")),
        ("    type Item = u8;", None),
        ("let structure = 1;", None),
    ];
    for (line, name) in cases {
        assert_eq!(defined_by(line).as_deref(), name, "{line}");
    }
}
