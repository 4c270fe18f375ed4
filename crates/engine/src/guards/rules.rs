//! Rules: conditions over a call that say deny, ask, warn or observe.
//!
//! A rule looks at every simple command of a command line, however it is
//! wrapped, or at the call itself. One whose condition can't be answered denies:
//! a broken gate stays shut.

mod scope;
mod set;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Answers, Guard, Look, Objection, excerpt};
use crate::definition::Mode;
use crate::expr::{Expr, Trouble, Variable};
use crate::facts::Queries;
use crate::proposal::{Proposal, Run};
use crate::tool::Kind;
use crate::verdict::{Class, Decision, GuardName, ViolationSubtype, ViolationType};

use scope::Sight;
pub use set::Rules;
use set::Wants;

/// How many steps the condition of one rule may take.
const STEPS_MAX: u32 = 250_000;

/// How many steps all rules together may take for one event.
const STEPS_IN_ALL_MAX: u32 = 2_000_000;

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
    /// Whether it holds, whatever the mode of the definition is.
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
            Found::Broken(_) if rests_on_wrong(look, rule) => unanswered(look, rule, answers),
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
    if rules.is_empty() {
        return;
    }
    let mut steps = STEPS_IN_ALL_MAX;
    for number in rules.candidates(proposal) {
        let wants = rules.wants(number);
        let Some(rule) = rules.get(number) else {
            report(&set::unreadable(number), Found::Broken("it can't be read".to_string()));
            continue;
        };
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
    let commands = proposal.commands();
    if commands.is_empty() || (rule.commands.is_empty() && !looks_at_commands(rule)) {
        let applies = rule.commands.is_empty() && in_scope(proposal, rule, None);
        return applies.then(|| condition(look, proposal, rule, None, in_all)).flatten();
    }
    for (number, command) in (0..).zip(commands) {
        let named =
            rule.commands.is_empty() || rule.commands.iter().any(|pattern| command.is(pattern));
        if named
            && wants.are_met(Wants::had_by(proposal, Some(number)))
            && in_scope(proposal, rule, Some(number))
            && let Some(found) = condition(look, proposal, rule, Some(number), in_all)
        {
            return Some(found);
        }
    }
    None
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
        guard: GuardName::Rules,
        kind: ViolationType::RuleViolation,
        subtype: ViolationSubtype::parse(&rule.name),
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
    let message = format!(
        "the guard is broken, not the call: the condition of rule `{}` can't be answered: {reason}",
        rule.name
    );
    let correction = "tell a person; `jackline check` shows the rule, and `jackline off --for 30m --why …` passes for a while";
    shut(rule, message, correction, answers);
}

/// Whether a condition is about arguments, and those are wrong themselves.
fn rests_on_wrong(look: Look<'_>, rule: &Rule) -> bool {
    let is_about = |when: &Expr| when.variables().any(|it| it == Variable::Args);
    let unreadable = look.proposal.is_some_and(|proposal| proposal.args.is_none());
    let wrong = look.facts.decoded.as_ref().is_some_and(|decoded| !decoded.errors.is_empty());
    (unreadable || wrong) && rule.when.as_ref().is_some_and(is_about)
}

/// The rule is in order, and the call is not.
fn unanswered(look: Look<'_>, rule: &Rule, answers: &mut Answers) {
    let tool = look.proposal.map_or("", |proposal| proposal.tool.name);
    let message = format!(
        "the arguments of `{tool}` can't be used, so the condition of rule `{}` can't be answered",
        rule.name
    );
    shut(rule, message, "write the arguments again; the rule is asked then", answers);
}

fn shut(rule: &Rule, message: String, correction: &str, answers: &mut Answers) {
    let mode = if rule.effect >= Effect::Ask { rule.mode } else { Mode::Observe };
    let objection = Objection {
        guard: GuardName::Rules,
        kind: ViolationType::RuleBroken,
        subtype: ViolationSubtype::parse(&rule.name),
        class: Class::Terminal,
        decision: Decision::Deny,
        message,
        location: Some(rule.origin.clone()),
        correction: Some(correction.to_string()),
    };
    answers.object_as(objection, mode);
}
