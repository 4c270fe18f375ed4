//! Objections of the guards, and the words they use.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use super::Decision;
use crate::guards::limits::Dimension;
use crate::words::{open_words, words_with_limits};

/// One guard's objection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Violation {
    /// Its name within the session: `v`, the record, its number there.
    pub id: String,
    /// The guard that objects.
    pub guard: GuardName,
    /// The kind of objection.
    #[serde(rename = "type")]
    pub kind: ViolationType,
    /// The exact objection.
    pub subtype: ViolationSubtype,
    /// Whether the agent can do something about it.
    pub class: Class,
    /// What is wrong.
    pub message: String,
    /// Where it is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// What passes instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<String>,
    /// What this objection alone would decide.
    pub decision: Decision,
    /// Whether it holds, or is only observed.
    pub enforced: bool,
}

/// Whether an objection can be answered by trying otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Class {
    /// The agent can correct itself.
    #[serde(rename = "recoverable_guardrail")]
    Recoverable,
    /// Nothing the agent does will help.
    #[serde(rename = "terminal_guardrail")]
    Terminal,
}

open_words! {
    /// Which guard objects.
    GuardName {
        /// Whether events fit the session.
        Protocol = "protocol",
        /// Schemas of arguments, plans and outputs.
        Schema = "schema",
        /// `STOP` and `PAUSE` files of a person.
        Markers = "markers",
        /// A pause in force.
        Pause = "pause",
        /// Which agent is approved, and its role.
        Identity = "identity",
        /// How full the context is.
        Context = "context",
        /// Whether iterations bring something.
        Progress = "progress",
        /// Allowances.
        Limits = "limits",
        /// Tools that do not exist.
        Tools = "tools",
        /// Protected files.
        Protected = "protected",
        /// Files that are overwritten unread.
        ReadBeforeWrite = "read_before_write",
        /// Tools that need another tool first.
        SequentialDependency = "sequential_dependency",
        /// Calls that must not have their effect twice.
        Effects = "effects",
        /// Policies in the user's own code.
        Custom = "custom",
        /// Rules of the definition.
        Rules = "rules",
        /// Command lines that can't be read.
        Shell = "shell",
        /// What a person allowed or refused.
        Grants = "grants",
        /// Questions to an advisor.
        Advisor = "advisor",
        /// Changes of the model.
        Models = "models",
        /// The completion check.
        Completion = "completion",
        /// Repeated calls.
        Loops = "loops",
        /// A session that is over.
        Session = "session",
        /// Faults of the runtime, which no guard of the engine reports.
        Runtime = "runtime",
    }

    /// The kind of an objection.
    ViolationType {
        /// A call breaks a policy on tools.
        ToolPolicyViolation = "tool_policy_violation",
        /// A protected file is touched.
        ProtectedPath = "protected_path",
        /// A rule of the definition matches.
        RuleViolation = "rule_violation",
        /// The condition of a rule can't be answered.
        RuleBroken = "rule_broken",
        /// A tool does not exist.
        UnknownTool = "unknown_tool",
        /// A schema does not allow what was written.
        SchemaViolation = "schema_violation",
        /// The agent repeats itself.
        Loop = "loop",
        /// Iterations bring nothing.
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
        /// A person's control would change nothing.
        Control = "control",
        /// An answer or a change of the model would change nothing.
        NoEffect = "no_effect",
        /// A person refused the call.
        Refused = "refused",
        /// The session is paused.
        Paused = "paused",
        /// A person's file ends the session.
        Stopped = "stopped",
        /// The session is over.
        SessionOver = "session_over",
        /// The guard is broken, not the call.
        GuardFault = "guard_fault",
        /// An artifact uses a tool in another way than by calling it.
        ToolRegistryViolation = "tool_registry_violation",
        /// An artifact's answer breaks a rule on answers.
        OutcomePolicyViolation = "outcome_policy_violation",
        /// An artifact is no program that may run.
        InvalidCode = "invalid_code",
        /// An artifact is no plan.
        InvalidPlan = "invalid_plan",
        /// Something is missing that the model can't bring.
        EnvironmentViolation = "environment_violation",
        /// Undoing an attempt failed.
        SystemError = "system_error",
    }
}

