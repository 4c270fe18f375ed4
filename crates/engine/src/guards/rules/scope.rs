//! What the condition of a rule sees of a call.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

use jackline_shell::Access;

use super::super::{Look, opaque};

use super::set::Wants;
use crate::expr::{Expr, Question, Scope, Text, Trouble, Value, Variable};
use crate::facts::{FileKind, GitFact, Query, Wants as Wanted};
use crate::place::Target;
use crate::proposal::{Proposal, Run, Touch};
use crate::tool::Kind;

/// Branches that people share, by name.
const SHARED: [&str; 10] = [
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

/// Branches that people share, by how their names begin.
const SHARED_BELOW: [&str; 3] = ["release/", "releases/", "hotfix/"];

/// A call, or one simple command of it.
pub(super) struct Sight<'a> {
    look: Look<'a>,
    proposal: &'a Proposal<'a>,
    command: Option<u32>,
    /// Facts that would have been needed.
    wanted: RefCell<Vec<Query>>,
}

impl<'a> Sight<'a> {
    pub(super) fn new(look: Look<'a>, proposal: &'a Proposal<'a>, command: Option<u32>) -> Self {
        Self { look, proposal, command, wanted: RefCell::new(Vec::new()) }
    }

    /// The facts that would have been needed.
    pub(super) fn wanted(self) -> Vec<Query> {
        self.wanted.into_inner()
    }

    fn want(&self, query: Query) -> Trouble {
        self.wanted.borrow_mut().push(query);
        Trouble::Missing
    }

    fn touches(&self) -> impl Iterator<Item = &'a Touch> {
        let command = self.command;
        let mine = move |touch: &&Touch| command.is_none() || touch.command == command;
        self.proposal.touches.iter().filter(mine)
    }

    /// The paths of those touches that `wanted` picks.
    fn paths(&self, wanted: impl Fn(&Touch) -> bool) -> Value<'a> {
        Value::texts(self.touches().filter(|touch| wanted(touch)).map(text))
    }

    fn directory(&self) -> Option<String> {
        let command = self.command.and_then(|at| self.proposal.commands().get(at as usize));
        match command {
            Some(command) => self.look.place.directory(&command.dir, &self.proposal.cwd),
            None => Some(self.proposal.cwd.clone()),
        }
    }

    fn git(&self) -> Result<&'a GitFact, Trouble> {
        let dir = self.directory().unwrap_or_else(|| ".".to_string());
        self.look.facts.git.get(&dir).ok_or_else(|| self.want(Query::Git { dir }))
    }

    fn opaque(&self) -> Value<'a> {
        let Run::Line(line) = &self.proposal.run else { return Value::texts([]) };
        let mine = |command: Option<u32>| self.command.is_none() || command == self.command;
        let parts = line.opaque.iter().filter(|part| mine(part.command));
        Value::texts(parts.map(|part| opaque::word(part.reason)))
    }
}

impl<'a> Scope<'a> for Sight<'a> {
    fn value(&self, variable: Variable) -> Result<Value<'a>, Trouble> {
        let (look, proposal) = (self.look, self.proposal);
        let command = self.command.and_then(|at| proposal.commands().get(at as usize));
        let number = |count: u64| Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
        Ok(match variable {
            Variable::Tool => Value::text(proposal.tool.name),
            Variable::Kind => Value::text(kind_name(proposal.tool.kind)),
            Variable::Args => proposal.args.map_or(Value::Null, Value::Json),
            Variable::Path => Value::text(self.touches().next().map_or("", text)),
            Variable::Paths => self.paths(|_| true),
            Variable::Program => Value::text(command.map_or("", |command| command.program())),
            Variable::Argv => {
                let words = command.map(jackline_shell::Command::arguments).unwrap_or_default();
                Value::texts(words.iter().map(|word| &*word.text))
            }
            Variable::Cwd => Value::Text(Text::from(self.directory().unwrap_or_default())),
            Variable::Home => Value::text(look.place.home.as_deref().unwrap_or_default()),
            Variable::Actor => Value::text(look.event.actor.as_str()),
            Variable::SessionSteps => number(look.state.spent.session.steps),
            Variable::SessionCalls => number(look.state.invocations.proposed),
            Variable::Reads => self.paths(|touch| !touch.changes()),
            Variable::Writes => {
                self.paths(|touch| touch.changes() && touch.access != Access::Delete)
            }
            Variable::Deletes => self.paths(|touch| touch.access == Access::Delete),
            Variable::Opaque => self.opaque(),
            Variable::GitDirty => Value::Bool(self.git()?.dirty),
            Variable::GitUntracked => Value::Bool(self.git()?.untracked),
            Variable::GitBranch => Value::text(&self.git()?.branch),
            Variable::GitProtected => Value::Bool(is_shared(self.git()?)),
        })
    }

    fn ask(&self, question: Question, path: &str) -> Result<bool, Trouble> {
        // What the other variables show is in this form already.
        let path = self.look.place.locate(path, ".");
        match question {
            Question::Exists => match self.look.facts.files.get(&path) {
                Some(fact) => Ok(fact.kind != FileKind::Missing),
                None => Err(self.want(Query::File { path, wants: Wanted::default() })),
            },
            Question::Ignored => match self.look.facts.ignored.get(&path) {
                Some(ignored) => Ok(*ignored),
                None => Err(self.want(Query::Ignored { path })),
            },
        }
    }
}

/// Calls of which nothing is known but that they touch no files in one way.
struct Without(Variable);

impl Scope<'_> for Without {
    fn value(&self, variable: Variable) -> Result<Value<'static>, Trouble> {
        if variable == self.0 { Ok(Value::texts([])) } else { Err(Trouble::Missing) }
    }

    fn ask(&self, _: Question, _: &str) -> Result<bool, Trouble> {
        Err(Trouble::Missing)
    }
}

/// What a condition can't be true without.
pub(super) fn wants(when: Option<&Expr>) -> Wants {
    const STEPS_MAX: u32 = 10_000;
    let needs = |variable| {
        when.is_some_and(|when| when.holds(&Without(variable), &mut { STEPS_MAX }) == Ok(false))
    };
    Wants {
        reads: needs(Variable::Reads),
        writes: needs(Variable::Writes),
        deletes: needs(Variable::Deletes),
        ..Wants::default()
    }
}

/// A touched path as conditions see it.
fn text(touch: &Touch) -> &str {
    match &touch.target {
        Target::At(path) | Target::Pattern(path) | Target::Unknown(path) => path,
        Target::Repository(dir) => dir,
    }
}

fn kind_name(kind: Kind) -> &'static str {
    Kind::ALL.iter().find(|(_, known)| *known == kind).map_or("other", |(name, _)| name)
}

/// Whether a branch is one that people share. One that nobody knows may be.
fn is_shared(git: &GitFact) -> bool {
    let branch = git.branch.as_str();
    if branch.is_empty() {
        return git.repository;
    }
    SHARED.contains(&branch) || SHARED_BELOW.iter().any(|above| branch.starts_with(above))
}
