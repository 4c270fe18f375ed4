//! Policies, completion checkers and feedback providers written in Rust.
//!
//! They run here and not in the engine. Their answers are recorded as facts, so a journal replays
//! without them. Their memory is part of the session.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jackline_engine::bounds::{CARRY_BYTES_MAX, POLICY_STATE_BYTES_MAX};
use jackline_engine::definition::{
    CompletionRequirement, Definition, FeedbackContent, Policy, PolicyRule,
};
use jackline_engine::facts::{CallView, CheckFact, FeedbackFact, FeedbackView, PolicyFact};
use jackline_engine::verdict::{FeedbackObservation, Severity};
use jackline_engine::{Fact, Query};

use crate::facts::{FactContext, FactDeadline, FactError, FactSource};

/// The largest feedback of a provider, in bytes.
const FEEDBACK_BYTES_MAX: usize = 64 << 10;

/// The answer of a policy for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyDecision {
    /// Whether the call may run.
    pub allowed: bool,
    /// The reason for a denial.
    pub reason: Option<String>,
}

impl PolicyDecision {
    /// Allows the call.
    pub fn allow() -> Self {
        Self { allowed: true, reason: None }
    }

    /// Denies the call.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { allowed: false, reason: Some(reason.into()) }
    }
}

/// A policy over tool calls. `state` is its memory in this session: it is saved, restored, reset
/// and rolled back with the session.
pub trait ToolPolicy: Send {
    /// The name a definition uses for it.
    fn name(&self) -> &str;

    /// Decides on a call before it runs.
    fn check(&self, state: &str, call: &CallView) -> PolicyDecision;

    /// A text that the policy gets back with the result of a call that it allowed, such as a path;
    /// at most 256 bytes.
    fn carry(&self, _call: &CallView) -> Option<String> {
        None
    }

    /// Learns from a call that succeeded, and returns the new state.
    fn on_result(&self, state: &str, _call: &CallView) -> String {
        state.to_owned()
    }
}

/// A check of whether the task is complete.
pub trait CompletionChecker: Send {
    /// The name a definition uses for it.
    fn name(&self) -> &str;

    /// Returns `Ok` if the task is complete, else the feedback for the agent.
    fn check(&self) -> Result<(), String>;
}

/// The feedback of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderFeedback {
    /// How urgent it is.
    pub severity: Severity,
    /// The main text.
    pub summary: String,
    /// Details that the provider observed.
    pub observations: Vec<FeedbackObservation>,
    /// Suggested actions.
    pub suggestions: Vec<String>,
}

impl ProviderFeedback {
    /// Feedback with only a summary.
    pub fn new(severity: Severity, summary: impl Into<String>) -> Self {
        let summary = summary.into();
        Self { severity, summary, observations: Vec::new(), suggestions: Vec::new() }
    }

    fn bytes(&self) -> usize {
        let observed = |o: &FeedbackObservation| {
            o.category.len() + o.description.len() + o.evidence.as_ref().map_or(0, String::len)
        };
        self.summary.len()
            + self.observations.iter().map(observed).sum::<usize>()
            + self.suggestions.iter().map(String::len).sum::<usize>()
    }
}

/// Soft guidance that is sent with tool results. The runtime asks the provider when its trigger in
/// the definition fires.
pub trait FeedbackProvider: Send {
    /// The name a definition uses for it.
    fn name(&self) -> &str;

    /// Whether the provider has feedback now, after its trigger fired.
    fn should_run(&self, _view: &FeedbackView) -> bool {
        true
    }

    /// The feedback, if there is any.
    fn provide(&self, view: &FeedbackView) -> Option<ProviderFeedback>;
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

    /// An extension that the definition does not name, so it would never be asked.
    pub(crate) fn first_unnamed(&self, definition: &Definition) -> Option<&str> {
        let is_named_policy = |name: &str| {
            let is_it = |policy: &Policy| matches!(&policy.rule, PolicyRule::Custom { name: n } if n == name);
            definition.policies.iter().any(is_it)
        };
        let policies = self.policies.keys().filter(|name| !is_named_policy(name));
        let is_named_checker =
            |name: &str| definition.completion.as_ref().is_some_and(|checker| names(checker, name));
        let checkers = self.checkers.keys().filter(|name| !is_named_checker(name));
        let is_named_provider = |name: &str| {
            let mut speeches = definition.feedback.iter().map(|provider| &provider.speech);
            speeches
                .any(|speech| matches!(speech, FeedbackContent::Custom { name: n } if n == name))
        };
        let providers = self.feedback.keys().filter(|name| !is_named_provider(name));
        policies.chain(checkers).chain(providers).map(String::as_str).next()
    }

    fn ask_policy(&self, name: &str, state: &str, call: &CallView) -> PolicyFact {
        self.with_policy_named(name, |policy| match policy.check(state, call) {
            PolicyDecision { allowed: true, .. } => match policy.carry(call) {
                Some(text) if text.len() > CARRY_BYTES_MAX => {
                    too_large("carried text", CARRY_BYTES_MAX)
                }
                carry => PolicyFact::Allowed { carry },
            },
            PolicyDecision { allowed: false, reason } => PolicyFact::Denied { reason },
        })
    }

    fn on_result(&self, name: &str, state: &str, call: &CallView) -> PolicyFact {
        self.with_policy_named(name, |policy| match policy.on_result(state, call) {
            text if text.len() > POLICY_STATE_BYTES_MAX => {
                too_large("state", POLICY_STATE_BYTES_MAX)
            }
            text => PolicyFact::State { text },
        })
    }

