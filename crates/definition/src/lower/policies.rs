//! Sections and policies: who governs which tool.

use std::collections::{BTreeMap, BTreeSet};

use jackline_engine::definition::{Dependency, Need, Policy, PolicyRule, SequentialDependency};

use super::tools::{Tools, check_name};
use crate::diagnostic::At;
use crate::keys;
use crate::reader::Reader;
use crate::yaml::{Node, NodeValue};

/// How many prerequisites a definition may name in all.
pub(crate) const PREREQUISITES_MAX: usize = 256;

/// Which tools a policy can see.
enum Scope {
    /// Those of one section, by declared name.
    Section { number: u16, name: String, tools: BTreeSet<String> },
    /// All of them.
    TopLevel,
}

/// The policies of the sections in their order, then the top-level ones.
pub(crate) fn lower(
    sections: Option<&Node>,
    top_level: Option<&Node>,
    deletes: bool,
    tools: &mut Tools,
    reader: &mut Reader<'_>,
) -> Vec<Policy> {
    let mut scopes = Vec::new();
    let mut names = BTreeSet::new();
    let sections = sections.map_or(&[][..], |node| reader.list(node, "`sections`"));
    for (number, node) in sections.iter().enumerate() {
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        if let Some((scope, policies)) = section(number, node, tools, &mut names, reader) {
            scopes.push((scope, policies));
        }
    }
    if let Some(node) = top_level {
        scopes.push((Scope::TopLevel, Some(node)));
    }
    let mut lowered = Vec::new();
    let mut places = BTreeMap::new();
    for (scope, node) in scopes {
        for node in node.map_or(&[][..], |node| reader.list(node, "`policies`")) {
            let section = match scope {
                Scope::Section { number, .. } => Some(number),
                Scope::TopLevel => None,
            };
            if let Some(rule) = policy(node, &scope, deletes, tools, &mut places, reader) {
                lowered.push(Policy { section, rule });
            }
        }
    }
    check_whole(&lowered, &places, reader);
    lowered
}

/// Where each tool that needs others is first given.
type Places = BTreeMap<String, At>;

/// All policies must allow: what each tool needs by all of them.
pub(crate) fn needs_of_all(policies: &[Policy]) -> Vec<(&str, Vec<&str>)> {
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

/// What policies demand is checked together.
fn check_whole(policies: &[Policy], places: &Places, reader: &mut Reader<'_>) {
    let all = needs_of_all(policies);
    if let Some(cycle) = find_cycle(&all) {
        let at =
            cycle.first().and_then(|tool| places.get(tool)).copied().unwrap_or(At::start_of(0));
        let path = cycle.iter().map(|tool| format!("`{tool}`")).collect::<Vec<_>>().join(" needs ");
        reader.complain(at, format!("a cycle that nothing can satisfy: {path}"));
    }
    // Each prerequisite takes room in the state, and the state is bounded.
    let count: usize = all.iter().map(|(_, needs)| needs.len()).sum();
    if count > PREREQUISITES_MAX {
        let at =
            all.first().and_then(|(tool, _)| places.get(*tool)).copied().unwrap_or(At::start_of(0));
        reader.complain(at, format!("{count} prerequisites; at most {PREREQUISITES_MAX} are kept"));
    }
}

fn section<'n>(
    number: u16,
    node: &'n Node,
    tools: &mut Tools,
    names: &mut BTreeSet<&'n str>,
    reader: &mut Reader<'_>,
) -> Option<(Scope, Option<&'n Node>)> {
    let (mut name, mut members, mut policies) = (None, BTreeSet::new(), None);
    for (key, node) in reader.fields(node, &keys::SECTION) {
        match key {
            "name" => {
                name = reader.text(node, "the name of a section");
                if let Some(name) = name
                    && !names.insert(name)
                {
                    reader.complain(node.at, format!("two sections are named `{name}`"));
                }
            }
            "tools" => {
                for node in reader.list(node, "the tools of a section") {
                    if let Some(tool) = reader.text(node, "a tool") {
                        let tool = check_name(tool, node.at, reader);
                        members.insert(tools.add_to_section(&tool, number));
                    }
                }
            }
            _ => policies = Some(node),
        }
    }
    if !matches!(node.value, NodeValue::Map(_) | NodeValue::Null) {
        return None;
    }
    if name.is_none() {
        reader.complain(node.at, "a section has a `name`");
    }
    let name = name.unwrap_or("unnamed").to_owned();
    Some((Scope::Section { number, name, tools: members }, policies))
}

fn policy(
    node: &Node,
    scope: &Scope,
    deletes: bool,
    tools: &mut Tools,
    places: &mut Places,
    reader: &mut Reader<'_>,
) -> Option<PolicyRule> {
    let (key, body) = reader.single(node, &keys::POLICY)?;
    Some(if key == "read_before_write" {
        PolicyRule::ReadBeforeWrite { deletes: read_before_write(body, deletes, reader) }
    } else {
        PolicyRule::SequentialDependency(sequential(body, scope, tools, places, reader))
    })
}

/// Whether `read_before_write` is about removed files, too.
pub(crate) fn read_before_write(node: &Node, default: bool, reader: &mut Reader<'_>) -> bool {
    let mut deletes = default;
    for (_, node) in reader.fields(node, &keys::READ_BEFORE_WRITE) {
        deletes = reader.flag(node, "`deletes`").unwrap_or(deletes);
    }
    deletes
}

