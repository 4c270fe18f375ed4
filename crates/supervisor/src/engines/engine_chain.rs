//! Which engine works, which one is next, and when the first one is tried again.

use std::collections::BTreeMap;

use jackline_engine::definition::ModelOccasion as When;
use jackline_model::ModelErrorKind;

use super::{EngineChangeReason, EngineSpec};

/// How long the first engine is not asked after it failed.
const COOL_DOWN_MS: u64 = 5 * 60 * 1000;

/// Failures that may pass with time, and those of them that the network may cause.
const PASSING_FAILURES: [ModelErrorKind; 5] = [
    ModelErrorKind::Overload,
    ModelErrorKind::RateLimit,
    ModelErrorKind::Network,
    ModelErrorKind::Timeout,
    ModelErrorKind::BadAnswer,
];
const NETWORK_FAILURES: [ModelErrorKind; 2] = [ModelErrorKind::Network, ModelErrorKind::Timeout];

/// Whether the first engine is tried again after another one took over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FirstEngine {
    /// It works, or it left because it did not answer.
    #[default]
    MayReturn,
    /// It left because it was stuck.
    WasStuck,
}

/// The engines in order, and the one that works now.
#[derive(Debug)]
pub(crate) struct EngineChain {
    engines: Vec<ChainEngine>,
    current_index: usize,
    /// When the first engine is tried again, in milliseconds since the machine started.
    first_retry_at_ms: Option<u64>,
}

#[derive(Debug)]
struct ChainEngine {
    spec: EngineSpec,
    /// How many questions it got.
    questions_used: u64,
    /// The time before which the engine asked not to be used, if it named one.
    rests_until_ms: Option<u64>,
}

impl ChainEngine {
    fn has_budget(&self) -> bool {
        self.spec.budget.is_none_or(|budget| self.questions_used < budget)
    }
}

impl EngineChain {
    /// The engines that may work on a task; `None` if there are none.
    pub(crate) fn new(engines: Vec<EngineSpec>, sensitive: bool) -> Option<Self> {
        let may = |spec: &EngineSpec| !sensitive || spec.when.contains(&When::Sensitive);
        let engine = |spec| ChainEngine { spec, questions_used: 0, rests_until_ms: None };
        let engines: Vec<ChainEngine> = engines.into_iter().filter(may).map(engine).collect();
        (!engines.is_empty()).then_some(Self { engines, current_index: 0, first_retry_at_ms: None })
    }

    /// The first engine, whose name is part of the identity of the agent.
    pub(crate) fn first(&self) -> Option<&EngineSpec> {
        self.engines.first().map(|engine| &engine.spec)
    }

    pub(crate) fn current(&self) -> Option<&EngineSpec> {
        self.engines.get(self.current_index).map(|engine| &engine.spec)
    }

    pub(crate) fn label(&self) -> String {
        self.label_of(self.current_index)
    }

    /// The label of the engine with a number.
    pub(crate) fn label_of(&self, number: usize) -> String {
        self.engines.get(number).map(|engine| engine.spec.label.clone()).unwrap_or_default()
    }

    /// Whether the engine with this label is an agent program.
    pub(crate) fn is_worker(&self, label: &str) -> bool {
        let mut engines = self.engines.iter();
        engines.any(|engine| engine.spec.label == label && engine.spec.is_worker())
    }

    /// Whether a program without hooks worked, whose tokens are not reported.
    pub(crate) fn has_unreported_usage(&self) -> bool {
        let unseen =
            |engine: &ChainEngine| engine.spec.is_worker() && !engine.spec.keeps_conversation();
        self.engines.iter().any(|engine| unseen(engine) && engine.questions_used > 0)
    }

    /// Restores the engine that worked last, and the used budgets. The cool-down of the first
    /// engine starts now, because the journal does not say when it was left. A first engine that
    /// was stuck is not tried again.
    pub(crate) fn restore(
        &mut self,
        label: Option<&str>,
        asked: &BTreeMap<String, u64>,
        first_engine: FirstEngine,
        now_ms: u64,
    ) {
        for engine in &mut self.engines {
            engine.questions_used = asked.get(&engine.spec.label).copied().unwrap_or(0);
        }
        let at = self.engines.iter().position(|engine| Some(engine.spec.label.as_str()) == label);
        self.current_index = at.unwrap_or(self.current_index);
        let returns = self.current_index > 0 && first_engine == FirstEngine::MayReturn;
        self.first_retry_at_ms = returns.then_some(now_ms.saturating_add(COOL_DOWN_MS));
    }

