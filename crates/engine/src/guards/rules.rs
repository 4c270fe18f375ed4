//! Rules: conditions over a call that say deny, ask, warn or observe.
//!
//! A rule looks at every simple command of a command line, however it is
//! wrapped, or at the call itself. One whose condition can't be answered denies:
//! a broken gate stays shut.

mod scope;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use jackline_shell::{Access, Command};
use serde::{Deserialize, Serialize};

use super::{Answers, Guard, Look, Objection, excerpt};
use crate::definition::Mode;
use crate::expr::{Expr, Trouble};
use crate::facts::Queries;
use crate::proposal::{Proposal, Run};
use crate::tool::Kind;
use crate::verdict::{Class, Decision};

use scope::Sight;

/// How many steps the condition of one rule may take.
const STEPS_MAX: u32 = 20_000;

/// How many steps all rules together may take for one event.
const STEPS_IN_ALL_MAX: u32 = 2_000_000;

/// The rules of a definition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    list: Vec<Rule>,
    /// Numbers of the rules that look for a program, sorted by it.
    by_program: Vec<(String, Vec<u32>)>,
    /// Numbers of the rules that look at every call.
    others: Vec<u32>,
    /// What each rule can't match without.
    wants: Vec<Wants>,
}

/// What a rule can't match without: files that are read, written or removed.
/// Most commands touch none, and most rules on files need not be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Wants {
    reads: bool,
    writes: bool,
    deletes: bool,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Its name; one of a pack begins with the pack's name and a slash.
    pub name: String,
    /// Where it comes from: a file, `preset coding-agent`, `pack git`.
    pub origin: String,
    /// Which calls it looks at.
    pub scope: RuleScope,
    /// The programs with their subcommands it looks for; none is any.
    pub commands: Vec<String>,
    /// What must be true.
    pub when: Option<Expr>,
    /// What it does.
    pub effect: Effect,
    /// Whether it holds.
    pub mode: Mode,
    /// What the agent is told.
    pub message: String,
    /// What passes instead.
    pub instead: Option<String>,
}

/// Which calls a rule looks at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleScope {
    /// Every call.
    Any,
    /// Calls of a tool, by its declared name.
    Tool(String),
    /// Calls of a kind.
    Kind(Kind),
}

/// What a rule does when it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Writes it down.
    Observe,
    /// Tells the agent.
    Warn,
    /// Asks a person.
    Ask,
    /// Refuses.
    Deny,
}

impl Rules {
    /// Puts rules together.
    pub fn new(list: Vec<Rule>) -> Self {
        let mut by_program: Vec<(String, Vec<u32>)> = Vec::new();
        let mut others = Vec::new();
        for (number, rule) in (0..).zip(&list) {
            if rule.commands.is_empty() {
                others.push(number);
            }
            for command in &rule.commands {
                let program = command.split_whitespace().next().unwrap_or_default();
                let program = program.rsplit('/').next().unwrap_or_default();
                match by_program.binary_search_by(|(known, _)| known.as_str().cmp(program)) {
                    Ok(at) => {
                        if let Some((_, numbers)) = by_program.get_mut(at)
                            && numbers.last() != Some(&number)
                        {
                            numbers.push(number);
                        }
                    }
                    Err(at) => by_program.insert(at, (program.into(), Vec::from([number]))),
                }
            }
        }
        let wants = list.iter().map(|rule| scope::wants(rule.when.as_ref())).collect();
        Self { list, by_program, others, wants }
    }

