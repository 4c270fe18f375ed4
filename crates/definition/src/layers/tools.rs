//! The tools of two layers: one meaning a name.
//!
//! How a call is understood decides which rules see it. So a lower layer can't
//! say what a name means that a higher one knows or refers to, nor that a
//! well-known tool is something else: `Bash` that only thinks would be free.

use std::collections::BTreeMap;

use jackline_engine::Kind;
use jackline_engine::definition::{
    Dependency, Need, Opaque, Policy, PolicyRule, Rule, RuleScope, SequentialDependency, Tool,
    UnknownTools,
};
use jackline_engine::expr::{Expr, Variable};

use super::Subject;
use super::identity::join_roles;
use super::join::{How, Joining};
use super::parts::{Parts, Said};
use super::progress::rests_on_tests;

impl Joining {
    /// The tools of both layers. What the lower one calls by another name, or
    /// numbers otherwise, is changed in its policies and rules.
    pub(super) fn join_tools(
        &mut self,
        high: &Parts,
        low: &mut Parts,
        how: How,
    ) -> Vec<Said<Tool>> {
        shift_sections(low, high.sections);
        let mut tools = high.tools.clone();
        if how == How::Tighten && high.unknown_tools.what == UnknownTools::Allow {
            declare_referred(high, low, &mut tools);
        }
        let mut renamed = BTreeMap::new();
        for tool in std::mem::take(&mut low.tools) {
            let known = tools.iter().find(|known| names(&known.what, &tool.what.name));
            if let Some(known) = known {
                renamed.insert(tool.what.name.clone(), known.what.name.clone());
            }
            match how {
                How::Override => override_tool(tool, &mut tools),
                How::Tighten => self.add_tool(tool, high, &mut tools),
            }
        }
        rename(low, &renamed);
        tools
    }

    /// Adds a tool without changing what any name means to the higher layer.
    fn add_tool(&mut self, tool: Said<Tool>, high: &Parts, tools: &mut Vec<Said<Tool>>) {
        let Said { what: mut tool, by } = tool;
        let all: Vec<String> = std::iter::once(&tool.name).chain(&tool.aliases).cloned().collect();
        let mut free = Vec::new();
        for name in all {
            let Some(known) = tools.iter_mut().find(|known| names(&known.what, &name)) else {
                free.push(name);
                continue;
            };
            known.what.sections = together(&known.what.sections, &tool.sections);
            known.what.idempotent &= tool.idempotent;
            known.what.roles = join_roles(known.what.roles.as_deref(), tool.roles.as_deref());
            known.what.schema = known.what.schema.take().or_else(|| tool.schema.clone());
            let output = known.what.output_schema.take();
            known.what.output_schema = output.or_else(|| tool.output_schema.clone());
            let to = known.by;
            if says_something(&tool) && !same_meaning(&known.what, &tool) {
                self.ignore_tool(&name, by, to, "says what it means");
            }
        }
        if high.unknown_tools.what == UnknownTools::Deny {
            for name in free {
                self.ignore_tool(&name, by, high.unknown_tools.by, "denies unknown tools");
            }
            return;
        }
        let Some(first) = free.first().cloned() else { return };
        if let Some((to, why)) = hides(&tool, &first, high) {
            self.ignore_tool(&first, by, to, why);
            tool = seen(tool, &first, high);
        }
        if !tool.commands.is_empty()
            && let Some((to, why)) = doubts(high)
        {
            self.ignore_tool(&first, by, to, why);
            tool.doubted = true;
        }
        let top = high.mode.by;
        tool.name = first;
        if let Some(kind) = Kind::well_known(&tool.name)
            && (tool.kind != kind || has_pointers(&tool))
        {
            self.ignore_tool(&tool.name, by, top, "takes it for what it is known as");
            tool = as_known(&tool, &tool.name);
        }
        tool.aliases = Vec::new();
        for alias in free.into_iter().skip(1) {
            let as_known_as = Kind::well_known(&alias)
                .filter(|kind| *kind != tool.kind || has_pointers(&tool))
                .map(|_| (top, "takes it for what it is known as"));
            match as_known_as.or_else(|| hides(&tool, &alias, high)) {
                None => tool.aliases.push(alias),
                Some((to, why)) => {
                    self.ignore_tool(&alias, by, to, why);
                    tools.push(Said { what: as_known(&tool, &alias), by });
                }
            }
        }
        tools.push(Said { what: tool, by });
    }

