//! The tools of two layers: each name has one meaning.
//!
//! The meaning of a call decides which rules see it. So a lower layer can't change the meaning
//! of a name that a higher layer declares or refers to. It can't change a well-known tool either:
//! no rule would stop a `Bash` of kind `think`.

use std::collections::BTreeMap;

use jackline_engine::Kind;
use jackline_engine::definition::{
    Dependency, Need, Opaque, Policy, PolicyRule, Rule, RuleScope, SequentialDependency, Tool,
    UnknownTools,
};
use jackline_engine::expr::{Expr, Variable};

use crate::layers::{Demand, LayerJoin, Subject};
use crate::sections::LayerDemands;
use crate::sections::dirty_bits::rests_on_tests;
use crate::sections::identity::join_roles;

/// The tools of both layers. Policies and rules of the lower layer are changed where a tool or a
/// section has another name or number once the layers are joined.
pub(super) fn join_tools(
    high: &LayerDemands,
    low: &mut LayerDemands,
    join: &mut LayerJoin,
) -> Vec<Demand<Tool>> {
    shift_sections(low, high.policies.sections);
    let mut tools = high.tools.clone();
    if !join.overrides() && high.unknown_tools.value == UnknownTools::Allow {
        declare_referred(high, low, &mut tools);
    }
    let mut renamed = BTreeMap::new();
    for tool in std::mem::take(&mut low.tools) {
        let known = tools.iter().find(|known| names(&known.value, &tool.value.name));
        if let Some(known) = known {
            renamed.insert(tool.value.name.clone(), known.value.name.clone());
        }
        if join.overrides() {
            override_tool(tool, &mut tools);
        } else {
            add_tool(tool, high, &mut tools, join);
        }
    }
    rename(low, &renamed);
    tools
}

/// Adds a tool without a change of what any name means to the higher layer.
fn add_tool(
    tool: Demand<Tool>,
    high: &LayerDemands,
    tools: &mut Vec<Demand<Tool>>,
    join: &mut LayerJoin,
) {
    let Demand { value: mut tool, layer } = tool;
    let all: Vec<String> = std::iter::once(&tool.name).chain(&tool.aliases).cloned().collect();
    let mut free = Vec::new();
    for name in all {
        let Some(known) = tools.iter_mut().find(|known| names(&known.value, &name)) else {
            free.push(name);
            continue;
        };
        let to = known.layer;
        let known = &mut known.value;
        known.sections = together(&known.sections, &tool.sections);
        known.idempotent &= tool.idempotent;
        known.roles = join_roles(known.roles.as_deref(), tool.roles.as_deref());
        known.schema = known.schema.take().or_else(|| tool.schema.clone());
        let output = known.output_schema.take();
        known.output_schema = output.or_else(|| tool.output_schema.clone());
        if says_something(&tool) && !same_meaning(known, &tool) {
            ignore_tool(&name, layer, to, "says what it means", join);
        }
    }
    if high.unknown_tools.value == UnknownTools::Deny {
        for name in free {
            ignore_tool(&name, layer, high.unknown_tools.layer, "denies unknown tools", join);
        }
        return;
    }
    let Some(first) = free.first().cloned() else { return };
    if let Some((to, why)) = hides(&tool, &first, high) {
        ignore_tool(&first, layer, to, why, join);
        tool = seen(tool, &first, high);
    }
    if !tool.commands.is_empty()
        && let Some((to, why)) = doubts(high)
    {
        ignore_tool(&first, layer, to, why, join);
        tool.doubted = true;
    }
    let top = (high.mode.demand.layer, "takes it for what it is known as");
    tool.name = first;
    if let Some(kind) = Kind::well_known(&tool.name)
        && (tool.kind != kind || has_pointers(&tool))
    {
        ignore_tool(&tool.name, layer, top.0, top.1, join);
        tool = as_known(&tool, &tool.name);
    }
    tool.aliases = Vec::new();
    for alias in free.into_iter().skip(1) {
        let as_known_as = Kind::well_known(&alias)
            .filter(|kind| *kind != tool.kind || has_pointers(&tool))
            .map(|_| top);
        match as_known_as.or_else(|| hides(&tool, &alias, high)) {
            None => tool.aliases.push(alias),
            Some((to, why)) => {
                ignore_tool(&alias, layer, to, why, join);
                tools.push(Demand { value: as_known(&tool, &alias), layer });
            }
        }
    }
    tools.push(Demand { value: tool, layer });
}

