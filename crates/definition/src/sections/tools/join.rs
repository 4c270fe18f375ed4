//! Joins the tools of two layers, so that each name has one meaning.
//!
//! The meaning of a call decides which rules match it. So a lower layer can't change the meaning
//! of a name that a higher layer declares or refers to. It also can't change a well-known tool:
//! no rule would stop a `Bash` of kind `think`.

use std::collections::BTreeMap;

use jackline_engine::ToolKind;
use jackline_engine::definition::{
    DeclaredTool, OpaquePolicy, Policy, PolicyRule, Prerequisite, Rule, RuleScope,
    SequentialDependency, ToolDependency, UnknownTools,
};
use jackline_engine::expr::{Expr, Variable};

use crate::layers::{Demand, DemandSubject, LayerJoin};
use crate::sections::LayerDemands;
use crate::sections::dirty_bits::layer_relying_on_tests;
use crate::sections::identity::join_roles;

/// Joins the tools of both layers. If a tool or a section gets another name or number, the policies
/// and rules of the lower layer are changed accordingly.
pub(super) fn join_tools(
    high: &LayerDemands,
    low: &mut LayerDemands,
    join: &mut LayerJoin,
) -> Vec<Demand<DeclaredTool>> {
    renumber_sections(low, high.policies.sections);
    let mut tools = high.tools.clone();
    if !join.overrides() {
        declare_referenced_tools(high, low, &mut tools);
    }
    let mut renamed = BTreeMap::new();
    for tool in std::mem::take(&mut low.tools) {
        let known = tools.iter().find(|known| has_name(&known.value, &tool.value.name));
        if let Some(known) = known {
            renamed.insert(tool.value.name.clone(), known.value.name.clone());
        }
        if join.overrides() {
            override_with_trusted(tool, &mut tools);
        } else {
            add_without_new_meaning(tool, high, &mut tools, join);
        }
    }
    rename_tools(low, &renamed);
    tools
}

/// Adds a tool of the lower layer. No name changes its meaning for the higher layer.
fn add_without_new_meaning(
    tool: Demand<DeclaredTool>,
    high: &LayerDemands,
    tools: &mut Vec<Demand<DeclaredTool>>,
    join: &mut LayerJoin,
) {
    let Demand { value: mut tool, layer } = tool;
    let all: Vec<String> = std::iter::once(&tool.name).chain(&tool.aliases).cloned().collect();
    let mut free = Vec::new();
    for name in all {
        let Some(known) = tools.iter_mut().find(|known| has_name(&known.value, &name)) else {
            free.push(name);
            continue;
        };
        let to = known.layer;
        let known = &mut known.value;
        known.sections = merge_lists(&known.sections, &tool.sections);
        known.idempotent &= tool.idempotent;
        known.roles = join_roles(known.roles.as_deref(), tool.roles.as_deref());
        known.schema = known.schema.take().or_else(|| tool.schema.clone());
        let output = known.output_schema.take();
        known.output_schema = output.or_else(|| tool.output_schema.clone());
        if has_content(&tool) && !has_same_meaning(known, &tool) {
            ignore_tool(&name, layer, to, "already declares it", join);
        }
    }
    let (free, unknown): (Vec<String>, Vec<String>) =
        free.into_iter().partition(|name| is_known_undeclared(name, high));
    for name in unknown {
        ignore_tool(&name, layer, high.unknown_tools.layer, "denies unknown tools", join);
    }
    let Some(first) = free.first().cloned() else { return };
    if let Some((to, why)) = reason_to_keep_visible(&tool, &first, high) {
        ignore_tool(&first, layer, to, why, join);
        tool = without_hiding(tool, &first, high);
    }
    if !tool.commands.is_empty()
        && let Some((to, why)) = reason_to_doubt_commands(high)
    {
        ignore_tool(&first, layer, to, why, join);
        tool.doubted = true;
    }
    let top = (high.mode.demand.layer, "uses its well-known meaning");
    tool.name = first;
    if let Some(kind) = ToolKind::well_known(&tool.name)
        && (tool.kind != kind || has_pointers(&tool))
    {
        ignore_tool(&tool.name, layer, top.0, top.1, join);
        tool = as_well_known(&tool, &tool.name);
    }
    tool.aliases = Vec::new();
    for alias in free.into_iter().skip(1) {
        let as_known_as = ToolKind::well_known(&alias)
            .filter(|kind| *kind != tool.kind || has_pointers(&tool))
            .map(|_| top);
        match as_known_as.or_else(|| reason_to_keep_visible(&tool, &alias, high)) {
            None => tool.aliases.push(alias),
            Some((to, why)) => {
                ignore_tool(&alias, layer, to, why, join);
                tools.push(Demand { value: as_well_known(&tool, &alias), layer });
            }
        }
    }
    tools.push(Demand { value: tool, layer });
}

/// Whether the higher layer accepts a tool that it does not declare. The tools of clients are not
/// known here, so they count as unknown.
fn is_known_undeclared(name: &str, high: &LayerDemands) -> bool {
    match high.unknown_tools.value {
        UnknownTools::Allow => true,
        UnknownTools::Client => ToolKind::well_known(name).is_some(),
        UnknownTools::Deny => false,
    }
}

