//! Budgets: they guarantee that every session ends.
//!
//! [`LimitUsage::is_reached`] is the only test for a used-up limit: `used >= limit`, in every
//! dimension. The gate, the completion bypass, the end of the session and the status output all use
//! it.

mod cost;
pub(crate) mod iterations;
mod tool_calls;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize, Serializer};

use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft};
use crate::definition::{Definition, Mode};
use crate::event::EventKind;
use crate::models::format_usd;
use crate::state::{SessionState, short_hash};
use crate::time::Timestamp;
use crate::verdict::{
    BypassReason, Decision, Feedback, FeedbackObservation, GuardName, SessionStop, Severity,
    StopCode, StopDetail, Verdict, ViolationClass, ViolationType,
};
use crate::words::{words, words_with_limits};

/// The provider name of feedback about soft limits.
const PROVIDER: &str = "Budget";

words_with_limits! {
    words:
    /// What a limit counts.
    #[derive(PartialOrd, Ord)]
    LimitDimension {} {}
}

impl LimitDimension {
    /// Returns the word as a text shows it: `wall seconds`.
    pub fn in_words(self) -> String {
        self.as_str().replace('_', " ")
    }
}

/// The key of a limit below `limits`; serialised as `steps` or `tool_calls.NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitKey {
    /// What the limit counts.
    pub dimension: LimitDimension,
    /// The tool, if the limit counts calls of one tool.
    pub tool: Option<String>,
}

impl fmt::Display for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tool {
            Some(tool) => write!(f, "{}.{tool}", self.dimension),
            None => self.dimension.fmt(f),
        }
    }
}

impl Serialize for LimitKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The limits of a definition, by dimension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionLimits {
    /// Proposed calls, blocked stops, compactions, repairs, overrides, attempts, and questions to
    /// an advisor.
    pub steps: Option<BudgetLimit>,
    /// Wall time in seconds.
    pub wall_seconds: Option<BudgetLimit>,
    /// Cost in millionths of a dollar.
    pub cost_usd: Option<BudgetLimit>,
    /// Tokens read.
    pub input_tokens: Option<BudgetLimit>,
    /// Tokens written.
    pub output_tokens: Option<BudgetLimit>,
    /// Tokens read and written.
    pub total_tokens: Option<BudgetLimit>,
    /// Iterations of an autonomous run. A person can extend this limit.
    pub iterations: Option<BudgetLimit>,
    /// How many iterations each acknowledgement adds.
    pub iterations_extension: u64,
    /// Calls per tool, by its name or alias.
    pub tool_calls: Vec<(String, BudgetLimit)>,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            steps: None,
            wall_seconds: None,
            cost_usd: None,
            input_tokens: None,
            output_tokens: None,
            total_tokens: None,
            iterations: None,
            iterations_extension: 25,
            tool_calls: Vec::new(),
        }
    }
}

/// One limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetLimit {
    /// The allowed amount.
    pub max: u64,
    /// Whether reaching the limit only warns.
    pub soft: bool,
    /// The period over which it is counted.
    pub per: LimitPeriod,
}

/// The period over which a limit is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitPeriod {
    /// The whole session.
    Session,
    /// From one message of a person to the next.
    Turn,
}

impl LimitPeriod {
    /// The word used in definitions and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Turn => "turn",
        }
    }
}

/// The used budget, except for tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpentBudget {
    pub(crate) session: BudgetCounter,
    pub(crate) turn: BudgetCounter,
    /// Soft limits that the agent was told about: the hash of the key, and the turn.
    told: Vec<(u64, u64)>,
    /// Iterations that people have allowed beyond the limit.
    extended: u64,
    /// Whether a supervisor runs the session.
    pub(crate) supervised: bool,
}

/// The counters of one period.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct BudgetCounter {
    pub(crate) steps: u64,
    /// The session time at which the period started.
    pub(crate) since_ms: u64,
    /// The last iteration before the period started.
    since_iteration: u64,
    /// Calls of tools that have or had a limit, by the hash of the tool's name.
    tool_calls: Vec<(u64, u64)>,
}

