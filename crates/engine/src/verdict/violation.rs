//! Violations that guards report, and the vocabulary they use.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::Decision;
use crate::guards::limits::LimitDimension;
use crate::words::{open_words, words_with_limits};

/// A violation that one guard reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Violation {
    /// Its id within the session: `v`, the number of the record, and its number in the record.
    pub id: String,
    /// The guard that reports it.
    pub guard: GuardName,
    /// The kind of violation.
    #[serde(rename = "type")]
    pub kind: ViolationType,
    /// The exact violation.
    pub subtype: ViolationSubtype,
    /// Whether the agent can correct it.
    pub class: ViolationClass,
    /// What is wrong.
    pub message: String,
    /// Where it is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// What to do instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<String>,
    /// The decision that this violation alone would cause.
    pub decision: Decision,
    /// Whether it is enforced or only observed.
    pub enforced: bool,
}

/// Whether the agent can correct a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ViolationClass {
    /// The agent can correct it.
    #[serde(rename = "recoverable_guardrail")]
    Recoverable,
    /// The agent can't correct it.
    #[serde(rename = "terminal_guardrail")]
    Terminal,
}

open_words! {
    /// The guard that reports a violation.
    GuardName {
        /// Checks that events fit the state of the session.
        Protocol = "protocol",
        /// Checks arguments, plans and outputs against their schemas.
        Schema = "schema",
        /// Obeys the control files `STOP` and `PAUSE` of a person.
        Markers = "markers",
        /// Blocks calls during a pause.
        Pause = "pause",
        /// Checks that the agent is approved, and its role.
        Identity = "identity",
        /// Checks how full the context is.
        Context = "context",
        /// Checks that iterations make progress.
        Progress = "progress",
        /// Checks limits and deadlines.
        Limits = "limits",
        /// Checks that tools exist.
        Tools = "tools",
        /// Protects files from changes.
        Protected = "protected",
        /// Checks that files are read before they are overwritten.
        ReadBeforeWrite = "read_before_write",
        /// Checks that a required tool has run first.
        SequentialDependency = "sequential_dependency",
        /// Checks that an effect does not happen twice.
        Effects = "effects",
        /// Runs policies in the user's own code.
        Custom = "custom",
        /// Evaluates the rules of the definition.
        Rules = "rules",
        /// Checks command lines that are opaque: Jackline cannot tell what they run.
        Shell = "shell",
        /// Applies what a person approved or refused.
        Grants = "grants",
        /// Checks questions to an advisor.
        Advisor = "advisor",
        /// Checks changes of the model.
        Models = "models",
        /// Checks that the task is complete.
        Completion = "completion",
        /// Detects repeated calls.
        Loops = "loops",
        /// Answers for a session that has ended.
        Session = "session",
        /// Faults of the runtime. No guard of the engine reports these.
        Runtime = "runtime",
    }

    /// The kinds of violations.
    ViolationType {
        /// A call violates a policy on tools.
        ToolPolicyViolation = "tool_policy_violation",
        /// A call would change a protected file.
        ProtectedPath = "protected_path",
        /// A rule of the definition matches.
        RuleViolation = "rule_violation",
        /// The condition of a rule can't be evaluated.
        RuleBroken = "rule_broken",
        /// A tool does not exist.
        UnknownTool = "unknown_tool",
        /// A schema does not allow what was written.
        SchemaViolation = "schema_violation",
        /// The agent repeats itself.
        Loop = "loop",
        /// The iterations make no progress.
        NoProgress = "no_progress",
        /// A limit is reached.
        Budget = "budget",
        /// The context is full.
        Context = "context",
        /// The agent is not approved, or acts in the wrong role.
        IdentityViolation = "identity_violation",
        /// The task is not done.
        TaskIncomplete = "task_incomplete",
        /// An event does not fit the session.
        ProtocolViolation = "protocol_violation",
        /// A person's control action has no effect.
        Control = "control",
        /// An advisor's answer or a change of the model has no effect.
        NoEffect = "no_effect",
        /// A person refused the call.
        Refused = "refused",
        /// The session is paused.
        Paused = "paused",
        /// A person's control file ends the session.
        Stopped = "stopped",
        /// The session has ended.
        SessionOver = "session_over",
        /// The guard is broken, not the call.
        GuardFault = "guard_fault",
        /// An artifact uses a tool in another way than calling it.
        ToolRegistryViolation = "tool_registry_violation",
        /// An artifact's answer violates a rule on answers.
        OutcomePolicyViolation = "outcome_policy_violation",
        /// An artifact is not a program that may run.
        InvalidCode = "invalid_code",
        /// An artifact is not a valid plan.
        InvalidPlan = "invalid_plan",
        /// Something is missing that the model can't provide.
        EnvironmentViolation = "environment_violation",
        /// Undoing an attempt failed.
        SystemError = "system_error",
    }
}

