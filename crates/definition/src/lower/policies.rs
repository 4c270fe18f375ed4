//! Sections and policies: who governs which tool.

use std::collections::BTreeMap;

use jackline_engine::definition::{Dependency, Need, Policy, PolicyRule, SequentialDependency};
use jackline_engine::nearest;

use super::tools::{Tools, check_name};
use crate::diagnostic::At;
use crate::keys;
use crate::reader::Reader;
use crate::yaml::{Node, NodeValue};

/// How many prerequisites a definition may name in all.
const PREREQUISITES_MAX: usize = 256;

/// Which tools a policy can see.
enum Scope {
    /// Those of one section, by declared name.
    Section { number: u16, name: String, tools: Vec<String> },
    /// All of them.
    TopLevel,
}

/// The policies of the sections in their order, then the top-level ones.
pub(crate) fn lower(
    sections: Option<&Node>,
    top_level: Option<&Node>,
    tools: &mut Tools,
    reader: &mut Reader<'_>,
) -> Vec<Policy> {
    let mut scopes = Vec::new();
    let mut names: Vec<&str> = Vec::new();
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
            if let Some(rule) = policy(node, &scope, tools, &mut places, reader) {
                lowered.push(Policy { section, rule });
            }
        }
    }
    check_whole(&lowered, &places, reader);
    lowered
}

/// Where each tool that needs others is first given.
type Places = BTreeMap<String, At>;

/// All policies must allow, so what they demand is checked together.
fn check_whole(policies: &[Policy], places: &Places, reader: &mut Reader<'_>) {
    let mut all: Vec<Dependency> = Vec::new();
    for policy in policies {
        let PolicyRule::SequentialDependency(rule) = &policy.rule else { continue };
        for dependency in &rule.dependencies {
            match all.iter_mut().find(|known| known.tool == dependency.tool) {
                Some(known) => known.needs.extend(dependency.needs.iter().cloned()),
                None => all.push(dependency.clone()),
            }
        }
    }
    if let Some(cycle) = find_cycle(&all) {
        let at =
            cycle.first().and_then(|tool| places.get(tool)).copied().unwrap_or(At::start_of(0));
        let path = cycle.iter().map(|tool| format!("`{tool}`")).collect::<Vec<_>>().join(" needs ");
        reader.complain(at, format!("a cycle that nothing can satisfy: {path}"));
    }
    // Each prerequisite takes room in the state, and the state is bounded.
    let count: usize = all.iter().map(|dependency| dependency.needs.len()).sum();
    if count > PREREQUISITES_MAX {
        let at = all.first().and_then(|d| places.get(&d.tool)).copied().unwrap_or(At::start_of(0));
        reader.complain(at, format!("{count} prerequisites; at most {PREREQUISITES_MAX} are kept"));
    }
}

fn section<'n>(
    number: u16,
    node: &'n Node,
    tools: &mut Tools,
    names: &mut Vec<&'n str>,
    reader: &mut Reader<'_>,
) -> Option<(Scope, Option<&'n Node>)> {
    let (mut name, mut members, mut policies) = (None, Vec::new(), None);
    for (key, node) in reader.fields(node, &keys::SECTION) {
        match key {
            "name" => {
                name = reader.text(node, "the name of a section");
                if let Some(name) = name {
                    if names.contains(&name) {
                        reader.complain(node.at, format!("two sections are named `{name}`"));
                    }
                    names.push(name);
                }
            }
            "tools" => {
                for node in reader.list(node, "the tools of a section") {
                    if let Some(tool) = reader.text(node, "a tool") {
                        let tool = check_name(tool, node.at, reader);
                        members.push(tools.add_to_section(&tool, number));
                    }
                }
            }
            _ => policies = Some(node),
        }
    }
    if !matches!(node.value, NodeValue::Map(_)) {
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
    tools: &mut Tools,
    places: &mut Places,
    reader: &mut Reader<'_>,
) -> Option<PolicyRule> {
    let (_, body) = reader.single(node, &keys::POLICY)?;
    Some(PolicyRule::SequentialDependency(sequential(body, scope, tools, places, reader)))
}

fn sequential(
    node: &Node,
    scope: &Scope,
    tools: &mut Tools,
    places: &mut Places,
    reader: &mut Reader<'_>,
) -> SequentialDependency {
    let mut dependencies: Vec<Dependency> = Vec::new();
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
        for node in reader.list(node, "the prerequisites of a tool") {
            if let Some(need) = need(node, scope, tools, reader) {
                if needs.iter().any(|known| known.tool == need.tool) {
                    reader.complain(node.at, format!("`{}` is listed twice", need.tool));
                } else {
                    needs.push(need);
                }
            }
        }
        if let Some(tool) = tool {
            if dependencies.iter().any(|known| known.tool == tool) {
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
                let hint = nearest(name, members.iter().map(String::as_str)).map_or_else(
                    || {
                        "add it to the section's `tools`, or move the policy to the top level"
                            .to_owned()
                    },
                    |meant| format!("did you mean `{meant}`?"),
                );
                reader.complain_hint(at, message, hint);
            }
            member
        }
        Scope::TopLevel if known.is_none() && tools.is_closed() => {
            let message = format!("this policy can never see `{name}`: no such tool is declared");
            let hint = nearest(name, tools.names()).map_or_else(
                || "add it to `tools`".to_owned(),
                |meant| format!("did you mean `{meant}`?"),
            );
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
fn find_cycle(dependencies: &[Dependency]) -> Option<Vec<String>> {
    let needs: BTreeMap<&str, &[Need]> =
        dependencies.iter().map(|d| (d.tool.as_str(), d.needs.as_slice())).collect();
    // Depth first with the way kept by hand: a definition may be long.
    let mut done: Vec<&str> = Vec::new();
    for start in dependencies.iter().map(|d| d.tool.as_str()) {
        let mut way: Vec<(&str, usize)> = vec![(start, 0)];
        while let Some((tool, next)) = way.last_mut() {
            let (tool, at) = (*tool, *next);
            *next += 1;
            match needs.get(tool).and_then(|needs| needs.get(at)) {
                Some(need) => {
                    let need = need.tool.as_str();
                    if let Some(from) = way.iter().position(|(seen, _)| *seen == need) {
                        let round = way.iter().skip(from).map(|(tool, _)| (*tool).to_owned());
                        return Some(round.chain([need.to_owned()]).collect());
                    }
                    if !done.contains(&need) {
                        way.push((need, 0));
                    }
                }
                None => {
                    done.push(tool);
                    way.pop();
                }
            }
        }
    }
    None
}
