//! Who the agent is: a checksum over what it is made of, held against what a person has approved;
//! and the role it acts in.
//!
//! What a client does not show is unknown, goes into the checksum as that, and is written down so. Where a
//! person has approved no agent of this definition, no checksum is demanded.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Answers, Fold, Guard, Look, Objection, listed};
use crate::definition::Definition;
use crate::digest::Digest;
use crate::event::{Event, EventKind, SessionStarted};
use crate::facts::{Queries, Query};
use crate::proposal::Proposal;
use crate::session::Session;
use crate::state::State;
use crate::verdict::{
    Class, Decision, GuardName, SafetyAction, SafetyEvent, SafetyKind, ViolationSubtype,
    ViolationType,
};

const GUARD: GuardName = GuardName::Identity;
const KIND: ViolationType = ViolationType::IdentityViolation;
const MISMATCH: ViolationSubtype = ViolationSubtype::Mismatch;

/// How long a part may be; of a longer one its digest is kept.
const PART_BYTES_MAX: usize = 128;

/// Who may work under a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The roles in which an agent may call anything.
    pub roles: Vec<String>,
    /// The workflow that approvals are bound to.
    pub workflow: Option<String>,
}

impl Default for Identity {
    fn default() -> Self {
        Self { roles: Vec::from(["developer".to_owned()]), workflow: None }
    }
}

/// What an agent is made of, as far as its client shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// The hash of its system prompt.
    pub prompt: Option<String>,
    /// The hash of the schemas of its tools.
    pub tools: Option<String>,
    /// The model behind it.
    pub model: Option<String>,
    /// The hash of the parameters of the model.
    pub parameters: Option<String>,
    /// The role it acts in; no part of the checksum.
    pub role: Option<String>,
}

impl Agent {
    /// What the beginning of a session says of its agent.
    fn of(event: &Event) -> Option<Self> {
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
            prompt: kept(prompt_hash.as_deref()),
            tools: kept(tools_hash.as_deref()),
            model: kept(model.as_deref()),
            parameters: kept(parameters_hash.as_deref()),
            role: kept(role.as_deref()),
        })
    }

    /// The parts that are in the checksum, by name.
    pub fn parts(&self) -> [(&'static str, Option<&str>); 4] {
        [
            ("prompt", self.prompt.as_deref()),
            ("tools", self.tools.as_deref()),
            ("model", self.model.as_deref()),
            ("parameters", self.parameters.as_deref()),
        ]
    }

    /// The names of the parts that its client does not show.
    pub fn unknown(&self) -> Vec<&'static str> {
        self.parts().into_iter().filter(|(_, part)| part.is_none()).map(|(name, _)| name).collect()
    }

    /// The sha256 of the canonical JSON of its parts, and of the definition without `identity`.
    pub fn checksum(&self, definition: &Definition) -> Digest {
        // Keys come sorted, and there are no numbers: this is canonical.
        let mut parts: BTreeMap<&str, Value> =
            self.parts().into_iter().map(|(name, part)| (name, json!(part))).collect();
        parts.insert("definition", json!(without_identity(definition)));
        Digest::of(json!(parts).to_string().as_bytes())
    }
}

/// The checksum of a definition but for who may work under it.
pub fn without_identity(definition: &Definition) -> Digest {
    let mut rest = definition.clone();
    rest.identity = None;
    // Plain data with text keys has no way to fail to be JSON.
    Digest::of(&serde_json::to_vec(&rest).unwrap_or_default())
}

/// A text of bounded length that is the same only for the same text.
fn kept(text: Option<&str>) -> Option<String> {
    text.map(|text| {
        let is_short = text.len() <= PART_BYTES_MAX;
        if is_short { text.to_owned() } else { format!("sha256:{}", Digest::of(text.as_bytes())) }
    })
}

/// What a session remembers of its agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) agent: Agent,
    standing: Standing,
}

