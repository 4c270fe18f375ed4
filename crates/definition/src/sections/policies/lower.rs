//! Lowers sections and policies, and checks that each policy can see the tools that it names.

use std::collections::{BTreeMap, BTreeSet};

use jackline_engine::definition::{
    Policy, PolicyRule, Prerequisite, SequentialDependency, ToolDependency,
};

use super::{
    NEED, POLICY, PREREQUISITES_MAX, READ_BEFORE_WRITE, SECTION, count_needs, cycle_message,
    find_cycle, needs_of_all, too_many_prerequisites,
};
use crate::diagnostic::SourcePosition;
use crate::lower::LoweringState;
use crate::reader::NodeReader;
use crate::sections::tools::DeclaredTools;
use crate::values::read_tool_name;
use crate::yaml::{YamlNode, YamlValue};

/// The tools that a policy can see.
enum PolicyScope {
    /// The tools of one section, by declared name.
    Section { number: u16, name: String, tools: BTreeSet<String> },
    /// All tools.
    TopLevel,
}

/// Lowers the policies. This step runs after all tools are declared, because policies name tools.
pub(crate) fn lower(lowering: &mut LoweringState<'_>, reader: &mut NodeReader<'_>) {
    let deletes = lowering
        .node("read_before_write")
        .is_some_and(|node| read_before_write(node, false, reader));
    let (sections, top_level) = (lowering.node("sections"), lowering.node("policies"));
    let tools = &mut lowering.tools;
    lowering.definition.policies = policies(sections, top_level, deletes, tools, reader);
}

/// Lowers the policies of the sections in their order, then the top-level policies.
fn policies(
    sections: Option<&YamlNode>,
    top_level: Option<&YamlNode>,
    deletes: bool,
    tools: &mut DeclaredTools,
    reader: &mut NodeReader<'_>,
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
        scopes.push((PolicyScope::TopLevel, Some(node)));
    }
    let mut lowered = Vec::new();
    let mut places = BTreeMap::new();
    for (scope, node) in scopes {
        for node in node.map_or(&[][..], |node| reader.list(node, "`policies`")) {
            let section = match scope {
                PolicyScope::Section { number, .. } => Some(number),
                PolicyScope::TopLevel => None,
            };
            if let Some(rule) = policy(node, &scope, deletes, tools, &mut places, reader) {
                lowered.push(Policy { section, rule });
            }
        }
    }
    check_all_policies(&lowered, &places, reader);
    lowered
}

/// The first position of each tool that has prerequisites.
type ToolPositions = BTreeMap<String, SourcePosition>;

/// Checks the cycles and the number of prerequisites of all policies together.
fn check_all_policies(policies: &[Policy], places: &ToolPositions, reader: &mut NodeReader<'_>) {
    let all = needs_of_all(policies);
    let at = |tool: Option<&str>| {
        tool.and_then(|tool| places.get(tool)).copied().unwrap_or(SourcePosition::start_of(0))
    };
    if let Some(cycle) = find_cycle(&all) {
        reader.report(at(cycle.first().map(String::as_str)), cycle_message(&cycle));
    }
    let count = count_needs(&all);
    if count > PREREQUISITES_MAX {
        reader.report(at(all.first().map(|(tool, _)| *tool)), too_many_prerequisites(count));
    }
}

fn section<'n>(
    number: u16,
    node: &'n YamlNode,
    tools: &mut DeclaredTools,
    names: &mut BTreeSet<&'n str>,
    reader: &mut NodeReader<'_>,
) -> Option<(PolicyScope, Option<&'n YamlNode>)> {
    let (mut name, mut members, mut policies) = (None, BTreeSet::new(), None);
    for (key, node) in reader.fields(node, &SECTION) {
        match key {
            "name" => {
                name = reader.text(node, "the name of a section");
                if let Some(name) = name
                    && !names.insert(name)
                {
                    reader.report(node.position, format!("two sections are named `{name}`"));
                }
            }
            "tools" => {
                for node in reader.list(node, "the tools of a section") {
                    if let Some(tool) = reader.text(node, "a tool") {
                        let tool = read_tool_name(tool, node.position, reader);
                        members.insert(tools.add_to_section(&tool, number));
                    }
                }
            }
            _ => policies = Some(node),
        }
    }
    if !matches!(node.value, YamlValue::Map(_) | YamlValue::Null) {
        return None;
    }
    if name.is_none() {
        reader.report(node.position, "a section needs a `name`");
    }
    let name = name.unwrap_or("unnamed").to_owned();
    Some((PolicyScope::Section { number, name, tools: members }, policies))
}

fn policy(
    node: &YamlNode,
    scope: &PolicyScope,
    deletes: bool,
    tools: &mut DeclaredTools,
    places: &mut ToolPositions,
    reader: &mut NodeReader<'_>,
) -> Option<PolicyRule> {
    let (key, body) = reader.single_field(node, &POLICY)?;
    Some(if key == "read_before_write" {
        PolicyRule::ReadBeforeWrite { deletes: read_before_write(body, deletes, reader) }
    } else {
        PolicyRule::SequentialDependency(sequential(body, scope, tools, places, reader))
    })
}

