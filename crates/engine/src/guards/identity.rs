//! The identity guard: it compares a checksum of the agent with the checksums that a person
//! approved, and it checks the agent's role.
//!
//! A part that the client does not report counts as unknown. The checksum includes that fact. If no
//! person has approved an agent for this definition, no checksum is required.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{FoldInput, Guard, GuardAnswers, GuardInput, ViolationDraft, join_names};
use crate::definition::Definition;
use crate::digest::Digest;
use crate::event::{Event, EventKind, SessionStarted};
use crate::facts::{Queries, Query};
use crate::proposal::Proposal;
use crate::session::Session;
use crate::state::SessionState;
use crate::verdict::{
    Decision, GuardName, SafetyAction, SafetyEvent, SafetyKind, ViolationClass, ViolationSubtype,
    ViolationType,
};

const GUARD: GuardName = GuardName::Identity;
const IDENTITY_VIOLATION: ViolationType = ViolationType::IdentityViolation;
const MISMATCH: ViolationSubtype = ViolationSubtype::Mismatch;

/// The key of the roles in which an agent may call tools.
const ROLES_KEY: &str = "identity.roles";

/// The detail of an entry in the safety log that says which check failed.
const SUBTYPE_DETAIL: &str = "subtype";

/// How long a stored part may be. A longer part is stored as its digest.
const PART_BYTES_MAX: usize = 128;

/// The role of an agent if neither the agent nor the definition names one.
pub const ROLE_DEFAULT: &str = "developer";

/// Who may work under a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentitySettings {
    /// The roles in which an agent may call tools.
    pub roles: Vec<String>,
    /// The role of an agent that names none.
    #[serde(default = "default_role")]
    pub default_role: String,
    /// The workflow that approvals are bound to.
    pub workflow: Option<String>,
}

impl Default for IdentitySettings {
    fn default() -> Self {
        Self {
            roles: Vec::from([ROLE_DEFAULT.to_owned()]),
            default_role: default_role(),
            workflow: None,
        }
    }
}

fn default_role() -> String {
    ROLE_DEFAULT.to_owned()
}

/// The parts of an agent that its client reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProfile {
    /// The hash of its system prompt.
    pub prompt: Option<String>,
    /// The hash of the schemas of its tools.
    pub tools: Option<String>,
    /// The name of the model.
    pub model: Option<String>,
    /// The hash of the model's parameters.
    pub parameters: Option<String>,
    /// The role of the agent. The checksum does not include it.
    pub role: Option<String>,
}

impl AgentProfile {
    /// Reads the parts from the start event of a session.
    fn from_start(event: &Event) -> Option<Self> {
        let EventKind::SessionStarted(SessionStarted {
            model,
            prompt_hash,
            tools_hash,
            parameters_hash,
            role,
            ..
        }) = &event.kind
        else {
            return None;
        };
        event.actor.is_main().then(|| Self {
            prompt: bounded_part(prompt_hash.as_deref()),
            tools: bounded_part(tools_hash.as_deref()),
            model: bounded_part(model.as_deref()),
            parameters: bounded_part(parameters_hash.as_deref()),
            role: bounded_part(role.as_deref()),
        })
    }

    /// Returns the parts that the checksum includes, by name.
    pub fn parts(&self) -> [(&'static str, Option<&str>); 4] {
        [
            ("prompt", self.prompt.as_deref()),
            ("tools", self.tools.as_deref()),
            ("model", self.model.as_deref()),
            ("parameters", self.parameters.as_deref()),
        ]
    }

    /// Returns the names of the parts that the client does not report.
    pub fn unknown_parts(&self) -> Vec<&'static str> {
        self.parts().into_iter().filter(|(_, part)| part.is_none()).map(|(name, _)| name).collect()
    }

    /// Returns the sha256 of the canonical JSON of the parts and of the definition without
    /// `identity`.
    pub fn checksum(&self, definition: &Definition) -> Digest {
        // The keys are sorted and there are no numbers, so the JSON is canonical.
        let mut parts: BTreeMap<&str, Value> =
            self.parts().into_iter().map(|(name, part)| (name, json!(part))).collect();
        parts.insert("definition", json!(checksum_without_identity(definition)));
        Digest::of(json!(parts).to_string().as_bytes())
    }
}

