//! `sections`, `policies` and `read_before_write`: which policies govern which tools.

mod lower;

use std::collections::{BTreeMap, BTreeSet};

use jackline_engine::bounds::CUSTOM_POLICIES_MAX;
use jackline_engine::definition::{Policy, PolicyRule};

use super::prelude::*;

pub(crate) use lower::lower;

static KEYS: [Key; 3] = [
    key("sections", List(0, &Map(&SECTION)), "none", "Groups of tools with policies of their own."),
    key(
        "policies",
        List(0, &Map(&POLICY)),
        "none",
        "Policies that see all tools, consulted after those of the sections.",
    ),
    key(
        "read_before_write",
        Map(&READ_BEFORE_WRITE),
        "",
        "What `read_before_write` policies do where they say nothing else.",
    ),
];

static SECTION: Keys = Keys {
    id: "section",
    of: "a section",
    doc: "A section's policies see the section's tools only. Sections of an extended file come first.",
    known: &[
        key("name", Text, "required", "What the section is called."),
        key("tools", List(0, &Text), "none", "Names or aliases of its tools."),
        key("policies", List(0, &Map(&POLICY)), "none", "What governs them."),
    ],
    needs: &[Needs::All(&["name"])],
};

static POLICY: Keys = Keys {
    id: "policy",
    of: "a policy",
    doc: "What can never be satisfied, a cycle or a tool the policy never sees, is an error.",
    known: &[
        key(
            "sequential_dependency",
            Names(1, "tool", &List(1, &OneOf(&[Text, Map(&NEED)]))),
            "",
            "Maps a tool to what must have succeeded before it.",
        ),
        key(
            "read_before_write",
            Map(&READ_BEFORE_WRITE),
            "",
            "An existing file must be read before it is overwritten.",
        ),
    ],
    needs: &[Needs::Single],
};

static NEED: Keys = Keys {
    id: "need",
    of: "a prerequisite",
    doc: "A name alone is `{tool: name}`.",
    known: &[
        key("tool", Text, "required", "The tool that must have succeeded."),
        key("fresh", Flag, "`false`", "Whether it must have done so since the files last changed."),
    ],
    needs: &[Needs::All(&["tool"])],
};

static READ_BEFORE_WRITE: Keys = Keys {
    id: "read_before_write",
    of: "`read_before_write`",
    doc: "",
    known: &[key(
        "deletes",
        Flag,
        "`false`, or what the top level says",
        "Whether a file must be read before it is removed, too.",
    )],
    needs: &[],
};

/// How many prerequisites a definition may name in all.
const PREREQUISITES_MAX: usize = 256;

/// The policies of one layer.
#[derive(Clone)]
pub(crate) struct PolicyDemands {
    /// Those of the sections first.
    pub(crate) policies: Vec<Demand<Policy>>,
    /// How many sections there are.
    pub(crate) sections: u16,
}

pub(crate) struct PoliciesSection;

impl Section for PoliciesSection {
    type Part = PolicyDemands;

    const KEYS: &'static [Key] = &KEYS;
    const MAPPINGS: &'static [&'static Keys] = &[&SECTION, &POLICY, &NEED, &READ_BEFORE_WRITE];

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

    /// The policies of both layers. Equal policies over all tools are the same policy, and
    /// sections stay apart.
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

    fn describe(part: &Self::Part, lines: &mut EffectiveLines<'_>) {
        for policy in &part.policies {
            for text in text(&policy.value.rule) {
                lines.add(Subject::Policy, text, policy.layer);
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
            problems
                .push(format!("{custom} custom policies; at most {CUSTOM_POLICIES_MAX} are kept"));
        }
        problems
    }
}

/// The engine consults the policies of the sections before those over all tools.
fn sections_first(mut policies: Vec<Demand<Policy>>) -> Vec<Demand<Policy>> {
    policies.sort_by_key(|policy| policy.value.section.is_none());
    policies
}

/// What each tool needs by all policies together, because all policies must allow a call.
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

/// Each prerequisite takes room in the state, and the state is bounded.
fn count_needs(all: &[(&str, Vec<&str>)]) -> usize {
    all.iter().map(|(_, needs)| needs.len()).sum()
}

fn too_many_prerequisites(count: usize) -> String {
    format!("{count} prerequisites; at most {PREREQUISITES_MAX} are kept")
}

fn cycle_message(cycle: &[String]) -> String {
    let path = cycle.iter().map(|tool| format!("`{tool}`")).collect::<Vec<_>>().join(" needs ");
    format!("a cycle that nothing can satisfy: {path}")
}

/// A tool that needs itself, directly or through others, as the path back to itself.
fn find_cycle(all: &[(&str, Vec<&str>)]) -> Option<Vec<String>> {
    let needs: BTreeMap<&str, &[&str]> =
        all.iter().map(|(tool, needs)| (*tool, needs.as_slice())).collect();
    // Depth first, with a path of its own instead of recursion, because a definition may be long.
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
                    let from = path.iter().position(|(seen, _)| seen == need).unwrap_or(0);
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

/// What a policy demands, one line a tool.
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
            vec![format!("an existing file is read before it is overwritten{deleted}")]
        }
        PolicyRule::Custom { name } => vec![format!("what `{name}` says")],
    }
}

#[cfg(test)]
mod tests {
    use jackline_engine::definition::{Dependency, Need, SequentialDependency};

    use super::*;
    use crate::layers::Layer;
    use crate::layers::tests::{in_force, of_file, untrusted};

    #[test]
    fn policies_are_all_in_force_and_sections_stay_apart() {
        let high = of_file(
            "sections: [ { name: a, tools: [x, y], policies: [ sequential_dependency: { x: [y] } ] } ]\n\
             policies: [ sequential_dependency: { p: [q] } ]",
        );
        let low = of_file(
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
            in_force(&combined, Subject::Policy),
            [
                ("x needs y".to_owned(), Layer::User),
                ("x needs z".to_owned(), Layer::Repository),
                ("p needs q".to_owned(), Layer::User)
            ]
        );
    }

    #[test]
    fn layers_that_cannot_be_obeyed_together_are_a_problem() {
        let needs = |tool: &str, need: &str| {
            of_file(&format!("policies: [ sequential_dependency: {{ {tool}: [{need}] }} ]"))
        };
        assert_eq!(
            untrusted(&needs("a", "b"), &needs("b", "a")).problems,
            ["a cycle that nothing can satisfy: `a` needs `b` needs `a`"]
        );
        let many = |from: usize| {
            let dependency = |number: usize| Dependency {
                tool: "deploy".to_owned(),
                needs: vec![Need { tool: format!("t{number}"), fresh: false }],
            };
            let rule = SequentialDependency::new((from..from + 200).map(dependency).collect());
            let rule = PolicyRule::SequentialDependency(rule);
            Definition { policies: vec![Policy { section: None, rule }], ..Definition::default() }
        };
        assert_eq!(
            untrusted(&many(0), &many(200)).problems,
            ["400 prerequisites; at most 256 are kept"]
        );
    }
}