fn sequential(
    node: &Node,
    scope: &Scope,
    tools: &mut Tools,
    places: &mut Places,
    reader: &mut Reader<'_>,
) -> SequentialDependency {
    let mut dependencies: Vec<Dependency> = Vec::new();
    let mut given = BTreeSet::new();
    let entries = reader.map(node, "`sequential_dependency`");
    if entries.is_empty() && matches!(node.value, NodeValue::Map(_) | NodeValue::Null) {
        reader.complain_hint(
            node.at,
            "`sequential_dependency` demands nothing",
            "write it as tool: [prerequisite, …]",
        );
    }
    for (key, node) in entries {
        if matches!(&node.value, NodeValue::List(items) if items.is_empty())
            || node.value == NodeValue::Null
        {
            let message = format!("`{}` is given no prerequisites", key.text);
            reader.complain_hint(key.at, message, "list what it needs, or remove it");
        }
        let tool = visible(&key.text, key.at, scope, tools, reader);
        let mut needs: Vec<Need> = Vec::new();
        let mut listed = BTreeSet::new();
        for node in reader.list(node, "the prerequisites of a tool") {
            if let Some(need) = need(node, scope, tools, reader) {
                if listed.insert(need.tool.clone()) {
                    needs.push(need);
                } else {
                    reader.complain(node.at, format!("`{}` is listed twice", need.tool));
                }
            }
        }
        if let Some(tool) = tool {
            if !given.insert(tool.clone()) {
                reader.complain(key.at, format!("`{tool}` is given twice"));
            }
            places.entry(tool.clone()).or_insert(key.at);
            dependencies.push(Dependency { tool, needs });
        }
    }
    SequentialDependency::new(dependencies)
}

fn need(node: &Node, scope: &Scope, tools: &mut Tools, reader: &mut Reader<'_>) -> Option<Need> {
    if !matches!(node.value, NodeValue::Map(_)) {
        let name = reader.text(node, "a prerequisite")?;
        return visible(name, node.at, scope, tools, reader)
            .map(|tool| Need { tool, fresh: false });
    }
    let (mut tool, mut fresh, mut given) = (None, false, false);
    for (key, node) in reader.fields(node, &keys::NEED) {
        if key == "tool" {
            given = true;
            tool = reader
                .text(node, "`tool`")
                .and_then(|name| visible(name, node.at, scope, tools, reader));
        } else {
            fresh = reader.flag(node, "`fresh`").unwrap_or(fresh);
        }
    }
    if !given {
        reader.complain(node.at, "a prerequisite has a `tool`");
    }
    tool.map(|tool| Need { tool, fresh })
}

/// The declared name of a tool that a policy names, if the policy can ever see it.
fn visible(
    name: &str,
    at: At,
    scope: &Scope,
    tools: &mut Tools,
    reader: &mut Reader<'_>,
) -> Option<String> {
    let known = tools.find(name).map(ToOwned::to_owned);
    match scope {
        Scope::Section { name: section, tools: members, .. } => {
            let member = known.filter(|known| members.contains(known));
            if member.is_none() {
                let message = format!(
                    "this policy can never see `{name}`: it is not among the tools of section `{section}`"
                );
                let hint = reader.meant(name, members.iter().map(String::as_str), || {
                    "add it to the section's `tools`, or move the policy to the top level"
                        .to_owned()
                });
                reader.complain_hint(at, message, hint);
            }
            member
        }
        Scope::TopLevel if known.is_none() && tools.is_closed() => {
            let message = format!("this policy can never see `{name}`: no such tool is declared");
            let hint = reader.meant(name, tools.names(), || "add it to `tools`".to_owned());
            reader.complain_hint(at, message, hint);
            None
        }
        Scope::TopLevel if known.is_some() => known,
        Scope::TopLevel => {
            let name = check_name(name, at, reader);
            Some(tools.declare_implicitly(&name))
        }
    }
}

/// A tool that needs itself, directly or through others: the whole round.
pub(crate) fn find_cycle(all: &[(&str, Vec<&str>)]) -> Option<Vec<String>> {
    let needs: BTreeMap<&str, &[&str]> =
        all.iter().map(|(tool, needs)| (*tool, needs.as_slice())).collect();
    // Depth first with the way kept by hand: a definition may be long.
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for (start, _) in all {
        if done.contains(start) {
            continue;
        }
        let mut way: Vec<(&str, usize)> = vec![(start, 0)];
        let mut on_way = BTreeSet::from([*start]);
        while let Some((tool, next)) = way.last_mut() {
            let (tool, at) = (*tool, *next);
            *next += 1;
            match needs.get(tool).and_then(|needs| needs.get(at)) {
                Some(need) if on_way.contains(need) => {
                    let from = way.iter().position(|(seen, _)| seen == need).unwrap_or(0);
                    let round = way.iter().skip(from).map(|(tool, _)| (*tool).to_owned());
                    return Some(round.chain([(*need).to_owned()]).collect());
                }
                Some(need) if done.contains(need) => {}
                Some(need) => {
                    on_way.insert(need);
                    way.push((need, 0));
                }
                None => {
                    done.insert(tool);
                    on_way.remove(tool);
                    way.pop();
                }
            }
        }
    }
    None
}
