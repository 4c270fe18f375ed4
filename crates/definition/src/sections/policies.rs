//! `sections`, `policies` and `read_before_write`: the policies and the tools that they apply to.

mod lower;

use std::collections::{BTreeMap, BTreeSet};

use jackline_engine::bounds::CUSTOM_POLICIES_MAX;
use jackline_engine::definition::{Policy, PolicyRule};

use super::prelude::*;

pub(crate) use lower::lower;

static KEYS: [KeySpec; 3] = [
    key("sections", List(0, &Map(&SECTION)), "none", "Groups of tools with policies of their own."),
    key(
        "policies",
        List(0, &Map(&POLICY)),
        "none",
        "Policies for all tools. They are checked after the policies of the sections.",
    ),
    key(
        "read_before_write",
        Map(&READ_BEFORE_WRITE),
        "",
        "The default for `read_before_write` policies.",
    ),
];

static SECTION: MappingSpec = MappingSpec {
    id: "section",
    label: "a section",
    doc: "The policies of a section see only the tools of that section. Sections of an extended file come first.",
    entries: &[
        key("name", Text, "required", "The name of the section."),
        key("tools", List(0, &Text), "none", "Names or aliases of its tools."),
        key("policies", List(0, &Map(&POLICY)), "none", "The policies for these tools."),
    ],
    required: &[RequiredKeys::All(&["name"])],
};

static POLICY: MappingSpec = MappingSpec {
    id: "policy",
    label: "a policy",
    doc: "A policy that can never be satisfied is an error: a cycle, or a tool that the policy never sees.",
    entries: &[
        key(
            "sequential_dependency",
            Names(1, "tool", &List(1, &OneOf(&[Text, Map(&NEED)]))),
            "",
            "Maps a tool to the tools that must have succeeded before it.",
        ),
        key(
            "read_before_write",
            Map(&READ_BEFORE_WRITE),
            "",
            "An existing file must be read before it is overwritten.",
        ),
    ],
    required: &[RequiredKeys::Single],
};

static NEED: MappingSpec = MappingSpec {
    id: "need",
    label: "a prerequisite",
    doc: "A name alone is `{tool: name}`.",
    entries: &[
        key("tool", Text, "required", "The tool that must have succeeded."),
        key(
            "fresh",
            Flag,
            "`false`",
            "Whether it must have succeeded since the last change of the files.",
        ),
    ],
    required: &[RequiredKeys::All(&["tool"])],
};

static READ_BEFORE_WRITE: MappingSpec = MappingSpec {
    id: "read_before_write",
    label: "`read_before_write`",
    doc: "",
    entries: &[key(
        "deletes",
        Flag,
        "`false`, or the top-level `read_before_write`",
        "Whether a file must also be read before it is deleted.",
    )],
    required: &[],
};

/// The maximum number of prerequisites in a definition.
const PREREQUISITES_MAX: usize = 256;

/// The policies of one layer.
#[derive(Clone)]
pub(crate) struct PolicyDemands {
    /// The policies of the sections come first.
    pub(crate) policies: Vec<Demand<Policy>>,
    /// The number of sections.
    pub(crate) sections: u16,
}

pub(crate) struct PoliciesSection;

impl Section for PoliciesSection {
    type Part = PolicyDemands;

