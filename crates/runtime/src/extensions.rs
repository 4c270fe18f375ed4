//! Policies, checkers and feedback providers written in Rust.
//!
//! They run here, not in the engine: what they said is recorded as a fact, so
//! a journal replays without them. Their memory is part of the session.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jackline_engine::bounds::{CARRY_BYTES_MAX, POLICY_BYTES_MAX};
use jackline_engine::definition::{Checker, Definition, Policy, PolicyRule, Speech};
use jackline_engine::facts::{CallView, CheckFact, FeedbackFact, FeedbackView, PolicyFact};
use jackline_engine::verdict::{Observed, Severity};
use jackline_engine::{Fact, Query};

use crate::facts::{Deadline, FactError, FactSource, Scene};

/// How much a feedback provider may say at once.
const SAID_BYTES_MAX: usize = 64 << 10;

/// What a policy says about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyDecision {
    /// Whether it may run.
    pub allowed: bool,
    /// Why not.
    pub reason: Option<String>,
}

impl PolicyDecision {
    /// It may run.
    pub fn allow() -> Self {
        Self { allowed: true, reason: None }
    }

    /// It may not.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { allowed: false, reason: Some(reason.into()) }
    }
}

/// A policy over tool calls. `state` is what it remembers of this session: it
/// is saved, restored, reset and rolled back with the session.
pub trait ToolPolicy: Send {
    /// The name a definition uses for it.
    fn name(&self) -> &str;

    /// Looks at a call before it runs.
    fn check(&self, state: &str, call: &CallView) -> PolicyDecision;

    /// What the policy wants back with the result of a call it allowed, such as
    /// the path it is about; at most 256 bytes.
    fn carry(&self, _call: &CallView) -> Option<String> {
        None
    }

    /// Learns from a call that succeeded: gives back what to remember.
    fn on_result(&self, state: &str, _call: &CallView) -> String {
        state.to_owned()
    }
}

/// A check of whether the task is complete.
pub trait CompletionChecker: Send {
    /// The name a definition uses for it.
    fn name(&self) -> &str;

    /// Nothing if it is complete, else what is missing.
    fn check(&self) -> Result<(), String>;
}

/// What a feedback provider says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// How urgent it is.
    pub severity: Severity,
    /// What it is.
    pub summary: String,
    /// Details.
    pub observations: Vec<Observed>,
    /// What to do.
    pub suggestions: Vec<String>,
}

impl Said {
    /// A summary and nothing else.
    pub fn new(severity: Severity, summary: impl Into<String>) -> Self {
        let summary = summary.into();
        Self { severity, summary, observations: Vec::new(), suggestions: Vec::new() }
    }

    fn bytes(&self) -> usize {
        let observed = |o: &Observed| {
            o.category.len() + o.description.len() + o.evidence.as_ref().map_or(0, String::len)
        };
        self.summary.len()
            + self.observations.iter().map(observed).sum::<usize>()
            + self.suggestions.iter().map(String::len).sum::<usize>()
    }
}

/// Soft guidance that comes with tool results. It is asked when its trigger
/// in the definition says so.
pub trait FeedbackProvider: Send {
    /// The name a definition uses for it.
    fn name(&self) -> &str;

    /// Whether it has a reason to speak now, besides its trigger.
    fn should_run(&self, _view: &FeedbackView) -> bool {
        true
    }

    /// What it says, if anything.
    fn provide(&self, view: &FeedbackView) -> Option<Said>;
}

/// The policies, checkers and feedback providers of a runtime.
#[derive(Default)]
pub struct Extensions {
    policies: BTreeMap<String, Box<dyn ToolPolicy>>,
    checkers: BTreeMap<String, Box<dyn CompletionChecker>>,
    feedback: BTreeMap<String, Box<dyn FeedbackProvider>>,
}

impl Extensions {
    /// Adds a policy.
    #[must_use]
    pub fn with_policy(mut self, policy: impl ToolPolicy + 'static) -> Self {
        self.policies.insert(policy.name().to_owned(), Box::new(policy));
        self
    }

    /// Adds a checker.
    #[must_use]
    pub fn with_checker(mut self, checker: impl CompletionChecker + 'static) -> Self {
        self.checkers.insert(checker.name().to_owned(), Box::new(checker));
        self
    }

