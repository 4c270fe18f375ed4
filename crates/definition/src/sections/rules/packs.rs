//! `packs`: switches rules of packs off, or to observing.

use std::collections::{BTreeMap, BTreeSet};

use jackline_engine::Mode;

use super::{LoweredRule, PACKS};
use crate::builtin;
use crate::diagnostic::At;
use crate::reader::Reader;
use crate::source::Origin;
use crate::yaml::Node;

/// Applies `packs` to the rules. Returns the names of rules that exist in a pack which the
/// definition does not extend.
pub(super) fn switch(
    node: &Node,
    rules: &mut Vec<LoweredRule>,
    reader: &mut Reader<'_>,
) -> Vec<(String, At)> {
    let mut idle = Vec::new();
    for (key, node) in reader.fields(node, &PACKS) {
        let mut named = BTreeMap::new();
        for node in reader.list(node, &format!("`packs.{key}`")) {
            if let Some(name) = reader.text(node, "the name of a rule") {
                named.insert(name, node.at);
            }
        }
        let in_force: BTreeMap<&str, usize> = rules
            .iter()
            .enumerate()
            .filter(|(_, lowered)| is_of_pack(lowered, reader))
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
        apply(key, &hit, rules);
    }
    idle
}

/// Whether a rule is of a pack of the product.
pub(crate) fn is_of_pack(lowered: &LoweredRule, reader: &Reader<'_>) -> bool {
    matches!(reader.origin(lowered.at), Origin::Pack(_))
}

fn unknown_rule(name: &str, at: At, own: bool, reader: &mut Reader<'_>) {
    let (message, hint) = if own {
        (
            format!("`{name}` is no rule of a pack"),
            "remove the rule, or give it `mode: observe`".to_owned(),
        )
    } else {
        let known = builtin::pack_rules();
        let hint = reader.meant(name, known.iter().map(String::as_str), || {
            "rules of packs are named pack/rule, such as `git/push-force`".to_owned()
        });
        (format!("no pack has a rule `{name}`"), hint)
    };
    reader.complain_hint(at, message, hint);
}

fn apply(key: &str, numbers: &[usize], rules: &mut Vec<LoweredRule>) {
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
