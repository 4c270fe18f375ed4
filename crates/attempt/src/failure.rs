//! Classifies error types: what caused a failure, and whether a new attempt can help.

use serde::Serialize;

/// What caused a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The environment. Writing the program again would not help.
    Extrinsic,
    /// A poor fit of program and task. The next program may do better.
    Adaptive,
    /// The program itself.
    Intrinsic,
}

const EXTRINSIC: [&str; 10] = [
    "timeout",
    "provider",
    "network_error",
    "rate_limit",
    "rate_limited",
    "environment_preparing",
    "worker_crash",
    "dependency_resolution_failed",
    "dependency_install_failed",
    "dependency_activation_failed",
];

const ADAPTIVE: [&str; 11] = [
    "parse_error",
    "parse_failed",
    "low_utility",
    "wrong_tool_boundary",
    "missing_input",
    "invalid_format",
    "schema_mismatch",
    "contract_violation",
    GUARDRAIL_EXHAUSTED,
    OUTCOME_EXHAUSTED,
    EXECUTION_EXHAUSTED,
];

/// Execution failures that the caller may try again.
const RETRIABLE: [&str; 7] = [
    "timeout",
    "provider",
    "invalid_code",
    "dependency_install_failed",
    "dependency_activation_failed",
    "environment_preparing",
    "worker_crash",
];

/// No retry remains after violations.
pub(crate) const GUARDRAIL_EXHAUSTED: &str = "guardrail_retry_exhausted";
/// No retry remains after error outcomes.
pub(crate) const OUTCOME_EXHAUSTED: &str = "outcome_repair_retry_exhausted";
/// No retry remains after execution failures.
pub(crate) const EXECUTION_EXHAUSTED: &str = "execution_retry_exhausted";
/// Undoing an attempt failed. The call ends.
pub(crate) const ROLLBACK_FAILED: &str = "rollback_failed";
/// No snapshot could be taken. An attempt that cannot be undone does not start.
pub(crate) const SNAPSHOT_FAILED: &str = "snapshot_failed";
/// A stage could not be written to the journal. The call ends.
pub(crate) const NOT_JOURNALLED: &str = "not_journalled";
/// A person or the caller cancelled the call.
pub(crate) const CANCELLED: &str = "cancelled";
/// The call exceeded its deadline.
pub(crate) const DEADLINE: &str = "deadline_exceeded";

impl FailureClass {
    /// The class of an error type.
    pub fn of(error_type: &str) -> Self {
        if EXTRINSIC.contains(&error_type) {
            Self::Extrinsic
        } else if ADAPTIVE.contains(&error_type) {
            Self::Adaptive
        } else {
            Self::Intrinsic
        }
    }
}

/// Whether the environment caused the failure.
pub fn is_extrinsic(error_type: &str) -> bool {
    FailureClass::of(error_type) == FailureClass::Extrinsic
}

/// Whether the error type means that a call used all its retries.
pub(crate) fn is_exhaustion(error_type: &str) -> bool {
    [GUARDRAIL_EXHAUSTED, OUTCOME_EXHAUSTED, EXECUTION_EXHAUSTED].contains(&error_type)
}

/// Whether only the runtime produces this error type. An artifact that returns it passes on
/// internal details.
pub(crate) fn is_internal_error_type(error_type: &str) -> bool {
    let ours = [
        GUARDRAIL_EXHAUSTED,
        OUTCOME_EXHAUSTED,
        EXECUTION_EXHAUSTED,
        ROLLBACK_FAILED,
        SNAPSHOT_FAILED,
        NOT_JOURNALLED,
    ];
    ours.contains(&error_type)
}

/// Whether an attempt ended because its state could not be saved or restored.
pub fn is_storage_failure(error_type: &str) -> bool {
    [ROLLBACK_FAILED, SNAPSHOT_FAILED].contains(&error_type)
}

/// Whether the caller may try an execution failure of this type again.
pub(crate) fn is_retriable(error_type: &str) -> bool {
    RETRIABLE.contains(&error_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_page_lists_every_class() {
        let page = include_str!("../../../docs/reference/attempt-log.md");
        for (class, types) in [("extrinsic", &EXTRINSIC[..]), ("adaptive", &ADAPTIVE[..])] {
            let row = page.lines().find(|line| line.starts_with(&format!("| `{class}`"))).unwrap();
            let listed = types.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
            assert!(row.contains(&listed.join(", ")), "{class}: {listed:?}");
        }
    }

    #[test]
    fn an_error_type_on_no_list_is_intrinsic() {
        assert_eq!(FailureClass::of("timeout"), FailureClass::Extrinsic);
        assert_eq!(FailureClass::of("low_utility"), FailureClass::Adaptive);
        assert_eq!(FailureClass::of("fetch_failed"), FailureClass::Intrinsic);
        assert_eq!(FailureClass::of(GUARDRAIL_EXHAUSTED), FailureClass::Adaptive);
        assert!(is_retriable("invalid_code") && !is_retriable("execution"));
    }
}
