//! The values that the condition of a rule sees.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

use jackline_shell::Access;

use super::super::{GuardInput, opaque};

use super::rule_index::RuleNeeds;
use crate::expr::{
    ConditionScope, EvaluationError, Expr, ExprText, ExprValue, PathQuestion, Variable,
};
use crate::facts::{FileDetails as Wanted, FileKind, GitFact, Query};
use crate::proposal::{FileTouch, Proposal, ProposedRun};
use crate::session_location::PathTarget;
use crate::tool::ToolKind;

/// Names of branches that people usually share.
const SHARED_BRANCHES: [&str; 10] = [
    "main",
    "master",
    "trunk",
    "develop",
    "development",
    "production",
    "prod",
    "staging",
    "stable",
    "release",
];

/// Prefixes of branches that people usually share.
const SHARED_BRANCH_PREFIXES: [&str; 3] = ["release/", "releases/", "hotfix/"];

/// A call, or one simple command of it.
pub(super) struct RuleCallScope<'a> {
    input: GuardInput<'a>,
    proposal: &'a Proposal<'a>,
    command: Option<u32>,
    /// Facts that the condition needs and that are missing.
    missing_facts: RefCell<Vec<Query>>,
}

impl<'a> RuleCallScope<'a> {
    pub(super) fn new(
        input: GuardInput<'a>,
        proposal: &'a Proposal<'a>,
        command: Option<u32>,
    ) -> Self {
        Self { input, proposal, command, missing_facts: RefCell::new(Vec::new()) }
    }

    /// Returns the missing facts.
    pub(super) fn missing_facts(self) -> Vec<Query> {
        self.missing_facts.into_inner()
    }

    fn request(&self, query: Query) -> EvaluationError {
        self.missing_facts.borrow_mut().push(query);
        EvaluationError::MissingFact
    }

    fn touches(&self) -> impl Iterator<Item = &'a FileTouch> {
        let command = self.command;
        let is_own = move |touch: &&FileTouch| command.is_none() || touch.command == command;
        self.proposal.touches.iter().filter(is_own)
    }

    /// Returns the paths of the touches that `wanted` selects.
    fn paths(&self, is_selected: impl Fn(&FileTouch) -> bool) -> ExprValue<'a> {
        ExprValue::texts(self.touches().filter(|touch| is_selected(touch)).map(touched_path))
    }

    fn directory(&self) -> Option<String> {
        let command = self.command.and_then(|at| self.proposal.commands().get(at as usize));
        match command {
            Some(command) => self.input.place.command_directory(&command.dir, &self.proposal.cwd),
            None => Some(self.proposal.cwd.clone()),
        }
    }

    fn git(&self) -> Result<&'a GitFact, EvaluationError> {
        let dir = self.directory().unwrap_or_else(|| ".".to_string());
        self.input.facts.git.get(&dir).ok_or_else(|| self.request(Query::Git { dir }))
    }

    fn opaque(&self) -> ExprValue<'a> {
        let ProposedRun::Line(line) = &self.proposal.run else { return ExprValue::texts([]) };
        let mine = |command: Option<u32>| self.command.is_none() || command == self.command;
        let parts = line.opaque_parts.iter().filter(|part| mine(part.command));
        ExprValue::texts(parts.map(|part| opaque::reason_word(part.reason)))
    }
}