/// Whether the agent is one that was approved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Standing {
    /// Nobody has looked yet.
    #[default]
    Unchecked,
    /// It is, or nothing is demanded.
    Good,
    /// It is not, and that is only written down.
    Observed,
    /// It is not.
    Refused,
}

impl Known {
    /// Whether the session is held because of who its agent is.
    pub(crate) fn is_refused(&self) -> bool {
        self.standing == Standing::Refused
    }
}

impl Session {
    /// What the agent is made of, as far as its client shows it.
    pub fn agent(&self) -> &Agent {
        &self.state().identity.agent
    }

    /// The checksum of its agent.
    pub fn agent_checksum(&self) -> Digest {
        self.agent().checksum(self.definition())
    }
}

pub(crate) struct IdentityGuard;

impl Guard for IdentityGuard {
    fn needs(&self, look: Look<'_>, queries: &mut Queries) {
        let known = &look.state.identity;
        let starts = Agent::of(look.event).is_some();
        let works = look.event.kind.is_work();
        let asks = starts || (works && (known.standing != Standing::Good || is_privileged(look)));
        if asks && look.facts.pins.is_none() {
            let identity = look.definition.identity.as_ref();
            queries.ask(Query::Pins {
                definition: look.definition.name.clone(),
                workflow: identity.and_then(|identity| identity.workflow.clone()),
            });
        }
    }

    fn decide(&self, look: Look<'_>, answers: &mut Answers) {
        let starts = Agent::of(look.event);
        let works = look.event.kind.is_work();
        if starts.is_none() && !works {
            return;
        }
        let agent = starts.as_ref().unwrap_or(&look.state.identity.agent);
        let fault = fault(look, agent);
        // Said once, when it is found.
        let is_news = starts.is_some() || look.state.identity.standing == Standing::Unchecked;
        if let Some((_, details)) = fault.as_ref().filter(|_| is_news) {
            answers.safety.push(SafetyEvent {
                timestamp: look.clock.now(),
                kind: SafetyKind::IdentityMismatch,
                details: details.clone(),
                action_taken: if answers.enforces() {
                    SafetyAction::Denied
                } else {
                    SafetyAction::Observed
                },
            });
        }
        if !works {
            return;
        }
        if let Some((message, _)) = fault {
            let name = &look.definition.name;
            answers.object(objection(
                MISMATCH,
                message,
                name.clone(),
                "a person looks at it with `jackline identity show`, and lets it work with `jackline identity approve`"
                    .to_owned(),
            ));
        }
        roles(look, agent.role.as_deref(), answers);
    }

    fn apply(&self, state: &mut State, fold: Fold<'_>) {
        let record = fold.record;
        let known = &mut state.identity;
        let starts = Agent::of(record.event);
        if starts.is_none() && !record.event.kind.is_work() {
            return;
        }
        let mut safety = record.verdict.safety.iter();
        let found = safety.find(|it| it.kind == SafetyKind::IdentityMismatch);
        let mut objections = record.verdict.violations.iter();
        let objection = objections.find(|it| it.guard == GUARD && it.subtype == MISMATCH);
        let holds = objection
            .map(|it| it.enforced)
            .or_else(|| found.map(|event| event.action_taken == SafetyAction::Denied));
        known.standing = match holds {
            Some(true) => Standing::Refused,
            Some(false) => Standing::Observed,
            None => Standing::Good,
        };
        if let Some(agent) = starts {
            known.agent = agent;
        }
    }
}

/// Why the agent is none that was approved, and what the safety log says of it.
fn fault(look: Look<'_>, agent: &Agent) -> Option<(String, BTreeMap<String, Value>)> {
    let pins = look.facts.pins.as_ref()?;
    let name = &look.definition.name;
    if let Some(reason) = &pins.broken {
        let message = format!("nobody can tell which agents are approved for `{name}`: {reason}");
        return Some((message, BTreeMap::from([("reason".to_owned(), json!(reason))])));
    }
    if !pins.demanded {
        return None;
    }
    let checksum = agent.checksum(look.definition);
    if pins.checksums.contains(&checksum) {
        return None;
    }
    let details = BTreeMap::from([
        ("checksum".to_owned(), json!(checksum)),
        ("definition".to_owned(), json!(name)),
        ("unknown".to_owned(), json!(agent.unknown())),
    ]);
    Some((
        format!("no person has approved this agent for `{name}`: its checksum is {checksum}"),
        details,
    ))
}