    /// The numbers of the rules that may match one of these programs, in order.
    fn candidates<'a>(&self, programs: impl Iterator<Item = &'a str>) -> Vec<u32> {
        let mut numbers = self.others.clone();
        for program in programs {
            let found = self.by_program.binary_search_by(|(known, _)| known.as_str().cmp(program));
            if let Ok(at) = found
                && let Some((_, looking)) = self.by_program.get(at)
            {
                numbers.extend(looking);
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The rules in their order.
    pub fn iter(&self) -> core::slice::Iter<'_, Rule> {
        self.list.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl<'a> IntoIterator for &'a Rules {
    type Item = &'a Rule;
    type IntoIter = core::slice::Iter<'a, Rule>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

pub(crate) struct RuleGuard;

impl Guard for RuleGuard {
    fn needs(&self, look: Look<'_>, queries: &mut Queries) {
        judge(look, &mut |_, found| {
            if let Found::Missing(wanted) = found {
                wanted.into_iter().for_each(|query| queries.ask(query));
            }
        });
    }

    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        judge(look, &mut |rule, found| match found {
            Found::Matches(part) => object(look, rule, part, answers),
            Found::Missing(_) => {
                broken(rule, "what it asks about could not be looked at", answers);
            }
            Found::Broken(reason) => broken(rule, &reason, answers),
        });
    }
}

/// What came of one rule.
enum Found {
    /// It matches, at this part of the call.
    Matches(Option<String>),
    /// It depends on facts that are not there yet.
    Missing(Vec<crate::facts::Query>),
    /// Its condition can't be answered.
    Broken(String),
}

/// Holds every rule that may match against the call.
fn judge(look: Look<'_>, report: &mut dyn FnMut(&Rule, Found)) {
    let (rules, Some(proposal)) = (&look.definition.rules, look.proposal) else { return };
    if rules.list.is_empty() {
        return;
    }
    let commands = proposal.commands();
    let candidates = rules.candidates(commands.iter().map(Command::program));
    let mut steps = STEPS_IN_ALL_MAX;
    for number in candidates {
        let Some(rule) = rules.list.get(number as usize) else { continue };
        let wants = rules.wants.get(number as usize).copied().unwrap_or_default();
        if let Some(found) = hold(look, proposal, rule, wants, &mut steps) {
            report(rule, found);
        }
    }
}

/// Holds one rule against a call: each simple command, or the call as a whole.
fn hold(
    look: Look<'_>,
    proposal: &Proposal<'_>,
    rule: &Rule,
    wants: Wants,
    in_all: &mut u32,
) -> Option<Found> {
    if !wants.are_met(proposal, None) {
        return None;
    }
    let commands = proposal.commands();
    if commands.is_empty() || (rule.commands.is_empty() && !looks_at_commands(rule)) {
        let applies = rule.commands.is_empty() && in_scope(proposal, rule, None);
        return applies.then(|| condition(look, proposal, rule, None, in_all)).flatten();
    }
    for (number, command) in (0..).zip(commands) {
        let named =
            rule.commands.is_empty() || rule.commands.iter().any(|pattern| command.is(pattern));
        if named
            && wants.are_met(proposal, Some(number))
            && in_scope(proposal, rule, Some(number))
            && let Some(found) = condition(look, proposal, rule, Some(number), in_all)
        {
            return Some(found);
        }
    }
    None
}

impl Wants {
    /// Whether a call, or one simple command of it, touches what a rule needs.
    fn are_met(self, proposal: &Proposal<'_>, command: Option<u32>) -> bool {
        if self == Self::default() {
            return true;
        }
        let (mut reads, mut writes, mut deletes) = (false, false, false);
        for touch in &proposal.touches {
            if command.is_none() || touch.command == command {
                reads |= !touch.changes();
                deletes |= touch.access == Access::Delete;
                writes |= touch.changes() && touch.access != Access::Delete;
            }
        }
        (reads || !self.reads) && (writes || !self.writes) && (deletes || !self.deletes)
    }
}

/// Whether a rule is about single commands, or would say the same of each.
fn looks_at_commands(rule: &Rule) -> bool {
    use crate::expr::Variable::{
        Argv, Cwd, Deletes, GitBranch, GitDirty, GitProtected, GitUntracked, Opaque, Path, Paths,
        Program, Reads, Writes,
    };
    rule.when.as_ref().is_some_and(|when| {
        when.variables().any(|variable| {
            matches!(
                variable,
                Argv | Cwd
                    | Deletes
                    | GitBranch
                    | GitDirty
                    | GitProtected
                    | GitUntracked
                    | Opaque
                    | Path
                    | Paths
                    | Program
                    | Reads
                    | Writes
            )
        })
    })
}

/// Whether a rule looks at a call, or at one of its simple commands.
fn in_scope(proposal: &Proposal<'_>, rule: &Rule, command: Option<u32>) -> bool {
    match &rule.scope {
        RuleScope::Any => true,
        RuleScope::Kind(kind) => proposal.tool.kind == *kind,
        RuleScope::Tool(name) => {
            proposal.tool.name == name
                || proposal.recognised.iter().any(|known| {
                    known.tool.name == *name && command.is_none_or(|at| at == known.command)
                })
        }
    }
}

fn condition(
    look: Look<'_>,
    proposal: &Proposal<'_>,
    rule: &Rule,
    command: Option<u32>,
    in_all: &mut u32,
) -> Option<Found> {
    let part = || match &proposal.run {
        Run::Line(line) => match command.and_then(|at| line.commands.get(at as usize)) {
            Some(command) => excerpt(line, command),
            None => Some(super::shortened(line.text)),
        },
        Run::Nothing | Run::Unseen => {
            proposal.touches.first().and_then(|touch| touch.target.path()).map(ToString::to_string)
        }
    };
    let Some(when) = &rule.when else { return Some(Found::Matches(part())) };
    let given = STEPS_MAX.min(*in_all);
    let mut steps = given;
    let sight = Sight::new(look, proposal, command);
    let answer = when.holds(&sight, &mut steps);
    *in_all -= given - steps.min(given);
    match answer {
        Ok(true) => Some(Found::Matches(part())),
        Ok(false) => None,
        Err(Trouble::Missing) => Some(Found::Missing(sight.wanted())),
        Err(Trouble::Broken(reason)) => Some(Found::Broken(reason)),
    }
}

fn object(look: Look<'_>, rule: &Rule, part: Option<String>, answers: &mut Answers) {
    let (decision, mode) = match rule.effect {
        Effect::Observe => (Decision::Deny, Mode::Observe),
        Effect::Warn => (Decision::Allow, rule.mode),
        Effect::Ask if look.is_permitted() => return,
        Effect::Ask => (Decision::Ask, rule.mode),
        Effect::Deny => (Decision::Deny, rule.mode),
    };
    let at = part.as_ref().map_or_else(String::new, |part| format!(", at `{part}`"));
    let objection = Objection {
        guard: "rules",
        kind: "rule_violation",
        subtype: &rule.name,
        class: Class::Recoverable,
        decision,
        message: format!("{} (rule `{}`{at})", rule.message, rule.name),
        location: part.or_else(|| look.proposal.map(|proposal| proposal.tool.name.to_string())),
        correction: rule.instead.as_ref().map(|instead| format!("instead: {instead}")),
    };
    answers.object_as(objection, mode);
}

/// A gate that can't answer stays shut; a rule that only watches is passed over.
fn broken(rule: &Rule, reason: &str, answers: &mut Answers) {
    let mode = if rule.effect >= Effect::Ask { rule.mode } else { Mode::Observe };
    let objection = Objection {
        guard: "rules",
        kind: "rule_broken",
        subtype: &rule.name,
        class: Class::Terminal,
        decision: Decision::Deny,
        message: format!(
            "the guard is broken, not the call: the condition of rule `{}` can't be answered: {reason}",
            rule.name
        ),
        location: Some(rule.origin.clone()),
        correction: Some("tell a person; `jackline check` shows the rule".to_string()),
    };
    answers.object_as(objection, mode);
}
