//! Presets and packs of rules that come with the product.

use std::sync::LazyLock;

use crate::diagnostic::Diagnostics;
use crate::yaml;

/// A file that comes with the product.
pub(crate) struct BuiltIn {
    pub(crate) name: &'static str,
    pub(crate) source: &'static str,
}

/// What most people want to start from, the gentlest first.
pub(crate) const PRESETS: &[BuiltIn] = &[
    BuiltIn { name: "coding-agent", source: include_str!("../presets/coding-agent.yaml") },
    BuiltIn { name: "autonomous", source: include_str!("../presets/autonomous.yaml") },
    BuiltIn { name: "strict", source: include_str!("../presets/strict.yaml") },
];

/// Rules by subject.
pub(crate) const PACKS: &[BuiltIn] = &[
    BuiltIn { name: "destructive", source: include_str!("../packs/destructive.yaml") },
    BuiltIn { name: "git", source: include_str!("../packs/git.yaml") },
    BuiltIn { name: "secrets", source: include_str!("../packs/secrets.yaml") },
    BuiltIn { name: "publish", source: include_str!("../packs/publish.yaml") },
];

/// The names of all rules of all packs, with the pack's in front.
pub(crate) fn pack_rules() -> &'static [String] {
    static NAMES: LazyLock<Vec<String>> =
        LazyLock::new(|| PACKS.iter().flat_map(names_in).collect());
    &NAMES
}

fn names_in(pack: &BuiltIn) -> Vec<String> {
    let tree = yaml::parse(pack.source.as_bytes(), &mut Diagnostics::new(pack.name));
    let tree = tree.map(|tree| tree.to_json()).unwrap_or_default();
    let rules = tree.get("rules").and_then(|rules| rules.as_array()).map_or(&[][..], Vec::as_slice);
    rules
        .iter()
        .filter_map(|rule| rule.get("name")?.as_str())
        .map(|rule| format!("{}/{rule}", pack.name))
        .collect()
}
