//! The agents that a person has approved.
//!
//! The document `approvals` in the state home has one approval per line: a checksum, for one
//! definition by its name, for one workflow or for all. An invalid line may have been an approval.
//! Jackline then can't know which agents are approved, so the gate denies.

use std::sync::Arc;

use jackline_engine::facts::PinsFact;
use jackline_engine::{Digest, SessionId, Timestamp};
use jackline_journal::StoreError;
use serde::{Deserialize, Serialize};

use crate::document_lines::DocumentLines;
use crate::state_home::{StateDocument, StateHome};

/// One approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentApproval {
    /// The checksum of the agent.
    pub checksum: Digest,
    /// The name of the definition.
    pub definition: String,
    /// The workflow; `None` means all workflows.
    pub workflow: Option<String>,
    /// The session in which the agent was seen.
    pub session: SessionId,
    /// The time of the approval.
    pub at: Timestamp,
    /// The person who gave it.
    pub by: String,
    /// The reason.
    pub why: Option<String>,
}

/// The approvals of a state home.
#[derive(Debug, Clone)]
pub struct AgentApprovals {
    lines: DocumentLines,
}

impl AgentApprovals {
    /// Opens the approvals of a state home.
    pub fn of(home: Arc<dyn StateHome>) -> Self {
        Self { lines: DocumentLines::new(home, StateDocument::Approvals) }
    }

    /// Every valid approval, in the order in which they were given.
    pub fn list(&self) -> Vec<AgentApproval> {
        self.lines.list()
    }

    /// The approvals as a fact for the engine.
    pub fn fact(&self, definition: &str, workflow: Option<&str>) -> PinsFact {
        let lines = match self.lines.read::<AgentApproval>() {
            Ok(lines) => lines.into_iter().collect::<Result<Vec<AgentApproval>, _>>(),
            Err(error) => return unreadable_approvals(&error),
        };
        let mut pins = match lines {
            Ok(pins) => pins,
            Err(error) => return unreadable_approvals(&error),
        };
        pins.retain(|pin| pin.definition == definition);
        let demanded = !pins.is_empty();
        let is_here =
            |pin: &&AgentApproval| pin.workflow.is_none() || pin.workflow.as_deref() == workflow;
        let checksums = pins.iter().filter(is_here).map(|pin| pin.checksum).collect();
        PinsFact { demanded, checksums, broken: None }
    }

    /// Approves an agent.
    pub fn approve(&self, pin: &AgentApproval) -> Result<(), StoreError> {
        self.lines.change(|pins: &mut Vec<AgentApproval>| {
            let is_it = |known: &AgentApproval| {
                (&known.checksum, &known.definition, &known.workflow)
                    == (&pin.checksum, &pin.definition, &pin.workflow)
            };
            pins.retain(|known| !is_it(known));
            pins.push(pin.clone());
        })
    }

    /// Removes the approvals of agents whose checksum begins with `beginning`, and returns them.
    pub fn revoke(&self, beginning: &str) -> Result<Vec<AgentApproval>, StoreError> {
        let mut gone = Vec::new();
        self.lines.change(|pins: &mut Vec<AgentApproval>| {
            let is_it = |pin: &AgentApproval| pin.checksum.to_string().starts_with(beginning);
            gone = pins.iter().filter(|pin| is_it(pin)).cloned().collect();
            pins.retain(|pin| !is_it(pin));
        })?;
        Ok(gone)
    }
}

fn unreadable_approvals(error: &dyn std::fmt::Display) -> PinsFact {
    let reason = format!("`approvals` in the state home can't be read: {error}");
    PinsFact { broken: Some(reason), ..PinsFact::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_home::FileStateHome;

    fn pin(name: &str, workflow: Option<&str>, text: &str) -> AgentApproval {
        AgentApproval {
            checksum: Digest::of(text.as_bytes()),
            definition: name.to_owned(),
            workflow: workflow.map(ToOwned::to_owned),
            session: SessionId::parse("s").unwrap(),
            at: Timestamp::from_ms(0),
            by: "dana".to_owned(),
            why: None,
        }
    }

    #[test]
    fn an_approval_is_for_one_definition_and_one_workflow_or_all() {
        let home = tempfile::tempdir().unwrap();
        let pins = AgentApprovals::of(Arc::new(FileStateHome::new(home.path())));
        assert_eq!(pins.fact("a/b", None), PinsFact::default());
        pins.approve(&pin("a/b", None, "x")).unwrap();
        pins.approve(&pin("a/b", Some("w"), "y")).unwrap();
        pins.approve(&pin("c/d", Some("w"), "z")).unwrap();
        let seen = |name: &str, workflow: Option<&str>| {
            let fact = pins.fact(name, workflow);
            (fact.demanded, fact.checksums)
        };
        let [x, y, z] = ["x", "y", "z"].map(|text| Digest::of(text.as_bytes()));
        assert_eq!(seen("a/b", None), (true, vec![x]));
        assert_eq!(seen("a/b", Some("w")), (true, vec![x, y]));
        assert_eq!(seen("c/d", Some("w")), (true, vec![z]));
        // An approval for one workflow makes approval mandatory for the others too.
        assert_eq!(seen("c/d", Some("other")), (true, vec![]));
        assert_eq!(seen("e/f", Some("w")), (false, vec![]));
        assert_eq!(pins.revoke(&x.to_string()[..12]).unwrap(), [pin("a/b", None, "x")]);
        assert_eq!(seen("a/b", None), (true, vec![]));
    }

    #[test]
    fn unreadable_approvals_block_every_agent() {
        let home = tempfile::tempdir().unwrap();
        let pins = AgentApprovals::of(Arc::new(FileStateHome::new(home.path())));
        pins.approve(&pin("a/b", None, "x")).unwrap();
        let text = std::fs::read_to_string(home.path().join("approvals")).unwrap();
        std::fs::write(home.path().join("approvals"), format!("{text}{{\n")).unwrap();
        assert!(pins.fact("a/b", None).broken.unwrap().contains("can't be read"));
        std::fs::remove_file(home.path().join("approvals")).unwrap();
        std::fs::create_dir(home.path().join("approvals")).unwrap();
        assert!(pins.fact("a/b", None).broken.is_some());
    }
}