    fn ignore_tool(&mut self, name: &str, by: usize, to: usize, why: &str) {
        self.ignore(Subject::Tool, format!("the meaning of `{name}` in `tools`"), by, to, why);
    }
}

/// Why the higher layer would see less of calls by a name that is understood
/// like this than of one that nobody describes, and whose word that is.
fn hides(tool: &Tool, name: &str, high: &Parts) -> Option<(usize, &'static str)> {
    let differs = tool.kind != plain_kind(name);
    let blind = matches!(tool.kind, Kind::Other | Kind::Effect | Kind::Spawn);
    let harmless = differs && !blind && !tool.kind.mutates();
    if let Some(loops) = &high.loops {
        // Commands that are recognised as it are passed over with it.
        let counts = differs || !tool.commands.is_empty();
        let passed = counts && loops.what.transparent.contains(&tool.kind);
        let excused = tool.transparent || tool.read_only || tool.poll.is_some();
        if harmless || passed || excused {
            return Some((loops.by, "has a loop guard of its own"));
        }
    }
    if let Some(by) = rests_on_tests(high).filter(|_| harmless) {
        return Some((by, "rests on what is changed"));
    }
    let rule = high.rules.iter().find(|rule| tells_kinds(&rule.what))?;
    differs.then_some((rule.by, "has rules on kinds of tools"))
}

/// Why the higher layer looks at commands itself, and whose word that is: one
/// that is taken for a tool hides nothing, and changes nothing.
fn doubts(high: &Parts) -> Option<(usize, &'static str)> {
    let fresh = |policy: &&Said<Policy>| match &policy.what.rule {
        PolicyRule::SequentialDependency(rule) => rule.has_fresh(),
        PolicyRule::ReadBeforeWrite { .. } | PolicyRule::Custom { .. } => false,
    };
    let opaque = (high.opaque.what != Opaque::Allow).then_some(high.opaque.by);
    let fresh = || high.policies.iter().find(fresh).map(|policy| policy.by);
    let changes = rests_on_tests(high).or_else(fresh);
    let hidden = opaque.map(|by| (by, "looks into its commands itself"));
    hidden.or_else(|| changes.map(|by| (by, "rests on what is changed")))
}

/// What a tool does that nobody describes, as far as its name says.
fn plain_kind(name: &str) -> Kind {
    Kind::well_known(name).unwrap_or(Kind::Other)
}

/// A tool of which the higher layer sees as much as if nobody described it.
fn seen(tool: Tool, name: &str, high: &Parts) -> Tool {
    let kind = plain_kind(name);
    let passed = high.loops.as_ref().is_some_and(|loops| loops.what.transparent.contains(&kind));
    let commands = if passed { Vec::new() } else { tool.commands };
    Tool { kind, commands, transparent: false, read_only: false, poll: None, ..tool }
}

/// A trusted declaration replaces one of the same name; other names of the
/// higher layer keep their meaning.
fn override_tool(mut tool: Said<Tool>, tools: &mut Vec<Said<Tool>>) {
    let at = tools.iter().position(|known| names(&known.what, &tool.what.name));
    let taken = |alias: &String, tools: &[Said<Tool>]| {
        let other =
            |(number, known): (usize, &Said<Tool>)| Some(number) != at && names(&known.what, alias);
        tools.iter().enumerate().any(other)
    };
    tool.what.aliases.retain(|alias| !taken(alias, tools));
    let Some(known) = at.and_then(|at| tools.get_mut(at)) else {
        tools.push(tool);
        return;
    };
    let said = says_something(&tool.what);
    let name = known.what.name.clone();
    let mut aliases = together(&known.what.aliases, &tool.what.aliases);
    aliases = together(&aliases, std::slice::from_ref(&tool.what.name));
    aliases.retain(|alias| *alias != name);
    let sections = together(&known.what.sections, &tool.what.sections);
    if said {
        *known = Said { what: Tool { name, aliases, sections, ..tool.what }, by: tool.by };
    } else {
        known.what = Tool { aliases, sections, ..known.what.clone() };
    }
}