/// Whether `read_before_write` also applies to deleted files.
fn read_before_write(node: &YamlNode, default: bool, reader: &mut NodeReader<'_>) -> bool {
    let mut deletes = default;
    for (_, node) in reader.fields(node, &READ_BEFORE_WRITE) {
        deletes = reader.flag(node, "`deletes`").unwrap_or(deletes);
    }
    deletes
}

fn sequential(
    node: &YamlNode,
    scope: &PolicyScope,
    tools: &mut DeclaredTools,
    places: &mut ToolPositions,
    reader: &mut NodeReader<'_>,
) -> SequentialDependency {
    let mut dependencies: Vec<ToolDependency> = Vec::new();
    let mut given = BTreeSet::new();
    let entries = reader.map(node, "`sequential_dependency`");
    if entries.is_empty() && matches!(node.value, YamlValue::Map(_) | YamlValue::Null) {
        reader.report_with_hint(
            node.position,
            "`sequential_dependency` is empty",
            "write it as tool: [prerequisite, …]",
        );
    }
    for (key, node) in entries {
        if matches!(&node.value, YamlValue::List(items) if items.is_empty())
            || node.value == YamlValue::Null
        {
            let message = format!("`{}` has no prerequisites", key.text);
            reader.report_with_hint(
                key.position,
                message,
                "list the tools that it needs, or remove it",
            );
        }
        let tool = resolve_visible_tool(&key.text, key.position, scope, tools, reader);
        let mut needs: Vec<Prerequisite> = Vec::new();
        let mut listed = BTreeSet::new();
        for node in reader.list(node, "the prerequisites of a tool") {
            if let Some(need) = need(node, scope, tools, reader) {
                if listed.insert(need.tool.clone()) {
                    needs.push(need);
                } else {
                    reader.report(node.position, format!("`{}` is listed twice", need.tool));
                }
            }
        }
        if let Some(tool) = tool {
            if !given.insert(tool.clone()) {
                reader.report(key.position, format!("`{tool}` occurs twice"));
            }
            places.entry(tool.clone()).or_insert(key.position);
            dependencies.push(ToolDependency { tool, needs });
        }
    }
    SequentialDependency::new(dependencies)
}

fn need(
    node: &YamlNode,
    scope: &PolicyScope,
    tools: &mut DeclaredTools,
    reader: &mut NodeReader<'_>,
) -> Option<Prerequisite> {
    if !matches!(node.value, YamlValue::Map(_)) {
        let name = reader.text(node, "a prerequisite")?;
        return resolve_visible_tool(name, node.position, scope, tools, reader)
            .map(|tool| Prerequisite { tool, fresh: false });
    }
    let (mut tool, mut fresh, mut given) = (None, false, false);
    for (key, node) in reader.fields(node, &NEED) {
        if key == "tool" {
            given = true;
            tool = reader
                .text(node, "`tool`")
                .and_then(|name| resolve_visible_tool(name, node.position, scope, tools, reader));
        } else {
            fresh = reader.flag(node, "`fresh`").unwrap_or(fresh);
        }
    }
    if !given {
        reader.report(node.position, "a prerequisite needs a `tool`");
    }
    tool.map(|tool| Prerequisite { tool, fresh })
}

/// Returns the declared name of a tool in a policy, and reports a tool that it can never see.
fn resolve_visible_tool(
    name: &str,
    at: SourcePosition,
    scope: &PolicyScope,
    tools: &mut DeclaredTools,
    reader: &mut NodeReader<'_>,
) -> Option<String> {
    let known = tools.declared_name(name).map(ToOwned::to_owned);
    match scope {
        PolicyScope::Section { name: section, tools: members, .. } => {
            let member = known.filter(|known| members.contains(known));
            if member.is_none() {
                let message = format!(
                    "this policy can never see `{name}`: it is not among the tools of section `{section}`"
                );
                let hint = reader.suggest(name, members.iter().map(String::as_str), || {
                    "add it to the section's `tools`, or move the policy to the top level"
                        .to_owned()
                });
                reader.report_with_hint(at, message, hint);
            }
            member
        }
        PolicyScope::TopLevel if known.is_none() && tools.is_closed() => {
            let message = format!("this policy can never see `{name}`: no such tool is declared");
            let hint = reader.suggest(name, tools.names(), || "add it to `tools`".to_owned());
            reader.report_with_hint(at, message, hint);
            None
        }
        PolicyScope::TopLevel if known.is_some() => known,
        PolicyScope::TopLevel => {
            let name = read_tool_name(name, at, reader);
            Some(tools.declare_implicitly(&name))
        }
    }
}
