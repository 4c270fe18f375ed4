//! `identity`: which agents may work.

use jackline_engine::definition::Identity;

use super::prelude::*;
use crate::values::limited_list;

static KEYS: [Key; 1] =
    [key("identity", Map(&IDENTITY), "none: everybody may work", "Who may work under it.")];

static IDENTITY: Keys = Keys {
    id: "identity",
    of: "`identity`",
    doc: "Which agents may work is no key: a person approves them with `jackline identity approve`, and that lies in the state home.",
    known: &[
        key(
            "roles",
            List(1, &Text),
            "`developer`",
            "The roles in which an agent may call anything. One whose session names no role has none.",
        ),
        key(
            "workflow",
            OneOf(&[Text, Nothing]),
            "none",
            "The workflow that this runs in. An agent that was approved for another one is not approved here.",
        ),
    ],
    needs: &[],
};

/// How many roles there may be.
const ROLES_MAX: usize = 64;

pub(crate) struct IdentitySection;

impl Section for IdentitySection {
    type Part = Option<Demand<Identity>>;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&IDENTITY];
    const JOIN_STEP: JoinStep = JoinStep::First;

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(_: &str, node: &Node, lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
        let mut identity = Identity::default();
        for (key, node) in reader.fields(node, &IDENTITY) {
            match key {
                "roles" => {
                    if let Some(roles) = read_roles(node, "`identity.roles`", reader) {
                        identity.roles = roles;
                    }
                }
                _ if matches!(node.value, NodeValue::Null) => {}
                _ => {
                    let workflow = reader.text(node, "`identity.workflow`");
                    identity.workflow = workflow.map(ToOwned::to_owned);
                }
            }
        }
        lowering.definition.identity = Some(identity);
    }

    fn take(source: &LayerSource<'_>) -> Self::Part {
        source.option(source.definition.identity.as_ref())
    }

    fn follows_mode(identity: &Self::Part) -> bool {
        identity.is_some()
    }

    /// The roles that both layers have, and the workflow of the higher one where it has one. An
    /// approval for any workflow of a definition also means that an agent needs one, so another
    /// name for the workflow lets no agent through.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        let (above, below) = (high.identity.as_ref(), low.identity.as_ref());
        join.option(above, below, Subject::Setting, text, |join, high, low| {
            let workflow = high.value.workflow.clone().or_else(|| low.value.workflow.clone());
            let both = Identity { roles: in_both(&high.value.roles, &low.value.roles), workflow };
            if both != low.value {
                let why = "has one that this does not tighten";
                join.ignore(Subject::Setting, text(&low.value), low.layer, high.layer, why);
            }
            let layer = if both == high.value { high.layer } else { low.layer };
            Demand { value: both, layer }
        })
    }

    fn describe(identity: &Self::Part, lines: &mut EffectiveLines<'_>) {
        lines.option(Subject::Setting, identity.as_ref(), text);
    }

    fn put(identity: Self::Part, definition: &mut Definition) {
        definition.identity = identity.map(|identity| identity.value);
    }
}

/// A list of roles.
pub(crate) fn read_roles(node: &Node, what: &str, reader: &mut Reader<'_>) -> Option<Vec<String>> {
    let too_many = |count| format!("{count} in {what}; at most {ROLES_MAX}");
    let items = limited_list(node, what, ROLES_MAX, too_many, reader);
    let mut roles: Vec<String> = Vec::new();
    for item in items {
        let Some(role) = reader.text(item, "a role") else { continue };
        if !roles.iter().any(|known| known == role) {
            roles.push(role.to_owned());
        }
    }
    if items.is_empty() {
        let hint = "name one, or leave the key away";
        reader.complain_hint(node.at, format!("{what} names no role"), hint);
    }
    (!roles.is_empty()).then_some(roles)
}

/// The roles that may call a tool by both layers.
pub(crate) fn join_roles(high: Option<&[String]>, low: Option<&[String]>) -> Option<Vec<String>> {
    match (high, low) {
        (Some(high), Some(low)) => Some(in_both(high, low)),
        (one, other) => one.or(other).map(<[String]>::to_vec),
    }
}

fn in_both(one: &[String], other: &[String]) -> Vec<String> {
    one.iter().filter(|role| other.contains(role)).cloned().collect()
}

/// Which agents may work.
pub fn text(identity: &Identity) -> String {
    let workflow =
        identity.workflow.as_ref().map_or_else(String::new, |it| format!(", workflow {it}"));
    format!("identity: roles {}{workflow}", identity.roles.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::combine;
    use crate::layers::tests::{of_file, repository, user};

    pub(super) const LOOSER: &[Looser] = &[
        looser("identity.roles", "identity: { roles: [a] }", "identity: { roles: [a, b] }"),
        looser("identity.roles", "identity: {}", "identity: { roles: [developer, b] }"),
        looser("identity.workflow", "identity: { workflow: x }", "identity: { workflow: y }"),
    ];

    #[test]
    fn a_lower_layer_names_fewer_roles_and_never_more() {
        let tool = |high: &str, low: &str| {
            let file = |roles: &str| of_file(&format!("tools: {{ deploy: {{ roles: {roles} }} }}"));
            let joined = combine(vec![user(file(high)), repository(file(low))], false).definition;
            joined.declared("deploy").unwrap().roles.clone().unwrap()
        };
        assert_eq!(tool("[a, b]", "[b, c]"), ["b"]);
        assert_eq!(tool("[a]", "[a, b]"), ["a"]);
        // No role is left, which means that no agent may call it.
        assert_eq!(tool("[a]", "[b]"), Vec::<String>::new());
        let roles = |high: &str, low: &str| {
            let joined = combine(vec![user(of_file(high)), repository(of_file(low))], false);
            joined.definition.identity.unwrap()
        };
        let joined = roles("identity: { roles: [a, b] }", "identity: { roles: [b], workflow: w }");
        assert_eq!((joined.roles, joined.workflow.as_deref()), (vec!["b".to_owned()], Some("w")));
        assert_eq!(roles("identity: { roles: [a] }", "").roles, ["a"]);
        assert_eq!(roles("", "identity: { roles: [a] }").roles, ["a"]);
        assert!(roles("identity: { roles: [a] }", "identity: {}").roles.is_empty());
    }
}
