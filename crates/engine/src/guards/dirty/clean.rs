//! The completion check `clean`: the agent must test changed code before it may stop.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

use crate::verdict::ViolationSubtype;
use serde_json::{Value, json};

use super::{SessionState, TestsPassing};
use crate::facts::{FileDetails, FileKind, Queries, Query};
use crate::guards::GuardInput;

/// The test command of a project, by a file in its root directory.
const PROJECT_TEST_COMMANDS: [(&str, &str); 6] = [
    ("Cargo.toml", "cargo test"),
    ("package.json", "npm test"),
    ("pyproject.toml", "pytest"),
    ("pytest.ini", "pytest"),
    ("go.mod", "go test ./..."),
    ("Makefile", "make test"),
];

/// Why the tests of changed code do not pass the check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UncleanCode {
    reason: UncleanReason,
    /// The test command to run.
    pub(crate) command: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UncleanReason {
    Untested,
    Failing,
    Unknown,
}

impl UncleanCode {
    /// Returns the text for the agent.
    pub(crate) fn text(&self) -> String {
        let advise = |with: &str, without: &str| match &self.command {
            Some(command) => format!("{with}: `{command}`."),
            None => format!("{without}."),
        };
        match self.reason {
            UncleanReason::Untested => format!(
                "Code was changed, but no tests ran since the last change. {}",
                advise("Run them now with", "Run the tests of this project now")
            ),
            UncleanReason::Failing => format!(
                "The tests fail. {}",
                advise("Fix them, then run them again with", "Fix them, then run them again")
            ),
            UncleanReason::Unknown => format!(
                "Jackline cannot tell whether the tests passed. {}",
                advise(
                    "Run them as the only command, so that their exit status is visible, with",
                    "Run them as the only command, so that their exit status is visible"
                )
            ),
        }
    }

    /// Returns the subtype of the violation.
    pub(crate) fn subtype(&self) -> ViolationSubtype {
        match self.reason {
            UncleanReason::Untested => ViolationSubtype::UntestedCode,
            UncleanReason::Failing => ViolationSubtype::FailingTests,
            UncleanReason::Unknown => ViolationSubtype::UnknownTests,
        }
    }

    /// Returns the details for the safety log.
    pub(crate) fn details(&self, state: &SessionState) -> BTreeMap<String, Value> {
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

/// Returns what the tests are missing, or `None` if the agent may stop.
pub(crate) fn check_tests(input: GuardInput<'_>) -> Option<UncleanCode> {
    unclean_reason(input.state)
        .map(|why| UncleanCode { reason: why, command: suggested_command(input) })
}

fn unclean_reason(state: &SessionState) -> Option<UncleanReason> {
    let dirty = &state.dirty;
    if state.in_flight.iter().any(|call| !call.needs_approval && call.changes_code()) {
        return Some(UncleanReason::Untested);
    }
    if dirty.is_skipped() {
        return None;
    }
    match dirty.current_test_result() {
        None => dirty.code.map(|_| UncleanReason::Untested),
        Some(TestsPassing::Yes) => None,
        Some(TestsPassing::No) => Some(UncleanReason::Failing),
        Some(TestsPassing::Unknown) => Some(UncleanReason::Unknown),
    }
}

/// Asks which project files exist, if the test command is not known yet.
pub(crate) fn ask_project_files(input: GuardInput<'_>, queries: &mut Queries) {
    if unclean_reason(input.state).is_none() || known_test_command(input).is_some() {
        return;
    }
    for (path, _) in PROJECT_TEST_COMMANDS {
        if !input.facts.files.contains_key(path) {
            queries.ask(Query::File { path: path.to_string(), wants: FileDetails::default() });
        }
    }
}

/// Returns the last test command, or else the first one from the definition.
fn known_test_command(input: GuardInput<'_>) -> Option<String> {
    let declared = || input.definition.dirty_bits.tests.first().cloned();
    input.state.dirty.command.clone().or_else(declared)
}

fn suggested_command(input: GuardInput<'_>) -> Option<String> {
    let exists =
        |path: &str| input.facts.files.get(path).is_some_and(|fact| fact.kind == FileKind::File);
    let project = || PROJECT_TEST_COMMANDS.iter().find(|(path, _)| exists(path));
    known_test_command(input).or_else(|| project().map(|(_, command)| (*command).to_string()))
}