    /// Counts a question for the current engine. Returns whether the budget allows it.
    pub(crate) fn spend_question(&mut self) -> bool {
        let Some(engine) = self.engines.get_mut(self.current_index) else { return false };
        let may = engine.has_budget();
        engine.questions_used += u64::from(may);
        may
    }

    /// How many questions the current engine got.
    pub(crate) fn questions_used(&self) -> u64 {
        self.engines.get(self.current_index).map_or(0, |engine| engine.questions_used)
    }

    /// The failures that have a fallback engine, so that the current one is not asked again.
    pub(crate) fn failures_with_fallback(&self) -> &'static [ModelErrorKind] {
        let has_next = |kind| !self.later_for(EngineChangeReason::Failed(kind)).is_empty();
        if has_next(ModelErrorKind::Overload) {
            &PASSING_FAILURES
        } else if has_next(ModelErrorKind::Network) {
            &NETWORK_FAILURES
        } else {
            &[]
        }
    }

    /// The numbers of the later engines that may take over for a reason.
    pub(crate) fn later_for(&self, reason: EngineChangeReason) -> Vec<usize> {
        let is_fit =
            |engine: &ChainEngine| engine.spec.may_take_over_for(reason) && engine.has_budget();
        let later = self.engines.iter().enumerate().skip(self.current_index + 1);
        later.filter(|(_, engine)| is_fit(engine)).map(|(at, _)| at).collect()
    }

    /// The number of the first engine, if its cool-down time is over.
    pub(crate) fn first_if_due(&self, now_ms: u64) -> Option<usize> {
        let is_due = self.first_retry_at_ms.is_some_and(|returns| now_ms >= returns);
        (is_due && self.has_first()).then_some(0)
    }

    /// Changes to another engine. If the first engine is left because it was stuck, it is not tried
    /// again.
    pub(crate) fn change_to(&mut self, to: usize, reason: EngineChangeReason, now_ms: u64) {
        let first = self.engines.first().and_then(|first| first.rests_until_ms);
        if to == 0 || (self.current_index == 0 && reason.wants_plan()) {
            self.first_retry_at_ms = None;
        } else if self.current_index == 0 {
            let cool = now_ms.saturating_add(COOL_DOWN_MS);
            self.first_retry_at_ms = Some(first.unwrap_or(cool).max(cool));
        }
        self.current_index = to;
    }

    /// Stores the time before which the current engine asked not to be used.
    pub(crate) fn set_rest_until(&mut self, until_ms: u64) {
        if let Some(engine) = self.engines.get_mut(self.current_index) {
            engine.rests_until_ms = Some(until_ms);
        }
    }

    /// When the first engine can be used again, if another one works and the first named a time.
    pub(crate) fn first_rests_until_ms(&self) -> Option<u64> {
        self.engines.first().and_then(|first| first.rests_until_ms).filter(|_| self.has_first())
    }

    /// Sets the time at which the first engine is tried again, because no other one is left.
    pub(crate) fn schedule_first_at(&mut self, returns_ms: u64) {
        self.first_retry_at_ms = Some(returns_ms);
    }

    /// Whether another engine works and the first one has budget left.
    fn has_first(&self) -> bool {
        self.current_index > 0 && self.engines.first().is_some_and(ChainEngine::has_budget)
    }
}

#[cfg(test)]
mod tests {
    use super::super::EngineKind;
    use super::*;

    fn engine(label: &str, when: &[When], budget: Option<u64>) -> EngineSpec {
        let kind = EngineKind::Command(Vec::new());
        EngineSpec { label: label.to_owned(), kind, when: when.to_vec(), budget, window: None }
    }

    const OVERLOAD: EngineChangeReason = EngineChangeReason::Failed(ModelErrorKind::Overload);

    fn chain(engines: Vec<EngineSpec>) -> EngineChain {
        EngineChain::new(engines, false).unwrap()
    }

    #[test]
    fn the_next_engine_is_the_first_one_that_may_take_over_for_the_reason() {
        let mut chain = chain(vec![
            engine("a", &[], None),
            engine("cheap", &[When::Cost], None),
            engine("b", &[When::Overload], None),
        ]);
        assert_eq!(chain.later_for(OVERLOAD), [2]);
        assert_eq!(chain.label(), "a", "the engine has not changed yet");
        chain.change_to(2, OVERLOAD, 0);
        assert_eq!((chain.later_for(OVERLOAD), chain.label()), (Vec::new(), "b".to_owned()));
    }

