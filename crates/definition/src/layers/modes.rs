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