/// Returns the checksum of a definition without its `identity`.
pub fn checksum_without_identity(definition: &Definition) -> Digest {
    let mut rest = definition.clone();
    rest.identity = None;
    // Serialising plain data with text keys cannot fail.
    Digest::of(&serde_json::to_vec(&rest).unwrap_or_default())
}

/// Shortens a text. Different texts stay different.
fn bounded_part(text: Option<&str>) -> Option<String> {
    text.map(|text| {
        let is_short = text.len() <= PART_BYTES_MAX;
        if is_short { text.to_owned() } else { format!("sha256:{}", Digest::of(text.as_bytes())) }
    })
}

/// The identity of a session's agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionIdentity {
    pub(crate) agent: AgentProfile,
    standing: ApprovalState,
}

/// Whether a person has approved the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum ApprovalState {
    /// The check has not run yet.
    #[default]
    Unchecked,
    /// Approved, or no approval is required.
    Good,
    /// Not approved, but the definition only observes.
    Observed,
    /// Not approved, and calls are denied.
    Refused,
}

impl SessionIdentity {
    /// Returns whether calls are denied because the agent is not approved.
    pub(crate) fn is_refused(&self) -> bool {
        self.standing == ApprovalState::Refused
    }
}

impl Session {
    /// Returns the parts of the agent that its client reports.
    pub fn agent(&self) -> &AgentProfile {
        &self.state().identity.agent
    }

    /// Returns the checksum of the agent.
    pub fn agent_checksum(&self) -> Digest {
        self.agent().checksum(self.definition())
    }
}

impl SafetyEvent {
    /// Returns whether it says that no person has approved the agent. An agent in a wrong role may
    /// be approved.
    // INVARIANT: an entry without a known subtype counts as a missing approval.
    pub fn is_unapproved_agent(&self) -> bool {
        let subtype = self.details.get(SUBTYPE_DETAIL).and_then(Value::as_str);
        let is_about_role = [ViolationSubtype::Role, ViolationSubtype::Privileged]
            .iter()
            .any(|role| subtype == Some(role.as_str()));
        self.kind == SafetyKind::IdentityMismatch && !is_about_role
    }
}

pub(crate) struct IdentityGuard;

impl Guard for IdentityGuard {
    fn needs(&self, input: GuardInput<'_>, queries: &mut Queries) {
        let identity = &input.state.identity;
        let is_start = AgentProfile::from_start(input.event).is_some();
        let is_work = input.event.kind.is_work();
        let needs_approvals = is_start
            || (is_work && (identity.standing != ApprovalState::Good || is_privileged(input)));
        if needs_approvals && input.facts.pins.is_none() {
            let settings = input.definition.identity.as_ref();
            queries.ask(Query::Pins {
                definition: input.definition.name.clone(),
                workflow: settings.and_then(|settings| settings.workflow.clone()),
            });
        }
    }

    fn decide(&self, input: GuardInput<'_>, answers: &mut GuardAnswers) {
        let started = AgentProfile::from_start(input.event);
        let is_work = input.event.kind.is_work();
        if started.is_none() && !is_work {
            return;
        }
        let agent = started.as_ref().unwrap_or(&input.state.identity.agent);
        let fault = approval_fault(input, agent);
        // The safety log gets one event, when the mismatch is found.
        let is_news =
            started.is_some() || input.state.identity.standing == ApprovalState::Unchecked;
        if let Some((_, details)) = fault.as_ref().filter(|_| is_news) {
            log_mismatch(input, &MISMATCH, details.clone(), answers);
        }
        if !is_work {
            return;
        }
        if let Some((message, _)) = fault {
            let name = &input.definition.name;
            answers.add_violation(identity_violation(
                MISMATCH,
                message,
                name.clone(),
                "a person can inspect it with `jackline identity show` and approve it with \
                 `jackline identity approve`"
                    .to_owned(),
            ));
        }
        check_roles(input, agent.role.as_deref(), answers);
    }

