//! Macros for enums with a fixed vocabulary.
//!
//! Each value has one JSON word. Journals, the wire protocol and `--json` contain the word. Code
//! compares values and never compares words.

use core::fmt;

use serde::de::Visitor;

/// Defines enums with a fixed set of words. Any other word is an error when it is parsed.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// Every value with its JSON word.
            pub const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)*];

            /// The JSON word.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.as_str())
            }
        }
    )*};
}

/// Defines an enum with [`words`] or [`open_words`] that also has a word for each dimension of a
/// limit, between its other words.
macro_rules! words_with_limits {
    ($words:ident: $(#[$doc:meta])* $name:ident { $($before:tt)* } { $($after:tt)* }) => {
        $words! {
            $(#[$doc])*
            $name {
                $($before)*
                /// The deadline that a session is started with.
                Deadline = "deadline",
                /// The number of steps.
                Steps = "steps",
                /// The seconds since the start.
                WallSeconds = "wall_seconds",
                /// The cost, in millionths of a dollar.
                CostUsd = "cost_usd",
                /// Input tokens.
                InputTokens = "input_tokens",
                /// Output tokens.
                OutputTokens = "output_tokens",
                /// Input and output tokens.
                TotalTokens = "total_tokens",
                /// Iterations of an autonomous run.
                Iterations = "iterations",
                /// Calls of one tool.
                ToolCalls = "tool_calls",
                $($after)*
            }
        }
    };
}

/// Defines enums for words that a newer version may extend.
///
/// A word that this version does not support is stored unchanged in `Other`. So a record that
/// contains it stays readable and is written back byte for byte.
macro_rules! open_words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
            /// A word that this version does not support.
            // INVARIANT: only `parse` creates it, for words that no other value has.
            Other(alloc::boxed::Box<str>),
        }

        impl $name {
            /// Every value with a fixed word, with its JSON word.
            pub const ALL: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)*];

            /// The value of a JSON word. A word that this version does not support becomes `Other`.
            pub fn parse(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)*
                    other => Self::Other(other.into()),
                }
            }

            /// The JSON word.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Other(word) => word,
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(crate::words::WordVisitor(Self::parse))
            }
        }
    )*};
}

pub(crate) use {open_words, words, words_with_limits};

/// Deserialises a word without copying it first.
pub(crate) struct WordVisitor<T>(pub(crate) fn(&str) -> T);