/// A limit and how much of it is used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LimitUsage<'a> {
    pub(crate) dimension: LimitDimension,
    /// The tool, if the limit counts calls of one tool.
    pub(crate) tool: Option<&'a str>,
    pub(crate) limit: BudgetLimit,
    pub(crate) used: u64,
    /// Models without a price, whose cost is not included.
    pub(crate) unpriced: &'a [String],
}

impl LimitUsage<'_> {
    pub(crate) fn is_reached(&self) -> bool {
        self.used >= self.limit.max
    }

    /// Returns its key below `limits`.
    pub(crate) fn key(&self) -> LimitKey {
        LimitKey { dimension: self.dimension, tool: self.tool.map(ToString::to_string) }
    }

    fn message(&self) -> String {
        let Self { dimension, tool, limit, used, unpriced } = self;
        let per = limit.per.as_str();
        if *dimension == LimitDimension::CostUsd {
            let (prefix, names) = match unpriced {
                [] => ("", String::new()),
                names => {
                    let names = super::join_names(names.iter().map(String::as_str));
                    ("at least ", format!("; no price is known for {names}"))
                }
            };
            let (used, max) = (format_usd(*used), format_usd(limit.max));
            return format!("{prefix}{used} of {max} USD of this {per} are used{names}");
        }
        let what = match tool {
            Some(tool) => format!("calls of `{tool}`"),
            None => dimension.in_words(),
        };
        format!("{used} of {} {what} of this {per} are used", limit.max)
    }
}

/// Measures all limits of a definition, except for those on single tools.
fn measure_limits<'a>(
    definition: &'a Definition,
    state: &'a SessionState,
    elapsed_ms: u64,
) -> impl Iterator<Item = LimitUsage<'a>> {
    let limits = &definition.limits;
    let counter = |per| match per {
        LimitPeriod::Session => &state.spent.session,
        LimitPeriod::Turn => &state.spent.turn,
    };
    let usage = |per| match per {
        LimitPeriod::Session => &state.usage.session,
        LimitPeriod::Turn => &state.usage.turn,
    };
    let seconds = move |per| elapsed_ms.saturating_sub(counter(per).since_ms) / 1000;
    let row = |dimension, limit: Option<BudgetLimit>, used: &dyn Fn(LimitPeriod) -> u64| {
        let limit = limit?;
        let unpriced: &[String] = if dimension == LimitDimension::CostUsd {
            state.usage.unpriced(usage(limit.per))
        } else {
            &[]
        };
        Some(LimitUsage { dimension, tool: None, limit, used: used(limit.per), unpriced })
    };
    [
        row(LimitDimension::WallSeconds, limits.wall_seconds, &seconds),
        row(LimitDimension::Steps, limits.steps, &|per| counter(per).steps),
        row(LimitDimension::CostUsd, limits.cost_usd, &|per| usage(per).cost_micros),
        row(LimitDimension::InputTokens, limits.input_tokens, &|per| usage(per).input),
        row(LimitDimension::OutputTokens, limits.output_tokens, &|per| usage(per).output),
        row(LimitDimension::TotalTokens, limits.total_tokens, &|per| usage(per).total()),
    ]
    .into_iter()
    .flatten()
}

/// Measures all limits, for people.
pub(crate) fn measure_all_limits<'a>(
    definition: &'a Definition,
    state: &'a SessionState,
    elapsed_ms: u64,
) -> impl Iterator<Item = LimitUsage<'a>> {
    let iterations =
        iterations::measure_cap(definition, state, iterations::finished_iterations(state));
    measure_limits(definition, state, elapsed_ms)
        .chain(iterations)
        .chain(tool_calls::measure_tool_limits(definition, state))
}

/// A limit that is reached.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReachedLimit<'a> {
    measured: LimitUsage<'a>,
    deadline: Option<Timestamp>,
}

