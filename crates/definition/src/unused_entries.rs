//! Warns about entries without effect: rules that never match, and names that no tool has.
//!
//! Only files of a person are checked. Presets and packs are made for many projects, so some of
//! their entries have no effect in each project.

use std::collections::{BTreeMap, BTreeSet};

use jackline_engine::definition::{DeclaredTool, PolicyRule, Rule, RuleScope, UnknownTools};
use jackline_engine::verdict::ViolationSubtype;
use jackline_engine::{Mode, ToolKind};

use crate::lower::LoweredDefinition;
use crate::reader::NodeReader;
use crate::sections::modes::pack_of;
use crate::sections::rules::LoweredRule;
use crate::source::Origin;

/// Reports every entry that has no effect.
pub(crate) fn warn_about_unused(lowered: &LoweredDefinition, reader: &mut NodeReader<'_>) {
    let is_in_file = |rule: &&LoweredRule| matches!(reader.origin(rule.position), Origin::File(_));
    let rules: Vec<&LoweredRule> = lowered.rules.iter().filter(is_in_file).collect();
    let covers = CoveringRules::new(&lowered.rules, lowered);
    let known = DeclaredKinds::new(lowered);
    for rule in rules {
        check_tool(rule, &known, lowered, reader);
        if let Some(by) = covers.find_shadowing(&rule.rule) {
            let message = format!("`{by}` already has the effect of `{}`", rule.rule.name);
            reader.report_with_hint(
                rule.position,
                message,
                "remove one of them, or make one stricter",
            );
        }
    }
    for (name, at) in &lowered.unused_pack_rules {
        let pack = name.trim_start_matches("pack/").split('/').next().unwrap_or_default();
        let message = format!("`{name}` is not in force here");
        let extended = lowered.rules.iter().any(|rule| pack_of(&rule.rule.origin) == Some(pack));
        let hint = if extended {
            "`packs.off` switches it off".to_owned()
        } else {
            format!("the definition does not extend `pack/{pack}`")
        };
        reader.report_with_hint(*at, message, hint);
    }
    check_terminal_subtypes(lowered, reader);
    check_commands(lowered, reader);
}

/// Reports a subtype that no violation has: it is neither a word of Jackline nor the name of a rule.
fn check_terminal_subtypes(lowered: &LoweredDefinition, reader: &mut NodeReader<'_>) {
    let words = ViolationSubtype::ALL.iter().map(|(word, _)| *word);
    let rules = lowered.rules.iter().map(|rule| rule.rule.name.as_str());
    let known: BTreeSet<&str> = words.chain(rules).collect();
    for (name, at) in &lowered.terminal_subtypes {
        if matches!(reader.origin(*at), Origin::File(_)) && !known.contains(name.as_str()) {
            let hint = || "name a subtype that `jackline violations` lists, or a rule".to_owned();
            let hint = reader.suggest(name, known.iter().copied(), hint);
            reader.report_with_hint(*at, format!("no violation has the subtype `{name}`"), hint);
        }
    }
}

/// Reports a rule for a tool that no event can name.
fn check_tool(
    rule: &LoweredRule,
    known: &DeclaredKinds,
    lowered: &LoweredDefinition,
    reader: &mut NodeReader<'_>,
) {
    let (name, at) = (&rule.rule.name, rule.tool_position.unwrap_or(rule.position));
    let denied = lowered.definition.unknown_tools == UnknownTools::Deny;
    match &rule.rule.scope {
        RuleScope::Any => {}
        RuleScope::Kind(kind) => {
            if denied && !known.declared.contains(kind) && !known.is_implicit(*kind) {
                let message = format!("`{name}` can never match: no tool of its kind is declared");
                reader.report_with_hint(at, message, "add one to `tools`");
            }
        }
        RuleScope::Tool(tool) if lowered.tools.get(tool).is_some() => {}
        RuleScope::Tool(tool) => {
            let kind = ToolKind::well_known(tool);
            if denied && !kind.is_some_and(|kind| known.is_implicit(kind)) {
                let message =
                    format!("`{name}` can never match: `{tool}` is not declared, so it is denied");
                reader.report_with_hint(at, message, "add it to `tools`");
            } else if kind.is_none() {
                let common = ToolKind::well_known_names();
                let all = lowered.tools.names().chain(common);
                let message = format!("no tool `{tool}` is declared");
                let hint = || "add it to `tools` if the agent has it".to_owned();
                let hint = reader.suggest(tool, all, hint);
                reader.report_with_hint(at, message, hint);
            }
        }
    }
}

