//! What is not wrong and yet can't be meant: rules that never speak, names that
//! nothing answers to.
//!
//! Only what a person wrote is warned about. What comes with the product is
//! made for many, and some of it is idle everywhere.

use std::collections::{BTreeMap, BTreeSet};

use jackline_engine::definition::{PolicyRule, Rule, RuleScope, Tool, UnknownTools};
use jackline_engine::{Kind, Mode};

use crate::lower::Lowered;
use crate::reader::Reader;
use crate::sections::modes::pack_of;
use crate::sections::rules::LoweredRule;
use crate::source::Origin;
use crate::well_known;

/// Complains about everything that is idle.
pub(crate) fn liveness(lowered: &Lowered, reader: &mut Reader<'_>) {
    let written = |rule: &&LoweredRule| matches!(reader.origin(rule.at), Origin::File(_));
    let rules: Vec<&LoweredRule> = lowered.rules.iter().filter(written).collect();
    let covers = Covers::new(&lowered.rules, lowered);
    let known = KnownKinds::new(lowered);
    for rule in rules {
        check_tool(rule, &known, lowered, reader);
        if let Some(by) = covers.shadow(&rule.rule) {
            let message = format!("`{by}` already says what `{}` would say", rule.rule.name);
            reader.complain_hint(rule.at, message, "remove one of them, or make it say more");
        }
    }
    for (name, at) in &lowered.idle {
        let pack = name.trim_start_matches("pack/").split('/').next().unwrap_or_default();
        let message = format!("`{name}` is not in force here");
        let extended = lowered.rules.iter().any(|rule| pack_of(&rule.rule.origin) == Some(pack));
        let hint = if extended {
            "`packs.off` has it switched off".to_owned()
        } else {
            format!("nothing extends `pack/{pack}`")
        };
        reader.complain_hint(*at, message, hint);
    }
    check_commands(lowered, reader);
}

/// A rule on a tool that never comes.
fn check_tool(rule: &LoweredRule, known: &KnownKinds, lowered: &Lowered, reader: &mut Reader<'_>) {
    let (name, at) = (&rule.rule.name, rule.tool_at.unwrap_or(rule.at));
    let denied = lowered.definition.unknown_tools == UnknownTools::Deny;
    match &rule.rule.scope {
        RuleScope::Any => {}
        RuleScope::Kind(kind) => {
            if denied && !known.declared.contains(kind) && !known.comes(*kind) {
                let message = format!("`{name}` can never match: no tool of its kind is declared");
                reader.complain_hint(at, message, "add one to `tools`");
            }
        }
        RuleScope::Tool(tool) if lowered.tools.get(tool).is_some() => {}
        RuleScope::Tool(tool) => {
            let kind = Kind::well_known(tool);
            if denied && !kind.is_some_and(|kind| known.comes(kind)) {
                let message =
                    format!("`{name}` can never match: `{tool}` is not declared, so it is denied");
                reader.complain_hint(at, message, "add it to `tools`");
            } else if kind.is_none() {
                let common: Vec<&str> = well_known::names().collect();
                let all = lowered.tools.names().chain(common);
                let message = format!("nothing declares a tool `{tool}`");
                let hint = || "add it to `tools` if an agent has it".to_owned();
                let hint = reader.meant(tool, all, hint);
                reader.complain_hint(at, message, hint);
            }
        }
    }
}

/// The kinds of tools that there are.
struct KnownKinds {
    declared: BTreeSet<Kind>,
    /// Whether commands are recognised, and so the tools that run them known.
    recognising: bool,
}

impl KnownKinds {
    fn new(lowered: &Lowered) -> Self {
        Self {
            declared: lowered.tools.iter().map(|(tool, _)| tool.kind).collect(),
            recognising: lowered.tools.iter().any(|(tool, _)| !tool.commands.is_empty()),
        }
    }

    /// Whether well-known tools of a kind come without being declared.
    fn comes(&self, kind: Kind) -> bool {
        kind == Kind::Exec && self.recognising
    }
}

/// Tools that are recognised from command lines, and then nobody cares.
fn check_commands(lowered: &Lowered, reader: &mut Reader<'_>) {
    let named = named_tools(lowered);
    for (tool, at) in lowered.tools.iter() {
        let Some(at) = at else { continue };
        let in_file = matches!(reader.origin(at), Origin::File(_));
        if in_file && !tool.commands.is_empty() && tool.idempotent && !named.is_used(tool) {
            let message = format!("`{}` is recognised, and nothing asks for it", tool.name);
            reader.complain_hint(at, message, "name it in a policy or a rule");
        }
    }
}

