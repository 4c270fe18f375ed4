//! What a layer says of the modes of rules that are another layer's.

use jackline_engine::Mode;
use jackline_engine::definition::Rule;

use super::Subject;
use super::join::{How, Joining};
use super::parts::Said;
use crate::lower::modes::means;
use crate::words;

impl Joining {
    /// Gives rules of a higher layer the modes that lower ones name. What would
    /// loosen is ignored, unless the lower layer may override.
    pub(super) fn join_modes(
        &mut self,
        rules: &mut [Said<Rule>],
        modes: &[Said<(String, Mode)>],
        how: How,
    ) {
        for said in modes {
            let (name, mode) = &said.what;
            let meant = |rule: &&mut Said<Rule>| {
                rule.by < said.by
                    && means(name, &rule.what.name, &rule.what.origin)
                    && !is_named(modes, &rule.what.name, name, said.by)
                    && rule.what.mode != *mode
            };
            let text = format!("`modes: {name}: {}`", words::mode(*mode));
            let mut others = rules.iter_mut().filter(meant);
            match (mode, how) {
                (Mode::Enforce, _) => {
                    let tightened = others.map(|rule| rule.what.mode = Mode::Enforce).count();
                    if tightened > 0 {
                        let line = self.line(Subject::Setting, text, said.by);
                        self.named.push(line);
                    }
                }
                (Mode::Observe, How::Override) => {
                    let loosened: Vec<(String, usize)> = others
                        .map(|rule| {
                            rule.what.mode = Mode::Observe;
                            (format!("`{}` enforced", rule.what.name), rule.by)
                        })
                        .collect();
                    for (text, by) in loosened {
                        self.replaced(Subject::Rule, text, by, said.by);
                    }
                }
                (Mode::Observe, How::Tighten) => {
                    if let Some(to) = others.next().map(|rule| rule.by) {
                        self.ignore(Subject::Setting, text, said.by, to, "enforces it");
                    }
                }
            }
        }
    }
}

/// Whether a layer that names a pack names this rule of it by itself, too.
fn is_named(modes: &[Said<(String, Mode)>], rule: &str, name: &str, by: usize) -> bool {
    name != rule && modes.iter().any(|other| other.by == by && other.what.0 == rule)
}

/// Has the rules of a higher layer follow a lower one that observes and may
/// override, apart from those that their own layer enforces by name.
pub(super) fn follow(rules: &mut [Said<Rule>], named: &[Said<(String, Mode)>], by: usize) {
    let is_named = |rule: &Rule| {
        named.iter().any(|said| {
            let (name, mode) = &said.what;
            *mode == Mode::Enforce && means(name, &rule.name, &rule.origin)
        })
    };
    for rule in rules.iter_mut().filter(|rule| rule.by < by && !is_named(&rule.what)) {
        rule.what.mode = Mode::Observe;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ignored, managed, of_file, repository, user};
    use super::super::{Layer, Layered, combine};
    use super::*;

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
        // The owner of a machine is not outvoted by trust.
        let layers = vec![managed(of_file(person)), naming(named)];
        let combined = combine(layers, true);
        assert!(combined.definition.rules.iter().all(|rule| rule.mode == Enforce));
        assert_eq!(
            ignored(&combined),
            ["`modes: git/clean: observe` ignored: the managed layer enforces it"]
        );
    }
}