impl ReachedLimit<'_> {
    /// Returns the bypass reason of a completion check that this limit skips.
    pub(crate) fn bypass(&self) -> BypassReason {
        StopDetail::from(self.measured.dimension).bypass()
    }

    /// Returns the stop of a session that this limit ends.
    pub(crate) fn stop(&self) -> SessionStop {
        SessionStop::with_code(StopCode::BudgetExceeded).with_detail(self.measured.dimension)
    }

    fn message(&self) -> String {
        match self.deadline {
            Some(deadline) => format!("the deadline {deadline} is reached"),
            None => self.measured.message(),
        }
    }
}

/// Returns all reached limits, hard and soft, with the deadline first.
pub(crate) fn reached_limits(input: GuardInput<'_>) -> Vec<ReachedLimit<'_>> {
    let deadline = [input.state.deadline, input.facts.deadline].into_iter().flatten().min();
    let deadline = deadline.filter(|deadline| input.clock.now() >= *deadline).map(|deadline| {
        let limit = BudgetLimit { max: 0, soft: false, per: LimitPeriod::Session };
        let measured = LimitUsage {
            dimension: LimitDimension::Deadline,
            tool: None,
            limit,
            used: 0,
            unpriced: &[],
        };
        ReachedLimit { measured, deadline: Some(deadline) }
    });
    let reached = measure_limits(input.definition, input.state, input.clock.elapsed_ms())
        .filter(LimitUsage::is_reached)
        .map(|measured| ReachedLimit { measured, deadline: None });
    deadline.into_iter().chain(reached).collect()
}

/// Returns the first reached limit that ends the work: one that is not soft. In mode `observe` only
/// time ends the work, because the supervisor of a run keeps its time limits in every mode.
pub(crate) fn reached_hard_limit(input: GuardInput<'_>) -> Option<ReachedLimit<'_>> {
    let is_observing = input.definition.mode == Mode::Observe;
    let is_time =
        |it: LimitDimension| matches!(it, LimitDimension::Deadline | LimitDimension::WallSeconds);
    let ends = |reached: &ReachedLimit<'_>| {
        let LimitUsage { limit, dimension, .. } = &reached.measured;
        !limit.soft && (!is_observing || is_time(*dimension))
    };
    reached_limits(input).into_iter().find(ends)
}

pub(crate) struct LimitGuard;

impl Guard for LimitGuard {
    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        iterations::decide(input, answers);
        if !input.event.kind.is_work() {
            return;
        }
        cost::warn_unpriced(input, answers);
        cost::warn_unknown(input, answers);
        for limit_reached in reached_limits(input) {
            let limit = limit_reached.measured.limit;
            match (limit.soft, limit.per) {
                (true, _) => warn_soft_limit(input, &limit_reached.measured, answers),
                (false, LimitPeriod::Session) => {
                    answers.stop.get_or_insert_with(|| limit_reached.stop());
                    answers.add_violation(limit_violation(
                        &limit_reached,
                        Decision::Stop,
                        ViolationClass::Terminal,
                        "no more calls run in this session; a person can reopen it with `jackline \
                         reset`",
                    ));
                }
                (false, LimitPeriod::Turn) => answers.add_violation(limit_violation(
                    &limit_reached,
                    Decision::Deny,
                    ViolationClass::Recoverable,
                    "end the turn and report what is left to do; the next message of a person \
                     starts a new turn",
                )),
            }
        }
        tool_calls::decide(input, answers);
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let record = fold.record;
        let steps = count_steps(&record.event.kind, record.verdict);
        for counter in [&mut state.spent.session, &mut state.spent.turn] {
            counter.steps = counter.steps.saturating_add(steps);
        }
        let turn = state.turn.number;
        let warnings =
            record.verdict.feedback.iter().filter(|feedback| feedback.provider == PROVIDER);
        for observed in warnings.flat_map(|feedback| &feedback.observations) {
            let category = short_hash(&observed.category);
            state.spent.told.retain(|(reported, _)| *reported != category);
            state.spent.told.push((category, turn));
        }
        tool_calls::apply(state, fold);
        iterations::apply(state, fold);
        cost::apply(state, fold);
    }
}

