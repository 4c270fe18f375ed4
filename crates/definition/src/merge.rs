//! Merges the tree of a file with the tree of the files that it extends.
//!
//! Mappings are merged key by key, and lists are appended. Every other value is replaced.
//! `completion` and `models` are replaced as a whole: there is only one check, and models are
//! tried in their order. Only the `clean` of the lower check remains in force beside the new
//! check. A key that a file leaves out keeps its lower value: an omission never loosens.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::Diagnostics;
use crate::yaml::{YamlKey, YamlNode, YamlValue};

/// Merges `own` on top of `base`.
pub(crate) fn merge_files(
    base: YamlNode,
    own: YamlNode,
    diagnostics: &mut Diagnostics,
) -> YamlNode {
    TreeMerger { diagnostics }.merge(base, own, MergePosition::Root)
}

/// The position in the tree where two values meet. It decides how they are merged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MergePosition {
    Root,
    /// `limits`: each entry is a number, a mapping, or an explicit null.
    Limits,
    Limit,
    Advisor,
    Elsewhere,
}

impl MergePosition {
    fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Root, "limits") | (Self::Limits, "tool_calls") => Self::Limits,
            (Self::Limits, _) => Self::Limit,
            (Self::Root, "advisor") => Self::Advisor,
            _ => Self::Elsewhere,
        }
    }
}

struct TreeMerger<'a> {
    diagnostics: &'a mut Diagnostics,
}

impl TreeMerger<'_> {
    fn merge(&mut self, base: YamlNode, own: YamlNode, place: MergePosition) -> YamlNode {
        let (below, at) = (base.position, own.position);
        let value = match (base.value, own.value) {
            (YamlValue::Map(base), YamlValue::Map(own)) => {
                YamlValue::Map(self.merge_entries(base, own, place))
            }
            (YamlValue::List(base), YamlValue::List(own)) => {
                YamlValue::List(append_missing(base, own))
            }
            (YamlValue::Null, own) => own,
            (_, own) if place == MergePosition::Limit => own,
            // An empty key changes nothing.
            (base @ (YamlValue::Map(_) | YamlValue::List(_)), YamlValue::Null) => {
                return YamlNode { position: below, value: base };
            }
            (base, own) => {
                let (base, own) = (
                    YamlNode { position: below, value: base },
                    YamlNode { position: at, value: own },
                );
                if is_container(&base) || is_container(&own) {
                    self.report_conflict(&base, &own);
                }
                return own;
            }
        };
        YamlNode { position: at, value }
    }

    /// Merges the entries of both mappings, those of `base` first.
    fn merge_entries(
        &mut self,
        base: Vec<(YamlKey, YamlNode)>,
        own: Vec<(YamlKey, YamlNode)>,
        place: MergePosition,
    ) -> Vec<(YamlKey, YamlNode)> {
        let mut entries: Vec<(YamlKey, Option<YamlNode>)> =
            base.into_iter().map(|(key, node)| (key, Some(node))).collect();
        let numbers: BTreeMap<String, usize> = entries
            .iter()
            .enumerate()
            .map(|(number, (key, _))| (key.text.clone(), number))
            .collect();
        for (key, node) in own {
            let known = numbers.get(&key.text).and_then(|number| entries.get_mut(*number));
            let Some((known, slot)) = known else {
                entries.push((key, Some(node)));
                continue;
            };
            let below = place.below(&key.text);
            *slot = match (slot.take(), place, key.text.as_str()) {
                (Some(base), MergePosition::Root, "completion") => Some(merge_checks(&base, node)),
                (Some(_), MergePosition::Root | MergePosition::Advisor, "models")
                    if node.value != YamlValue::Null =>
                {
                    Some(node)
                }
                (Some(base), ..) => Some(self.merge(base, node, below)),
                (None, ..) => Some(node),
            };
            *known = key;
        }
        entries.into_iter().filter_map(|(key, node)| Some((key, node?))).collect()
    }

    fn report_conflict(&mut self, base: &YamlNode, own: &YamlNode) {
        let message = format!(
            "{} can't replace {} at line {} of the extended file",
            own.describe(),
            base.describe(),
            base.position.line
        );
        self.diagnostics.push(own.position, message, None);
    }
}

/// Puts one completion check on top of another. The upper check wins, and keeps the `clean` of the
/// lower one. Only an explicit `completion: null` removes that `clean`.
fn merge_checks(base: &YamlNode, own: YamlNode) -> YamlNode {
    let Some((key, clean)) = find_clean(base).filter(|_| own.value != YamlValue::Null) else {
        return own;
    };
    if self::find_clean(&own).is_some() {
        return own;
    }
    let at = own.position;
    let clean = YamlNode {
        position: clean.position,
        value: YamlValue::Map(vec![(key.clone(), clean.clone())]),
    };
    let all = YamlKey { text: "all".to_owned(), position: at };
    let list = YamlNode { position: at, value: YamlValue::List(vec![clean, own]) };
    YamlNode { position: at, value: YamlValue::Map(vec![(all, list)]) }
}

/// Finds the `clean` of a check, if the check always requires it.
fn find_clean(check: &YamlNode) -> Option<(&YamlKey, &YamlNode)> {
    let YamlValue::Map(entries) = &check.value else { return None };
    entries.iter().find_map(|(key, node)| match (key.text.as_str(), &node.value) {
        ("clean", _) => Some((key, node)),
        ("all", YamlValue::List(parts)) => parts.iter().find_map(find_clean),
        _ => None,
    })
}

fn is_container(node: &YamlNode) -> bool {
    matches!(node.value, YamlValue::Map(_) | YamlValue::List(_))
}

/// Appends a list to another and skips texts that the first already contains.
fn append_missing(mut base: Vec<YamlNode>, own: Vec<YamlNode>) -> Vec<YamlNode> {
    let texts: BTreeSet<String> = base.iter().filter_map(text).map(ToOwned::to_owned).collect();
    base.extend(own.into_iter().filter(|item| text(item).is_none_or(|text| !texts.contains(text))));
    base
}

fn text(node: &YamlNode) -> Option<&str> {
    match &node.value {
        YamlValue::Text(text) => Some(text),
        _ => None,
    }
}