words_with_limits! {
    open_words:
    /// The exact violation. For a rule it is the name of the rule, and for a fault the kind of the
    /// fault. Both are parsed as [`Other`](Self::Other) unless they are equal to one of these
    /// words.
    ViolationSubtype {
        /// An event comes from another workspace.
        AnotherWorkspace = "another_workspace",
        /// A call with this id is open.
        DuplicateCall = "duplicate_call",
        /// An attempt with this id is open.
        DuplicateAttempt = "duplicate_attempt",
        /// Too many attempts are open.
        TooManyAttempts = "too_many_attempts",
        /// No attempt with this id is open.
        UnknownAttempt = "unknown_attempt",
        /// A denied call has a result, so it ran.
        RanDespiteDenial = "ran_despite_denial",
        /// A result belongs to no open call.
        ResultWithoutCall = "result_without_call",
        /// The session has ended.
        SessionOver = "session_over",
    } {
        /// The output of the model is cut off.
        CutOff = "cut_off",
        /// The arguments do not fit their schema.
        InvalidArguments = "invalid_arguments",
        /// The plan does not fit its schema.
        InvalidPlan = "invalid_plan",
        /// The output does not fit its schema.
        InvalidOutput = "invalid_output",
        /// The same call is repeated.
        Repeat = "repeat",
        /// The same sequence of calls is repeated.
        Cycle = "cycle",
        /// The calls change nothing.
        Stagnation = "stagnation",
        /// The same failure is repeated.
        SameFailure = "same_failure",
        /// Almost all calls fail.
        ErrorStorm = "error_storm",
        /// The same call is repeated with almost the same results.
        ChangingResult = "changing_result",
        /// A long chain of calls is repeated.
        DuplicateChain = "duplicate_chain",
        /// Calls on the same subject have the same result.
        Coarse = "coarse",
        /// The same call returned the same result among other calls.
        SpreadRepeat = "spread_repeat",
        /// A blocked call is repeated, or the session waits for a person.
        Blocked = "blocked",
        /// A permission for one call is in force.
        PermitSignature = "permit_signature",
        /// A refusal of one call is in force.
        ForbidSignature = "forbid_signature",
        /// Only one kind of action may run.
        ForceAction = "force_action",
        /// A tool has few calls left.
        ToolBudget = "tool_budget",
        /// The next search must be a different one.
        WidenRetrieval = "widen_retrieval",
        /// A tool does not exist.
        UnknownTool = "unknown_tool",
        /// A person refused the call.
        RefusedByPerson = "refused_by_person",
        /// The action has no effect.
        NoEffect = "no_effect",
        /// The command line was not reported.
        UnseenCommand = "unseen_command",
        /// A part of the command line is opaque: Jackline cannot tell what it runs.
        OpaqueCommand = "opaque_command",
        /// The path of a write was not reported.
        NoPath = "no_path",
        /// A file can't be inspected.
        UnknownFile = "unknown_file",
        /// A path leads out of the workspace.
        PathEscape = "path_escape",
        /// A file would be overwritten without being read.
        UnreadOverwrite = "unread_overwrite",
        /// A file changed since it was read.
        StaleRead = "stale_read",
        /// Only a part of the file was read.
        PartialRead = "partial_read",
        /// No person approved this agent.
        Mismatch = "mismatch",
        /// The agent's role may not work here.
        Role = "role",
        /// The agent's role may not use this tool.
        Privileged = "privileged",
        /// The build failed.
        BuildFailed = "build_failed",
        /// Tests failed after a change.
        TestsFailed = "tests_failed",
        /// The agent stopped several times and did nothing in between.
        StopEvents = "stop_events",
        /// The completion check failed too often.
        Verification = "verification",
        /// The same error as in the iteration before.
        SameError = "same_error",
        /// The iteration changed nothing.
        NothingChanged = "nothing_changed",
        /// The arguments were not reported.
        UnknownArguments = "unknown_arguments",
        /// The same call had its effect before.
        RepeatedEffect = "repeated_effect",
        /// Too many calls with an effect.
        TooManyEffects = "too_many_effects",
        /// A person's control file pauses or ends the session.
        Marker = "marker",
        /// A file changed during a call.
        ChangedDuringCall = "changed_during_call",
        /// The definition can't be loaded.
        Definition = "definition",
        /// Files are missing.
        MissingFiles = "missing_files",
        /// Files have the wrong contents.
        WrongFiles = "wrong_files",
        /// The completion check is broken.
        CheckerBroken = "checker_broken",
        /// A check can't be run, because a program is missing.
        CheckNotRunnable = "check_not_runnable",
        /// The completion check still runs.
        VerificationRunning = "verification_running",
        /// A person has not trusted the command of the check.
        UntrustedCommand = "untrusted_command",
        /// The completion check failed.
        Checker = "checker",
        /// Changed code was not tested.
        UntestedCode = "untested_code",
        /// The tests of changed code fail.
        FailingTests = "failing_tests",
        /// The result of the tests is unknown.
        UnknownTests = "unknown_tests",
        /// The documentation of changed code was not updated.
        UndocumentedCode = "undocumented_code",
        /// A command could switch the guard off or weaken it.
        OpeningControl = "opening_control",
        /// A protected file would be changed.
        ProtectedWrite = "protected_write",
        /// The event does not concern the main agent.
        NotMain = "not_main",
        /// The session is not stuck.
        NotStuck = "not_stuck",
        /// The definition names no fallback model.
        NoFurtherModel = "no_further_model",
        /// The budget for it is used up.
        Budget = "budget",
        /// The definition has no advisor.
        NoAdvisor = "no_advisor",
        /// The required tool ran before the last change of the workspace.
        StalePrerequisite = "stale_prerequisite",
        /// The required tool did not run.
        MissingPrerequisite = "missing_prerequisite",
        /// The context is full.
        ContextFull = "context_full",
        /// Compactions free almost no tokens.
        CompactionIneffective = "compaction_ineffective",
        /// The control file `STOP` exists.
        StopFile = "stop_file",
        /// The control file `PAUSE` exists.
        PauseFile = "pause_file",
        /// The control files can't be inspected.
        MarkersUnreadable = "markers_unreadable",
        /// A custom policy denies the call.
        CustomPolicy = "custom_policy",
        /// A custom policy is broken.
        CustomPolicyBroken = "custom_policy_broken",
        /// A person paused the session.
        PausedByPerson = "paused_by_person",
        /// A guard paused the session.
        PausedByGuard = "paused_by_guard",
        /// A checkpoint waits for a person.
        Checkpoint = "checkpoint",
        /// An artifact changes an agent or a tool.
        SingletonMethodMutation = "singleton_method_mutation",
        /// An artifact misuses the tools in the context.
        ContextToolsShapeMisuse = "context_tools_shape_misuse",
        /// An artifact invents an answer after a source failed.
        HardcodedExternalFallbackSuccess = "hardcoded_external_fallback_success",
        /// An answer with external information names no sources.
        MissingExternalProvenance = "missing_external_provenance",
        /// An answer shows internal text.
        InternalTextLeak = "internal_text_leak",
        /// A program uses a forbidden construct.
        ForbiddenConstruct = "forbidden_construct",
        /// A program can't be parsed.
        SyntaxError = "syntax_error",
        /// A program is too long.
        ProgramTooLong = "program_too_long",
        /// A plan does not fit its schema.
        PlanInvalid = "plan_invalid",
        /// The guards deny a call of an artifact.
        ToolDenied = "tool_denied",
        /// Credentials are missing.
        MissingCredentials = "missing_credentials",
        /// A dependency is missing.
        DependencyUnavailable = "dependency_unavailable",
        /// The runtime does not support this.
        UnsupportedCapability = "unsupported_capability",
        /// Undoing an attempt failed.
        RollbackFailed = "rollback_failed",
    }
}

impl From<LimitDimension> for ViolationSubtype {
    fn from(dimension: LimitDimension) -> Self {
        Self::parse(dimension.as_str())
    }
}
