//! Who works now, who is next, and when the first is tried again.

use std::collections::BTreeMap;

use jackline_engine::definition::ModelOccasion as When;
use jackline_model::ErrorKind;

use super::{EngineSpec, Reason};

/// How long the first is left alone after it failed.
const COOL_DOWN_MS: u64 = 5 * 60 * 1000;

/// What may pass by itself, and what of it may be the network's fault.
const PASSING: [ErrorKind; 5] = [
    ErrorKind::Overload,
    ErrorKind::RateLimit,
    ErrorKind::Network,
    ErrorKind::Timeout,
    ErrorKind::BadAnswer,
];
const AWAY: [ErrorKind; 2] = [ErrorKind::Network, ErrorKind::Timeout];

/// Engines in their order, and who works now.
#[derive(Debug)]
pub(crate) struct Chain {
    engines: Vec<Engine>,
    at: usize,
    /// When the first is tried again, on the clock of the machine's start.
    returns_ms: Option<u64>,
}

#[derive(Debug)]
struct Engine {
    spec: EngineSpec,
    /// How often it was asked.
    used: u64,
    /// Until when it wants to be left alone, where it has said so.
    rests_ms: Option<u64>,
}

impl Engine {
    fn has_budget(&self) -> bool {
        self.spec.budget.is_none_or(|budget| self.used < budget)
    }
}

impl Chain {
    /// The engines that may work on a task. None if nobody may.
    pub(crate) fn new(engines: Vec<EngineSpec>, sensitive: bool) -> Option<Self> {
        let may = |spec: &EngineSpec| !sensitive || spec.when.contains(&When::Sensitive);
        let engine = |spec| Engine { spec, used: 0, rests_ms: None };
        let engines: Vec<Engine> = engines.into_iter().filter(may).map(engine).collect();
        (!engines.is_empty()).then_some(Self { engines, at: 0, returns_ms: None })
    }

    /// Who works first, and whose name the agent is known by.
    pub(crate) fn first(&self) -> Option<&EngineSpec> {
        self.engines.first().map(|engine| &engine.spec)
    }

    pub(crate) fn current(&self) -> Option<&EngineSpec> {
        self.engines.get(self.at).map(|engine| &engine.spec)
    }

    pub(crate) fn label(&self) -> String {
        self.label_of(self.at)
    }

    /// What an engine is called, by its number.
    pub(crate) fn label_of(&self, number: usize) -> String {
        self.engines.get(number).map(|engine| engine.spec.label.clone()).unwrap_or_default()
    }

    /// Whether the engine of this name is a program that runs its own loop.
    pub(crate) fn is_worker(&self, label: &str) -> bool {
        let mut engines = self.engines.iter();
        engines.any(|engine| engine.spec.label == label && engine.spec.is_worker())
    }

    /// Whether somebody has worked whose tokens nobody sees: a program without hooks.
    pub(crate) fn is_uncounted(&self) -> bool {
        let unseen = |engine: &Engine| engine.spec.is_worker() && !engine.spec.remembers();
        self.engines.iter().any(|engine| unseen(engine) && engine.used > 0)
    }

    /// Goes on with the engine of this name, where it worked last, and with what all of
    /// them have used up. When the first was left nobody knows any more: it was now.
    pub(crate) fn go_on(
        &mut self,
        label: Option<&str>,
        asked: &BTreeMap<String, u64>,
        now_ms: u64,
    ) {
        for engine in &mut self.engines {
            engine.used = asked.get(&engine.spec.label).copied().unwrap_or(0);
        }
        let at = self.engines.iter().position(|engine| Some(engine.spec.label.as_str()) == label);
        self.at = at.unwrap_or(self.at);
        self.returns_ms = (self.at > 0).then_some(now_ms.saturating_add(COOL_DOWN_MS));
    }

    /// Counts a question to the current one; whether it may be asked.
    pub(crate) fn spend(&mut self) -> bool {
        let Some(engine) = self.engines.get_mut(self.at) else { return false };
        let may = engine.has_budget();
        engine.used += u64::from(may);
        may
    }

    /// How often the current one was asked.
    pub(crate) fn used(&self) -> u64 {
        self.engines.get(self.at).map_or(0, |engine| engine.used)
    }

