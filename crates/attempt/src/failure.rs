//! What kind of failure an error type is: whose fault, and who can do something about it.

use serde::Serialize;

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// The world's. Writing the program again would not help.
    Extrinsic,
    /// The fit of program and task: the next one may do better.
    Adaptive,
    /// The program's.
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

/// Faults of a run that whoever asked may try again.
const RETRIABLE: [&str; 7] = [
    "timeout",
    "provider",
    "invalid_code",
    "dependency_install_failed",
    "dependency_activation_failed",
    "environment_preparing",
    "worker_crash",
];

/// The generator may not try again after objections.
pub(crate) const GUARDRAIL_EXHAUSTED: &str = "guardrail_retry_exhausted";
/// The generator may not try again after error outcomes.
pub(crate) const OUTCOME_EXHAUSTED: &str = "outcome_repair_retry_exhausted";
/// The generator may not try again after faults of a run.
pub(crate) const EXECUTION_EXHAUSTED: &str = "execution_retry_exhausted";
/// Undoing an attempt failed, and nothing may go on.
pub(crate) const ROLLBACK_FAILED: &str = "rollback_failed";
/// An attempt that can't be undone is not begun.
pub(crate) const SNAPSHOT_FAILED: &str = "snapshot_failed";
/// What can't be written down is not done.
pub(crate) const NOT_JOURNALLED: &str = "not_journalled";
/// Somebody has ended the call.
pub(crate) const CANCELLED: &str = "cancelled";
/// The time of the call is over.
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

/// Whether the world is at fault.
pub fn is_extrinsic(error_type: &str) -> bool {
    FailureClass::of(error_type) == FailureClass::Extrinsic
}

/// Whether a call was tried again until no try was left.
pub(crate) fn is_exhaustion(error_type: &str) -> bool {
    [GUARDRAIL_EXHAUSTED, OUTCOME_EXHAUSTED, EXECUTION_EXHAUSTED].contains(&error_type)
}

/// Whether an error type is one that only the runtime gives, so that an artifact which
/// answers with it hands on something of the inside.
pub(crate) fn is_of_the_inside(error_type: &str) -> bool {
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

/// Whether whoever asked may try a fault of this type again.
pub(crate) fn is_retriable(error_type: &str) -> bool {
    RETRIABLE.contains(&error_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_no_list_is_the_programs_own_fault() {
        assert_eq!(FailureClass::of("timeout"), FailureClass::Extrinsic);
        assert_eq!(FailureClass::of("low_utility"), FailureClass::Adaptive);
        assert_eq!(FailureClass::of("fetch_failed"), FailureClass::Intrinsic);
        assert_eq!(FailureClass::of(GUARDRAIL_EXHAUSTED), FailureClass::Adaptive);
        assert!(is_retriable("invalid_code") && !is_retriable("execution"));
    }
}
