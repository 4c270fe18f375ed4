//! Allowances: the promise that a session ends.
//!
//! There is one predicate, [`exhausted`], and it is `used >= limit` in every
//! dimension. The gate, the completion bypass and the session's end all ask it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Answers, Fold, Guard, Look, Objection};
use crate::event::EventKind;
use crate::state::{State, UsageTotals};
use crate::time::Timestamp;
use crate::verdict::{Bypass, Class, Decision, Feedback, Observed, Severity, Stop, StopCode};

/// The name under which soft limits speak.
const PROVIDER: &str = "Budget";

/// The limits of a definition, by dimension.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Proposed calls, blocked stops and compactions.
    pub steps: Option<Limit>,
    /// Seconds.
    pub wall_seconds: Option<Limit>,
    /// Tokens read.
    pub input_tokens: Option<Limit>,
    /// Tokens written.
    pub output_tokens: Option<Limit>,
    /// Tokens read and written.
    pub total_tokens: Option<Limit>,
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

/// What was used, besides tokens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spent {
    pub(crate) session: Counter,
    pub(crate) turn: Counter,
    /// Dimensions whose soft limit the agent was told about, per counter.
    told: Vec<(String, u64)>,
}

/// One counter of steps and time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counter {
    pub(crate) steps: u64,
    /// Session time at which it began to count.
    pub(crate) since_ms: u64,
}

/// A limit that is reached.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Exhausted {
    pub(crate) dimension: &'static str,
    pub(crate) limit: Limit,
    used: u64,
    deadline: Option<Timestamp>,
}

impl Exhausted {
    /// What a completion check skipped because of it is bypassed by.
    pub(crate) fn bypass(&self) -> Bypass {
        match self.dimension {
            "deadline" | "wall_seconds" => Bypass::Deadline,
            _ => Bypass::Budget,
        }
    }

    /// What a session stopped because of it ends with.
    pub(crate) fn stop(&self) -> Stop {
        Stop::of(StopCode::BudgetExceeded).because(self.dimension)
    }

    fn message(&self) -> String {
        match self.deadline {
            Some(deadline) => format!("the deadline {deadline} is reached"),
            None => {
                let over = match self.limit.per {
                    Per::Session => "session",
                    Per::Turn => "turn",
                };
                format!(
                    "{} of {} {} of this {over} are used",
                    self.used,
                    self.limit.max,
                    self.dimension.replace('_', " ")
                )
            }
        }
    }
}

/// Every limit that is reached, deadline first.
pub(crate) fn exhausted(look: Look<'_>) -> Vec<Exhausted> {
    let state = look.state;
    let limits = &look.definition.limits;
    let elapsed_ms = look.clock.elapsed_ms();
    let seconds = |counter: &Counter| elapsed_ms.saturating_sub(counter.since_ms) / 1000;
    let steps = |counter: &Counter| counter.steps;
    let spent = |of: fn(&Spent) -> &Counter| of(&state.spent);
    let counted = |limit: Limit, measure: &dyn Fn(&Counter) -> u64| match limit.per {
        Per::Session => measure(spent(|spent| &spent.session)),
        Per::Turn => measure(spent(|spent| &spent.turn)),
    };
    let tokens = |limit: Limit, measure: fn(&UsageTotals) -> u64| match limit.per {
        Per::Session => measure(&state.usage.session),
        Per::Turn => measure(&state.usage.turn),
    };

    let mut reached = Vec::new();
    let deadline = [state.deadline, look.facts.deadline].into_iter().flatten().min();
    if let Some(deadline) = deadline.filter(|deadline| look.clock.now() >= *deadline) {
        let limit = Limit { max: 0, soft: false, per: Per::Session };
        reached.push(Exhausted { dimension: "deadline", limit, used: 0, deadline: Some(deadline) });
    }
    let mut measure = |dimension, limit: Option<Limit>, used: &dyn Fn(Limit) -> u64| {
        if let Some(limit) = limit {
            let used = used(limit);
            if used >= limit.max {
                reached.push(Exhausted { dimension, limit, used, deadline: None });
            }
        }
    };
    measure("wall_seconds", limits.wall_seconds, &|limit| counted(limit, &seconds));
    measure("steps", limits.steps, &|limit| counted(limit, &steps));
    measure("input_tokens", limits.input_tokens, &|limit| tokens(limit, |used| used.input));
    measure("output_tokens", limits.output_tokens, &|limit| tokens(limit, |used| used.output));
    measure("total_tokens", limits.total_tokens, &|limit| tokens(limit, UsageTotals::total));
    reached
}