/// Everything in both, once.
fn together<T: Clone + PartialEq>(one: &[T], other: &[T]) -> Vec<T> {
    let more = other.iter().filter(|item| !one.contains(item));
    one.iter().chain(more).cloned().collect()
}

/// Whether a tool goes by a name.
fn names(tool: &Tool, name: &str) -> bool {
    tool.name == name || tool.aliases.iter().any(|alias| alias == name)
}

/// Whether more is said about a tool than that it is there.
fn says_something(tool: &Tool) -> bool {
    let plain = Tool {
        aliases: tool.aliases.clone(),
        sections: tool.sections.clone(),
        ..Tool::named(&tool.name)
    };
    *tool != plain
}

/// Whether two declarations understand a call in the same way.
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

/// Whether a declaration says where the arguments hold what.
fn has_pointers(tool: &Tool) -> bool {
    let plain = Tool::named(&tool.name);
    (&tool.paths, &tool.offset, &tool.limit, &tool.command)
        != (&plain.paths, &plain.offset, &plain.limit, &plain.command)
}

/// A well-known tool as it is known, where `tool` is declared.
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

/// Declares what the higher layer refers to: in rules, where the lower one would
/// make it another name for something else, and as a test or a build, where it
/// would say what that is.
fn declare_referred(high: &Parts, low: &Parts, tools: &mut Vec<Said<Tool>>) {
    let rests = rests_on_tests(high).is_some();
    let mut declare = |name: &String, by: Option<usize>| {
        if let Some(by) = by
            && !tools.iter().any(|known| names(&known.what, name))
        {
            tools.push(Said { what: Tool::named(name), by });
        }
    };
    for Said { what: tool, .. } in &low.tools {
        for name in std::iter::once(&tool.name).chain(&tool.aliases) {
            let mut bits = high.dirty_bits.iter().filter(|_| rests);
            declare(name, bits.find(|bit| bit.what.1 == *name).map(|bit| bit.by));
        }
        for alias in &tool.aliases {
            let rule = high.rules.iter().find(|rule| refers_to(&rule.what, alias));
            declare(alias, rule.map(|rule| rule.by));
        }
    }
}

/// Whether a rule may tell tools that nobody describes from others.
fn tells_kinds(rule: &Rule) -> bool {
    let looks = |when: &Expr| when.variables().any(|variable| variable == Variable::Kind);
    rule.scope == RuleScope::Kind(Kind::Other) || rule.when.as_ref().is_some_and(looks)
}

/// Whether a rule may tell a tool by its name.
fn refers_to(rule: &Rule, name: &str) -> bool {
    let scoped = matches!(&rule.scope, RuleScope::Tool(tool) if tool == name);
    let looks = |when: &Expr| when.variables().any(|variable| variable == Variable::Tool);
    scoped || rule.when.as_ref().is_some_and(looks)
}

/// Makes room for the sections of the layer above.
fn shift_sections(low: &mut Parts, by: u16) {
    let of_tools = low.tools.iter_mut().flat_map(|tool| &mut tool.what.sections);
    let of_policies = low.policies.iter_mut().filter_map(|policy| policy.what.section.as_mut());
    of_tools.chain(of_policies).for_each(|section| *section = section.saturating_add(by));
}

/// Lets policies and rules of the lower layer name tools as they are declared now.
fn rename(low: &mut Parts, names: &BTreeMap<String, String>) {
    let now = |name: &str| names.get(name).map_or(name, String::as_str).to_owned();
    for policy in &mut low.policies {
        if let PolicyRule::SequentialDependency(rule) = &mut policy.what.rule {
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
        if let RuleScope::Tool(tool) = &mut rule.what.scope {
            *tool = now(tool);
        }
    }
}