impl<T> Visitor<'_> for WordVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, word: &str) -> Result<T, E> {
        Ok(self.0(word))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::string::String;
    use std::vec::Vec;

    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use crate::definition::LimitDimension;
    use crate::event::{ChangeReason, ReportedStage, RunFailure, Stage};
    use crate::summary::{LoopLevel, PauseCause, TestsPassing, TurnStatus};
    use crate::verdict::{
        BypassReason, ConstraintKind, ConstraintScope, GuardName, SafetyAction, SafetyKind,
        StopDetail, ViolationSubtype, ViolationType,
    };
    use crate::{FaultKind, SessionPhase, StopCode};

    /// Checks that every value can be parsed from its word, and lists the words.
    fn round_trip<T>(all: &[(&'static str, T)]) -> String
    where
        T: Debug + PartialEq + Serialize + DeserializeOwned,
    {
        for (word, value) in all {
            assert_eq!(serde_json::to_value(value).unwrap(), *word);
            assert_eq!(&serde_json::from_value::<T>((*word).into()).unwrap(), value);
        }
        all.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" ")
    }

    /// The same for an enum with `Other`.
    fn round_trip_open<T>(all: &[(&'static str, T)]) -> String
    where
        T: Debug + PartialEq + Serialize + DeserializeOwned,
    {
        let unknown: T = serde_json::from_str("\"of a later version\"").unwrap();
        assert!(all.iter().all(|(_, value)| *value != unknown));
        assert_eq!(serde_json::to_string(&unknown).unwrap(), "\"of a later version\"");
        round_trip(all)
    }

    #[test]
    fn the_words_of_a_stop_are_pinned() {
        assert_eq!(
            round_trip(StopCode::ALL),
            "OBJECTIVE_ACHIEVED BUDGET_EXCEEDED SYSTEM_ERROR CAPPED NO_EVIDENCE HUMAN_REQUESTED \
             INTERRUPTED"
        );
        assert_eq!(
            round_trip(LimitDimension::ALL),
            "deadline steps wall_seconds cost_usd input_tokens output_tokens total_tokens \
             iterations tool_calls"
        );
        assert_eq!(
            round_trip_open(StopDetail::ALL),
            "deadline steps wall_seconds cost_usd input_tokens output_tokens total_tokens \
             iterations tool_calls budget context progress completion loop schema compaction \
             rollback identity model worker workspace"
        );
    }

    #[test]
    fn the_words_of_violations_are_pinned() {
        assert_eq!(
            round_trip_open(GuardName::ALL),
            "protocol schema markers pause identity context progress limits tools protected \
             read_before_write sequential_dependency effects custom rules shell grants \
             advisor models completion loops session runtime"
        );
        assert_eq!(
            round_trip_open(ViolationType::ALL),
            "tool_policy_violation protected_path rule_violation rule_broken unknown_tool \
             schema_violation loop no_progress budget context identity_violation \
             task_incomplete protocol_violation control no_effect refused paused stopped \
             session_over guard_fault tool_registry_violation outcome_policy_violation \
             invalid_code invalid_plan environment_violation system_error"
        );
        assert_eq!(
            round_trip_open(ViolationSubtype::ALL),
            "another_workspace duplicate_call duplicate_attempt too_many_attempts \
             unknown_attempt ran_despite_denial result_without_call session_over deadline \
             steps wall_seconds cost_usd input_tokens output_tokens total_tokens iterations \
             tool_calls cut_off invalid_arguments invalid_plan invalid_output repeat cycle \
             stagnation same_failure error_storm changing_result duplicate_chain coarse spread_repeat \
             blocked permit_signature forbid_signature force_action tool_budget \
             widen_retrieval unknown_tool refused_by_person no_effect unseen_command \
             opaque_command no_path unknown_file path_escape unread_overwrite stale_read \
             partial_read mismatch role privileged build_failed tests_failed stop_events \
             verification same_error nothing_changed unknown_arguments repeated_effect \
             too_many_effects marker changed_during_call definition missing_files wrong_files \
             checker_broken check_not_runnable \
             verification_running untrusted_command checker untested_code failing_tests \
             unknown_tests undocumented_code opening_control protected_write not_main not_stuck \
             no_further_model budget no_advisor stale_prerequisite missing_prerequisite \
             context_full compaction_ineffective stop_file pause_file markers_unreadable \
             custom_policy custom_policy_broken paused_by_person paused_by_guard checkpoint \
             singleton_method_mutation context_tools_shape_misuse \
             hardcoded_external_fallback_success missing_external_provenance \
             internal_text_leak forbidden_construct syntax_error program_too_long \
             plan_invalid tool_denied missing_credentials dependency_unavailable \
             unsupported_capability rollback_failed"
        );
    }

    #[test]
    fn the_words_of_the_safety_log_are_pinned() {
        assert_eq!(
            round_trip(SafetyKind::ALL),
            "SOFT_LOOP HARD_LOOP INFINITE_LOOP NO_PROGRESS DIRTY_BIT_VIOLATION \
             COMPACTION_GATE ITERATION_CAP OUT_OF_BAND_ADVISOR MODEL_FALLBACK \
             IDENTITY_MISMATCH CONTROL"
        );
        assert_eq!(
            round_trip_open(SafetyAction::ALL),
            "observed continued_monitoring paused still_paused resumed stopped reopened \
             denied held briefed restarted_session compacted overridden injected_test_prompt injected_instruction \
             no_answer refused waited returned_to_primary switched_model failures_forgotten \
             tests_skipped constraint_ended granted forbidden withdrawn \
             switched_off reloaded"
        );
    }

    #[test]
    fn the_words_of_attempts_models_constraints_and_tests_are_pinned() {
        let stages = "started generated validated executed rolled_back execution_retry \
                      outcome_retry committed";
        assert_eq!(round_trip(Stage::ALL), stages);
        for word in stages.split(' ').chain(["a stage of an adapter"]) {
            assert_eq!(serde_json::to_value(ReportedStage::parse(word)).unwrap(), word);
        }
        assert_eq!(
            round_trip_open(ChangeReason::ALL),
            "overload rate_limit plan_limit network timeout cost sensitive stop_events \
             verification context return blocked"
        );
        assert_eq!(round_trip(ConstraintScope::ALL), "once turn session");
        assert_eq!(round_trip(TestsPassing::ALL), "yes unknown no");
        assert_eq!(round_trip(LoopLevel::ALL), "soft hard infinite");
    }

    #[test]
    fn the_words_of_faults_are_pinned() {
        assert_eq!(
            round_trip_open(FaultKind::ALL),
            "json not_an_object version missing type unknown_field unknown_event id conflict \
             too_long tool opening_control id_reused definition workspace internal store \
             store_full store_read_only store_busy store_removed journal_empty \
             journal_truncated journal_tampered journal_unreadable export_broken \
             newer_version facts hook notify report safety_log protected undo rollback"
        );
    }

    #[test]
    fn every_constraint_and_dimension_is_a_subtype() {
        let constraints = ConstraintKind::ALL.iter().map(|(word, _)| *word);
        let dimensions = LimitDimension::ALL.iter().map(|(word, _)| *word);
        for word in constraints.chain(dimensions) {
            assert!(!matches!(ViolationSubtype::parse(word), ViolationSubtype::Other(_)), "{word}");
        }
    }

    #[test]
    fn a_stop_has_a_word_for_every_dimension_bypass_and_failure() {
        let dimensions = LimitDimension::ALL.iter().map(|(_, it)| StopDetail::from(*it));
        let bypasses = BypassReason::ALL.iter().map(|(_, it)| StopDetail::from(*it));
        let failures = RunFailure::ALL.iter().map(|(_, it)| StopDetail::from(*it));
        for detail in dimensions.chain(bypasses).chain(failures) {
            assert!(!matches!(detail, StopDetail::Other(_)), "{detail}");
        }
    }

    #[test]
    fn the_words_of_a_session_are_pinned() {
        assert_eq!(round_trip(SessionPhase::ALL), "new running paused stopped ended");
        assert_eq!(
            round_trip(PauseCause::ALL),
            "person protected loop no_progress stop_events verification context broken_check checkpoint"
        );
        assert_eq!(
            round_trip(TurnStatus::ALL),
            "complete unchecked incomplete bypassed capped unverified"
        );
    }
}