/// Objects to roles that may not do this.
fn roles(look: Look<'_>, role: Option<&str>, answers: &mut Answers) {
    let is_in = |roles: &[String]| role.is_some_and(|role| roles.iter().any(|it| it == role));
    let acts = role.map_or_else(|| "no role".to_string(), |role| format!("the role `{role}`"));
    let correction = |key: &str| {
        format!(
            "a person starts the agent in another role (`role` of `session_started`), or changes `{key}`"
        )
    };
    if let Some(identity) = &look.definition.identity
        && !is_in(&identity.roles)
    {
        let may = may(&identity.roles);
        let message = format!("this agent acts in {acts}, and only {may} may work here");
        let key = "identity.roles";
        answers.object(objection(ViolationSubtype::Role, message, key.to_owned(), correction(key)));
    }
    for tool in look.proposal.into_iter().flat_map(Proposal::tools) {
        let roles = tool.declared.and_then(|tool| tool.roles.as_deref());
        let Some(roles) = roles.filter(|roles| !is_in(roles)) else { continue };
        let may = may(roles);
        let message = format!("this agent acts in {acts}, and `{}` is for {may}", tool.name);
        let correction = correction(&format!("tools.{}.roles", tool.name));
        answers.object(objection(
            ViolationSubtype::Privileged,
            message,
            tool.name.to_owned(),
            correction,
        ));
    }
}

/// Roles, for messages. Two layers may leave none of them.
fn may(roles: &[String]) -> String {
    if roles.is_empty() { "nobody".to_owned() } else { listed(roles.iter().map(String::as_str)) }
}

/// Whether a call is one of a tool that is only for some roles.
fn is_privileged(look: Look<'_>) -> bool {
    let mut tools = look.proposal.into_iter().flat_map(Proposal::tools);
    tools.any(|tool| tool.declared.is_some_and(|tool| tool.roles.is_some()))
}

fn objection(
    subtype: ViolationSubtype,
    message: String,
    location: String,
    correction: String,
) -> Objection {
    Objection {
        guard: GUARD,
        kind: KIND,
        subtype,
        class: Class::Terminal,
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
        let plain = Agent::default().checksum(&definition);
        let some = Some("x".to_owned());
        for other in [
            Agent { prompt: some.clone(), ..Agent::default() },
            Agent { tools: some.clone(), ..Agent::default() },
            Agent { model: some.clone(), ..Agent::default() },
            Agent { parameters: some.clone(), ..Agent::default() },
        ] {
            assert_ne!(other.checksum(&definition), plain, "{other:?}");
            assert_eq!(other.unknown().len(), 3);
        }
        // The role is what it acts in, not what it is.
        assert_eq!(Agent { role: some, ..Agent::default() }.checksum(&definition), plain);
        let renamed = Definition { name: "a/b".to_owned(), ..Definition::default() };
        assert_ne!(Agent::default().checksum(&renamed), plain);
        let bound = Definition { identity: Some(Identity::default()), ..Definition::default() };
        assert_eq!(Agent::default().checksum(&bound), plain);
        // That a part is unknown is not that it is empty.
        let empty = Agent { model: Some(String::new()), ..Agent::default() };
        assert_ne!(empty.checksum(&definition), plain);
    }

    #[test]
    fn a_long_part_is_kept_by_its_digest() {
        let long = "m".repeat(10_000);
        let other = format!("{long}x");
        assert_eq!(kept(Some("m")).as_deref(), Some("m"));
        assert!(kept(Some(&long)).unwrap().len() < PART_BYTES_MAX);
        assert_ne!(kept(Some(&long)), kept(Some(&other)));
        assert_eq!(kept(None), None);
    }
}
