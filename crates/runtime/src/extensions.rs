//! Policies and checkers written in Rust.
//!
//! They run here, not in the engine: what they said is recorded as a fact, so
//! a journal replays without them. Their memory is part of the session.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jackline_engine::definition::{Checker, Definition, Policy, PolicyRule};
use jackline_engine::{CARRY_BYTES_MAX, CallView, CheckFact, POLICY_BYTES_MAX, PolicyFact};

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

/// The policies and checkers of a runtime.
#[derive(Default)]
pub struct Extensions {
    policies: BTreeMap<String, Box<dyn ToolPolicy>>,
    checkers: BTreeMap<String, Box<dyn CompletionChecker>>,
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

    /// A policy or checker that a definition does not name, and so never asks.
    pub(crate) fn unnamed(&self, definition: &Definition) -> Option<&str> {
        let named_policy = |name: &str| {
            let is_it = |policy: &Policy| matches!(&policy.rule, PolicyRule::Custom { name: n } if n == name);
            definition.policies.iter().any(is_it)
        };
        let policies = self.policies.keys().filter(|name| !named_policy(name));
        let named_checker =
            |name: &str| definition.completion.as_ref().is_some_and(|checker| names(checker, name));
        let checkers = self.checkers.keys().filter(|name| !named_checker(name));
        policies.chain(checkers).map(String::as_str).next()
    }

    pub(crate) fn check(&self, name: &str, state: &str, call: &CallView) -> PolicyFact {
        self.ask(name, |policy| match policy.check(state, call) {
            PolicyDecision { allowed: true, .. } => match policy.carry(call) {
                Some(text) if text.len() > CARRY_BYTES_MAX => too_much("carry", CARRY_BYTES_MAX),
                carry => PolicyFact::Allowed { carry },
            },
            PolicyDecision { allowed: false, reason } => PolicyFact::Denied { reason },
        })
    }

    pub(crate) fn on_result(&self, name: &str, state: &str, call: &CallView) -> PolicyFact {
        self.ask(name, |policy| match policy.on_result(state, call) {
            text if text.len() > POLICY_BYTES_MAX => too_much("remember", POLICY_BYTES_MAX),
            text => PolicyFact::State { text },
        })
    }

    pub(crate) fn complete(&self, name: &str) -> CheckFact {
        let Some(checker) = self.checkers.get(name) else {
            return CheckFact::Broken { reason: NOT_REGISTERED.to_owned() };
        };
        match catch_unwind(AssertUnwindSafe(|| checker.check())) {
            Ok(Ok(())) => CheckFact::Complete,
            Ok(Err(feedback)) => CheckFact::Incomplete { feedback: Some(feedback) },
            Err(_) => CheckFact::Broken { reason: PANICKED.to_owned() },
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

fn names(checker: &Checker, name: &str) -> bool {
    match checker {
        Checker::Files(_) | Checker::Command { .. } => false,
        Checker::All(parts) | Checker::Any(parts) => parts.iter().any(|part| names(part, name)),
        Checker::Custom { name: known } => known == name,
    }
}

fn too_much(what: &str, most: usize) -> PolicyFact {
    PolicyFact::Broken { reason: format!("it wants to {what} more than {most} bytes") }
}

const NOT_REGISTERED: &str = "it is not registered with this runtime";
const PANICKED: &str = "it panicked";