/// Counts the steps of an event and its verdict. Apart from events that are steps, these are a
/// blocked stop, an output that must be written again, and each enforced override.
pub(crate) fn count_steps(kind: &EventKind, verdict: &Verdict) -> u64 {
    let is_repeated = match kind {
        EventKind::StopProposed(_) => verdict.is_enforced(Decision::Deny),
        EventKind::PlanProposed(_) | EventKind::OutputProposed(_) => {
            let wrong = verdict.repair.as_ref().is_some_and(|repair| repair.attempt > 0);
            wrong && verdict.enforced == Some(true)
        }
        _ => false,
    };
    let overrides = match kind {
        EventKind::ToolProposed(_) | EventKind::ToolFinished(_) => {
            verdict.constraints.iter().filter(|constraint| constraint.enforced).count() as u64
        }
        _ => 0,
    };
    u64::from(kind.uses_step() || is_repeated).saturating_add(overrides)
}

/// The used budget stays used under a reloaded definition. A changed soft limit is reported again.
pub(crate) fn carry_over(state: &mut SessionState, from: &Definition, to: &Definition) {
    let keys = |definition| -> Vec<(u64, BudgetLimit)> {
        measure_all_limits(definition, state, 0)
            .map(|usage| (short_hash(&usage.key().to_string()), usage.limit))
            .collect()
    };
    let (old, new) = (keys(from), keys(to));
    let is_same = |key: u64| new.iter().any(|limit| limit.0 == key && old.contains(limit));
    state
        .spent
        .told
        .retain(|(reported, _)| cost::is_unpriced_category(*reported) || is_same(*reported));
    tool_calls::carry_over(&mut state.spent, to);
}

impl SpentBudget {
    /// Starts the counters of a new turn.
    pub(crate) fn begin_turn(&mut self, elapsed_ms: u64, iterations: u64) {
        self.turn = BudgetCounter::since(elapsed_ms, iterations);
    }

    /// Restarts all counters.
    pub(crate) fn reset(&mut self, elapsed_ms: u64, iterations: u64) {
        let counter = BudgetCounter::since(elapsed_ms, iterations);
        let supervised = self.supervised;
        *self = Self { session: counter.clone(), turn: counter, supervised, ..Self::default() };
    }

    fn was_reported(&self, category: &str, limit: BudgetLimit, turn: u64) -> bool {
        self.told.iter().any(|(reported, at)| {
            *reported == short_hash(category) && (limit.per == LimitPeriod::Session || *at == turn)
        })
    }
}

impl BudgetCounter {
    fn since(elapsed_ms: u64, iterations: u64) -> Self {
        Self { since_ms: elapsed_ms, since_iteration: iterations, ..Self::default() }
    }
}

/// Warns the agent once per session or turn.
fn warn_soft_limit(input: GuardInput<'_>, reached: &LimitUsage<'_>, answers: &mut GuardAnswers) {
    let (key, limit) = (reached.key().to_string(), reached.limit);
    if input.state.spent.was_reported(&key, limit, input.state.turn.number) {
        return;
    }
    let number = |n: u64| {
        if reached.dimension == LimitDimension::CostUsd { format_usd(n) } else { n.to_string() }
    };
    answers.feedback.push(Feedback {
        provider: PROVIDER.to_string(),
        severity: Severity::Warning,
        summary: format!("Soft limit reached: {}.", reached.message()),
        observations: Vec::from([FeedbackObservation {
            category: key,
            description: format!("{} of {}", number(reached.used), number(limit.max)),
            evidence: None,
        }]),
        suggestions: Vec::from(["Ask a person whether to continue, or finish now.".to_string()]),
        timestamp: input.clock.now(),
        call_index: input.state.feedback_calls(),
        definition: input.definition.name.clone(),
    });
}

fn limit_violation(
    reached: &ReachedLimit<'_>,
    decision: Decision,
    class: ViolationClass,
    correction: &str,
) -> ViolationDraft {
    ViolationDraft {
        guard: GuardName::Limits,
        kind: ViolationType::Budget,
        subtype: reached.measured.dimension.into(),
        class,
        decision,
        message: reached.message(),
        location: Some(match reached.measured.dimension {
            deadline @ LimitDimension::Deadline => deadline.to_string(),
            _ => format!("limits.{}", reached.measured.key()),
        }),
        correction: Some(correction.to_string()),
    }
}