/// The kinds of tools that can occur in events.
struct DeclaredKinds {
    declared: BTreeSet<ToolKind>,
    /// Whether a tool has `commands`. Then tools that run command lines are allowed.
    has_recognised_commands: bool,
}

impl DeclaredKinds {
    fn new(lowered: &LoweredDefinition) -> Self {
        Self {
            declared: lowered.tools.iter().map(|(tool, _)| tool.kind).collect(),
            has_recognised_commands: lowered
                .tools
                .iter()
                .any(|(tool, _)| !tool.commands.is_empty()),
        }
    }

    /// Whether well-known tools of a kind can occur without a declaration.
    fn is_implicit(&self, kind: ToolKind) -> bool {
        kind == ToolKind::Exec && self.has_recognised_commands
    }
}

/// Reports tools that are recognised in command lines, but that no other entry uses.
fn check_commands(lowered: &LoweredDefinition, reader: &mut NodeReader<'_>) {
    let named = used_tools(lowered);
    for (tool, at) in lowered.tools.iter() {
        let Some(at) = at else { continue };
        let in_file = matches!(reader.origin(at), Origin::File(_));
        if in_file && !tool.commands.is_empty() && tool.idempotent && !named.is_used(tool) {
            let message = format!(
                "`{}` is recognised in command lines, but no policy or rule uses it",
                tool.name
            );
            reader.report_with_hint(at, message, "name it in a policy or a rule");
        }
    }
}

/// The tools and sections that other entries of the definition use.
struct UsedTools<'a> {
    tools: BTreeSet<&'a str>,
    sections: BTreeSet<u16>,
}

impl UsedTools<'_> {
    fn is_used(&self, tool: &DeclaredTool) -> bool {
        let has_own_effect =
            tool.roles.is_some() || tool.transparent || tool.read_only || tool.poll.is_some();
        has_own_effect
            || self.tools.contains(tool.name.as_str())
            || tool.aliases.iter().any(|alias| self.tools.contains(alias.as_str()))
            || tool.sections.iter().any(|section| self.sections.contains(section))
    }
}

fn used_tools(lowered: &LoweredDefinition) -> UsedTools<'_> {
    let mut named = UsedTools { tools: BTreeSet::new(), sections: BTreeSet::new() };
    for policy in &lowered.definition.policies {
        match &policy.rule {
            PolicyRule::SequentialDependency(rule) => {
                for dependency in &rule.dependencies {
                    named.tools.insert(&dependency.tool);
                    named.tools.extend(dependency.needs.iter().map(|need| need.tool.as_str()));
                }
            }
            PolicyRule::ReadBeforeWrite { .. } | PolicyRule::Custom { .. } => {
                named.sections.extend(policy.section);
            }
        }
    }
    for rule in &lowered.rules {
        if let RuleScope::Tool(tool) = &rule.rule.scope {
            named.tools.insert(tool);
        }
    }
    let definition = &lowered.definition;
    named.tools.extend(definition.limits.tool_calls.iter().map(|(tool, _)| tool.as_str()));
    let checks = definition.dirty_bits.tests.iter().chain(&definition.dirty_bits.builds);
    named.tools.extend(checks.map(String::as_str));
    named
}

/// The calls that a rule applies to, apart from its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RuleReach<'a> {
    Any,
    Kind(ToolKind),
    Tool(&'a str),
}

