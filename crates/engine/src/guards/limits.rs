//! Allowances: the promise that a session ends.
//!
//! There is one predicate, [`Measured::is_reached`], and it is `used >= limit`
//! in every dimension. The gate, the completion bypass, the session's end and
//! what people are shown all ask it.

mod cost;
pub(crate) mod iterations;
mod tool_calls;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize, Serializer};

use super::{Answers, Fold, Guard, Look, Objection};
use crate::definition::Definition;
use crate::event::EventKind;
use crate::models::usd;
use crate::state::{State, short};
use crate::time::Timestamp;
use crate::verdict::{
    Bypass, Class, Decision, Feedback, GuardName, Observed, Severity, Stop, StopCode, StopDetail,
    Verdict, ViolationType,
};
use crate::words::{words, words_with_limits};

/// The name under which soft limits speak.
const PROVIDER: &str = "Budget";

words_with_limits! {
    words:
    /// What a limit is about.
    #[derive(PartialOrd, Ord)]
    Dimension {} {}
}

impl Dimension {
    /// The word as a text shows it: `wall seconds`.
    pub fn in_words(self) -> String {
        self.word().replace('_', " ")
    }
}

/// The key of a limit below `limits`; serialised as `steps` or `tool_calls.NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitKey {
    /// What it is about.
    pub dimension: Dimension,
    /// The tool, where it limits the calls of one.
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
pub struct Limits {
    /// Proposed calls, blocked stops, compactions, repairs, overrides, attempts, and
    /// questions to an advisor.
    pub steps: Option<Limit>,
    /// Seconds.
    pub wall_seconds: Option<Limit>,
    /// Millionths of a dollar.
    pub cost_usd: Option<Limit>,
    /// Tokens read.
    pub input_tokens: Option<Limit>,
    /// Tokens written.
    pub output_tokens: Option<Limit>,
    /// Tokens read and written.
    pub total_tokens: Option<Limit>,
    /// Iterations of an autonomous run; a person can extend it.
    pub iterations: Option<Limit>,
    /// How many more there are each time a person does.
    pub iterations_extension: u64,
    /// Calls of single tools, by name or alias.
    pub tool_calls: Vec<(String, Limit)>,
}

impl Default for Limits {
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
pub struct Limit {
    /// What may be used.
    pub max: u64,
    /// Whether reaching it only warns.
    pub soft: bool,
    /// What it is counted over.
    pub per: Per,
}

/// What a limit is counted over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// The whole session.
    Session,
    /// From a human prompt to the next.
    Turn,
}

impl Per {
    fn word(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Turn => "turn",
        }
    }
}

/// What was used, besides tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spent {
    pub(crate) session: Counter,
    pub(crate) turn: Counter,
    /// Dimensions whose soft limit the agent was told about, in short, and when.
    told: Vec<(u64, u64)>,
    /// Iterations that people have allowed beyond the limit.
    extended: u64,
    /// Whether the session is a run that somebody supervises.
    supervised: bool,
}

/// One counter of steps, time, iterations and calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counter {
    pub(crate) steps: u64,
    /// Session time at which it began to count.
    pub(crate) since_ms: u64,
    /// The iteration after which it began to count.
    since_iteration: u64,
    /// Calls of tools that are limited, or were, by the tool's name in short.
    tool_calls: Vec<(u64, u64)>,
}

/// A limit and what was used of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measured<'a> {
    pub(crate) dimension: Dimension,
    /// The tool, where it is about one.
    pub(crate) tool: Option<&'a str>,
    pub(crate) limit: Limit,
    pub(crate) used: u64,
    /// Models whose cost is not in it.
    pub(crate) unpriced: &'a [String],
}

impl Measured<'_> {
    pub(crate) fn is_reached(&self) -> bool {
        self.used >= self.limit.max
    }

    /// Its name below `limits`.
    pub(crate) fn key(&self) -> LimitKey {
        LimitKey { dimension: self.dimension, tool: self.tool.map(ToString::to_string) }
    }

    fn message(&self) -> String {
        let Self { dimension, tool, limit, used, unpriced } = self;
        let per = limit.per.word();
        if *dimension == Dimension::CostUsd {
            let (least, names) = match unpriced {
                [] => ("", String::new()),
                names => {
                    let names = super::listed(names.iter().map(String::as_str));
                    ("at least ", format!("; no price is known for {names}"))
                }
            };
            let (used, max) = (usd(*used), usd(limit.max));
            return format!("{least}{used} of {max} USD of this {per} are used{names}");
        }
        let what = match tool {
            Some(tool) => format!("calls of `{tool}`"),
            None => dimension.in_words(),
        };
        format!("{used} of {} {what} of this {per} are used", limit.max)
    }
}