    const KEYS: &'static [KeySpec] = &KEYS;
    const MAPPINGS: &'static [&'static MappingSpec] =
        &[&SECTION, &POLICY, &NEED, &READ_BEFORE_WRITE];

    fn take(source: &LayerSource<'_>) -> Self::Part {
        let Definition { tools, policies, .. } = source.definition;
        let of_tools = tools.iter().flat_map(|tool| tool.sections.iter().copied());
        let of_policies = policies.iter().filter_map(|policy| policy.section);
        let last = of_tools.chain(of_policies).max();
        PolicyDemands {
            policies: sections_first(source.list(policies.iter().cloned())),
            sections: last.map_or(0, |last| last.saturating_add(1)),
        }
    }

    fn follows_mode(part: &Self::Part) -> bool {
        !part.policies.is_empty()
    }

    /// Takes the policies of both layers. Equal policies for all tools count once. Sections of the
    /// two layers are not merged.
    fn join(high: &LayerDemands, low: &mut LayerDemands, _join: &mut LayerJoin) -> Self::Part {
        let (high, low) = (&high.policies, &low.policies);
        let mut policies = high.policies.clone();
        for policy in &low.policies {
            let is_known = policies.iter().any(|known| known.value == policy.value);
            if policy.value.section.is_some() || !is_known {
                policies.push(policy.clone());
            }
        }
        PolicyDemands {
            policies: sections_first(policies),
            sections: high.sections.saturating_add(low.sections),
        }
    }

    fn describe(part: &Self::Part, lines: &mut DemandLines<'_>) {
        for policy in &part.policies {
            for text in text(&policy.value.rule) {
                lines.add(DemandSubject::Policy, text, policy.layer);
            }
        }
    }

    fn put(part: Self::Part, definition: &mut Definition) {
        definition.policies = values(part.policies);
    }

    fn problems(definition: &Definition) -> Vec<String> {
        let mut problems = Vec::new();
        let needs = needs_of_all(&definition.policies);
        problems.extend(find_cycle(&needs).map(|cycle| cycle_message(&cycle)));
        let prerequisites = count_needs(&needs);
        if prerequisites > PREREQUISITES_MAX {
            problems.push(too_many_prerequisites(prerequisites));
        }
        let is_custom = |policy: &&Policy| matches!(policy.rule, PolicyRule::Custom { .. });
        let custom = definition.policies.iter().filter(is_custom).count();
        if custom > CUSTOM_POLICIES_MAX {
            problems.push(format!(
                "{custom} custom policies; at most {CUSTOM_POLICIES_MAX} are supported"
            ));
        }
        problems
    }
}

/// Sorts policies in the order of the engine: first those of sections, then those for all tools.
fn sections_first(mut policies: Vec<Demand<Policy>>) -> Vec<Demand<Policy>> {
    policies.sort_by_key(|policy| policy.value.section.is_none());
    policies
}

/// Collects the prerequisites of each tool from all policies, because all must allow a call.
fn needs_of_all(policies: &[Policy]) -> Vec<(&str, Vec<&str>)> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    for policy in policies {
        let PolicyRule::SequentialDependency(rule) = &policy.rule else { continue };
        for dependency in &rule.dependencies {
            let number = *numbers.entry(&dependency.tool).or_insert(all.len());
            if number == all.len() {
                all.push((&dependency.tool, Vec::new()));
            }
            if let Some((_, needs)) = all.get_mut(number) {
                needs.extend(dependency.needs.iter().map(|need| need.tool.as_str()));
            }
        }
    }
    all
}

/// Counts the prerequisites. Each one needs space in the session state, which is limited.
fn count_needs(all: &[(&str, Vec<&str>)]) -> usize {
    all.iter().map(|(_, needs)| needs.len()).sum()
}

fn too_many_prerequisites(count: usize) -> String {
    format!("{count} prerequisites; at most {PREREQUISITES_MAX} are supported")
}

fn cycle_message(cycle: &[String]) -> String {
    let path = cycle.iter().map(|tool| format!("`{tool}`")).collect::<Vec<_>>().join(" needs ");
    format!("these prerequisites form a cycle: {path}")
}

/// Finds a tool that needs itself, directly or through others, and returns the path of the cycle.
fn find_cycle(all: &[(&str, Vec<&str>)]) -> Option<Vec<String>> {
    let needs: BTreeMap<&str, &[&str]> =
        all.iter().map(|(tool, needs)| (*tool, needs.as_slice())).collect();
    // A depth-first search with an explicit path instead of recursion, because a chain of
    // prerequisites may be long.
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for (start, _) in all {
        if done.contains(start) {
            continue;
        }
        let mut path: Vec<(&str, usize)> = vec![(start, 0)];
        let mut on_path = BTreeSet::from([*start]);
        while let Some((tool, next)) = path.last_mut() {
            let (tool, at) = (*tool, *next);
            *next += 1;
            match needs.get(tool).and_then(|needs| needs.get(at)) {
                Some(need) if on_path.contains(need) => {
                    let from = path.iter().position(|(tool, _)| tool == need).unwrap_or(0);
                    let round = path.iter().skip(from).map(|(tool, _)| (*tool).to_owned());
                    return Some(round.chain([(*need).to_owned()]).collect());
                }
                Some(need) if done.contains(need) => {}
                Some(need) => {
                    on_path.insert(need);
                    path.push((need, 0));
                }
                None => {
                    done.insert(tool);
                    on_path.remove(tool);
                    path.pop();
                }
            }
        }
    }
    None
}

