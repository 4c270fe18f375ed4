//! The completion check `clean`: changed code has to be tested before the agent
//! may stop.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

use crate::verdict::ViolationSubtype;
use serde_json::{Value, json};

use super::{State, TestsPassing};
use crate::facts::{FileKind, Queries, Query, Wants};
use crate::guards::Look;

/// How a project is tested, by a file at its root.
const PROJECTS: [(&str, &str); 6] = [
    ("Cargo.toml", "cargo test"),
    ("package.json", "npm test"),
    ("pyproject.toml", "pytest"),
    ("pytest.ini", "pytest"),
    ("go.mod", "go test ./..."),
    ("Makefile", "make test"),
];

/// What is not in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unclean {
    why: Why,
    /// What to run.
    pub(crate) command: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    Untested,
    Failing,
    Unknown,
}

impl Unclean {
    /// What the agent is told.
    pub(crate) fn text(&self) -> String {
        let run = |with: &str, without: &str| match &self.command {
            Some(command) => format!("{with}: `{command}`."),
            None => format!("{without}."),
        };
        match self.why {
            Why::Untested => format!(
                "Code was changed, and no tests were run since. {}",
                run("Run them now with", "Run the tests of this project now")
            ),
            Why::Failing => format!(
                "The tests fail. {}",
                run("Mend that, then run them again with", "Mend that, then run them again")
            ),
            Why::Unknown => format!(
                "It can't be told whether the tests passed. {}",
                run(
                    "Run them by themselves, so that their exit status shows, with",
                    "Run them by themselves, so that their exit status shows"
                )
            ),
        }
    }

    /// The exact objection.
    pub(crate) fn subtype(&self) -> ViolationSubtype {
        match self.why {
            Why::Untested => ViolationSubtype::UntestedCode,
            Why::Failing => ViolationSubtype::FailingTests,
            Why::Unknown => ViolationSubtype::UnknownTests,
        }
    }

    /// What goes into the safety log.
    pub(crate) fn details(&self, state: &State) -> BTreeMap<String, Value> {
        let bits = state.dirty.summary();
        [
            ("code_modified", json!(bits.code_modified)),
            ("tests_run", json!(bits.tests_run)),
            ("tests_passing", json!(bits.tests_passing)),
            ("docs_updated", json!(bits.docs_updated)),
            ("epoch", json!(state.epoch)),
            ("command", json!(self.command)),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }
}

/// What is not in order; none where the agent may stop.
pub(crate) fn check(look: Look<'_>) -> Option<Unclean> {
    why(look.state).map(|why| Unclean { why, command: command(look) })
}

fn why(state: &State) -> Option<Why> {
    let dirty = &state.dirty;
    if state.in_flight.iter().any(|call| !call.asked && call.changes_code()) {
        return Some(Why::Untested);
    }
    if dirty.is_skipped() {
        return None;
    }
    match dirty.tested() {
        None => dirty.code.map(|_| Why::Untested),
        Some(TestsPassing::Yes) => None,
        Some(TestsPassing::No) => Some(Why::Failing),
        Some(TestsPassing::Unknown) => Some(Why::Unknown),
    }
}

/// Asks what the project is, where nobody has said how it is tested.
pub(crate) fn ask(look: Look<'_>, queries: &mut Queries) {
    if why(look.state).is_none() || told(look).is_some() {
        return;
    }
    for (path, _) in PROJECTS {
        if !look.facts.files.contains_key(path) {
            queries.ask(Query::File { path: path.to_string(), wants: Wants::default() });
        }
    }
}

/// What to run: what was run before, else what the definition says.
fn told(look: Look<'_>) -> Option<String> {
    let declared = || look.definition.dirty_bits.tests.first().cloned();
    look.state.dirty.command.clone().or_else(declared)
}

fn command(look: Look<'_>) -> Option<String> {
    let is_there =
        |path: &str| look.facts.files.get(path).is_some_and(|fact| fact.kind == FileKind::File);
    let project = || PROJECTS.iter().find(|(path, _)| is_there(path));
    told(look).or_else(|| project().map(|(_, command)| (*command).to_string()))
}