    fn ask_checker(&self, name: &str) -> CheckFact {
        let Some(checker) = self.checkers.get(name) else {
            return CheckFact::Broken { reason: NOT_REGISTERED.to_owned() };
        };
        match catch_unwind(AssertUnwindSafe(|| checker.check())) {
            Ok(Ok(())) => CheckFact::Complete,
            Ok(Err(feedback)) => CheckFact::Incomplete { feedback: Some(feedback) },
            Err(_) => CheckFact::Broken { reason: PANICKED.to_owned() },
        }
    }

    fn ask_provider(&self, name: &str, view: &FeedbackView) -> FeedbackFact {
        let broken = |reason: String| FeedbackFact::Broken { reason };
        let Some(provider) = self.feedback.get(name) else {
            return broken(NOT_REGISTERED.to_owned());
        };
        let speak = || if provider.should_run(view) { provider.provide(view) } else { None };
        match catch_unwind(AssertUnwindSafe(speak)) {
            Ok(None) => FeedbackFact::Silent,
            Ok(Some(feedback)) if feedback.bytes() > FEEDBACK_BYTES_MAX => {
                broken(format!("its feedback is longer than {FEEDBACK_BYTES_MAX} bytes"))
            }
            Ok(Some(ProviderFeedback { severity, summary, observations, suggestions })) => {
                FeedbackFact::Message { severity, summary, observations, suggestions }
            }
            Err(_) => broken(PANICKED.to_owned()),
        }
    }

    /// Whether a query is for extensions written in Rust.
    pub(crate) fn handles(query: &Query) -> bool {
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
                Fact::Policy(self.ask_policy(name, state, call))
            }
            Query::PolicyResult { name, state, call, .. } => {
                Fact::Policy(self.on_result(name, state, call))
            }
            Query::Checker { name } => Fact::Checker(self.ask_checker(name)),
            Query::Feedback { name, view, .. } => Fact::Feedback(self.ask_provider(name, view)),
            _ => Fact::Unknown,
        }
    }

    fn with_policy_named(
        &self,
        name: &str,
        ask: impl FnOnce(&dyn ToolPolicy) -> PolicyFact,
    ) -> PolicyFact {
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
        _scene: &FactContext<'_>,
        queries: &[Query],
        _deadline: FactDeadline,
    ) -> Result<Vec<Fact>, FactError> {
        Ok(queries.iter().map(|query| self.fact(query)).collect())
    }
}

fn names(checker: &CompletionRequirement, name: &str) -> bool {
    match checker {
        CompletionRequirement::Files(_)
        | CompletionRequirement::Command { .. }
        | CompletionRequirement::Clean
        | CompletionRequirement::DocsUpdated => false,
        CompletionRequirement::All(parts) | CompletionRequirement::Any(parts) => {
            parts.iter().any(|part| names(part, name))
        }
        CompletionRequirement::Custom { name: known } => known == name,
    }
}

fn too_large(what: &str, most: usize) -> PolicyFact {
    PolicyFact::Broken { reason: format!("its {what} is longer than {most} bytes") }
}

const NOT_REGISTERED: &str = "it is not registered with this runtime";
const PANICKED: &str = "it panicked";

#[cfg(test)]
mod tests {
    use jackline_engine::Timestamp;
    use jackline_engine::definition::{FeedbackProvider as Declared, FeedbackTrigger};

    use super::*;

    /// Gives feedback from the third call on, and panics at the seventh.
    struct CountingProvider;

    impl FeedbackProvider for CountingProvider {
        fn name(&self) -> &'static str {
            "counts"
        }

        fn should_run(&self, view: &FeedbackView) -> bool {
            view.tool_call_count > 2
        }

        fn provide(&self, view: &FeedbackView) -> Option<ProviderFeedback> {
            assert_ne!(view.tool_call_count, 7, "a bug in a provider");
            let summary =
                "x".repeat(if view.tool_call_count == 8 { FEEDBACK_BYTES_MAX + 1 } else { 1 });
            let feedback = ProviderFeedback::new(Severity::Warning, summary);
            (view.tool_call_count != 6)
                .then(|| ProviderFeedback { suggestions: vec!["rest".into()], ..feedback })
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
    fn a_provider_gives_feedback_when_it_has_a_reason() {
        let extensions = Extensions::default().with_feedback(CountingProvider);
        let expected = FeedbackFact::Message {
            severity: Severity::Warning,
            summary: "x".to_owned(),
            observations: Vec::new(),
            suggestions: vec!["rest".to_owned()],
        };
        assert_eq!(extensions.ask_provider("counts", &view(2)), FeedbackFact::Silent);
        assert_eq!(extensions.ask_provider("counts", &view(3)), expected);
        assert_eq!(extensions.ask_provider("counts", &view(6)), FeedbackFact::Silent);
    }

    #[test]
    fn a_broken_provider_is_reported() {
        let extensions = Extensions::default().with_feedback(CountingProvider);
        assert_eq!(extensions.ask_provider("counts", &view(7)), broken("it panicked"));
        let too_much = broken("its feedback is longer than 65536 bytes");
        assert_eq!(extensions.ask_provider("counts", &view(8)), too_much);
        assert_eq!(extensions.ask_provider("other", &view(3)), broken(NOT_REGISTERED));
    }

    #[test]
    fn a_provider_that_no_definition_names_is_found() {
        let extensions = Extensions::default().with_feedback(CountingProvider);
        assert_eq!(extensions.first_unnamed(&Definition::default()), Some("counts"));
        let speech = FeedbackContent::Custom { name: "counts".to_owned() };
        let feedback = vec![Declared { speech, trigger: FeedbackTrigger::default() }];
        let definition = Definition { feedback, ..Definition::default() };
        assert_eq!(extensions.first_unnamed(&definition), None);
    }
}
