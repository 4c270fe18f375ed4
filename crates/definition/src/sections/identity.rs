//! `identity`: the agents that may work.

use jackline_engine::definition::{IdentitySettings, ROLE_DEFAULT};

use super::prelude::*;
use crate::values::read_limited_list;

static KEYS: [KeySpec; 1] = [key(
    "identity",
    Map(&IDENTITY),
    "none: every agent",
    "The agents that may work under this definition.",
)];

static IDENTITY: MappingSpec = MappingSpec {
    id: "identity",
    label: "`identity`",
    doc: "An empty `identity` lets agents work in the role `developer`, which is also the default. A client names the role at \
          the start of a session: agent clients by the command of the hook (`jackline init --role ROLE`), `jackline run` with \
          `--role`, programs with `role` of `session_started`. The approved agents are not part of the file. A person approves an agent with `jackline identity approve`, and Jackline stores the approval in the state home.",
    entries: &[
        key("roles", List(1, &Text), "`developer`", "The roles in which an agent may call tools."),
        key(
            "default_role",
            Text,
            "`developer`",
            "The role of an agent whose client names none. If it is not in `roles`, every agent must name its role.",
        ),
        key(
            "workflow",
            OneOf(&[Text, Nothing]),
            "none",
            "The workflow that the definition belongs to. An approval for another workflow does not count.",
        ),
    ],
    required: &[],
};

/// The maximum number of roles.
const ROLES_MAX: usize = 64;

pub(crate) struct IdentitySection;