words_with_limits! {
    open_words:
    /// The exact objection. That of a rule has the name of the rule, and that of a fault the
    /// kind of the fault; both are read as [`Other`](Self::Other) unless they happen to be one of
    /// these words.
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
        /// A denied call has a result.
        RanDespiteDenial = "ran_despite_denial",
        /// A result belongs to no open call.
        ResultWithoutCall = "result_without_call",
        /// The session is over.
        SessionOver = "session_over",
    } {
        /// What was written ends in the middle.
        CutOff = "cut_off",
        /// The arguments do not fit their schema.
        InvalidArguments = "invalid_arguments",
        /// The plan does not fit its schema.
        InvalidPlan = "invalid_plan",
        /// The output does not fit its schema.
        InvalidOutput = "invalid_output",
        /// The same call again and again.
        Repeat = "repeat",
        /// The same sequence of calls again.
        Cycle = "cycle",
        /// Calls that change nothing.
        Stagnation = "stagnation",
        /// The same failure again.
        SameFailure = "same_failure",
        /// Nothing but failures.
        ErrorStorm = "error_storm",
        /// The same call with results that hardly differ.
        ChangingResult = "changing_result",
        /// A long chain of calls again.
        DuplicateChain = "duplicate_chain",
        /// Calls about the same thing with the same result.
        Coarse = "coarse",
        /// A blocked call again, or a session that waits for a person.
        Blocked = "blocked",
        /// A permission for one call is in force.
        PermitSignature = "permit_signature",
        /// A refusal of one call is in force.
        ForbidSignature = "forbid_signature",
        /// Only one kind of action may run.
        ForceAction = "force_action",
        /// A tool has few calls left.
        ToolBudget = "tool_budget",
        /// The next search has to differ.
        WidenRetrieval = "widen_retrieval",
        /// A tool does not exist.
        UnknownTool = "unknown_tool",
        /// A person refused the call.
        RefusedByPerson = "refused_by_person",
        /// It would change nothing.
        NoEffect = "no_effect",
        /// The command line was not reported.
        UnseenCommand = "unseen_command",
        /// A part of the command line can't be read.
        OpaqueCommand = "opaque_command",
        /// The path of a write was not reported.
        NoPath = "no_path",
        /// A file can't be inspected.
        UnknownFile = "unknown_file",
        /// A path leads out of the workspace.
        PathEscape = "path_escape",
        /// A file would be overwritten unread.
        UnreadOverwrite = "unread_overwrite",
        /// A file changed since it was read.
        StaleRead = "stale_read",
        /// A file was read in part only.
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
        /// A person's file holds the session.
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
        /// The completion check is still at work.
        VerificationRunning = "verification_running",
        /// A person has not trusted the check's command.
        UntrustedCommand = "untrusted_command",
        /// The completion check is not satisfied.
        Checker = "checker",
        /// Changed code was not tested.
        UntestedCode = "untested_code",
        /// Tests of changed code fail.
        FailingTests = "failing_tests",
        /// The result of the tests is unknown.
        UnknownTests = "unknown_tests",
        /// A command that can open the guard.
        OpeningControl = "opening_control",
        /// A protected file would be written.
        ProtectedWrite = "protected_write",
        /// It is not about the main agent.
        NotMain = "not_main",
        /// The session is not stuck.
        NotStuck = "not_stuck",
        /// The definition names no further model.
        NoFurtherModel = "no_further_model",
        /// The allowance for it is used up.
        Budget = "budget",
        /// The definition has no advisor.
        NoAdvisor = "no_advisor",
        /// The required tool ran before the last change.
        StalePrerequisite = "stale_prerequisite",
        /// The required tool did not run.
        MissingPrerequisite = "missing_prerequisite",
        /// The context is full.
        ContextFull = "context_full",
        /// Compactions free next to nothing.
        CompactionIneffective = "compaction_ineffective",
        /// The file `STOP` exists.
        StopFile = "stop_file",
        /// The file `PAUSE` exists.
        PauseFile = "pause_file",
        /// The files `STOP` and `PAUSE` can't be inspected.
        MarkersUnreadable = "markers_unreadable",
        /// A custom policy refuses the call.
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
        /// An artifact makes up an answer where a source failed.
        HardcodedExternalFallbackSuccess = "hardcoded_external_fallback_success",
        /// An answer from outside has no sources.
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
        /// The guards refuse a call of an artifact.
        ToolDenied = "tool_denied",
        /// Credentials are missing.
        MissingCredentials = "missing_credentials",
        /// A dependency is missing.
        DependencyUnavailable = "dependency_unavailable",
        /// The runtime can't do this.
        UnsupportedCapability = "unsupported_capability",
        /// Undoing an attempt failed.
        RollbackFailed = "rollback_failed",
    }
}

impl From<Dimension> for ViolationSubtype {
    fn from(dimension: Dimension) -> Self {
        Self::parse(dimension.word())
    }
}