/// What every limit of a definition stands at, but those on single tools.
fn measured<'a>(
    definition: &'a Definition,
    state: &'a State,
    elapsed_ms: u64,
) -> impl Iterator<Item = Measured<'a>> {
    let limits = &definition.limits;
    let counter = |per| match per {
        Per::Session => &state.spent.session,
        Per::Turn => &state.spent.turn,
    };
    let usage = |per| match per {
        Per::Session => &state.usage.session,
        Per::Turn => &state.usage.turn,
    };
    let seconds = move |per| elapsed_ms.saturating_sub(counter(per).since_ms) / 1000;
    let row = |dimension, limit: Option<Limit>, used: &dyn Fn(Per) -> u64| {
        let limit = limit?;
        let unpriced: &[String] = if dimension == Dimension::CostUsd {
            state.usage.unpriced(usage(limit.per))
        } else {
            &[]
        };
        Some(Measured { dimension, tool: None, limit, used: used(limit.per), unpriced })
    };
    [
        row(Dimension::WallSeconds, limits.wall_seconds, &seconds),
        row(Dimension::Steps, limits.steps, &|per| counter(per).steps),
        row(Dimension::CostUsd, limits.cost_usd, &|per| usage(per).cost_micros),
        row(Dimension::InputTokens, limits.input_tokens, &|per| usage(per).input),
        row(Dimension::OutputTokens, limits.output_tokens, &|per| usage(per).output),
        row(Dimension::TotalTokens, limits.total_tokens, &|per| usage(per).total()),
    ]
    .into_iter()
    .flatten()
}

/// Every limit there is and what was used of it, for people.
pub(crate) fn budgets<'a>(
    definition: &'a Definition,
    state: &'a State,
    elapsed_ms: u64,
) -> impl Iterator<Item = Measured<'a>> {
    let iterations = iterations::measured(definition, state, iterations::ended(state));
    measured(definition, state, elapsed_ms)
        .chain(iterations)
        .chain(tool_calls::measured(definition, state))
}

/// A limit that is reached.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Exhausted<'a> {
    measured: Measured<'a>,
    deadline: Option<Timestamp>,
}

impl Exhausted<'_> {
    /// What a completion check skipped because of it is bypassed by.
    pub(crate) fn bypass(&self) -> Bypass {
        StopDetail::from(self.measured.dimension).bypass()
    }

    /// What a session stopped because of it ends with.
    pub(crate) fn stop(&self) -> Stop {
        Stop::of(StopCode::BudgetExceeded).because(self.measured.dimension)
    }

    fn message(&self) -> String {
        match self.deadline {
            Some(deadline) => format!("the deadline {deadline} is reached"),
            None => self.measured.message(),
        }
    }
}