fn ignore_tool(name: &str, layer: usize, to: usize, why: &str, join: &mut LayerJoin) {
    let text = format!("the meaning of `{name}` in `tools`");
    join.report_ignored(DemandSubject::Tool, text, layer, to, why);
}

/// Returns the reason if this declaration would hide calls that the higher layer sees without it,
/// with the layer whose demand needs to see them.
fn reason_to_keep_visible(
    tool: &DeclaredTool,
    name: &str,
    high: &LayerDemands,
) -> Option<(usize, &'static str)> {
    let differs = tool.kind != plain_kind(name);
    let blind = matches!(tool.kind, ToolKind::Other | ToolKind::Effect | ToolKind::Spawn);
    let harmless = differs && !blind && !tool.kind.mutates();
    if let Some(loops) = &high.loops {
        // The loop guard ignores a recognised command in the same way as the tool.
        let counts = differs || !tool.commands.is_empty();
        let passed = counts && loops.value.transparent.contains(&tool.kind);
        let excused = tool.transparent || tool.read_only || tool.poll.is_some();
        if harmless || passed || excused {
            return Some((loops.layer, "has its own loop guard"));
        }
    }
    if let Some(layer) = layer_relying_on_tests(high).filter(|_| harmless) {
        return Some((layer, "relies on what changed"));
    }
    let rule = high.rules.iter().find(|rule| depends_on_kind(&rule.value))?;
    differs.then_some((rule.layer, "has rules on kinds of tools"))
}

/// Returns the reason if the higher layer must analyse commands itself, with the layer that demands
/// it. A command that is recognised as a tool would count as transparent and without changes.
fn reason_to_doubt_commands(high: &LayerDemands) -> Option<(usize, &'static str)> {
    let fresh = |policy: &&Demand<Policy>| match &policy.value.rule {
        PolicyRule::SequentialDependency(rule) => rule.has_fresh(),
        PolicyRule::ReadBeforeWrite { .. } | PolicyRule::Custom { .. } => false,
    };
    let opaque = (high.shell.value != OpaquePolicy::Allow).then_some(high.shell.layer);
    let fresh = || high.policies.policies.iter().find(fresh).map(|policy| policy.layer);
    let changes = layer_relying_on_tests(high).or_else(fresh);
    let hidden = opaque.map(|layer| (layer, "analyses its commands itself"));
    hidden.or_else(|| changes.map(|layer| (layer, "relies on what changed")))
}

/// Returns the kind of an undeclared tool, by its name.
fn plain_kind(name: &str) -> ToolKind {
    ToolKind::well_known(name).unwrap_or(ToolKind::Other)
}

/// Changes a tool so that the higher layer sees as many of its calls as without a declaration.
fn without_hiding(tool: DeclaredTool, name: &str, high: &LayerDemands) -> DeclaredTool {
    let kind = plain_kind(name);
    let passed = high.loops.as_ref().is_some_and(|loops| loops.value.transparent.contains(&kind));
    let commands = if passed { Vec::new() } else { tool.commands };
    DeclaredTool { kind, commands, transparent: false, read_only: false, poll: None, ..tool }
}

/// Replaces a declaration by a trusted one with the same name. Other names of the higher layer keep
/// their meaning.
fn override_with_trusted(mut tool: Demand<DeclaredTool>, tools: &mut Vec<Demand<DeclaredTool>>) {
    let at = tools.iter().position(|known| has_name(&known.value, &tool.value.name));
    let taken = |alias: &String, tools: &[Demand<DeclaredTool>]| {
        let other = |(number, known): (usize, &Demand<DeclaredTool>)| {
            Some(number) != at && has_name(&known.value, alias)
        };
        tools.iter().enumerate().any(other)
    };
    tool.value.aliases.retain(|alias| !taken(alias, tools));
    let Some(known) = at.and_then(|at| tools.get_mut(at)) else {
        tools.push(tool);
        return;
    };
    let has_content = has_content(&tool.value);
    let name = known.value.name.clone();
    let mut aliases = merge_lists(&known.value.aliases, &tool.value.aliases);
    aliases = merge_lists(&aliases, std::slice::from_ref(&tool.value.name));
    aliases.retain(|alias| *alias != name);
    let sections = merge_lists(&known.value.sections, &tool.value.sections);
    if has_content {
        *known = Demand {
            value: DeclaredTool { name, aliases, sections, ..tool.value },
            layer: tool.layer,
        };
    } else {
        known.value = DeclaredTool { aliases, sections, ..known.value.clone() };
    }
}

/// Returns the items of both lists without duplicates.
fn merge_lists<T: Clone + PartialEq>(one: &[T], other: &[T]) -> Vec<T> {
    let more = other.iter().filter(|item| !one.contains(item));
    one.iter().chain(more).cloned().collect()
}

