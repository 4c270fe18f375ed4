//! `modes`: modes of single rules and of packs, over the mode of the definition.
//!
//! A mode for the name of a rule wins over a mode for its pack, and that wins over `mode`.

use std::collections::BTreeMap;

use jackline_engine::Mode;
use jackline_engine::definition::{Effect, Rule};

use super::mode::{self, MODES, TAKES_MODE};
use super::prelude::*;
use super::rules::LoweredRule;
use crate::builtin::{self, PACKS};
use crate::diagnostic::At;

static KEYS: [Key; 1] = [key(
    "modes",
    Names(0, "rule or pack", &TAKES_MODE),
    "none",
    "Modes of single rules and of packs (`pack/git`) by name, over `mode`. What names a rule itself goes before what names its pack.",
)];

/// The prefix of the name of a pack.
const PACK: &str = "pack/";

/// A mode for a name in a file.
pub(crate) struct NamedMode {
    pub(crate) name: String,
    pub(crate) mode: Mode,
    at: At,
}

pub(crate) struct ModesSection;

impl Section for ModesSection {
    /// Modes by the name of a rule or a pack. The section `rules` applies them.
    type Part = Vec<Demand<(String, Mode)>>;

    const KEYS: &'static [Key] = &KEYS;

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        for (key, node) in reader.map(node, "`modes`") {
            let mode = reader.word(node, &format!("the mode of `{}`", key.text), &MODES);
            let named = mode.map(|mode| NamedMode { name: key.text.clone(), mode, at: key.at });
            lowering.modes.extend(named);
        }
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.list(source.modes.iter().cloned())
    }

    fn join(high: &LayerDemands, low: &mut LayerDemands, _join: &mut LayerJoin) -> Self::Part {
        [high.modes.clone(), low.modes.clone()].concat()
    }

    fn put(_modes: Self::Part, _definition: &mut Definition) {}
}