impl Section for IdentitySection {
    type Part = Option<Demand<IdentitySettings>>;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] = &[&IDENTITY];
    const JOIN_STEP: JoinStep = JoinStep::First;

    #[cfg(test)]
    const LOOSER: &'static [Looser] = tests::LOOSER;

    fn lower(
        _: &str,
        node: &YamlNode,
        lowering: &mut LoweringState<'_>,
        reader: &mut NodeReader<'_>,
    ) {
        let mut identity = IdentitySettings::default();
        for (key, node) in reader.fields(node, &IDENTITY) {
            match key {
                "roles" => {
                    if let Some(roles) = read_roles(node, "`identity.roles`", reader) {
                        identity.roles = roles;
                    }
                }
                "default_role" => {
                    if let Some(role) = reader.text(node, "`identity.default_role`") {
                        role.clone_into(&mut identity.default_role);
                    }
                }
                _ if matches!(node.value, YamlValue::Null) => {}
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

    /// Takes the roles that both layers have, the default role of the higher layer, and the workflow
    /// of the higher layer if it names one. An agent without an approval for that workflow is
    /// refused, so another workflow in the lower layer cannot admit an agent.
    fn join(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) -> Self::Part {
        // The roles of a tool also decide about agents that name no role.
        let has_roles = high.tools.iter().any(|tool| tool.value.roles.is_some());
        if high.identity.is_none() && has_roles && !join.overrides() {
            withhold_default_role(high, low, join);
        }
        let (above, below) = (high.identity.as_ref(), low.identity.as_ref());
        join.join_option(above, below, DemandSubject::Setting, text, |join, high, low| {
            let workflow = high.value.workflow.clone().or_else(|| low.value.workflow.clone());
            let both = IdentitySettings {
                roles: common_roles(&high.value.roles, &low.value.roles),
                default_role: high.value.default_role.clone(),
                workflow,
            };
            if both != low.value {
                let why = "already has one, and this one is not stricter";
                join.report_ignored_setting(text(&low.value), (low.layer, high.layer), why);
            }
            let layer = if both == high.value { high.layer } else { low.layer };
            Demand { value: both, layer }
        })
    }

    fn describe(identity: &Self::Part, lines: &mut DemandLines<'_>) {
        lines.add_option(DemandSubject::Setting, identity.as_ref(), text);
    }

    fn put(identity: Self::Part, definition: &mut Definition) {
        definition.identity = identity.map(|identity| identity.value);
    }
}

/// Resets the default role of a lower layer, which could admit agents to the tools of the higher
/// layer.
fn withhold_default_role(high: &LayerDemands, low: &mut LayerDemands, join: &mut LayerJoin) {
    let Some(identity) = low.identity.as_mut() else { return };
    let restricted = high.tools.iter().find(|tool| tool.value.roles.is_some());
    if let Some(to) = restricted.map(|tool| tool.layer)
        && identity.value.default_role != ROLE_DEFAULT
    {
        let ignored = format!("`identity.default_role: {}`", identity.value.default_role);
        let why = "has a tool for some roles only";
        join.report_ignored_setting(ignored, (identity.layer, to), why);
        ROLE_DEFAULT.clone_into(&mut identity.value.default_role);
    }
}

/// Reads a list of roles.
pub(crate) fn read_roles(
    node: &YamlNode,
    what: &str,
    reader: &mut NodeReader<'_>,
) -> Option<Vec<String>> {
    let too_many = |count| format!("{count} roles in {what}; at most {ROLES_MAX} are supported");
    let items = read_limited_list(node, what, ROLES_MAX, too_many, reader);
    let mut roles: Vec<String> = Vec::new();
    for item in items {
        let Some(role) = reader.text(item, "a role") else { continue };
        if !roles.iter().any(|known| known == role) {
            roles.push(role.to_owned());
        }
    }
    if items.is_empty() {
        let hint = "name a role, or leave the key out";
        reader.report_with_hint(node.position, format!("{what} is empty"), hint);
    }
    (!roles.is_empty()).then_some(roles)
}

/// Returns the roles that may call a tool in both layers.
pub(crate) fn join_roles(high: Option<&[String]>, low: Option<&[String]>) -> Option<Vec<String>> {
    match (high, low) {
        (Some(high), Some(low)) => Some(common_roles(high, low)),
        (one, other) => one.or(other).map(<[String]>::to_vec),
    }
}

fn common_roles(one: &[String], other: &[String]) -> Vec<String> {
    one.iter().filter(|role| other.contains(role)).cloned().collect()
}

/// Describes the roles and the workflow.
pub fn text(identity: &IdentitySettings) -> String {
    let workflow =
        identity.workflow.as_ref().map_or_else(String::new, |it| format!(", workflow {it}"));
    let default = match identity.default_role.as_str() {
        ROLE_DEFAULT => String::new(),
        role => format!(", default role {role}"),
    };
    format!("identity: roles {}{default}{workflow}", identity.roles.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::combine;
    use crate::layers::tests::{ignored, load_definition, repository, user};

    pub(super) const LOOSER: &[Looser] = &[
        looser("identity.roles", "identity: { roles: [a] }", "identity: { roles: [a, b] }"),
        looser("identity.roles", "identity: {}", "identity: { roles: [developer, b] }"),
        looser(
            "identity.default_role",
            "identity: { roles: [developer, b] }",
            "identity: { roles: [developer, b], default_role: b }",
        ),
        looser(
            "identity.default_role",
            "tools: { deploy: { roles: [release] } }\nidentity: { roles: [developer, release] }",
            "identity: { roles: [developer, release], default_role: release }",
        ),
        looser("identity.workflow", "identity: { workflow: x }", "identity: { workflow: y }"),
    ];

    #[test]
    fn a_lower_layer_names_fewer_roles_and_never_more() {
        let tool = |high: &str, low: &str| {
            let file = |roles: &str| {
                load_definition(&format!("tools: {{ deploy: {{ roles: {roles} }} }}"))
            };
            let joined = combine(vec![user(file(high)), repository(file(low))], false).definition;
            joined.declared_tool("deploy").unwrap().roles.clone().unwrap()
        };
        assert_eq!(tool("[a, b]", "[b, c]"), ["b"]);
        assert_eq!(tool("[a]", "[a, b]"), ["a"]);
        // No role is left, which means that no agent may call it.
        assert_eq!(tool("[a]", "[b]"), Vec::<String>::new());
        let roles = |high: &str, low: &str| {
            let joined =
                combine(vec![user(load_definition(high)), repository(load_definition(low))], false);
            joined.definition.identity.unwrap()
        };
        let joined = roles("identity: { roles: [a, b] }", "identity: { roles: [b], workflow: w }");
        assert_eq!((joined.roles, joined.workflow.as_deref()), (vec!["b".to_owned()], Some("w")));
        assert_eq!(roles("identity: { roles: [a] }", "").roles, ["a"]);
        assert_eq!(roles("", "identity: { roles: [a] }").roles, ["a"]);
        assert!(roles("identity: { roles: [a] }", "identity: {}").roles.is_empty());
    }

    #[test]
    fn a_repository_does_not_admit_agents_to_a_tool_of_another_layer() {
        let high = load_definition("tools: { deploy: { roles: [release] } }\nunknown_tools: allow");
        let low = load_definition("identity: { roles: [release], default_role: release }");
        let untrusted = combine(vec![user(high.clone()), repository(low.clone())], false);
        let shown = ignored(&untrusted);
        assert_eq!(untrusted.definition.identity.unwrap().default_role, "developer");
        assert_eq!(
            shown,
            [
                "`identity.default_role: release` ignored: the user layer has a tool for some roles only; trust would allow it"
            ]
        );
        let trusted = combine(vec![user(high), repository(low)], true);
        assert_eq!(trusted.definition.identity.unwrap().default_role, "release");
    }
}
