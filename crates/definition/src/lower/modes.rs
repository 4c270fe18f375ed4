//! Modes of single rules and of packs, over the definition's own.
//!
//! What names the rule itself has the last word, then what names its pack, then
//! the definition's `mode`.

use std::collections::BTreeMap;

use jackline_engine::Mode;
use jackline_engine::definition::Effect;

use super::MODES;
use super::rules::LoweredRule;
use crate::builtin::{self, PACKS};
use crate::diagnostic::At;
use crate::reader::Reader;
use crate::yaml::Node;

/// How packs are named where rules could be, too.
const PACK: &str = "pack/";

/// A mode that a file gives to what it names.
pub(crate) struct NamedMode<'n> {
    pub(crate) name: &'n str,
    pub(crate) mode: Mode,
    at: At,
}

/// Reads `modes`.
pub(crate) fn read<'n>(node: &'n Node, reader: &mut Reader<'_>) -> Vec<NamedMode<'n>> {
    let mut named = Vec::new();
    for (key, node) in reader.map(node, "`modes`") {
        let mode = reader.word(node, &format!("the mode of `{}`", key.text), &MODES);
        named.extend(mode.map(|mode| NamedMode { name: &key.text, mode, at: key.at }));
    }
    named
}

/// Gives every rule its mode. What is known and not in force goes to `idle`.
pub(crate) fn set(
    named: &[NamedMode<'_>],
    otherwise: Mode,
    rules: &mut [LoweredRule],
    idle: &mut Vec<(String, At)>,
    reader: &mut Reader<'_>,
) {
    let modes: BTreeMap<&str, Mode> = named.iter().map(|named| (named.name, named.mode)).collect();
    for lowered in &mut *rules {
        let by_name = modes.get(lowered.rule.name.as_str()).copied().or(lowered.own_mode);
        let by_pack = || {
            let pack = pack_of(&lowered.rule.origin)?;
            modes.get(format!("{PACK}{pack}").as_str()).copied()
        };
        lowered.rule.mode = by_name.or_else(by_pack).unwrap_or(otherwise);
    }
    named.iter().for_each(|named| check(named, rules, idle, reader));
}

/// The pack that a rule of this origin is of.
pub(crate) fn pack_of(origin: &str) -> Option<&str> {
    origin.strip_prefix("pack ")
}

/// Whether a name in `modes` means a rule.
pub(crate) fn means(name: &str, rule: &str, origin: &str) -> bool {
    name == rule
        || (name.strip_prefix(PACK).is_some() && name.strip_prefix(PACK) == pack_of(origin))
}

fn check(
    named: &NamedMode<'_>,
    rules: &[LoweredRule],
    idle: &mut Vec<(String, At)>,
    reader: &mut Reader<'_>,
) {
    let NamedMode { name, mode, at } = *named;
    if let Some(found) = rules.iter().find(|lowered| lowered.rule.name == name) {
        if mode == Mode::Enforce && found.rule.effect == Effect::Observe {
            let message = format!("`{name}` only observes, so there is nothing to enforce");
            reader.complain_hint(at, message, "give it `deny`, `ask` or `warn` first");
        }
        return;
    }
    if rules.iter().any(|lowered| means(name, &lowered.rule.name, &lowered.rule.origin)) {
        return;
    }
    let packs: Vec<String> = PACKS.iter().map(|pack| format!("{PACK}{}", pack.name)).collect();
    let known = || packs.iter().chain(builtin::pack_rules());
    if known().any(|known| known == name) {
        idle.push((name.to_owned(), at));
        return;
    }
    let own = rules.iter().map(|lowered| &lowered.rule.name);
    let hint = reader.meant(name, own.chain(known()).map(String::as_str), || {
        "a rule is named as `jackline check` lists it, a pack as pack/NAME".to_owned()
    });
    reader.complain_hint(at, format!("no rule and no pack is named `{name}`"), hint);
}