    #[test]
    fn a_failure_with_a_fallback_is_not_retried() {
        let behind = |when: &[When]| chain(vec![engine("a", &[], None), engine("b", when, None)]);
        assert_eq!(behind(&[]).failures_with_fallback(), PASSING_FAILURES);
        assert_eq!(behind(&[When::Overload]).failures_with_fallback(), PASSING_FAILURES);
        assert_eq!(behind(&[When::Offline]).failures_with_fallback(), NETWORK_FAILURES);
        assert_eq!(behind(&[When::Cost]).failures_with_fallback(), []);
        let offline = behind(&[When::Offline]);
        let later = |kind| offline.later_for(EngineChangeReason::Failed(kind));
        assert_eq!(
            (later(ModelErrorKind::Timeout), later(ModelErrorKind::Overload)),
            (vec![1], Vec::new())
        );
        assert!(PASSING_FAILURES.iter().all(|kind| kind.is_temporary()));
    }

    #[test]
    fn the_first_engine_is_tried_again_after_the_cool_down() {
        let mut chain = chain(vec![engine("a", &[], None), engine("b", &[], None)]);
        chain.change_to(1, OVERLOAD, 1000);
        assert_eq!(chain.first_if_due(1000 + COOL_DOWN_MS - 1), None);
        assert_eq!(chain.first_if_due(1000 + COOL_DOWN_MS), Some(0));
        chain.change_to(0, EngineChangeReason::Return, 1000 + COOL_DOWN_MS);
        assert_eq!(chain.first_if_due(u64::MAX), None, "the first engine already works");
    }

    #[test]
    fn a_first_engine_that_was_stuck_is_not_tried_again() {
        for reason in [EngineChangeReason::Blocked, EngineChangeReason::Context] {
            let mut chain = chain(vec![engine("a", &[], None), engine("b", &[], None)]);
            chain.change_to(1, reason, 1000);
            assert_eq!(chain.first_if_due(u64::MAX), None);
            chain.restore(Some("b"), &BTreeMap::new(), FirstEngine::WasStuck, 1000);
            assert_eq!(chain.first_if_due(u64::MAX), None);
        }
    }

    #[test]
    fn an_engine_that_names_a_time_is_not_tried_earlier() {
        let mut chain = chain(vec![engine("a", &[], None), engine("b", &[], None)]);
        let hour = 3_600_000;
        chain.set_rest_until(hour);
        assert_eq!(chain.first_rests_until_ms(), None, "the first engine works");
        chain.change_to(1, OVERLOAD, 1000);
        assert_eq!(chain.first_if_due(1000 + COOL_DOWN_MS), None);
        assert_eq!((chain.first_if_due(hour), chain.first_rests_until_ms()), (Some(0), Some(hour)));
        chain.schedule_first_at(2000);
        assert_eq!((chain.first_if_due(1999), chain.first_if_due(2000)), (None, Some(0)));
    }

    #[test]
    fn a_budget_of_its_own_ends_an_engine() {
        let mut chain = chain(vec![engine("a", &[], Some(2)), engine("b", &[], Some(0))]);
        assert!(chain.spend_question() && chain.spend_question() && !chain.spend_question());
        assert_eq!(
            (chain.questions_used(), chain.later_for(EngineChangeReason::Cost)),
            (2, Vec::new()),
            "the other engine has no budget"
        );
    }

    #[test]
    fn a_restart_does_not_refill_a_budget() {
        let mut chain = chain(vec![engine("a", &[], Some(2)), engine("b", &[], None)]);
        let asked = BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 7)]);
        chain.restore(None, &asked, FirstEngine::MayReturn, 0);
        assert!(!chain.spend_question(), "the first engine has used up its budget");
        chain.restore(Some("b"), &asked, FirstEngine::MayReturn, 1000);
        assert!(chain.spend_question());
        assert_eq!(
            chain.first_if_due(1000 + COOL_DOWN_MS),
            None,
            "the first engine is not tried again"
        );
    }

    #[test]
    fn a_sensitive_task_is_only_for_engines_that_are_named_for_it() {
        let engines = vec![engine("cloud", &[], None), engine("local", &[When::Sensitive], None)];
        assert_eq!(EngineChain::new(engines.clone(), true).unwrap().label(), "local");
        assert!(EngineChain::new(engines[..1].to_vec(), true).is_none());
        assert!(!chain(engines).later_for(OVERLOAD).is_empty(), "it may work on other tasks, too");
    }
}