/// Whether a name is the name or an alias of a tool.
fn has_name(tool: &DeclaredTool, name: &str) -> bool {
    tool.name == name || tool.aliases.iter().any(|alias| alias == name)
}

/// Whether a declaration contains more than names and sections.
fn has_content(tool: &DeclaredTool) -> bool {
    let plain = DeclaredTool {
        aliases: tool.aliases.clone(),
        sections: tool.sections.clone(),
        ..DeclaredTool::with_name(&tool.name)
    };
    *tool != plain
}

/// Whether calls have the same meaning under both declarations.
fn has_same_meaning(one: &DeclaredTool, other: &DeclaredTool) -> bool {
    let plain = |tool: &DeclaredTool| DeclaredTool {
        name: String::new(),
        aliases: Vec::new(),
        sections: Vec::new(),
        idempotent: true,
        schema: None,
        output_schema: None,
        roles: None,
        ..tool.clone()
    };
    plain(one) == plain(other)
}

/// Whether a declaration has pointers to paths, ranges or command lines in the arguments.
fn has_pointers(tool: &DeclaredTool) -> bool {
    let plain = DeclaredTool::with_name(&tool.name);
    (&tool.paths, &tool.offset, &tool.limit, &tool.command)
        != (&plain.paths, &plain.offset, &plain.limit, &plain.command)
}

/// Returns the well-known tool of a name, with the restrictions of a declaration.
fn as_well_known(tool: &DeclaredTool, name: &str) -> DeclaredTool {
    DeclaredTool {
        idempotent: tool.idempotent,
        roles: tool.roles.clone(),
        sections: tool.sections.clone(),
        commands: if tool.name == name { tool.commands.clone() } else { Vec::new() },
        doubted: tool.doubted && tool.name == name,
        ..DeclaredTool::with_name(name)
    }
}

/// Declares tools that the higher layer refers to, so that the lower layer can't declare them:
/// tests, builds, and names in rules that the lower layer uses as an alias.
fn declare_referenced_tools(
    high: &LayerDemands,
    low: &LayerDemands,
    tools: &mut Vec<Demand<DeclaredTool>>,
) {
    let rests = layer_relying_on_tests(high).is_some();
    let mut declare = |name: &String, layer: Option<usize>| {
        if let Some(layer) = layer
            && is_known_undeclared(name, high)
            && !tools.iter().any(|known| has_name(&known.value, name))
        {
            tools.push(Demand { value: DeclaredTool::with_name(name), layer });
        }
    };
    for Demand { value: tool, .. } in &low.tools {
        for name in std::iter::once(&tool.name).chain(&tool.aliases) {
            let mut bits = high.dirty_bits.iter().filter(|_| rests);
            declare(name, bits.find(|bit| bit.value.1 == *name).map(|bit| bit.layer));
        }
        for alias in &tool.aliases {
            let rule = high.rules.iter().find(|rule| refers_to(&rule.value, alias));
            declare(alias, rule.map(|rule| rule.layer));
        }
    }
}

/// Whether a rule may depend on the kind of a tool.
fn depends_on_kind(rule: &Rule) -> bool {
    let looks = |when: &Expr| when.variables().any(|variable| variable == Variable::Kind);
    rule.scope == RuleScope::Kind(ToolKind::Other) || rule.when.as_ref().is_some_and(looks)
}

/// Whether a rule may refer to a tool by its name.
fn refers_to(rule: &Rule, name: &str) -> bool {
    let scoped = matches!(&rule.scope, RuleScope::Tool(tool) if tool == name);
    let looks = |when: &Expr| when.variables().any(|variable| variable == Variable::Tool);
    scoped || rule.when.as_ref().is_some_and(looks)
}

/// Renumbers the sections of the lower layer, so that they follow those of the higher layer.
fn renumber_sections(low: &mut LayerDemands, by: u16) {
    let of_tools = low.tools.iter_mut().flat_map(|tool| &mut tool.value.sections);
    let of_policies =
        low.policies.policies.iter_mut().filter_map(|policy| policy.value.section.as_mut());
    of_tools.chain(of_policies).for_each(|section| *section = section.saturating_add(by));
}

/// Renames tools in the policies and rules of the lower layer to their names in the joined list.
fn rename_tools(low: &mut LayerDemands, names: &BTreeMap<String, String>) {
    let now = |name: &str| names.get(name).map_or(name, String::as_str).to_owned();
    for policy in &mut low.policies.policies {
        if let PolicyRule::SequentialDependency(rule) = &mut policy.value.rule {
            let need =
                |need: &Prerequisite| Prerequisite { tool: now(&need.tool), fresh: need.fresh };
            let dependency = |dependency: &ToolDependency| ToolDependency {
                tool: now(&dependency.tool),
                needs: dependency.needs.iter().map(need).collect(),
            };
            let dependencies = rule.dependencies.iter().map(dependency).collect();
            *rule = SequentialDependency::new(dependencies);
        }
    }
    for rule in &mut low.rules {
        if let RuleScope::Tool(tool) = &mut rule.value.scope {
            *tool = now(tool);
        }
    }
}
