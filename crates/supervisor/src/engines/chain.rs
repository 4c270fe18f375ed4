//! Who works now, who is next, and when the first is tried again.

use std::collections::BTreeMap;

use jackline_engine::definition::ModelOccasion as When;

use super::{EngineSpec, Reason};

/// How long the first is left alone after it failed.
const COOL_DOWN_MS: u64 = 5 * 60 * 1000;

/// Engines in their order, and who works now.
#[derive(Debug)]
pub(crate) struct Chain {
    engines: Vec<Engine>,
    at: usize,
    /// When the first was left, on the clock of the machine's start.
    left_at_ms: Option<u64>,
}

#[derive(Debug)]
struct Engine {
    spec: EngineSpec,
    /// How often it was asked.
    used: u64,
}

impl Chain {
    /// The engines that may work on a task. None if nobody may.
    pub(crate) fn new(engines: Vec<EngineSpec>, sensitive: bool) -> Option<Self> {
        let may = |spec: &EngineSpec| !sensitive || spec.when.contains(&When::Sensitive);
        let engines: Vec<Engine> =
            engines.into_iter().filter(may).map(|spec| Engine { spec, used: 0 }).collect();
        (!engines.is_empty()).then_some(Self { engines, at: 0, left_at_ms: None })
    }

    pub(crate) fn current(&self) -> Option<&EngineSpec> {
        self.engines.get(self.at).map(|engine| &engine.spec)
    }

    pub(crate) fn label(&self) -> String {
        self.current().map(|spec| spec.label.clone()).unwrap_or_default()
    }

    /// Whether the engine of this name is a program that runs its own loop.
    pub(crate) fn is_worker(&self, label: &str) -> bool {
        let mut engines = self.engines.iter();
        engines.any(|engine| engine.spec.label == label && engine.spec.is_worker())
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
        self.left_at_ms = (self.at > 0).then_some(now_ms);
    }

    /// Counts a question to the current one; whether it may be asked.
    pub(crate) fn spend(&mut self) -> bool {
        let Some(engine) = self.engines.get_mut(self.at) else { return false };
        if engine.spec.budget.is_some_and(|budget| engine.used >= budget) {
            return false;
        }
        engine.used += 1;
        true
    }

    /// Whether somebody else could take over.
    pub(crate) fn has_next(&self, reason: Reason) -> bool {
        self.next_at(reason).is_some()
    }

    /// Changes to the next one who may take over; gives the names of both.
    pub(crate) fn change(&mut self, reason: Reason, now_ms: u64) -> Option<(String, String)> {
        let next = self.next_at(reason)?;
        let from = self.label();
        if self.at == 0 {
            self.left_at_ms = Some(now_ms);
        }
        self.at = next;
        Some((from, self.label()))
    }

    /// Changes back to the first one, once it was left alone for long enough.
    pub(crate) fn come_back(&mut self, now_ms: u64) -> Option<(String, String)> {
        let left = self.left_at_ms.filter(|left| now_ms >= left.saturating_add(COOL_DOWN_MS))?;
        let _ = left;
        self.left_at_ms = None;
        let first = self.engines.first()?;
        if self.at == 0 || first.spec.budget.is_some_and(|budget| first.used >= budget) {
            return None;
        }
        let from = self.label();
        self.at = 0;
        Some((from, self.label()))
    }

    fn next_at(&self, reason: Reason) -> Option<usize> {
        let is_fit = |engine: &Engine| {
            engine.spec.admits(reason)
                && engine.spec.budget.is_none_or(|budget| engine.used < budget)
        };
        let later = self.engines.iter().enumerate().skip(self.at + 1);
        later.into_iter().find(|(_, engine)| is_fit(engine)).map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use jackline_model::ErrorKind;

    use super::super::EngineKind;
    use super::*;

    fn engine(label: &str, when: &[When], budget: Option<u64>) -> EngineSpec {
        let kind = EngineKind::Command(Vec::new());
        EngineSpec { label: label.to_owned(), kind, when: when.to_vec(), budget, window: None }
    }

    const OVERLOAD: Reason = Reason::Failed(ErrorKind::Overload);

    #[test]
    fn the_next_one_is_the_first_that_may_take_over_for_the_reason() {
        let engines = vec![
            engine("a", &[], None),
            engine("cheap", &[When::Cost], None),
            engine("b", &[When::Overload], None),
        ];
        let mut chain = Chain::new(engines, false).unwrap();
        assert_eq!(chain.change(OVERLOAD, 0), Some(("a".into(), "b".into())));
        assert_eq!(chain.change(OVERLOAD, 0), None, "nobody is left");
        assert_eq!(chain.label(), "b");
    }

    #[test]
    fn the_first_one_is_left_alone_for_a_while_and_then_tried_again() {
        let mut chain =
            Chain::new(vec![engine("a", &[], None), engine("b", &[], None)], false).unwrap();
        chain.change(OVERLOAD, 1000).unwrap();
        assert_eq!(chain.come_back(1000 + COOL_DOWN_MS - 1), None);
        assert_eq!(chain.come_back(1000 + COOL_DOWN_MS), Some(("b".into(), "a".into())));
        assert_eq!(chain.come_back(u64::MAX), None, "it is there already");
    }

    #[test]
    fn a_budget_of_its_own_ends_an_engine() {
        let mut chain =
            Chain::new(vec![engine("a", &[], Some(2)), engine("b", &[], Some(0))], false).unwrap();
        assert!(chain.spend() && chain.spend() && !chain.spend());
        assert_eq!(chain.change(Reason::Cost, 0), None, "the other has none at all");
    }

    #[test]
    fn after_a_restart_nobody_has_more_left_than_before() {
        let engines = vec![engine("a", &[], Some(2)), engine("b", &[], None)];
        let mut chain = Chain::new(engines, false).unwrap();
        let asked = BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 7)]);
        chain.go_on(None, &asked, 0);
        assert!(!chain.spend(), "the first has used it up");
        chain.go_on(Some("b"), &asked, 1000);
        assert!(chain.spend());
        assert_eq!(chain.come_back(1000 + COOL_DOWN_MS), None, "nor is it tried again");
    }

    #[test]
    fn what_is_sensitive_is_only_for_those_who_are_named_for_it() {
        let engines = vec![engine("cloud", &[], None), engine("local", &[When::Sensitive], None)];
        assert_eq!(Chain::new(engines.clone(), true).unwrap().label(), "local");
        assert!(Chain::new(engines[..1].to_vec(), true).is_none());
        let mut chain = Chain::new(engines, false).unwrap();
        assert!(chain.change(OVERLOAD, 0).is_some(), "and good for the rest");
    }
}
