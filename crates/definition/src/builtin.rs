//! The presets and rule packs that come with the product.

use std::sync::LazyLock;

use crate::diagnostic::Diagnostics;
use crate::yaml;

/// A file that comes with the product.
pub(crate) struct BuiltInFile {
    pub(crate) name: &'static str,
    pub(crate) source: &'static str,
}

/// The presets, the least strict first.
pub(crate) const PRESETS: &[BuiltInFile] = &[
    BuiltInFile { name: "coding-agent", source: include_str!("../presets/coding-agent.yaml") },
    BuiltInFile { name: "autonomous", source: include_str!("../presets/autonomous.yaml") },
    BuiltInFile { name: "strict", source: include_str!("../presets/strict.yaml") },
];

/// The rule packs, one per subject.
pub(crate) const PACKS: &[BuiltInFile] = &[
    BuiltInFile { name: "destructive", source: include_str!("../packs/destructive.yaml") },
    BuiltInFile { name: "git", source: include_str!("../packs/git.yaml") },
    BuiltInFile { name: "secrets", source: include_str!("../packs/secrets.yaml") },
    BuiltInFile { name: "publish", source: include_str!("../packs/publish.yaml") },
];

/// Returns the names of all rules of all packs, each prefixed with the name of its pack.
pub(crate) fn pack_rules() -> &'static [String] {
    static NAMES: LazyLock<Vec<String>> =
        LazyLock::new(|| PACKS.iter().flat_map(rule_names).collect());
    &NAMES
}

fn rule_names(pack: &BuiltInFile) -> Vec<String> {
    let tree = yaml::parse(pack.source.as_bytes(), &mut Diagnostics::new(pack.name));
    let tree = tree.map(|tree| tree.to_json()).unwrap_or_default();
    let rules = tree.get("rules").and_then(|rules| rules.as_array()).map_or(&[][..], Vec::as_slice);
    rules
        .iter()
        .filter_map(|rule| rule.get("name")?.as_str())
        .map(|rule| format!("{}/{rule}", pack.name))
        .collect()
}