/// The tools that something else in the definition is about.
struct Named<'a> {
    tools: BTreeSet<&'a str>,
    sections: BTreeSet<u16>,
}

impl Named<'_> {
    fn is_used(&self, tool: &Tool) -> bool {
        let by_itself =
            tool.roles.is_some() || tool.transparent || tool.read_only || tool.poll.is_some();
        by_itself
            || self.tools.contains(tool.name.as_str())
            || tool.aliases.iter().any(|alias| self.tools.contains(alias.as_str()))
            || tool.sections.iter().any(|section| self.sections.contains(section))
    }
}

fn named_tools(lowered: &Lowered) -> Named<'_> {
    let mut named = Named { tools: BTreeSet::new(), sections: BTreeSet::new() };
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

/// What a rule looks at, apart from its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reach<'a> {
    Any,
    Kind(Kind),
    Tool(&'a str),
}

/// The strongest rule without a condition for each reach and command, apart by
/// whether it holds; an empty command is any.
struct Covers<'a> {
    lowered: &'a Lowered,
    strongest: BTreeMap<(bool, Reach<'a>, &'a str), &'a Rule>,
}

impl<'a> Covers<'a> {
    fn new(rules: &'a [LoweredRule], lowered: &'a Lowered) -> Self {
        let mut strongest: BTreeMap<(bool, Reach<'a>, &'a str), &'a Rule> = BTreeMap::new();
        for LoweredRule { rule, .. } in rules {
            let always = rule.when.as_ref().is_none_or(|when| when.constant() == Some(true));
            if !always {
                continue;
            }
            for command in commands(rule) {
                let known = strongest.entry((holds(rule), reach(rule), command)).or_insert(rule);
                if rule.effect > known.effect {
                    *known = rule;
                }
            }
        }
        Self { lowered, strongest }
    }

    /// A rule that says at least as much wherever this one speaks.
    fn shadow(&self, rule: &Rule) -> Option<&'a str> {
        let found: Option<Vec<&str>> =
            commands(rule).map(|command| self.covering(rule, command)).collect();
        found?.first().copied()
    }

    fn covering(&self, rule: &Rule, command: &str) -> Option<&'a str> {
        self.reaches(rule).into_iter().find_map(|reach| {
            prefixes(command).find_map(|prefix| {
                let holding = self.strongest.get(&(true, reach, prefix));
                let observed = self.strongest.get(&(false, reach, prefix));
                let says_more = |by: &&&Rule| by.name != rule.name && by.effect >= rule.effect;
                let observed = observed.filter(|_| !holds(rule));
                let by = holding.filter(says_more).or_else(|| observed.filter(says_more))?;
                Some(by.name.as_str())
            })
        })
    }

    /// What a rule's reach lies in, itself included.
    fn reaches<'r>(&self, rule: &'r Rule) -> Vec<Reach<'r>> {
        match &rule.scope {
            RuleScope::Any => vec![Reach::Any],
            RuleScope::Kind(kind) => vec![Reach::Kind(*kind), Reach::Any],
            RuleScope::Tool(tool) => {
                let recognised =
                    self.lowered.tools.get(tool).is_some_and(|tool| !tool.commands.is_empty());
                let kind = Reach::Kind(self.lowered.tools.kind(tool));
                let kind = Some(kind).filter(|_| !recognised);
                [Some(Reach::Tool(tool)), kind, Some(Reach::Any)].into_iter().flatten().collect()
            }
        }
    }
}

fn holds(rule: &Rule) -> bool {
    rule.mode == Mode::Enforce
}

fn reach(rule: &Rule) -> Reach<'_> {
    match &rule.scope {
        RuleScope::Any => Reach::Any,
        RuleScope::Kind(kind) => Reach::Kind(*kind),
        RuleScope::Tool(tool) => Reach::Tool(tool),
    }
}

/// The commands of a rule; an empty one where it looks for none.
fn commands(rule: &Rule) -> impl Iterator<Item = &str> {
    let any = rule.commands.is_empty().then_some("");
    rule.commands.iter().map(String::as_str).chain(any)
}

/// `git push origin`, `git push`, `git` and any command.
fn prefixes(command: &str) -> impl Iterator<Item = &str> {
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
