//! The completion checks `clean` and `docs_updated`: the agent must test changed code, or update its
//! documentation, before it may stop.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::verdict::ViolationSubtype;
use serde_json::{Value, json};

use super::{SessionState, TestsPassing};
use crate::definition::CompletionRequirement;
use crate::facts::{FileDetails, FileKind, Queries, Query};
use crate::guards::GuardInput;

/// A file in the root directory of a project that shows how the project is tested.
struct ProjectFile {
    path: &'static str,
    command: &'static str,
    /// Whether the file must declare tests: a script or a target with the name `test`.
    declares_tests: bool,
}

const fn project_file(path: &'static str, command: &'static str) -> ProjectFile {
    ProjectFile { path, command, declares_tests: false }
}

const fn task_file(path: &'static str, command: &'static str) -> ProjectFile {
    ProjectFile { path, command, declares_tests: true }
}

/// The files that show the test command of a project. The first one that exists counts.
const PROJECT_FILES: [ProjectFile; 8] = [
    project_file("Cargo.toml", "cargo test"),
    task_file("package.json", "npm test"),
    project_file("pyproject.toml", "pytest"),
    project_file("pytest.ini", "pytest"),
    project_file("go.mod", "go test ./..."),
    task_file("GNUmakefile", "make test"),
    task_file("makefile", "make test"),
    task_file("Makefile", "make test"),
];

/// Why changed code does not pass a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UncleanCode {
    reason: UncleanReason,
    /// The test command to run.
    pub(crate) command: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum UncleanReason {
    Untested,
    /// The test command could not be run, for this reason.
    NotRunnable(String),
    Failing,
    Unknown,
    Undocumented,
}

impl UncleanCode {
    /// Returns the text for the agent.
    pub(crate) fn text(&self) -> String {
        let advise = |with: &str, without: &str| match &self.command {
            Some(command) => format!("{with}: `{command}`."),
            None => format!("{without}."),
        };
        match &self.reason {
            UncleanReason::NotRunnable(why) => {
                let command = self.command.as_deref().unwrap_or("the test command");
                format!("The tests could not be run: {why}. The command was `{command}`.")
            }
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
            UncleanReason::Undocumented => "Code was changed, but no documentation was updated. \
                                            Update the documents that describe the changed code \
                                            now."
                .to_string(),
        }
    }

    /// Returns whether the tests could not be run, because a program is missing.
    pub(crate) fn is_unrunnable(&self) -> bool {
        matches!(self.reason, UncleanReason::NotRunnable(_))
    }

    /// Returns the subtype of the violation.
    pub(crate) fn subtype(&self) -> ViolationSubtype {
        match self.reason {
            UncleanReason::NotRunnable(_) => ViolationSubtype::CheckNotRunnable,
            UncleanReason::Untested => ViolationSubtype::UntestedCode,
            UncleanReason::Failing => ViolationSubtype::FailingTests,
            UncleanReason::Unknown => ViolationSubtype::UnknownTests,
            UncleanReason::Undocumented => ViolationSubtype::UndocumentedCode,
        }
    }

    /// Returns what to do about it.
    pub(crate) fn correction(&self) -> Option<String> {
        match (&self.reason, &self.command) {
            (UncleanReason::Undocumented, _) => {
                Some("update the documents of the changed code, then stop".to_string())
            }
            (_, Some(command)) => Some(format!("run `{command}`, then stop")),
            (_, None) => None,
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

/// Returns which of the demanded tests and documents are missing.
pub(crate) fn find_unclean(
    demanded: &CompletionRequirement,
    input: GuardInput<'_>,
) -> Vec<UncleanCode> {
    match demanded {
        CompletionRequirement::Clean => check_tests(input).into_iter().collect(),
        CompletionRequirement::DocsUpdated => check_documents(input).into_iter().collect(),
        CompletionRequirement::All(parts) | CompletionRequirement::Any(parts) => {
            parts.iter().flat_map(|part| find_unclean(part, input)).collect()
        }
        CompletionRequirement::Files(_)
        | CompletionRequirement::Custom { .. }
        | CompletionRequirement::Command { .. } => Vec::new(),
    }
}

/// Returns what the tests are missing, or `None` if the agent may stop.
fn check_tests(input: GuardInput<'_>) -> Option<UncleanCode> {
    unclean_reason(input.state)
        .map(|why| UncleanCode { reason: why, command: suggested_command(input) })
}

/// Returns whether documentation is missing: code was changed, and no document in this session.
fn check_documents(input: GuardInput<'_>) -> Option<UncleanCode> {
    let dirty = &input.state.dirty;
    let is_changed = dirty.code.is_some() || is_changing_code(input.state);
    (is_changed && !dirty.docs && !dirty.is_skipped())
        .then_some(UncleanCode { reason: UncleanReason::Undocumented, command: None })
}

/// Returns whether a call that has not returned yet changes code.
fn is_changing_code(state: &SessionState) -> bool {
    state.in_flight.iter().any(|call| !call.needs_approval() && call.changes_code())
}

fn unclean_reason(state: &SessionState) -> Option<UncleanReason> {
    let dirty = &state.dirty;
    if is_changing_code(state) {
        return Some(UncleanReason::Untested);
    }
    if dirty.is_skipped() {
        return None;
    }
    match dirty.current_test_result() {
        None => dirty.code.map(|_| match &dirty.unrunnable {
            Some(why) => UncleanReason::NotRunnable(why.clone()),
            None => UncleanReason::Untested,
        }),
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
    for file in PROJECT_FILES {
        let fact = input.facts.files.get(file.path);
        let is_open = fact.is_none_or(|fact| {
            fact.kind == FileKind::File && file.declares_tests && fact.declares_tests.is_none()
        });
        if is_open {
            let wants =
                FileDetails { declares_tests: file.declares_tests, ..FileDetails::default() };
            queries.ask(Query::File { path: file.path.to_string(), wants });
        }
    }
}

/// Returns the last test command, or else the first one from the definition.
fn known_test_command(input: GuardInput<'_>) -> Option<String> {
    let declared = || {
        let first = input.definition.dirty_bits.tests.first()?;
        Some(input.definition.runnable_name(first).to_owned())
    };
    input.state.dirty.command.clone().or_else(declared)
}

fn suggested_command(input: GuardInput<'_>) -> Option<String> {
    let fits = |file: &&ProjectFile| {
        input.facts.files.get(file.path).is_some_and(|fact| {
            let is_declared = !file.declares_tests || fact.declares_tests == Some(true);
            fact.kind == FileKind::File && is_declared
        })
    };
    let project = || PROJECT_FILES.iter().find(fits);
    known_test_command(input).or_else(|| project().map(|file| file.command.to_string()))
}