impl<'a> ConditionScope<'a> for RuleCallScope<'a> {
    fn value(&self, variable: Variable) -> Result<ExprValue<'a>, EvaluationError> {
        let (input, proposal) = (self.input, self.proposal);
        let command = self.command.and_then(|at| proposal.commands().get(at as usize));
        let number = |count: u64| ExprValue::Int(i64::try_from(count).unwrap_or(i64::MAX));
        Ok(match variable {
            Variable::Tool => ExprValue::text(proposal.tool.name),
            Variable::Kind => ExprValue::text(kind_name(proposal.tool.kind)),
            Variable::Args => proposal.args.map_or(ExprValue::Null, ExprValue::Json),
            Variable::Path => ExprValue::text(self.touches().next().map_or("", touched_path)),
            Variable::Paths => self.paths(|_| true),
            Variable::Program => ExprValue::text(command.map_or("", |command| command.program())),
            Variable::Argv => {
                let words =
                    command.map(jackline_shell::ShellCommand::arguments).unwrap_or_default();
                ExprValue::texts(words.iter().map(|word| &*word.text))
            }
            Variable::Cwd => ExprValue::Text(ExprText::from(self.directory().unwrap_or_default())),
            Variable::Home => ExprValue::text(input.place.home.as_deref().unwrap_or_default()),
            Variable::Actor => ExprValue::text(input.event.actor.as_str()),
            Variable::SessionSteps => number(input.state.spent.session.steps),
            Variable::SessionCalls => number(input.state.invocations.proposed),
            Variable::Reads => self.paths(|touch| !touch.changes()),
            Variable::Writes => {
                self.paths(|touch| touch.changes() && touch.access != Access::Delete)
            }
            Variable::Deletes => self.paths(|touch| touch.access == Access::Delete),
            Variable::Opaque => self.opaque(),
            Variable::GitDirty => ExprValue::Bool(self.git()?.dirty),
            Variable::GitUntracked => ExprValue::Bool(self.git()?.untracked),
            Variable::GitBranch => ExprValue::text(&self.git()?.branch),
            Variable::GitProtected => ExprValue::Bool(is_shared(self.git()?)),
        })
    }

    fn answer(&self, question: PathQuestion, path: &str) -> Result<bool, EvaluationError> {
        // Other variables already have paths in this form.
        let path = self.input.place.resolve_path(path, ".");
        match question {
            PathQuestion::Exists => match self.input.facts.files.get(&path) {
                Some(fact) => Ok(fact.kind != FileKind::Missing),
                None => Err(self.request(Query::File { path, wants: Wanted::default() })),
            },
            PathQuestion::Ignored => match self.input.facts.ignored.get(&path) {
                Some(ignored) => Ok(*ignored),
                None => Err(self.request(Query::Ignored { path })),
            },
        }
    }
}

/// A call about which only one fact is known: one list of its paths is empty.
struct EmptyPathScope(Variable);

impl ConditionScope<'_> for EmptyPathScope {
    fn value(&self, variable: Variable) -> Result<ExprValue<'static>, EvaluationError> {
        if variable == self.0 {
            Ok(ExprValue::texts([]))
        } else {
            Err(EvaluationError::MissingFact)
        }
    }

    fn answer(&self, _: PathQuestion, _: &str) -> Result<bool, EvaluationError> {
        Err(EvaluationError::MissingFact)
    }
}

/// Returns the kinds of paths without which a condition is always false.
pub(super) fn needed_paths(when: Option<&Expr>) -> RuleNeeds {
    const STEPS_MAX: u32 = 10_000;
    let needs = |variable| {
        when.is_some_and(|when| {
            when.evaluate(&EmptyPathScope(variable), &mut { STEPS_MAX }) == Ok(false)
        })
    };
    RuleNeeds {
        reads: needs(Variable::Reads),
        writes: needs(Variable::Writes),
        deletes: needs(Variable::Deletes),
        ..RuleNeeds::default()
    }
}

/// Returns a touched path as conditions see it.
fn touched_path(touch: &FileTouch) -> &str {
    match &touch.target {
        PathTarget::At(path) | PathTarget::Pattern(path) | PathTarget::Unknown(path) => path,
        PathTarget::Repository(dir) => dir,
    }
}

fn kind_name(kind: ToolKind) -> &'static str {
    ToolKind::ALL.iter().find(|(_, known)| *known == kind).map_or("other", |(name, _)| name)
}

/// Returns whether a branch is usually shared. A branch with an unknown name counts as shared.
fn is_shared(git: &GitFact) -> bool {
    let branch = git.branch.as_str();
    if branch.is_empty() {
        return git.repository;
    }
    SHARED_BRANCHES.contains(&branch)
        || SHARED_BRANCH_PREFIXES.iter().any(|above| branch.starts_with(above))
}
