//! Answers to single queries, as a source of facts gives them.

use alloc::collections::BTreeMap;
use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::{
    CheckFact, DefinitionFact, Facts, FeedbackFact, FileChangeFact, FileFact, GitChangeFact,
    GitFact, HookState, PinsFact, PolicyFact, Query, ReloadFact, TrackedFile, VerificationFact,
    WatchedFact,
};

/// The answer to one [`Query`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fact", content = "value", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fact {
    /// The source does not know the answer.
    Unknown,
    /// Answers [`Query::File`].
    File(FileFact),
    /// Answers [`Query::Watched`]: the files that changed since they were last checked.
    Watched(BTreeMap<String, WatchedFact>),
    /// Answers [`Query::Changed`]: the files that changed since the agent last read them.
    Changed(BTreeMap<String, FileFact>),
    /// Answers [`Query::Git`].
    Git(GitFact),
    /// Answers [`Query::Ignored`].
    Ignored(bool),
    /// Answers [`Query::GitChange`].
    GitChange(GitChangeFact),
    /// Answers [`Query::Hook`].
    Hook(HookState),
    /// Answers [`Query::FileSearch`]: the first file found. If there are too many files to search,
    /// the pattern.
    FileSearch(Option<String>),
    /// Answers [`Query::FileChanges`].
    FileChanges(BTreeMap<String, FileChangeFact>),
    /// Answers [`Query::Verification`].
    Verification(VerificationFact),
    /// Answers [`Query::Feedback`].
    Feedback(FeedbackFact),
    /// Answers [`Query::PolicyCheck`] and [`Query::PolicyResult`].
    Policy(PolicyFact),
    /// Answers [`Query::Checker`].
    Checker(CheckFact),
    /// Answers [`Query::Definition`].
    Definition(DefinitionFact),
    /// Answers [`Query::Reload`].
    Reload(ReloadFact),
    /// Answers [`Query::Pins`].
    Pins(PinsFact),
    /// Answers [`Query::Protect`]: the files that exist.
    Protect(BTreeMap<String, WatchedFact>),
}

/// A fact that does not answer the query it was given for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the query `{query}` was answered with the fact `{fact}`")]
pub struct WrongFactError {
    /// The name of the query.
    pub query: &'static str,
    /// The name of the fact.
    pub fact: &'static str,
}

impl Query {
    /// The name of the query on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::File { .. } => "file",
            Self::Watched { .. } => "watched",
            Self::Changed { .. } => "changed",
            Self::Git { .. } => "git",
            Self::Ignored { .. } => "ignored",
            Self::GitChange { .. } => "git_change",
            Self::Hook { .. } => "hook",
            Self::FileSearch { .. } => "file_search",
            Self::FileChanges { .. } => "file_changes",
            Self::Verification { .. } => "verification",
            Self::Feedback { .. } => "feedback",
            Self::PolicyCheck { .. } => "policy_check",
            Self::PolicyResult { .. } => "policy_result",
            Self::Checker { .. } => "checker",
            Self::Definition => "definition",
            Self::Reload => "reload",
            Self::Pins { .. } => "pins",
            Self::Protect { .. } => "protect",
        }
    }
}

impl Fact {
    /// The name of the fact on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::File(_) => "file",
            Self::Watched(_) => "watched",
            Self::Changed(_) => "changed",
            Self::Git(_) => "git",
            Self::Ignored(_) => "ignored",
            Self::GitChange(_) => "git_change",
            Self::Hook(_) => "hook",
            Self::FileSearch(_) => "file_search",
            Self::FileChanges(_) => "file_changes",
            Self::Verification(_) => "verification",
            Self::Feedback(_) => "feedback",
            Self::Policy(_) => "policy",
            Self::Checker(_) => "checker",
            Self::Definition(_) => "definition",
            Self::Reload(_) => "reload",
            Self::Pins(_) => "pins",
            Self::Protect(_) => "protect",
        }
    }
}