    /// For which failures somebody else is there, so that nobody is asked twice for them.
    pub(crate) fn taken_over(&self) -> &'static [ErrorKind] {
        let has_next = |kind| self.next(Reason::Failed(kind)).is_some();
        if has_next(ErrorKind::Overload) {
            &PASSING
        } else if has_next(ErrorKind::Network) {
            &AWAY
        } else {
            &[]
        }
    }

    /// The next one who may take over, by its number.
    pub(crate) fn next(&self, reason: Reason) -> Option<usize> {
        let is_fit = |engine: &Engine| engine.spec.admits(reason) && engine.has_budget();
        let later = self.engines.iter().enumerate().skip(self.at + 1);
        later.into_iter().find(|(_, engine)| is_fit(engine)).map(|(at, _)| at)
    }

    /// The first one, where it was left alone for long enough.
    pub(crate) fn returns(&self, now_ms: u64) -> Option<usize> {
        let is_due = self.returns_ms.is_some_and(|returns| now_ms >= returns);
        (is_due && self.has_first()).then_some(0)
    }

    /// Has another one work.
    pub(crate) fn change(&mut self, to: usize, now_ms: u64) {
        let first = self.engines.first().and_then(|first| first.rests_ms);
        if to == 0 {
            self.returns_ms = None;
        } else if self.at == 0 {
            let cool = now_ms.saturating_add(COOL_DOWN_MS);
            self.returns_ms = Some(first.unwrap_or(cool).max(cool));
        }
        self.at = to;
    }

    /// The current one has said until when it wants to be left alone.
    pub(crate) fn rest(&mut self, until_ms: u64) {
        if let Some(engine) = self.engines.get_mut(self.at) {
            engine.rests_ms = Some(until_ms);
        }
    }

    /// When the first answers again, where another works and it has said so.
    pub(crate) fn first_rests(&self) -> Option<u64> {
        self.engines.first().and_then(|first| first.rests_ms).filter(|_| self.has_first())
    }

    /// Has the first be tried again then, because nobody else is left.
    pub(crate) fn want_first_at(&mut self, returns_ms: u64) {
        self.returns_ms = Some(returns_ms);
    }

    /// Whether the first is there, and does not work.
    fn has_first(&self) -> bool {
        self.at > 0 && self.engines.first().is_some_and(Engine::has_budget)
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

    const OVERLOAD: Reason = Reason::Failed(ErrorKind::Overload);

    fn chain(engines: Vec<EngineSpec>) -> Chain {
        Chain::new(engines, false).unwrap()
    }

    #[test]
    fn the_next_one_is_the_first_that_may_take_over_for_the_reason() {
        let mut chain = chain(vec![
            engine("a", &[], None),
            engine("cheap", &[When::Cost], None),
            engine("b", &[When::Overload], None),
        ]);
        assert_eq!(chain.next(OVERLOAD), Some(2));
        assert_eq!(chain.label(), "a", "nobody has moved yet");
        chain.change(2, 0);
        assert_eq!((chain.next(OVERLOAD), chain.label()), (None, "b".to_owned()));
    }

    #[test]
    fn who_is_there_for_a_failure_has_it_left_at_once() {
        let behind = |when: &[When]| chain(vec![engine("a", &[], None), engine("b", when, None)]);
        assert_eq!(behind(&[]).taken_over(), PASSING);
        assert_eq!(behind(&[When::Overload]).taken_over(), PASSING);
        assert_eq!(behind(&[When::Offline]).taken_over(), AWAY);
        assert_eq!(behind(&[When::Cost]).taken_over(), []);
        let offline = behind(&[When::Offline]);
        let next = |kind| offline.next(Reason::Failed(kind));
        assert_eq!((next(ErrorKind::Timeout), next(ErrorKind::Overload)), (Some(1), None));
        assert!(PASSING.iter().all(|kind| kind.is_passing()));
    }

    #[test]
    fn the_first_one_is_left_alone_for_a_while_and_then_tried_again() {
        let mut chain = chain(vec![engine("a", &[], None), engine("b", &[], None)]);
        chain.change(1, 1000);
        assert_eq!(chain.returns(1000 + COOL_DOWN_MS - 1), None);
        assert_eq!(chain.returns(1000 + COOL_DOWN_MS), Some(0));
        chain.change(0, 1000 + COOL_DOWN_MS);
        assert_eq!(chain.returns(u64::MAX), None, "it is there already");
    }

    #[test]
    fn one_that_says_until_when_it_rests_is_not_tried_before() {
        let mut chain = chain(vec![engine("a", &[], None), engine("b", &[], None)]);
        let hour = 3_600_000;
        chain.rest(hour);
        assert_eq!(chain.first_rests(), None, "it works");
        chain.change(1, 1000);
        assert_eq!(chain.returns(1000 + COOL_DOWN_MS), None);
        assert_eq!((chain.returns(hour), chain.first_rests()), (Some(0), Some(hour)));
        chain.want_first_at(2000);
        assert_eq!((chain.returns(1999), chain.returns(2000)), (None, Some(0)));
    }

    #[test]
    fn a_budget_of_its_own_ends_an_engine() {
        let mut chain = chain(vec![engine("a", &[], Some(2)), engine("b", &[], Some(0))]);
        assert!(chain.spend() && chain.spend() && !chain.spend());
        assert_eq!((chain.used(), chain.next(Reason::Cost)), (2, None), "the other has none");
    }

    #[test]
    fn after_a_restart_nobody_has_more_left_than_before() {
        let mut chain = chain(vec![engine("a", &[], Some(2)), engine("b", &[], None)]);
        let asked = BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 7)]);
        chain.go_on(None, &asked, 0);
        assert!(!chain.spend(), "the first has used it up");
        chain.go_on(Some("b"), &asked, 1000);
        assert!(chain.spend());
        assert_eq!(chain.returns(1000 + COOL_DOWN_MS), None, "nor is it tried again");
    }

    #[test]
    fn what_is_sensitive_is_only_for_those_who_are_named_for_it() {
        let engines = vec![engine("cloud", &[], None), engine("local", &[When::Sensitive], None)];
        assert_eq!(Chain::new(engines.clone(), true).unwrap().label(), "local");
        assert!(Chain::new(engines[..1].to_vec(), true).is_none());
        assert!(chain(engines).next(OVERLOAD).is_some(), "and good for the rest");
    }
}