    /// Adds a feedback provider.
    #[must_use]
    pub fn with_feedback(mut self, provider: impl FeedbackProvider + 'static) -> Self {
        self.feedback.insert(provider.name().to_owned(), Box::new(provider));
        self
    }

    /// One that a definition does not name, and so never asks.
    pub(crate) fn unnamed(&self, definition: &Definition) -> Option<&str> {
        let named_policy = |name: &str| {
            let is_it = |policy: &Policy| matches!(&policy.rule, PolicyRule::Custom { name: n } if n == name);
            definition.policies.iter().any(is_it)
        };
        let policies = self.policies.keys().filter(|name| !named_policy(name));
        let named_checker =
            |name: &str| definition.completion.as_ref().is_some_and(|checker| names(checker, name));
        let checkers = self.checkers.keys().filter(|name| !named_checker(name));
        let named_provider = |name: &str| {
            let mut speeches = definition.feedback.iter().map(|provider| &provider.speech);
            speeches.any(|speech| matches!(speech, Speech::Custom { name: n } if n == name))
        };
        let providers = self.feedback.keys().filter(|name| !named_provider(name));
        policies.chain(checkers).chain(providers).map(String::as_str).next()
    }

    fn check(&self, name: &str, state: &str, call: &CallView) -> PolicyFact {
        self.ask(name, |policy| match policy.check(state, call) {
            PolicyDecision { allowed: true, .. } => match policy.carry(call) {
                Some(text) if text.len() > CARRY_BYTES_MAX => too_much("carry", CARRY_BYTES_MAX),
                carry => PolicyFact::Allowed { carry },
            },
            PolicyDecision { allowed: false, reason } => PolicyFact::Denied { reason },
        })
    }

    fn on_result(&self, name: &str, state: &str, call: &CallView) -> PolicyFact {
        self.ask(name, |policy| match policy.on_result(state, call) {
            text if text.len() > POLICY_BYTES_MAX => too_much("remember", POLICY_BYTES_MAX),
            text => PolicyFact::State { text },
        })
    }

    fn complete(&self, name: &str) -> CheckFact {
        let Some(checker) = self.checkers.get(name) else {
            return CheckFact::Broken { reason: NOT_REGISTERED.to_owned() };
        };
        match catch_unwind(AssertUnwindSafe(|| checker.check())) {
            Ok(Ok(())) => CheckFact::Complete,
            Ok(Err(feedback)) => CheckFact::Incomplete { feedback: Some(feedback) },
            Err(_) => CheckFact::Broken { reason: PANICKED.to_owned() },
        }
    }

    fn speak(&self, name: &str, view: &FeedbackView) -> FeedbackFact {
        let broken = |reason: String| FeedbackFact::Broken { reason };
        let Some(provider) = self.feedback.get(name) else {
            return broken(NOT_REGISTERED.to_owned());
        };
        let speak = || if provider.should_run(view) { provider.provide(view) } else { None };
        match catch_unwind(AssertUnwindSafe(speak)) {
            Ok(None) => FeedbackFact::Silent,
            Ok(Some(said)) if said.bytes() > SAID_BYTES_MAX => {
                broken(format!("it wants to say more than {SAID_BYTES_MAX} bytes"))
            }
            Ok(Some(Said { severity, summary, observations, suggestions })) => {
                FeedbackFact::Said { severity, summary, observations, suggestions }
            }
            Err(_) => broken(PANICKED.to_owned()),
        }
    }

    /// Whether a query is for guards written in Rust.
    pub(crate) fn answers(query: &Query) -> bool {
        matches!(
            query,
            Query::PolicyCheck { .. }
                | Query::PolicyResult { .. }
                | Query::Checker { .. }
                | Query::Feedback { .. }
        )
    }

    fn fact(&self, query: &Query) -> Fact {
        match query {
            Query::PolicyCheck { name, state, call, .. } => {
                Fact::Policy(self.check(name, state, call))
            }
            Query::PolicyResult { name, state, call, .. } => {
                Fact::Policy(self.on_result(name, state, call))
            }
            Query::Checker { name } => Fact::Checker(self.complete(name)),
            Query::Feedback { name, view, .. } => Fact::Feedback(self.speak(name, view)),
            _ => Fact::Unknown,
        }
    }