impl Facts {
    /// Adds the answer to a query. A fact that does not answer the query is refused and changes
    /// nothing.
    pub fn add_answer(&mut self, query: &Query, fact: Fact) -> Result<(), WrongFactError> {
        let wrong = WrongFactError { query: query.name(), fact: fact.name() };
        match (query, fact) {
            (Query::File { path, .. }, Fact::File(fact)) => {
                self.files.insert(path.clone(), fact);
            }
            (Query::Watched { files, .. }, Fact::Watched(found)) if are_among(&found, files) => {
                self.watched = Some(found);
            }
            (Query::Changed { files }, Fact::Changed(found)) if are_among(&found, files) => {
                self.changed = Some(found);
            }
            (Query::Protect { files }, Fact::Protect(found)) if are_among(&found, files) => {
                self.protects = Some(found);
            }
            (Query::Git { dir }, Fact::Git(fact)) => {
                self.git.insert(dir.clone(), fact);
            }
            (Query::Ignored { path }, Fact::Ignored(ignored)) => {
                self.ignored.insert(path.clone(), ignored);
            }
            (Query::GitChange { command, files, .. }, Fact::GitChange(fact))
                if concerns_only(&fact, files) =>
            {
                self.git_changes.insert(*command, fact);
            }
            (Query::Hook { path }, Fact::Hook(state)) => {
                self.hooks.insert(path.clone(), state);
            }
            (Query::FileSearch { search }, Fact::FileSearch(found)) => {
                self.found_files.insert(search.pattern.clone(), found);
            }
            (Query::FileChanges { files }, Fact::FileChanges(found))
                if found.keys().all(|path| files.iter().any(|file| file.path == *path)) =>
            {
                self.file_changes = Some(found);
            }
            (Query::Verification { run, .. }, Fact::Verification(fact)) => {
                self.verifications.insert(*run, fact);
            }
            (Query::Feedback { number, .. }, Fact::Feedback(fact)) => {
                self.feedback.insert(*number, fact);
            }
            (
                Query::PolicyCheck { number, .. } | Query::PolicyResult { number, .. },
                Fact::Policy(fact),
            ) => {
                self.policies.insert(*number, fact);
            }
            (Query::Checker { name }, Fact::Checker(fact)) => {
                self.checkers.insert(name.clone(), fact);
            }
            (Query::Definition, Fact::Definition(fact)) => self.definition = Some(fact),
            (Query::Reload, Fact::Reload(fact)) => self.reload = Some(fact),
            (Query::Pins { .. }, Fact::Pins(fact)) => self.pins = Some(fact),
            _ => return Err(wrong),
        }
        Ok(())
    }

    /// The recorded answer to a query, as a source of facts would give it. If a query for a list
    /// found nothing, the record does not contain it, so the answer is an empty list.
    pub fn recorded_answer(&self, query: &Query) -> Fact {
        let recorded = match query {
            Query::File { path, .. } => self.files.get(path).cloned().map(Fact::File),
            Query::Watched { .. } => Some(Fact::Watched(self.watched.clone().unwrap_or_default())),
            Query::Changed { .. } => Some(Fact::Changed(self.changed.clone().unwrap_or_default())),
            Query::Protect { .. } => Some(Fact::Protect(self.protects.clone().unwrap_or_default())),
            Query::Git { dir } => self.git.get(dir).cloned().map(Fact::Git),
            Query::Ignored { path } => self.ignored.get(path).copied().map(Fact::Ignored),
            Query::GitChange { command, .. } => {
                self.git_changes.get(command).cloned().map(Fact::GitChange)
            }
            Query::Hook { path } => self.hooks.get(path).copied().map(Fact::Hook),
            Query::FileSearch { search } => {
                self.found_files.get(&search.pattern).cloned().map(Fact::FileSearch)
            }
            Query::FileChanges { .. } => {
                Some(Fact::FileChanges(self.file_changes.clone().unwrap_or_default()))
            }
            Query::Verification { run, .. } => {
                self.verifications.get(run).cloned().map(Fact::Verification)
            }
            Query::Feedback { number, .. } => {
                self.feedback.get(number).cloned().map(Fact::Feedback)
            }
            Query::PolicyCheck { number, .. } | Query::PolicyResult { number, .. } => {
                self.policies.get(number).cloned().map(Fact::Policy)
            }
            Query::Checker { name } => self.checkers.get(name).cloned().map(Fact::Checker),
            Query::Definition => self.definition.clone().map(Fact::Definition),
            Query::Reload => self.reload.clone().map(Fact::Reload),
            Query::Pins { .. } => Some(Fact::Pins(self.pins.clone().unwrap_or_default())),
        };
        recorded.unwrap_or(Fact::Unknown)
    }
}

/// Whether all paths of an answer are among the files that were queried.
fn are_among<T>(found: &BTreeMap<String, T>, asked: &[TrackedFile]) -> bool {
    found.keys().all(|path| asked.iter().any(|file| file.path == *path))
}

/// Whether all files of an answer of git are among the files that were queried.
fn concerns_only(fact: &GitChangeFact, asked: &[String]) -> bool {
    match fact {
        GitChangeFact::Unknown => true,
        GitChangeFact::Known { files } => files.keys().all(|path| asked.contains(path)),
    }
}

#[cfg(test)]
mod tests;