    fn apply(&self, state: &mut SessionState, fold: FoldInput<'_>) {
        let record = fold.record;
        let identity = &mut state.identity;
        let started = AgentProfile::from_start(record.event);
        if started.is_none() && !record.event.kind.is_work() {
            return;
        }
        let mismatch = record.verdict.safety.iter().find(|event| event.is_unapproved_agent());
        let mut violations = record.verdict.violations.iter();
        let violation =
            violations.find(|violation| violation.guard == GUARD && violation.subtype == MISMATCH);
        let is_enforced = violation
            .map(|violation| violation.enforced)
            .or_else(|| mismatch.map(|event| event.action_taken == SafetyAction::Denied));
        identity.standing = match is_enforced {
            Some(true) => ApprovalState::Refused,
            Some(false) => ApprovalState::Observed,
            None => ApprovalState::Good,
        };
        if let Some(agent) = started {
            identity.agent = agent;
        }
    }
}

/// Returns why the agent is not approved, with the details for the safety log.
fn approval_fault(
    input: GuardInput<'_>,
    agent: &AgentProfile,
) -> Option<(String, BTreeMap<String, Value>)> {
    let pins = input.facts.pins.as_ref()?;
    let name = &input.definition.name;
    if let Some(reason) = &pins.broken {
        let message = format!("the list of agents approved for `{name}` cannot be read: {reason}");
        return Some((message, BTreeMap::from([("reason".to_owned(), json!(reason))])));
    }
    if !pins.demanded {
        return None;
    }
    let checksum = agent.checksum(input.definition);
    if pins.checksums.contains(&checksum) {
        return None;
    }
    let details = BTreeMap::from([
        ("checksum".to_owned(), json!(checksum)),
        ("definition".to_owned(), json!(name)),
        ("unknown".to_owned(), json!(agent.unknown_parts())),
    ]);
    Some((
        format!("no person has approved this agent for `{name}`: its checksum is {checksum}"),
        details,
    ))
}

/// Adds an entry to the safety log. Its detail `subtype` says which check failed.
fn log_mismatch(
    input: GuardInput<'_>,
    subtype: &ViolationSubtype,
    mut details: BTreeMap<String, Value>,
    answers: &mut GuardAnswers,
) {
    details.insert(SUBTYPE_DETAIL.to_owned(), json!(subtype));
    let action_taken =
        if answers.is_enforcing() { SafetyAction::Denied } else { SafetyAction::Observed };
    answers.safety.push(SafetyEvent {
        timestamp: input.clock.now(),
        kind: SafetyKind::IdentityMismatch,
        details,
        action_taken,
    });
}

/// A list of roles that does not contain the role of the agent.
struct RoleMismatch<'a> {
    subtype: ViolationSubtype,
    /// Who has the allowed roles, as a message says it.
    purpose: String,
    allowed: &'a [String],
    location: &'a str,
    /// The key of the definition that lists the roles.
    key: String,
}

/// Adds violations for roles that may not make this call, and one entry to the safety log.
fn check_roles(input: GuardInput<'_>, role: Option<&str>, answers: &mut GuardAnswers) {
    let default = input.definition.identity.as_ref().map(|identity| &*identity.default_role);
    let acts_as = role.or(default).unwrap_or(ROLE_DEFAULT);
    let current = match role {
        Some(_) => format!("the role `{acts_as}`"),
        None => format!("the default role `{acts_as}`, because its client names none"),
    };
    let mismatches = role_mismatches(input, acts_as);
    if let Some(first) = mismatches.first() {
        let details = BTreeMap::from([
            ("role".to_owned(), json!(acts_as)),
            ("allowed".to_owned(), json!(first.allowed)),
            ("key".to_owned(), json!(first.key)),
        ]);
        log_mismatch(input, &first.subtype, details, answers);
    }
    for RoleMismatch { subtype, purpose, allowed, location, key } in mismatches {
        let allowed = list_roles(allowed);
        let message =
            format!("this agent has {current}; the roles allowed {purpose} are: {allowed}");
        let correction = format!(
            "a person can start the agent in another role (`jackline init --role ROLE` for an \
             agent client, `jackline run --role ROLE`, or `role` of `session_started`), or change \
             `{key}` or `identity.default_role`"
        );
        answers.add_violation(identity_violation(
            subtype,
            message,
            location.to_owned(),
            correction,
        ));
    }
}

