//! `modes`: modes of single rules and of packs, which override the mode of the definition.
//!
//! A mode for the name of a rule wins over a mode for its pack, and that wins over `mode`.

use std::collections::BTreeMap;

use jackline_engine::Mode;
use jackline_engine::definition::{Rule, RuleEffect};

use super::mode::{self, MODE_VALUE, MODES};
use super::prelude::*;
use super::rules::LoweredRule;
use crate::builtin::{self, PACKS};
use crate::diagnostic::SourcePosition;

static KEYS: [KeySpec; 1] = [key(
    "modes",
    Names(0, "rule or pack", &MODE_VALUE),
    "none",
    "Modes of single rules and of packs (`pack/git`) by name. They override `mode`, and the mode of a rule overrides the mode of its pack.",
)];

/// The prefix of pack names.
const PACK_PREFIX: &str = "pack/";

/// A mode that a file gives to a rule or pack by name.
pub(crate) struct NamedMode {
    pub(crate) name: String,
    pub(crate) mode: Mode,
    at: SourcePosition,
}

pub(crate) struct ModesSection;

impl Section for ModesSection {
    /// The modes by the name of a rule or a pack. The section `rules` applies them.
    type Part = Vec<Demand<(String, Mode)>>;

    const KEYS: &'static [KeySpec] = &KEYS;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        for (key, node) in reader.map(node, "`modes`") {
            let mode = reader.word(node, &format!("the mode of `{}`", key.text), &MODES);
            let named =
                mode.map(|mode| NamedMode { name: key.text.clone(), mode, at: key.position });
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

/// Sets the mode of every rule. Adds names of rules and packs that exist, but are not in force, to
/// `idle`.
pub(crate) fn set_rule_modes(
    named: &[NamedMode],
    otherwise: Mode,
    rules: &mut [LoweredRule],
    idle: &mut Vec<(String, SourcePosition)>,
    reader: &mut NodeReader<'_>,
) {
    let modes: BTreeMap<&str, Mode> =
        named.iter().map(|named| (named.name.as_str(), named.mode)).collect();
    for lowered in &mut *rules {
        let by_name = modes.get(lowered.rule.name.as_str()).copied().or(lowered.own_mode);
        let by_pack = || {
            let pack = pack_of(&lowered.rule.origin)?;
            modes.get(format!("{PACK_PREFIX}{pack}").as_str()).copied()
        };
        lowered.rule.mode = by_name.or_else(by_pack).unwrap_or(otherwise);
    }
    named.iter().for_each(|named| check_named_mode(named, rules, idle, reader));
}

/// Returns the pack of a rule with this origin.
pub(crate) fn pack_of(origin: &str) -> Option<&str> {
    origin.strip_prefix("pack ")
}

/// Whether a name in `modes` refers to this rule or to its pack.
fn names_rule(name: &str, rule: &Rule) -> bool {
    name == rule.name
        || (name.strip_prefix(PACK_PREFIX).is_some()
            && name.strip_prefix(PACK_PREFIX) == pack_of(&rule.origin))
}

fn check_named_mode(
    named: &NamedMode,
    rules: &[LoweredRule],
    idle: &mut Vec<(String, SourcePosition)>,
    reader: &mut NodeReader<'_>,
) {
    let NamedMode { name, mode, at } = named;
    if let Some(found) = rules.iter().find(|lowered| lowered.rule.name == *name) {
        if *mode == Mode::Enforce && found.rule.effect == RuleEffect::Observe {
            let message = format!("`{name}` is an `observe` rule, so there is nothing to enforce");
            reader.report_with_hint(*at, message, "give the rule `deny`, `ask` or `warn` first");
        }
        return;
    }
    if rules.iter().any(|lowered| names_rule(name, &lowered.rule)) {
        return;
    }
    let packs: Vec<String> =
        PACKS.iter().map(|pack| format!("{PACK_PREFIX}{}", pack.name)).collect();
    let known = || packs.iter().chain(builtin::pack_rules());
    if known().any(|known| known == name) {
        idle.push((name.clone(), *at));
        return;
    }
    let own = rules.iter().map(|lowered| &lowered.rule.name);
    let hint = reader.suggest(name, own.chain(known()).map(String::as_str), || {
        "write a rule as `jackline check` lists it, and a pack as pack/NAME".to_owned()
    });
    reader.report_with_hint(*at, format!("there is no rule or pack `{name}`"), hint);
}

/// Applies the named modes of the lower layer to the joined rules, and also its own mode if it may
/// override. If it may not override, a mode that would loosen is ignored.
pub(crate) fn join_into(
    rules: &mut [Demand<Rule>],
    high: &LayerDemands,
    low: &LayerDemands,
    join: &mut LayerJoin,
) {
    if join.overrides() && low.mode.demand.value == Mode::Observe {
        observe_unnamed_rules(rules, &high.modes, low.mode.demand.layer);
    }
    for named in &low.modes {
        let (name, mode) = &named.value;
        let meant = |rule: &&mut Demand<Rule>| {
            rule.layer < named.layer
                && names_rule(name, &rule.value)
                && !is_named(&low.modes, &rule.value.name, name, named.layer)
                && rule.value.mode != *mode
        };
        let text = format!("`modes: {name}: {}`", mode::as_str(*mode));
        let mut others = rules.iter_mut().filter(meant);
        match mode {
            Mode::Enforce => {
                let tightened = others.map(|rule| rule.value.mode = Mode::Enforce).count();
                if tightened > 0 {
                    let line = join.line(DemandSubject::Setting, text, named.layer);
                    join.named_modes.push(line);
                }
            }
            Mode::Observe if join.overrides() => {
                for rule in others {
                    rule.value.mode = Mode::Observe;
                    let text = format!("`{}` enforced", rule.value.name);
                    join.report_replaced(DemandSubject::Rule, text, rule.layer, named.layer);
                }
            }
            Mode::Observe => {
                if let Some(to) = others.next().map(|rule| rule.layer) {
                    join.report_ignored(
                        DemandSubject::Setting,
                        text,
                        named.layer,
                        to,
                        "enforces it",
                    );
                }
            }
        }
    }
}

/// Whether a layer that names a pack also names this rule of the pack.
fn is_named(modes: &[Demand<(String, Mode)>], rule: &str, name: &str, layer: usize) -> bool {
    name != rule && modes.iter().any(|other| other.layer == layer && other.value.0 == rule)
}

/// Switches the rules of a higher layer to mode `observe`, except the rules that the higher layer
/// enforces by name.
fn observe_unnamed_rules(
    rules: &mut [Demand<Rule>],
    named: &[Demand<(String, Mode)>],
    layer: usize,
) {
    let is_named = |rule: &Rule| {
        named.iter().any(|named| {
            let (name, mode) = &named.value;
            *mode == Mode::Enforce && names_rule(name, rule)
        })
    };
    for rule in rules.iter_mut().filter(|rule| rule.layer < layer && !is_named(&rule.value)) {
        rule.value.mode = Mode::Observe;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::tests::{ignored, load_definition, managed, repository, user};
    use crate::layers::{Layer, LayerDefinition, combine};

    /// Creates a repository layer from this source.
    fn naming(source: &str) -> LayerDefinition {
        let loaded = crate::load_from(source.as_bytes(), std::path::Path::new("f"), None).unwrap();
        LayerDefinition { modes: loaded.modes, ..repository(loaded.definition) }
    }

    /// Returns the modes of two rules of the pack that the person extends, and the ignored demands.
    fn two_modes(person: &str, low: &str, trusted: bool) -> (Vec<Mode>, Vec<String>) {
        let combined = combine(vec![user(load_definition(person)), naming(low)], trusted);
        let mode =
            |name: &str| combined.definition.rules.iter().find(|r| r.name == name).unwrap().mode;
        (vec![mode("git/push-force"), mode("git/clean")], ignored(&combined))
    }

    #[test]
    fn a_lower_layer_can_enforce_an_observed_rule() {
        use Mode::{Enforce, Observe};
        let person = "mode: observe\nextends: pack/git";
        for low in [
            "modes: { git/push-force: enforce }",
            "modes: { pack/git: enforce, git/clean: observe }",
        ] {
            assert_eq!(two_modes(person, low, false), (vec![Enforce, Observe], vec![]), "{low}");
            assert_eq!(two_modes(person, low, true).0, [Enforce, Observe], "{low}");
        }
        let combined = combine(
            vec![user(load_definition(person)), naming("modes: { pack/git: enforce }")],
            false,
        );
        let line = combined.decisions.iter().find(|line| line.text.starts_with("`modes")).unwrap();
        assert_eq!(
            (line.text.as_str(), line.layer),
            ("`modes: pack/git: enforce`", Layer::Repository)
        );
    }

    #[test]
    fn only_a_trusted_layer_can_observe_an_enforced_rule() {
        use Mode::{Enforce, Observe};
        let person = "extends: pack/git";
        let ignored_mode = |name: &str| {
            format!(
                "`modes: {name}: observe` ignored: the user layer enforces it; trust would allow it"
            )
        };
        let named = "modes: { git/clean: observe }";
        let extended = "extends: pack/git\nmodes: { git/clean: observe }";
        for low in [named, extended] {
            assert_eq!(
                two_modes(person, low, false),
                (vec![Enforce, Enforce], vec![ignored_mode("git/clean")])
            );
            let loosened = "`git/clean` enforced ignored: the repository layer overrides it, and its file is trusted";
            assert_eq!(
                two_modes(person, low, true),
                (vec![Enforce, Observe], vec![loosened.to_owned()])
            );
        }
        let pack = "modes: { pack/git: observe, git/push-force: enforce }";
        assert_eq!(
            two_modes(person, pack, false),
            (vec![Enforce, Enforce], vec![ignored_mode("pack/git")])
        );
        assert_eq!(two_modes(person, pack, true).0, [Enforce, Observe]);
        // Trust does not override the owner of the machine.
        let layers = vec![managed(load_definition(person)), naming(named)];
        let combined = combine(layers, true);
        assert!(combined.definition.rules.iter().all(|rule| rule.mode == Enforce));
        assert_eq!(
            ignored(&combined),
            ["`modes: git/clean: observe` ignored: the managed layer enforces it"]
        );
    }
}