/// Gives every rule its mode. Rules and packs that are known and not in force go to `idle`.
pub(crate) fn set(
    named: &[NamedMode],
    otherwise: Mode,
    rules: &mut [LoweredRule],
    idle: &mut Vec<(String, At)>,
    reader: &mut Reader<'_>,
) {
    let modes: BTreeMap<&str, Mode> =
        named.iter().map(|named| (named.name.as_str(), named.mode)).collect();
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

/// The pack of a rule with this origin.
pub(crate) fn pack_of(origin: &str) -> Option<&str> {
    origin.strip_prefix("pack ")
}

/// Whether a name in `modes` means a rule.
fn means(name: &str, rule: &Rule) -> bool {
    name == rule.name
        || (name.strip_prefix(PACK).is_some() && name.strip_prefix(PACK) == pack_of(&rule.origin))
}

fn check(
    named: &NamedMode,
    rules: &[LoweredRule],
    idle: &mut Vec<(String, At)>,
    reader: &mut Reader<'_>,
) {
    let NamedMode { name, mode, at } = named;
    if let Some(found) = rules.iter().find(|lowered| lowered.rule.name == *name) {
        if *mode == Mode::Enforce && found.rule.effect == Effect::Observe {
            let message = format!("`{name}` only observes, so there is nothing to enforce");
            reader.complain_hint(*at, message, "give it `deny`, `ask` or `warn` first");
        }
        return;
    }
    if rules.iter().any(|lowered| means(name, &lowered.rule)) {
        return;
    }
    let packs: Vec<String> = PACKS.iter().map(|pack| format!("{PACK}{}", pack.name)).collect();
    let known = || packs.iter().chain(builtin::pack_rules());
    if known().any(|known| known == name) {
        idle.push((name.clone(), *at));
        return;
    }
    let own = rules.iter().map(|lowered| &lowered.rule.name);
    let hint = reader.meant(name, own.chain(known()).map(String::as_str), || {
        "a rule is named as `jackline check` lists it, a pack as pack/NAME".to_owned()
    });
    reader.complain_hint(*at, format!("no rule and no pack is named `{name}`"), hint);
}

/// Gives the joined rules of two layers the modes that the lower layer names, and the lower
/// layer's own mode where it may override. A mode that would loosen is ignored otherwise.
pub(crate) fn join_into(
    rules: &mut [Demand<Rule>],
    high: &LayerDemands,
    low: &LayerDemands,
    join: &mut LayerJoin,
) {
    if join.overrides() && low.mode.demand.value == Mode::Observe {
        follow(rules, &high.modes, low.mode.demand.layer);
    }
    for named in &low.modes {
        let (name, mode) = &named.value;
        let meant = |rule: &&mut Demand<Rule>| {
            rule.layer < named.layer
                && means(name, &rule.value)
                && !is_named(&low.modes, &rule.value.name, name, named.layer)
                && rule.value.mode != *mode
        };
        let text = format!("`modes: {name}: {}`", mode::word(*mode));
        let mut others = rules.iter_mut().filter(meant);
        match mode {
            Mode::Enforce => {
                let tightened = others.map(|rule| rule.value.mode = Mode::Enforce).count();
                if tightened > 0 {
                    let line = join.line(Subject::Setting, text, named.layer);
                    join.named.push(line);
                }
            }
            Mode::Observe if join.overrides() => {
                for rule in others {
                    rule.value.mode = Mode::Observe;
                    let text = format!("`{}` enforced", rule.value.name);
                    join.replace(Subject::Rule, text, rule.layer, named.layer);
                }
            }
            Mode::Observe => {
                if let Some(to) = others.next().map(|rule| rule.layer) {
                    join.ignore(Subject::Setting, text, named.layer, to, "enforces it");
                }
            }
        }
    }
}

/// Whether a layer that names a pack also names this rule of the pack.
fn is_named(modes: &[Demand<(String, Mode)>], rule: &str, name: &str, layer: usize) -> bool {
    name != rule && modes.iter().any(|other| other.layer == layer && other.value.0 == rule)
}

/// Switches the rules of a higher layer to observing, as the lower layer does, except those that
/// the higher layer enforces by name.
fn follow(rules: &mut [Demand<Rule>], named: &[Demand<(String, Mode)>], layer: usize) {
    let is_named = |rule: &Rule| {
        named.iter().any(|named| {
            let (name, mode) = &named.value;
            *mode == Mode::Enforce && means(name, rule)
        })
    };
    for rule in rules.iter_mut().filter(|rule| rule.layer < layer && !is_named(&rule.value)) {
        rule.value.mode = Mode::Observe;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tests::{ignored, managed, of_file, repository, user};
    use crate::layers::{Layer, Layered, combine};

    /// A repository that extends the same pack, or nothing, and names modes.
    fn naming(source: &str) -> Layered {
        let loaded = crate::load_from(source.as_bytes(), std::path::Path::new("f"), None).unwrap();
        Layered { modes: loaded.modes, ..repository(loaded.definition) }
    }

    /// The modes of two rules of the pack that the person extends.
    fn two_modes(person: &str, low: &str, trusted: bool) -> (Vec<Mode>, Vec<String>) {
        let combined = combine(vec![user(of_file(person)), naming(low)], trusted);
        let mode =
            |name: &str| combined.definition.rules.iter().find(|r| r.name == name).unwrap().mode;
        (vec![mode("git/push-force"), mode("git/clean")], ignored(&combined))
    }

    #[test]
    fn a_lower_layer_enforces_what_a_higher_one_observes() {
        use Mode::{Enforce, Observe};
        let person = "mode: observe\nextends: pack/git";
        for low in [
            "modes: { git/push-force: enforce }",
            "modes: { pack/git: enforce, git/clean: observe }",
        ] {
            assert_eq!(two_modes(person, low, false), (vec![Enforce, Observe], vec![]), "{low}");
            assert_eq!(two_modes(person, low, true).0, [Enforce, Observe], "{low}");
        }
        let combined =
            combine(vec![user(of_file(person)), naming("modes: { pack/git: enforce }")], false);
        let line = combined.decisions.iter().find(|line| line.text.starts_with("`modes")).unwrap();
        assert_eq!(
            (line.text.as_str(), line.layer),
            ("`modes: pack/git: enforce`", Layer::Repository)
        );
    }

    #[test]
    fn a_lower_layer_observes_what_a_higher_one_enforces_only_where_trusted() {
        use Mode::{Enforce, Observe};
        let person = "extends: pack/git";
        let says = |name: &str| {
            format!(
                "`modes: {name}: observe` ignored: the user layer enforces it; trust would let it"
            )
        };
        let named = "modes: { git/clean: observe }";
        let extended = "extends: pack/git\nmodes: { git/clean: observe }";
        for low in [named, extended] {
            assert_eq!(
                two_modes(person, low, false),
                (vec![Enforce, Enforce], vec![says("git/clean")])
            );
            let loosened = "`git/clean` enforced ignored: the repository layer says otherwise, and its file is trusted";
            assert_eq!(
                two_modes(person, low, true),
                (vec![Enforce, Observe], vec![loosened.to_owned()])
            );
        }
        let pack = "modes: { pack/git: observe, git/push-force: enforce }";
        assert_eq!(
            two_modes(person, pack, false),
            (vec![Enforce, Enforce], vec![says("pack/git")])
        );
        assert_eq!(two_modes(person, pack, true).0, [Enforce, Observe]);
        // Trust does not override the owner of the machine.
        let layers = vec![managed(of_file(person)), naming(named)];
        let combined = combine(layers, true);
        assert!(combined.definition.rules.iter().all(|rule| rule.mode == Enforce));
        assert_eq!(
            ignored(&combined),
            ["`modes: git/clean: observe` ignored: the managed layer enforces it"]
        );
    }
}
