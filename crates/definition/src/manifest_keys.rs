//! The keys of `MANIFEST.yaml`, the configuration of older autonomous loops, and the keys here that
//! do the same.

/// A key of a manifest, and the answer to its use in a definition.
struct ManifestKey {
    /// The label of the mapping in which the key is unknown.
    mapping: &'static str,
    name: &'static str,
    hint: &'static str,
}

const MANIFEST_KEYS: [ManifestKey; 10] = [
    of_definition(
        "safety",
        "in a definition these settings are `limits.iterations`, `progress` and `loops`; the guide \
         `from-manifest` has a table",
    ),
    of_context("estimated_usage_pct", "`jackline status --json` has this value"),
    of_context("warning_threshold", "use `warn`"),
    of_context("mandatory_threshold", "use `compact`"),
    of_context("hard_block_threshold", "use `block`"),
    of_context("last_compaction", "`jackline status --json` has this value"),
    of_identity("authorized_roles", "use `roles`"),
    of_identity("workflow_binding", "use `workflow`"),
    of_identity("agent_checksum", "a person approves a checksum with `jackline identity approve`"),
    ManifestKey {
        mapping: "`dirty_bits`",
        name: "code_modified",
        hint: "`jackline status --json` has this value; `completion: { clean: {} }` demands tests",
    },
];

const fn of_definition(name: &'static str, hint: &'static str) -> ManifestKey {
    ManifestKey { mapping: "the definition", name, hint }
}

const fn of_context(name: &'static str, hint: &'static str) -> ManifestKey {
    ManifestKey { mapping: "`context`", name, hint }
}

const fn of_identity(name: &'static str, hint: &'static str) -> ManifestKey {
    ManifestKey { mapping: "`identity`", name, hint }
}

/// Returns what to use in a definition in place of a key of a manifest.
pub(crate) fn manifest_key_hint(mapping: &str, name: &str) -> Option<&'static str> {
    let mut keys = MANIFEST_KEYS.iter();
    keys.find(|key| key.mapping == mapping && key.name == name).map(|key| key.hint)
}
