//! Lowers sections and policies, and checks that a policy can see the tools that it names.

use std::collections::{BTreeMap, BTreeSet};

use jackline_engine::definition::{Dependency, Need, Policy, PolicyRule, SequentialDependency};

use super::{
    NEED, POLICY, PREREQUISITES_MAX, READ_BEFORE_WRITE, SECTION, count_needs, cycle_message,
    find_cycle, needs_of_all, too_many_prerequisites,
};
use crate::diagnostic::At;
use crate::lower::Lowering;
use crate::reader::Reader;
use crate::sections::tools::Tools;
use crate::values::tool_name;
use crate::yaml::{Node, NodeValue};

/// Which tools a policy can see.
enum Scope {
    /// Those of one section, by declared name.
    Section { number: u16, name: String, tools: BTreeSet<String> },
    /// All tools.
    TopLevel,
}

/// Policies name tools, so they are lowered once all tools are declared.
pub(crate) fn lower(lowering: &mut Lowering<'_>, reader: &mut Reader<'_>) {
    let deletes = lowering
        .node("read_before_write")
        .is_some_and(|node| read_before_write(node, false, reader));
    let (sections, top_level) = (lowering.node("sections"), lowering.node("policies"));
    let tools = &mut lowering.tools;
    lowering.definition.policies = policies(sections, top_level, deletes, tools, reader);
}

/// The policies of the sections in their order, then the top-level ones.
fn policies(
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

/// The first place of each tool that has prerequisites.
type Places = BTreeMap<String, At>;

/// Checks all policies together.
fn check_whole(policies: &[Policy], places: &Places, reader: &mut Reader<'_>) {
    let all = needs_of_all(policies);
    let at = |tool: Option<&str>| {
        tool.and_then(|tool| places.get(tool)).copied().unwrap_or(At::start_of(0))
    };
    if let Some(cycle) = find_cycle(&all) {
        reader.complain(at(cycle.first().map(String::as_str)), cycle_message(&cycle));
    }
    let count = count_needs(&all);
    if count > PREREQUISITES_MAX {
        reader.complain(at(all.first().map(|(tool, _)| *tool)), too_many_prerequisites(count));
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
    for (key, node) in reader.fields(node, &SECTION) {
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
                        let tool = tool_name(tool, node.at, reader);
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
    let (key, body) = reader.single(node, &POLICY)?;
    Some(if key == "read_before_write" {
        PolicyRule::ReadBeforeWrite { deletes: read_before_write(body, deletes, reader) }
    } else {
        PolicyRule::SequentialDependency(sequential(body, scope, tools, places, reader))
    })
}

/// Whether `read_before_write` also applies to deleted files.
fn read_before_write(node: &Node, default: bool, reader: &mut Reader<'_>) -> bool {
    let mut deletes = default;
    for (_, node) in reader.fields(node, &READ_BEFORE_WRITE) {
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
    for (key, node) in reader.fields(node, &NEED) {
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

/// The declared name of a tool in a policy, if the policy can ever see that tool.
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
            let name = tool_name(name, at, reader);
            Some(tools.declare_implicitly(&name))
        }
    }
}
