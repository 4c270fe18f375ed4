//! `packs`: switches rules of packs off, or to mode `observe`.

use std::collections::{BTreeMap, BTreeSet};

use jackline_engine::Mode;

use super::{LoweredRule, PACKS};
use crate::builtin;
use crate::diagnostic::SourcePosition;
use crate::reader::NodeReader;
use crate::source::Origin;
use crate::yaml::YamlNode;

/// Applies `packs` to the rules. Returns the names of rules of packs that the definition does not
/// extend.
pub(super) fn apply_packs(
    node: &YamlNode,
    rules: &mut Vec<LoweredRule>,
    reader: &mut NodeReader<'_>,
) -> Vec<(String, SourcePosition)> {
    let mut idle = Vec::new();
    for (key, node) in reader.fields(node, &PACKS) {
        let mut named = BTreeMap::new();
        for node in reader.list(node, &format!("`packs.{key}`")) {
            if let Some(name) = reader.text(node, "the name of a rule") {
                named.insert(name, node.position);
            }
        }
        let in_force: BTreeMap<&str, usize> = rules
            .iter()
            .enumerate()
            .filter(|(_, lowered)| is_pack_rule(lowered, reader))
            .map(|(number, lowered)| (lowered.rule.name.as_str(), number))
            .collect();
        let own: BTreeSet<&str> = rules.iter().map(|lowered| lowered.rule.name.as_str()).collect();
        let mut hit = Vec::new();
        for (name, at) in named {
            match in_force.get(name) {
                Some(number) => hit.push(*number),
                None if builtin::pack_rules().iter().any(|known| known == name) => {
                    idle.push((name.to_owned(), at));
                }
                None => unknown_rule(name, at, own.contains(name), reader),
            }
        }
        apply_switch(key, &hit, rules);
    }
    idle
}

/// Whether a rule comes from a pack of the product.
pub(crate) fn is_pack_rule(lowered: &LoweredRule, reader: &NodeReader<'_>) -> bool {
    matches!(reader.origin(lowered.position), Origin::Pack(_))
}

fn unknown_rule(name: &str, at: SourcePosition, own: bool, reader: &mut NodeReader<'_>) {
    let (message, hint) = if own {
        (
            format!("`{name}` is not a rule of a pack"),
            "remove the rule, or give it `mode: observe`".to_owned(),
        )
    } else {
        let known = builtin::pack_rules();
        let hint = reader.suggest(name, known.iter().map(String::as_str), || {
            "write the name as pack/rule, such as `git/push-force`".to_owned()
        });
        (format!("no pack has a rule `{name}`"), hint)
    };
    reader.report_with_hint(at, message, hint);
}

fn apply_switch(key: &str, numbers: &[usize], rules: &mut Vec<LoweredRule>) {
    if key == "observe" {
        for number in numbers {
            if let Some(lowered) = rules.get_mut(*number) {
                lowered.own_mode = Some(Mode::Observe);
            }
        }
        return;
    }
    let mut number = 0;
    let off: BTreeSet<usize> = numbers.iter().copied().collect();
    rules.retain(|_| {
        number += 1;
        !off.contains(&(number - 1))
    });
}
