//! Rules: conditions on a call with an effect: deny, ask, warn or observe.
//!
//! A rule is tested against every simple command of a command line, however it is wrapped, or
//! against the call itself. If a condition cannot be evaluated, the call is denied.

mod rule_call_scope;
mod rule_index;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Guard, GuardAnswers, GuardInput, ViolationDraft, command_excerpt};
use crate::definition::Mode;
use crate::expr::{EvaluationError, Expr, Variable};
use crate::facts::{Queries, Query};
use crate::proposal::{Proposal, ProposedRun};
use crate::tool::ToolKind;
use crate::verdict::{Decision, GuardName, ViolationClass, ViolationSubtype, ViolationType};

use rule_call_scope::RuleCallScope;
use rule_index::RuleNeeds;
pub use rule_index::Rules;

/// How many steps the condition of one rule may take.
const RULE_STEPS_MAX: u32 = 250_000;

/// How many steps all rules together may take for one event.
const ALL_RULES_STEPS_MAX: u32 = 2_000_000;

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The name. The name of a pack's rule starts with the pack's name and a slash.
    pub name: String,
    /// The source: a file, `preset coding-agent`, `pack git`.
    pub origin: String,
    /// The calls that the rule applies to.
    pub scope: RuleScope,
    /// The programs with subcommands that it applies to. An empty list means all.
    pub commands: Vec<String>,
    /// The condition.
    pub when: Option<Expr>,
    /// What it does.
    pub effect: RuleEffect,
    /// Whether the rule is enforced, whatever the mode of the definition.
    pub mode: Mode,
    /// The message for the agent.
    pub message: String,
    /// The allowed alternative.
    pub instead: Option<String>,
}

/// The calls that a rule applies to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleScope {
    /// Every call.
    Any,
    /// Calls of a tool, by its declared name.
    Tool(String),
    /// Calls of tools of a kind.
    Kind(ToolKind),
}

/// The effect of a matching rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleEffect {
    /// Records the match.
    Observe,
    /// Warns the agent.
    Warn,
    /// Asks a person.
    Ask,
    /// Denies the call.
    Deny,
}

pub(crate) struct RuleGuard;

impl Guard for RuleGuard {
    fn needs(&self, input: GuardInput<'_>, queries: &mut Queries) {
        evaluate_rules(input, &mut |_, outcome| {
            if let RuleOutcome::Missing(queries_needed) = outcome {
                queries_needed.into_iter().for_each(|query| queries.ask(query));
            }
        });
    }

    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        evaluate_rules(input, &mut |rule, outcome| match outcome {
            RuleOutcome::Matches(part) => add_rule_violation(input, rule, part, answers),
            RuleOutcome::Missing(_) => add_broken_rule(rule, FACTS_MISSING, answers),
            RuleOutcome::Broken(_) if uses_invalid_arguments(input, rule) => {
                add_unevaluated_rule(input, rule, answers);
            }
            RuleOutcome::Broken(reason) => add_broken_rule(rule, &reason, answers),
        });
    }
}

/// Why a rule can't be evaluated that needs facts which the runtime could not read.
const FACTS_MISSING: &str = "the facts that it needs could not be read";

/// The outcomes of the rules that match the call or can't be evaluated for it, by name.
pub(crate) fn rule_outcomes(input: GuardInput<'_>) -> Vec<(String, RuleOutcome)> {
    let mut outcomes = Vec::new();
    evaluate_rules(input, &mut |rule, outcome| outcomes.push((rule.name.clone(), outcome)));
    outcomes
}

impl RuleOutcome {
    /// Returns why the condition can't be evaluated, if it can't.
    pub fn failure(&self) -> Option<&str> {
        match self {
            Self::Matches(_) => None,
            Self::Missing(_) => Some(FACTS_MISSING),
            Self::Broken(reason) => Some(reason),
        }
    }
}

/// The result of one rule for a call.
#[derive(Debug)]
pub enum RuleOutcome {
    /// The rule matches this part of the call.
    Matches(Option<String>),
    /// The rule needs facts that are missing.
    Missing(Vec<Query>),
    /// The condition cannot be evaluated.
    Broken(String),
}

/// Tests every rule that may match the call.
fn evaluate_rules(input: GuardInput<'_>, report: &mut dyn FnMut(&Rule, RuleOutcome)) {
    let (rules, Some(proposal)) = (&input.definition.rules, input.proposal) else { return };
    if rules.is_empty() {
        return;
    }
    let mut steps = ALL_RULES_STEPS_MAX;
    for number in rules.candidate_rules(proposal) {
        let wants = rules.wants(number);
        let Some(rule) = rules.get(number) else {
            report(
                &rule_index::unreadable_rule(number),
                RuleOutcome::Broken("the rule can't be read".to_string()),
            );
            continue;
        };
        if let Some(outcome) = evaluate_rule(input, proposal, rule, wants, &mut steps) {
            report(rule, outcome);
        }
    }
}

/// Tests one rule against a call: against each simple command, or against the whole call.
fn evaluate_rule(
    input: GuardInput<'_>,
    proposal: &Proposal<'_>,
    rule: &Rule,
    wants: RuleNeeds,
    in_all: &mut u32,
) -> Option<RuleOutcome> {
    let commands = proposal.commands();
    if commands.is_empty() || (rule.commands.is_empty() && !depends_on_command(rule)) {
        let applies = rule.commands.is_empty() && in_scope(proposal, rule, None);
        return applies.then(|| evaluate_condition(input, proposal, rule, None, in_all)).flatten();
    }
    for (number, command) in (0..).zip(commands) {
        let is_named = rule.commands.is_empty()
            || rule.commands.iter().any(|pattern| command.matches_pattern(pattern));
        if is_named
            && wants.is_met_by(RuleNeeds::met_by(proposal, Some(number)))
            && in_scope(proposal, rule, Some(number))
            && let Some(outcome) = evaluate_condition(input, proposal, rule, Some(number), in_all)
        {
            return Some(outcome);
        }
    }
    None
}