/// The first limit that is reached and not soft.
pub(crate) fn exhausted_hard(look: Look<'_>) -> Option<Exhausted> {
    exhausted(look).into_iter().find(|reached| !reached.limit.soft)
}

pub(crate) struct LimitGuard;

impl Guard for LimitGuard {
    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        if !look.event.kind.is_work() {
            return;
        }
        for reached in exhausted(look) {
            match (reached.limit.soft, reached.limit.per) {
                (true, _) => warn(look, &reached, answers),
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
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        let blocked_stop = matches!(record.event.kind, EventKind::StopProposed { .. })
            && record.verdict.is_enforced(Decision::Deny);
        let steps = u64::from(record.event.kind.is_step() || blocked_stop);
        for counter in [&mut state.spent.session, &mut state.spent.turn] {
            counter.steps = counter.steps.saturating_add(steps);
        }
        let turn = state.turn.number;
        let told = record.verdict.feedback.iter().filter(|said| said.provider == PROVIDER);
        for observed in told.flat_map(|said| &said.observations) {
            state.spent.told.retain(|(dimension, _)| *dimension != observed.category);
            state.spent.told.push((observed.category.clone(), turn));
        }
        if let EventKind::UsageReported {
            request, input, output, cache_read, cache_creation, ..
        } = &record.event.kind
        {
            let used = UsageTotals {
                input: *input,
                output: *output,
                cache_read: *cache_read,
                cache_creation: *cache_creation,
            };
            state.usage.report(request.as_ref(), used, turn);
        }
    }
}

impl Spent {
    /// Starts the counters of a new turn.
    pub(crate) fn begin_turn(&mut self, elapsed_ms: u64) {
        self.turn = Counter { steps: 0, since_ms: elapsed_ms };
    }

    /// Starts all counters anew.
    pub(crate) fn reset(&mut self, elapsed_ms: u64) {
        *self = Self::default();
        self.session.since_ms = elapsed_ms;
        self.turn.since_ms = elapsed_ms;
    }
}

/// Tells the agent once, per session or per turn.
fn warn(look: Look<'_>, reached: &Exhausted, answers: &mut Answers) {
    let spent = &look.state.spent;
    let told = spent.told.iter().any(|(dimension, turn)| {
        dimension == reached.dimension
            && (reached.limit.per == Per::Session || *turn == look.state.turn.number)
    });
    if told {
        return;
    }
    answers.feedback.push(Feedback {
        provider: PROVIDER.to_string(),
        severity: Severity::Warning,
        summary: format!("Soft limit reached: {}.", reached.message()),
        observations: Vec::from([Observed {
            category: reached.dimension.to_string(),
            description: format!("{} of {}", reached.used, reached.limit.max),
            evidence: None,
        }]),
        suggestions: Vec::from(["Ask a person whether to go on, or wrap up.".to_string()]),
        timestamp: look.clock.now(),
        call_index: look.state.invocations.proposed,
        definition: look.definition.name.clone(),
    });
}

fn objection(
    reached: &Exhausted,
    decision: Decision,
    class: Class,
    correction: &str,
) -> Objection<'static> {
    Objection {
        guard: "limits",
        kind: "budget",
        subtype: reached.dimension,
        class,
        decision,
        message: reached.message(),
        location: Some(match reached.deadline {
            Some(_) => reached.dimension.to_string(),
            None => format!("limits.{}", reached.dimension),
        }),
        correction: Some(correction.to_string()),
    }
}
