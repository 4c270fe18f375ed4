//! Tests every key that restricts an agent with a looser value in the lower layer.
//!
//! The sections contain the values, next to the keys.

use super::tests::{ignored, load_definition, managed, repository, user};
use super::{CombinedDefinition, combine};
use crate::sections::{LOOSER, MAPPINGS};

/// A demand of the higher layer, and a looser demand of the lower layer. If neither of two values
/// is stricter, both are tried.
pub(crate) struct Looser {
    /// The id of the mapping and the key in it, such as `limit.max`; empty for the top level.
    key: &'static str,
    high: &'static str,
    low: &'static str,
}

pub(crate) const fn looser(key: &'static str, high: &'static str, low: &'static str) -> Looser {
    Looser { key, high, low }
}

/// Mappings without looser values: the demands of all layers are in force together, or other tests
/// check how they are joined.
const MAPPINGS_NOT_TRIED: [&str; 23] = [
    "definition",
    "tool",
    "paths",
    "poll",
    "section",
    "policy",
    "need",
    "read_before_write",
    "examples",
    "example",
    "given",
    "packs",
    "shell",
    "check",
    "file",
    "command",
    "completion_cap",
    "io",
    "provider",
    "file_created",
    "deadline",
    "notify",
    "journal",
];

/// Keys that restrict no agent: a name, a recommendation, examples that only the loader runs, and
/// the loosest effect. Other tests check the mode of a rule.
const KEYS_WITHOUT_EFFECT: [&str; 5] =
    ["rule.name", "rule.instead", "rule.examples", "rule.observe", "rule.mode"];

fn all_looser() -> impl Iterator<Item = &'static Looser> {
    LOOSER.iter().copied().flatten()
}

#[test]
fn no_key_is_loosened_by_a_lower_layer() {
    for Looser { key, high, low } in all_looser() {
        let (above, below) = (load_definition(high), load_definition(low));
        let alone = combine(vec![user(above.clone())], false).definition;
        let with = |trust| combine(vec![user(above.clone()), repository(below.clone())], trust);
        let CombinedDefinition { definition, .. } = with(false);
        assert_eq!(definition, alone, "{key}: {high} + {low}");
        assert_ne!(ignored(&with(false)), Vec::<String>::new(), "{key}: {high} + {low}");
        // A trusted repository may loosen the person's demands, but not the owner's.
        assert_ne!(with(true).definition, alone, "{key}: {high} + {low}");
        for layers in [
            vec![managed(above.clone()), repository(below.clone())],
            vec![managed(above.clone()), user(below.clone())],
            vec![managed(above.clone()), user(load_definition("")), repository(below.clone())],
        ] {
            assert_eq!(combine(layers, true).definition, alone, "{key}: {high} + {low}");
        }
    }
}

#[test]
fn every_key_is_tried() {
    for id in MAPPINGS_NOT_TRIED {
        assert!(MAPPINGS.iter().any(|keys| keys.id == id), "there is no mapping `{id}`");
    }
    for keys in MAPPINGS.iter().filter(|keys| !MAPPINGS_NOT_TRIED.contains(&keys.id)) {
        for key in keys.entries {
            let name = format!("{}.{}", keys.id, key.name);
            let is_tried = all_looser().any(|looser| looser.key == name);
            assert!(
                is_tried || KEYS_WITHOUT_EFFECT.contains(&name.as_str()),
                "no looser value of `{name}`"
            );
        }
    }
}