fn ignore_tool(name: &str, layer: usize, to: usize, why: &str, join: &mut LayerJoin) {
    let text = format!("the meaning of `{name}` in `tools`");
    join.ignore(Subject::Tool, text, layer, to, why);
}

/// Why the higher layer would see less of the calls of a tool with this declaration than of a
/// tool without one, and the layer with the demand that needs to see them.
fn hides(tool: &Tool, name: &str, high: &LayerDemands) -> Option<(usize, &'static str)> {
    let differs = tool.kind != plain_kind(name);
    let blind = matches!(tool.kind, Kind::Other | Kind::Effect | Kind::Spawn);
    let harmless = differs && !blind && !tool.kind.mutates();
    if let Some(loops) = &high.loops {
        // The loop guard passes over a recognised command as it does over the tool.
        let counts = differs || !tool.commands.is_empty();
        let passed = counts && loops.value.transparent.contains(&tool.kind);
        let excused = tool.transparent || tool.read_only || tool.poll.is_some();
        if harmless || passed || excused {
            return Some((loops.layer, "has a loop guard of its own"));
        }
    }
    if let Some(layer) = rests_on_tests(high).filter(|_| harmless) {
        return Some((layer, "rests on what is changed"));
    }
    let rule = high.rules.iter().find(|rule| tells_kinds(&rule.value))?;
    differs.then_some((rule.layer, "has rules on kinds of tools"))
}

/// Why the higher layer looks at commands itself, and the layer with that demand. A command that
/// is recognised as a tool counts as one that hides nothing and changes nothing.
fn doubts(high: &LayerDemands) -> Option<(usize, &'static str)> {
    let fresh = |policy: &&Demand<Policy>| match &policy.value.rule {
        PolicyRule::SequentialDependency(rule) => rule.has_fresh(),
        PolicyRule::ReadBeforeWrite { .. } | PolicyRule::Custom { .. } => false,
    };
    let opaque = (high.shell.value != Opaque::Allow).then_some(high.shell.layer);
    let fresh = || high.policies.policies.iter().find(fresh).map(|policy| policy.layer);
    let changes = rests_on_tests(high).or_else(fresh);
    let hidden = opaque.map(|layer| (layer, "looks into its commands itself"));
    hidden.or_else(|| changes.map(|layer| (layer, "rests on what is changed")))
}

/// The kind of a tool without a declaration, as far as its name tells.
fn plain_kind(name: &str) -> Kind {
    Kind::well_known(name).unwrap_or(Kind::Other)
}

/// The tool, so that the higher layer sees as much of it as without its declaration.
fn seen(tool: Tool, name: &str, high: &LayerDemands) -> Tool {
    let kind = plain_kind(name);
    let passed = high.loops.as_ref().is_some_and(|loops| loops.value.transparent.contains(&kind));
    let commands = if passed { Vec::new() } else { tool.commands };
    Tool { kind, commands, transparent: false, read_only: false, poll: None, ..tool }
}

/// Replaces the declaration of the same name by a trusted one. Other names of the higher layer
/// keep their meaning.
fn override_tool(mut tool: Demand<Tool>, tools: &mut Vec<Demand<Tool>>) {
    let at = tools.iter().position(|known| names(&known.value, &tool.value.name));
    let taken = |alias: &String, tools: &[Demand<Tool>]| {
        let other = |(number, known): (usize, &Demand<Tool>)| {
            Some(number) != at && names(&known.value, alias)
        };
        tools.iter().enumerate().any(other)
    };
    tool.value.aliases.retain(|alias| !taken(alias, tools));
    let Some(known) = at.and_then(|at| tools.get_mut(at)) else {
        tools.push(tool);
        return;
    };
    let said = says_something(&tool.value);
    let name = known.value.name.clone();
    let mut aliases = together(&known.value.aliases, &tool.value.aliases);
    aliases = together(&aliases, std::slice::from_ref(&tool.value.name));
    aliases.retain(|alias| *alias != name);
    let sections = together(&known.value.sections, &tool.value.sections);
    if said {
        *known =
            Demand { value: Tool { name, aliases, sections, ..tool.value }, layer: tool.layer };
    } else {
        known.value = Tool { aliases, sections, ..known.value.clone() };
    }
}