    fn ask(&self, name: &str, ask: impl FnOnce(&dyn ToolPolicy) -> PolicyFact) -> PolicyFact {
        let Some(policy) = self.policies.get(name) else {
            return PolicyFact::Broken { reason: NOT_REGISTERED.to_owned() };
        };
        catch_unwind(AssertUnwindSafe(|| ask(policy.as_ref())))
            .unwrap_or_else(|_| PolicyFact::Broken { reason: PANICKED.to_owned() })
    }
}

impl FactSource for Extensions {
    fn answer(
        &mut self,
        _scene: &Scene<'_>,
        queries: &[Query],
        _deadline: Deadline,
    ) -> Result<Vec<Fact>, FactError> {
        Ok(queries.iter().map(|query| self.fact(query)).collect())
    }
}

fn names(checker: &Checker, name: &str) -> bool {
    match checker {
        Checker::Files(_) | Checker::Command { .. } | Checker::Clean => false,
        Checker::All(parts) | Checker::Any(parts) => parts.iter().any(|part| names(part, name)),
        Checker::Custom { name: known } => known == name,
    }
}

fn too_much(what: &str, most: usize) -> PolicyFact {
    PolicyFact::Broken { reason: format!("it wants to {what} more than {most} bytes") }
}

const NOT_REGISTERED: &str = "it is not registered with this runtime";
const PANICKED: &str = "it panicked";

#[cfg(test)]
mod tests {
    use jackline_engine::Timestamp;
    use jackline_engine::definition::{FeedbackProvider as Declared, Trigger};

    use super::*;

    /// Speaks from the third call on, and has a bug at the seventh.
    struct Counts;

    impl FeedbackProvider for Counts {
        fn name(&self) -> &'static str {
            "counts"
        }

        fn should_run(&self, view: &FeedbackView) -> bool {
            view.tool_call_count > 2
        }

        fn provide(&self, view: &FeedbackView) -> Option<Said> {
            assert_ne!(view.tool_call_count, 7, "a bug in a provider");
            let summary =
                "x".repeat(if view.tool_call_count == 8 { SAID_BYTES_MAX + 1 } else { 1 });
            let said = Said::new(Severity::Warning, summary);
            (view.tool_call_count != 6).then(|| Said { suggestions: vec!["rest".into()], ..said })
        }
    }

    fn view(tool_call_count: u64) -> FeedbackView {
        FeedbackView {
            last_feedback: None,
            definition: "a/b".to_owned(),
            deadline: None,
            now: Timestamp::from_ms(0),
            tool_call_count,
            calls_since_feedback: 0,
            calls_since_own_feedback: 0,
            recent_tool_calls: Vec::new(),
        }
    }

    fn broken(reason: &str) -> FeedbackFact {
        FeedbackFact::Broken { reason: reason.to_owned() }
    }

    #[test]
    fn a_provider_speaks_where_it_has_a_reason_to() {
        let extensions = Extensions::default().with_feedback(Counts);
        let said = FeedbackFact::Said {
            severity: Severity::Warning,
            summary: "x".to_owned(),
            observations: Vec::new(),
            suggestions: vec!["rest".to_owned()],
        };
        assert_eq!(extensions.speak("counts", &view(2)), FeedbackFact::Silent);
        assert_eq!(extensions.speak("counts", &view(3)), said);
        assert_eq!(extensions.speak("counts", &view(6)), FeedbackFact::Silent);
    }

    #[test]
    fn a_provider_that_breaks_is_said_to() {
        let extensions = Extensions::default().with_feedback(Counts);
        assert_eq!(extensions.speak("counts", &view(7)), broken("it panicked"));
        let too_much = broken("it wants to say more than 65536 bytes");
        assert_eq!(extensions.speak("counts", &view(8)), too_much);
        assert_eq!(extensions.speak("other", &view(3)), broken(NOT_REGISTERED));
    }

    #[test]
    fn a_provider_that_no_definition_names_is_found() {
        let extensions = Extensions::default().with_feedback(Counts);
        assert_eq!(extensions.unnamed(&Definition::default()), Some("counts"));
        let speech = Speech::Custom { name: "counts".to_owned() };
        let feedback = vec![Declared { speech, trigger: Trigger::default() }];
        let definition = Definition { feedback, ..Definition::default() };
        assert_eq!(extensions.unnamed(&definition), None);
    }
}