/// Describes the demands of a policy, one line per tool.
pub fn text(rule: &PolicyRule) -> Vec<String> {
    match rule {
        PolicyRule::SequentialDependency(rule) => rule
            .dependencies
            .iter()
            .map(|dependency| {
                let needs: Vec<String> = dependency
                    .needs
                    .iter()
                    .map(|need| {
                        format!("{}{}", need.tool, if need.fresh { " (fresh)" } else { "" })
                    })
                    .collect();
                format!("{} needs {}", dependency.tool, needs.join(", "))
            })
            .collect(),
        PolicyRule::ReadBeforeWrite { deletes } => {
            let deleted = if *deletes { " or deleted" } else { "" };
            vec![format!("an existing file must be read before it is overwritten{deleted}")]
        }
        PolicyRule::Custom { name } => vec![format!("custom policy `{name}`")],
    }
}

#[cfg(test)]
mod tests {
    use jackline_engine::definition::{Prerequisite, SequentialDependency, ToolDependency};

    use super::*;
    use crate::layers::Layer;
    use crate::layers::tests::{in_force, load_definition, untrusted};

    #[test]
    fn all_policies_are_in_force_and_sections_are_not_merged() {
        let high = load_definition(
            "sections: [ { name: a, tools: [x, y], policies: [ sequential_dependency: { x: [y] } ] } ]\n\
             policies: [ sequential_dependency: { p: [q] } ]",
        );
        let low = load_definition(
            "sections: [ { name: b, tools: [x, z], policies: [ sequential_dependency: { x: [z] } ] } ]\n\
             policies: [ sequential_dependency: { p: [q] } ]",
        );
        let combined = untrusted(&high, &low);
        let sections: Vec<_> = combined.definition.policies.iter().map(|p| p.section).collect();
        assert_eq!(sections, [Some(0), Some(1), None]);
        let of = |name: &str| {
            let tool = combined.definition.tools.iter().find(|tool| tool.name == name);
            tool.unwrap().sections.clone()
        };
        assert_eq!((of("x"), of("y"), of("z")), (vec![0, 1], vec![0], vec![1]));
        assert_eq!(
            in_force(&combined, DemandSubject::Policy),
            [
                ("x needs y".to_owned(), Layer::User),
                ("x needs z".to_owned(), Layer::Repository),
                ("p needs q".to_owned(), Layer::User)
            ]
        );
    }

    #[test]
    fn conflicting_layers_are_reported() {
        let needs = |tool: &str, need: &str| {
            load_definition(&format!("policies: [ sequential_dependency: {{ {tool}: [{need}] }} ]"))
        };
        assert_eq!(
            untrusted(&needs("a", "b"), &needs("b", "a")).problems,
            ["these prerequisites form a cycle: `a` needs `b` needs `a`"]
        );
        let many = |from: usize| {
            let dependency = |number: usize| ToolDependency {
                tool: "deploy".to_owned(),
                needs: vec![Prerequisite { tool: format!("t{number}"), fresh: false }],
            };
            let rule = SequentialDependency::new((from..from + 200).map(dependency).collect());
            let rule = PolicyRule::SequentialDependency(rule);
            Definition { policies: vec![Policy { section: None, rule }], ..Definition::default() }
        };
        assert_eq!(
            untrusted(&many(0), &many(200)).problems,
            ["400 prerequisites; at most 256 are supported"]
        );
    }
}