/// The items of both lists, each once.
fn together<T: Clone + PartialEq>(one: &[T], other: &[T]) -> Vec<T> {
    let more = other.iter().filter(|item| !one.contains(item));
    one.iter().chain(more).cloned().collect()
}

/// Whether a name is the name or an alias of a tool.
fn names(tool: &Tool, name: &str) -> bool {
    tool.name == name || tool.aliases.iter().any(|alias| alias == name)
}

/// Whether a declaration says more than that the tool exists.
fn says_something(tool: &Tool) -> bool {
    let plain = Tool {
        aliases: tool.aliases.clone(),
        sections: tool.sections.clone(),
        ..Tool::named(&tool.name)
    };
    *tool != plain
}

/// Whether two declarations give a call the same meaning.
fn same_meaning(one: &Tool, other: &Tool) -> bool {
    let plain = |tool: &Tool| Tool {
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

/// Whether a declaration says where the arguments hold paths, ranges or commands.
fn has_pointers(tool: &Tool) -> bool {
    let plain = Tool::named(&tool.name);
    (&tool.paths, &tool.offset, &tool.limit, &tool.command)
        != (&plain.paths, &plain.offset, &plain.limit, &plain.command)
}

/// The well-known tool of a name, with the restrictions of a declaration.
fn as_known(tool: &Tool, name: &str) -> Tool {
    Tool {
        idempotent: tool.idempotent,
        roles: tool.roles.clone(),
        sections: tool.sections.clone(),
        commands: if tool.name == name { tool.commands.clone() } else { Vec::new() },
        doubted: tool.doubted && tool.name == name,
        ..Tool::named(name)
    }
}

/// Declares the tools that the higher layer refers to, so that the lower layer can't declare
/// them: names in rules that the lower layer uses as an alias, and tests and builds.
fn declare_referred(high: &LayerDemands, low: &LayerDemands, tools: &mut Vec<Demand<Tool>>) {
    let rests = rests_on_tests(high).is_some();
    let mut declare = |name: &String, layer: Option<usize>| {
        if let Some(layer) = layer
            && !tools.iter().any(|known| names(&known.value, name))
        {
            tools.push(Demand { value: Tool::named(name), layer });
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

/// Whether a rule may treat tools without a declaration differently.
fn tells_kinds(rule: &Rule) -> bool {
    let looks = |when: &Expr| when.variables().any(|variable| variable == Variable::Kind);
    rule.scope == RuleScope::Kind(Kind::Other) || rule.when.as_ref().is_some_and(looks)
}

/// Whether a rule may refer to a tool by its name.
fn refers_to(rule: &Rule, name: &str) -> bool {
    let scoped = matches!(&rule.scope, RuleScope::Tool(tool) if tool == name);
    let looks = |when: &Expr| when.variables().any(|variable| variable == Variable::Tool);
    scoped || rule.when.as_ref().is_some_and(looks)
}

/// Renumbers the sections of the lower layer, after those of the layer above.
fn shift_sections(low: &mut LayerDemands, by: u16) {
    let of_tools = low.tools.iter_mut().flat_map(|tool| &mut tool.value.sections);
    let of_policies =
        low.policies.policies.iter_mut().filter_map(|policy| policy.value.section.as_mut());
    of_tools.chain(of_policies).for_each(|section| *section = section.saturating_add(by));
}

/// Renames tools in the policies and rules of the lower layer to their names in the joined list.
fn rename(low: &mut LayerDemands, names: &BTreeMap<String, String>) {
    let now = |name: &str| names.get(name).map_or(name, String::as_str).to_owned();
    for policy in &mut low.policies.policies {
        if let PolicyRule::SequentialDependency(rule) = &mut policy.value.rule {
            let need = |need: &Need| Need { tool: now(&need.tool), fresh: need.fresh };
            let dependency = |dependency: &Dependency| Dependency {
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