/// Every limit that is reached and that the session can't go on beyond, or is
/// warned of; deadline first.
pub(crate) fn exhausted(look: Look<'_>) -> Vec<Exhausted<'_>> {
    let deadline = [look.state.deadline, look.facts.deadline].into_iter().flatten().min();
    let deadline = deadline.filter(|deadline| look.clock.now() >= *deadline).map(|deadline| {
        let limit = Limit { max: 0, soft: false, per: Per::Session };
        let measured =
            Measured { dimension: Dimension::Deadline, tool: None, limit, used: 0, unpriced: &[] };
        Exhausted { measured, deadline: Some(deadline) }
    });
    let reached = measured(look.definition, look.state, look.clock.elapsed_ms())
        .filter(Measured::is_reached)
        .map(|measured| Exhausted { measured, deadline: None });
    deadline.into_iter().chain(reached).collect()
}

/// The first limit that is reached and not soft.
pub(crate) fn exhausted_hard(look: Look<'_>) -> Option<Exhausted<'_>> {
    exhausted(look).into_iter().find(|reached| !reached.measured.limit.soft)
}

pub(crate) struct LimitGuard;

impl Guard for LimitGuard {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        iterations::decide(look, answers);
        if !look.event.kind.is_work() {
            return;
        }
        cost::warn_unpriced(look, answers);
        cost::warn_unknown(look, answers);
        for reached in exhausted(look) {
            let limit = reached.measured.limit;
            match (limit.soft, limit.per) {
                (true, _) => warn(look, &reached.measured, answers),
                (false, Per::Session) => {
                    answers.stop.get_or_insert_with(|| reached.stop());
                    answers.object(objection(
                        &reached,
                        Decision::Stop,
                        Class::Terminal,
                        "nothing more runs in this session; a person can open it anew with `jackline reset`",
                    ));
                }
                (false, Per::Turn) => answers.object(objection(
                    &reached,
                    Decision::Deny,
                    Class::Recoverable,
                    "end the turn and say what is left; a person's next message opens a new turn",
                )),
            }
        }
        tool_calls::decide(look, answers);
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        let steps = steps(&record.event.kind, record.verdict);
        for counter in [&mut state.spent.session, &mut state.spent.turn] {
            counter.steps = counter.steps.saturating_add(steps);
        }
        let turn = state.turn.number;
        let told = record.verdict.feedback.iter().filter(|said| said.provider == PROVIDER);
        for observed in told.flat_map(|said| &said.observations) {
            let category = short(&observed.category);
            state.spent.told.retain(|(told, _)| *told != category);
            state.spent.told.push((category, turn));
        }
        tool_calls::apply(state, fold);
        iterations::apply(state, fold);
        cost::apply(state, fold);
    }
}

/// How many steps an event has spent with what was decided on it: besides events that
/// are steps themselves a blocked stop, something that has to be written again, and every
/// override that holds.
pub(crate) fn steps(kind: &EventKind, verdict: &Verdict) -> u64 {
    let again = match kind {
        EventKind::StopProposed(_) => verdict.is_enforced(Decision::Deny),
        EventKind::PlanProposed(_) | EventKind::OutputProposed(_) => {
            let wrong = verdict.repair.as_ref().is_some_and(|repair| repair.attempt > 0);
            wrong && verdict.enforced == Some(true)
        }
        _ => false,
    };
    let overrides = match kind {
        EventKind::ToolProposed(_) | EventKind::ToolFinished(_) => {
            verdict.constraints.iter().filter(|it| it.enforced).count() as u64
        }
        _ => 0,
    };
    u64::from(kind.is_step() || again).saturating_add(overrides)
}

/// What was spent stays spent under another definition. A soft limit that is
/// another now is told of once more.
pub(crate) fn carry_over(state: &mut State, from: &Definition, to: &Definition) {
    let keys = |definition| -> Vec<(u64, Limit)> {
        budgets(definition, state, 0).map(|it| (short(&it.key().to_string()), it.limit)).collect()
    };
    let (old, new) = (keys(from), keys(to));
    let is_same = |key: u64| new.iter().any(|limit| limit.0 == key && old.contains(limit));
    state.spent.told.retain(|(told, _)| cost::is_unpriced(*told) || is_same(*told));
    tool_calls::carry_over(&mut state.spent, to);
}

impl Spent {
    /// Starts the counters of a new turn.
    pub(crate) fn begin_turn(&mut self, elapsed_ms: u64, iterations: u64) {
        self.turn = Counter::since(elapsed_ms, iterations);
    }

    /// Starts all counters anew.
    pub(crate) fn reset(&mut self, elapsed_ms: u64, iterations: u64) {
        let counter = Counter::since(elapsed_ms, iterations);
        let supervised = self.supervised;
        *self = Self { session: counter.clone(), turn: counter, supervised, ..Self::default() };
    }

    fn was_told(&self, category: &str, limit: Limit, turn: u64) -> bool {
        self.told.iter().any(|(told, at)| {
            *told == short(category) && (limit.per == Per::Session || *at == turn)
        })
    }
}

impl Counter {
    fn since(elapsed_ms: u64, iterations: u64) -> Self {
        Self { since_ms: elapsed_ms, since_iteration: iterations, ..Self::default() }
    }
}

/// Tells the agent once, per session or per turn.
fn warn(look: Look<'_>, reached: &Measured<'_>, answers: &mut Answers) {
    let (key, limit) = (reached.key().to_string(), reached.limit);
    if look.state.spent.was_told(&key, limit, look.state.turn.number) {
        return;
    }
    let number =
        |n: u64| if reached.dimension == Dimension::CostUsd { usd(n) } else { n.to_string() };
    answers.feedback.push(Feedback {
        provider: PROVIDER.to_string(),
        severity: Severity::Warning,
        summary: format!("Soft limit reached: {}.", reached.message()),
        observations: Vec::from([Observed {
            category: key,
            description: format!("{} of {}", number(reached.used), number(limit.max)),
            evidence: None,
        }]),
        suggestions: Vec::from(["Ask a person whether to go on, or wrap up.".to_string()]),
        timestamp: look.clock.now(),
        call_index: look.state.invocations.proposed,
        definition: look.definition.name.clone(),
    });
}

fn objection(
    reached: &Exhausted<'_>,
    decision: Decision,
    class: Class,
    correction: &str,
) -> Objection {
    Objection {
        guard: GuardName::Limits,
        kind: ViolationType::Budget,
        subtype: reached.measured.dimension.into(),
        class,
        decision,
        message: reached.message(),
        location: Some(match reached.measured.dimension {
            deadline @ Dimension::Deadline => deadline.to_string(),
            _ => format!("limits.{}", reached.measured.key()),
        }),
        correction: Some(correction.to_string()),
    }
}
