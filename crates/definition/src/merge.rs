//! One file on top of another.
//!
//! Mappings are put together key by key, lists one after the other; everything
//! else is replaced, and so is `completion`, of which there is one; only `clean`
//! stays beside another check. `models` are tried in their order, so they are
//! replaced, too. What a file leaves out stays as it was: an
//! omission never loosens.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::Diagnostics;
use crate::yaml::{Key, Node, NodeValue};

/// Puts `own` on top of `base`.
pub(crate) fn merge_files(base: Node, own: Node, diagnostics: &mut Diagnostics) -> Node {
    Merging { diagnostics }.merge(base, own, Place::Root)
}

/// Where in the tree two values meet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// `limits`: each of them is a number, a mapping, or explicitly nothing.
    Limits,
    Limit,
    Advisor,
    Elsewhere,
}

impl Place {
    fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Root, "limits") | (Self::Limits, "tool_calls") => Self::Limits,
            (Self::Limits, _) => Self::Limit,
            (Self::Root, "advisor") => Self::Advisor,
            _ => Self::Elsewhere,
        }
    }
}

struct Merging<'a> {
    diagnostics: &'a mut Diagnostics,
}

impl Merging<'_> {
    fn merge(&mut self, base: Node, own: Node, place: Place) -> Node {
        let (below, at) = (base.at, own.at);
        let value = match (base.value, own.value) {
            (NodeValue::Map(base), NodeValue::Map(own)) => {
                NodeValue::Map(self.entries(base, own, place))
            }
            (NodeValue::List(base), NodeValue::List(own)) => NodeValue::List(joined(base, own)),
            (NodeValue::Null, own) => own,
            (_, own) if place == Place::Limit => own,
            // An empty key says nothing.
            (base @ (NodeValue::Map(_) | NodeValue::List(_)), NodeValue::Null) => {
                return Node { at: below, value: base };
            }
            (base, own) => {
                let (base, own) = (Node { at: below, value: base }, Node { at, value: own });
                if is_container(&base) || is_container(&own) {
                    self.complain(&base, &own);
                }
                return own;
            }
        };
        Node { at, value }
    }

    /// The entries of both, those of `base` first.
    fn entries(
        &mut self,
        base: Vec<(Key, Node)>,
        own: Vec<(Key, Node)>,
        place: Place,
    ) -> Vec<(Key, Node)> {
        let mut entries: Vec<(Key, Option<Node>)> =
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
                (Some(base), Place::Root, "completion") => Some(checks(&base, node)),
                (Some(_), Place::Root | Place::Advisor, "models")
                    if node.value != NodeValue::Null =>
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

    fn complain(&mut self, base: &Node, own: &Node) {
        let message = format!(
            "{} can't be put on top of {} at line {} of what this extends",
            own.describe(),
            base.describe(),
            base.at.line
        );
        self.diagnostics.push(own.at, message, None);
    }
}

/// A check on top of another: the upper one, with `clean` where the lower has
/// it. Only who asks for nothing at all gets rid of that.
fn checks(base: &Node, own: Node) -> Node {
    let Some((key, clean)) = clean(base).filter(|_| own.value != NodeValue::Null) else {
        return own;
    };
    if self::clean(&own).is_some() {
        return own;
    }
    let at = own.at;
    let kept = Node { at: clean.at, value: NodeValue::Map(vec![(key.clone(), clean.clone())]) };
    let all = Key { text: "all".to_owned(), at };
    let list = Node { at, value: NodeValue::List(vec![kept, own]) };
    Node { at, value: NodeValue::Map(vec![(all, list)]) }
}

/// The `clean` of a check, where all of it has to be satisfied.
fn clean(check: &Node) -> Option<(&Key, &Node)> {
    let NodeValue::Map(entries) = &check.value else { return None };
    entries.iter().find_map(|(key, node)| match (key.text.as_str(), &node.value) {
        ("clean", _) => Some((key, node)),
        ("all", NodeValue::List(parts)) => parts.iter().find_map(clean),
        _ => None,
    })
}

fn is_container(node: &Node) -> bool {
    matches!(node.value, NodeValue::Map(_) | NodeValue::List(_))
}

/// Both lists, without texts that are there already.
fn joined(mut base: Vec<Node>, own: Vec<Node>) -> Vec<Node> {
    let texts: BTreeSet<String> = base.iter().filter_map(text).map(ToOwned::to_owned).collect();
    base.extend(own.into_iter().filter(|item| text(item).is_none_or(|text| !texts.contains(text))));
    base
}

fn text(node: &Node) -> Option<&str> {
    match &node.value {
        NodeValue::Text(text) => Some(text),
        _ => None,
    }
}