/// Returns whether the result of a rule depends on a single command.
fn depends_on_command(rule: &Rule) -> bool {
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

/// Returns whether a rule applies to a call, or to one of its simple commands.
fn in_scope(proposal: &Proposal<'_>, rule: &Rule, command: Option<u32>) -> bool {
    match &rule.scope {
        RuleScope::Any => true,
        RuleScope::Kind(kind) => proposal.tool.kind == *kind,
        RuleScope::Tool(name) => {
            proposal.tool.name == name
                || proposal.recognised.iter().any(|recognised| {
                    recognised.tool.name == *name
                        && command.is_none_or(|at| at == recognised.command)
                })
        }
    }
}

fn evaluate_condition(
    input: GuardInput<'_>,
    proposal: &Proposal<'_>,
    rule: &Rule,
    command: Option<u32>,
    in_all: &mut u32,
) -> Option<RuleOutcome> {
    let part = || match &proposal.run {
        ProposedRun::Line(line) => match command.and_then(|at| line.commands.get(at as usize)) {
            Some(command) => command_excerpt(line, command),
            None => Some(super::shorten_for_message(line.text)),
        },
        ProposedRun::Nothing | ProposedRun::Unseen => {
            let path = proposal.touches.first().and_then(|touch| touch.target.path());
            path.map(|path| proposal.shown_path(path).to_string())
        }
    };
    let Some(when) = &rule.when else { return Some(RuleOutcome::Matches(part())) };
    let allowance = RULE_STEPS_MAX.min(*in_all);
    let mut steps = allowance;
    let sight = RuleCallScope::new(input, proposal, command);
    let result = when.evaluate(&sight, &mut steps);
    *in_all -= allowance - steps.min(allowance);
    match result {
        Ok(true) => Some(RuleOutcome::Matches(part())),
        Ok(false) => None,
        Err(EvaluationError::MissingFact) => Some(RuleOutcome::Missing(sight.missing_facts())),
        Err(EvaluationError::Failed(reason)) => Some(RuleOutcome::Broken(reason)),
    }
}

fn add_rule_violation(
    input: GuardInput<'_>,
    rule: &Rule,
    part: Option<String>,
    answers: &mut GuardAnswers,
) {
    let (decision, mode) = match rule.effect {
        RuleEffect::Observe => (Decision::Deny, Mode::Observe),
        RuleEffect::Warn => (Decision::Allow, rule.mode),
        RuleEffect::Ask if input.is_permitted() => return,
        RuleEffect::Ask => (Decision::Ask, rule.mode),
        RuleEffect::Deny => (Decision::Deny, rule.mode),
    };
    let location = part.as_ref().map_or_else(String::new, |part| format!(", at `{part}`"));
    let violation = ViolationDraft {
        guard: GuardName::Rules,
        kind: ViolationType::RuleViolation,
        subtype: ViolationSubtype::parse(&rule.name),
        class: ViolationClass::Recoverable,
        decision,
        message: format!("{} (rule `{}`{location})", rule.message, rule.name),
        location: part.or_else(|| input.proposal.map(|proposal| proposal.tool.name.to_string())),
        correction: rule.instead.as_ref().map(|instead| format!("instead: {instead}")),
    };
    answers.add_violation_in_mode(violation, mode);
}

/// Denies the call, because a guard that cannot decide must not allow. A rule that only observes is
/// skipped.
fn add_broken_rule(rule: &Rule, reason: &str, answers: &mut GuardAnswers) {
    let message = format!(
        "the guard is broken, not the call: the condition of rule `{}` can't be evaluated: \
         {reason}",
        rule.name
    );
    let correction = "tell the person: `jackline check` shows the rule, and `jackline off --for \
                      30m --why …` turns the guard off for a while";
    add_rule_denial(rule, message, correction, answers);
}

/// Returns whether a condition uses arguments that are invalid.
fn uses_invalid_arguments(input: GuardInput<'_>, rule: &Rule) -> bool {
    let is_about = |when: &Expr| when.variables().any(|variable| variable == Variable::Args);
    let is_unreadable = input.proposal.is_some_and(|proposal| proposal.args.is_none());
    let is_invalid = input.facts.decoded.as_ref().is_some_and(|decoded| !decoded.errors.is_empty());
    (is_unreadable || is_invalid) && rule.when.as_ref().is_some_and(is_about)
}

/// Denies a call with invalid arguments; the rule itself is valid.
fn add_unevaluated_rule(input: GuardInput<'_>, rule: &Rule, answers: &mut GuardAnswers) {
    let tool = input.proposal.map_or("", |proposal| proposal.tool.name);
    let message = format!(
        "the arguments of `{tool}` are invalid, so the condition of rule `{}` can't be evaluated",
        rule.name
    );
    add_rule_denial(
        rule,
        message,
        "write the arguments again; the rule is then evaluated",
        answers,
    );
}

fn add_rule_denial(rule: &Rule, message: String, correction: &str, answers: &mut GuardAnswers) {
    let mode = if rule.effect >= RuleEffect::Ask { rule.mode } else { Mode::Observe };
    let violation = ViolationDraft {
        guard: GuardName::Rules,
        kind: ViolationType::RuleBroken,
        subtype: ViolationSubtype::parse(&rule.name),
        class: ViolationClass::Terminal,
        decision: Decision::Deny,
        message,
        location: Some(rule.origin.clone()),
        correction: Some(correction.to_string()),
    };
    answers.add_violation_in_mode(violation, mode);
}