/// Returns the lists of roles that do not contain this one: the list of the definition, and those
/// of the tools that the call uses.
fn role_mismatches<'a>(input: GuardInput<'a>, role: &str) -> Vec<RoleMismatch<'a>> {
    let is_out = |roles: &[String]| roles.iter().all(|allowed| allowed != role);
    let identity = input.definition.identity.as_ref().filter(|it| is_out(&it.roles));
    let mut mismatches: Vec<RoleMismatch<'a>> = Vec::from_iter(identity.map(|it| RoleMismatch {
        subtype: ViolationSubtype::Role,
        purpose: "here".to_owned(),
        allowed: &it.roles,
        location: ROLES_KEY,
        key: ROLES_KEY.to_owned(),
    }));
    for tool in input.proposal.into_iter().flat_map(Proposal::tools) {
        let roles = tool.declared.and_then(|tool| tool.roles.as_deref());
        let Some(allowed) = roles.filter(|roles| is_out(roles)) else { continue };
        mismatches.push(RoleMismatch {
            subtype: ViolationSubtype::Privileged,
            purpose: format!("to call `{}`", tool.name),
            allowed,
            location: tool.name,
            key: format!("tools.{}.roles", tool.name),
        });
    }
    mismatches
}

/// Lists roles for a message. The intersection of two definition layers may be empty.
fn list_roles(roles: &[String]) -> String {
    if roles.is_empty() { "none".to_owned() } else { join_names(roles.iter().map(String::as_str)) }
}

/// Returns whether a call uses a tool that is limited to some roles.
fn is_privileged(input: GuardInput<'_>) -> bool {
    let mut tools = input.proposal.into_iter().flat_map(Proposal::tools);
    tools.any(|tool| tool.declared.is_some_and(|tool| tool.roles.is_some()))
}

fn identity_violation(
    subtype: ViolationSubtype,
    message: String,
    location: String,
    correction: String,
) -> ViolationDraft {
    ViolationDraft {
        guard: GUARD,
        kind: IDENTITY_VIOLATION,
        subtype,
        class: ViolationClass::Terminal,
        decision: Decision::Deny,
        message,
        location: Some(location),
        correction: Some(correction),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_and_the_definition_are_in_the_checksum() {
        let definition = Definition::default();
        let plain = AgentProfile::default().checksum(&definition);
        let some = Some("x".to_owned());
        for other in [
            AgentProfile { prompt: some.clone(), ..AgentProfile::default() },
            AgentProfile { tools: some.clone(), ..AgentProfile::default() },
            AgentProfile { model: some.clone(), ..AgentProfile::default() },
            AgentProfile { parameters: some.clone(), ..AgentProfile::default() },
        ] {
            assert_ne!(other.checksum(&definition), plain, "{other:?}");
            assert_eq!(other.unknown_parts().len(), 3);
        }
        // The role is not a part of the checksum.
        assert_eq!(
            AgentProfile { role: some, ..AgentProfile::default() }.checksum(&definition),
            plain
        );
        let renamed = Definition { name: "a/b".to_owned(), ..Definition::default() };
        assert_ne!(AgentProfile::default().checksum(&renamed), plain);
        let bound =
            Definition { identity: Some(IdentitySettings::default()), ..Definition::default() };
        assert_eq!(AgentProfile::default().checksum(&bound), plain);
        // An unknown part differs from an empty part.
        let empty = AgentProfile { model: Some(String::new()), ..AgentProfile::default() };
        assert_ne!(empty.checksum(&definition), plain);
    }

    #[test]
    fn a_long_part_is_stored_as_its_digest() {
        let long = "m".repeat(10_000);
        let other = format!("{long}x");
        assert_eq!(bounded_part(Some("m")).as_deref(), Some("m"));
        assert!(bounded_part(Some(&long)).unwrap().len() < PART_BYTES_MAX);
        assert_ne!(bounded_part(Some(&long)), bounded_part(Some(&other)));
        assert_eq!(bounded_part(None), None);
    }
}