/// The strongest rule without a condition for each reach and command, separately for enforced and
/// observed rules. An empty command means any command.
struct CoveringRules<'a> {
    lowered: &'a LoweredDefinition,
    strongest: BTreeMap<(bool, RuleReach<'a>, &'a str), &'a Rule>,
}

impl<'a> CoveringRules<'a> {
    fn new(rules: &'a [LoweredRule], lowered: &'a LoweredDefinition) -> Self {
        let mut strongest: BTreeMap<(bool, RuleReach<'a>, &'a str), &'a Rule> = BTreeMap::new();
        for LoweredRule { rule, .. } in rules {
            let always = rule.when.as_ref().is_none_or(|when| when.constant_value() == Some(true));
            if !always {
                continue;
            }
            for command in commands_of(rule) {
                let known =
                    strongest.entry((is_enforced(rule), reach_of(rule), command)).or_insert(rule);
                if rule.effect > known.effect {
                    *known = rule;
                }
            }
        }
        Self { lowered, strongest }
    }

    /// Finds a rule with at least the same effect on every call that this rule matches.
    fn find_shadowing(&self, rule: &Rule) -> Option<&'a str> {
        let found: Option<Vec<&str>> =
            commands_of(rule).map(|command| self.find_covering(rule, command)).collect();
        found?.first().copied()
    }

    fn find_covering(&self, rule: &Rule, command: &str) -> Option<&'a str> {
        self.enclosing_reaches(rule).into_iter().find_map(|reach| {
            command_prefixes(command).find_map(|prefix| {
                let enforced = self.strongest.get(&(true, reach, prefix));
                let observed = self.strongest.get(&(false, reach, prefix));
                let is_as_strong = |by: &&&Rule| by.name != rule.name && by.effect >= rule.effect;
                let observed = observed.filter(|_| !is_enforced(rule));
                let by = enforced.filter(is_as_strong).or_else(|| observed.filter(is_as_strong))?;
                Some(by.name.as_str())
            })
        })
    }

    /// Returns the reach of a rule, and every wider reach.
    fn enclosing_reaches<'r>(&self, rule: &'r Rule) -> Vec<RuleReach<'r>> {
        match &rule.scope {
            RuleScope::Any => vec![RuleReach::Any],
            RuleScope::Kind(kind) => vec![RuleReach::Kind(*kind), RuleReach::Any],
            RuleScope::Tool(tool) => {
                let recognised =
                    self.lowered.tools.get(tool).is_some_and(|tool| !tool.commands.is_empty());
                let kind = RuleReach::Kind(self.lowered.tools.kind(tool));
                let kind = Some(kind).filter(|_| !recognised);
                [Some(RuleReach::Tool(tool)), kind, Some(RuleReach::Any)]
                    .into_iter()
                    .flatten()
                    .collect()
            }
        }
    }
}

fn is_enforced(rule: &Rule) -> bool {
    rule.mode == Mode::Enforce
}

fn reach_of(rule: &Rule) -> RuleReach<'_> {
    match &rule.scope {
        RuleScope::Any => RuleReach::Any,
        RuleScope::Kind(kind) => RuleReach::Kind(*kind),
        RuleScope::Tool(tool) => RuleReach::Tool(tool),
    }
}

/// Returns the commands of a rule, or one empty command if it has none.
fn commands_of(rule: &Rule) -> impl Iterator<Item = &str> {
    let any = rule.commands.is_empty().then_some("");
    rule.commands.iter().map(String::as_str).chain(any)
}

/// Returns the prefixes of a command: `git push origin`, `git push`, `git` and the empty command.
fn command_prefixes(command: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(command);
    std::iter::from_fn(move || {
        let prefix = rest?;
        rest = match prefix.rsplit_once(' ') {
            Some((before, _)) => Some(before),
            None if prefix.is_empty() => None,
            None => Some(""),
        };
        Some(prefix)
    })
}
