//! Which agents a person has approved.
//!
//! `approvals` in the state home has one approval a line: a checksum, for a definition by its name,
//! for all workflows or for one. A line that nobody can read may have been an approval, so then
//! nobody can tell, and the gate is shut.

use std::sync::Arc;

use jackline_engine::facts::PinsFact;
use jackline_engine::{Digest, SessionId, Timestamp};
use jackline_journal::StoreError;
use serde::{Deserialize, Serialize};

use crate::document_lines::DocumentLines;
use crate::state_home::{Document, StateHome};

/// One approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The checksum of the agent.
    pub checksum: Digest,
    /// The definition, by its name.
    pub definition: String,
    /// The workflow; none is all of them.
    pub workflow: Option<String>,
    /// The session in which it was seen.
    pub session: SessionId,
    /// When it was approved.
    pub at: Timestamp,
    /// By whom.
    pub by: String,
    /// Why.
    pub why: Option<String>,
}

/// The approvals of a state home.
#[derive(Debug, Clone)]
pub struct Pins {
    lines: DocumentLines,
}

impl Pins {
    /// The approvals in a state home.
    pub fn of(home: Arc<dyn StateHome>) -> Self {
        Self { lines: DocumentLines::new(home, Document::Approvals) }
    }

    /// Every approval that can be read, in the order in which they were given.
    pub fn list(&self) -> Vec<Pin> {
        self.lines.list()
    }

    /// What the engine has to know of them.
    pub fn fact(&self, definition: &str, workflow: Option<&str>) -> PinsFact {
        let lines = match self.lines.read::<Pin>() {
            Ok(lines) => lines.into_iter().collect::<Result<Vec<Pin>, _>>(),
            Err(error) => return broken(&error),
        };
        let mut pins = match lines {
            Ok(pins) => pins,
            Err(error) => return broken(&error),
        };
        pins.retain(|pin| pin.definition == definition);
        let demanded = !pins.is_empty();
        let is_here = |pin: &&Pin| pin.workflow.is_none() || pin.workflow.as_deref() == workflow;
        let checksums = pins.iter().filter(is_here).map(|pin| pin.checksum).collect();
        PinsFact { demanded, checksums, broken: None }
    }

    /// Approves an agent.
    pub fn approve(&self, pin: &Pin) -> Result<(), StoreError> {
        self.lines.change(|pins: &mut Vec<Pin>| {
            let is_it = |known: &Pin| {
                (&known.checksum, &known.definition, &known.workflow)
                    == (&pin.checksum, &pin.definition, &pin.workflow)
            };
            pins.retain(|known| !is_it(known));
            pins.push(pin.clone());
        })
    }

    /// Approves agents no longer whose checksum begins so; gives them.
    pub fn revoke(&self, beginning: &str) -> Result<Vec<Pin>, StoreError> {
        let mut gone = Vec::new();
        self.lines.change(|pins: &mut Vec<Pin>| {
            let is_it = |pin: &Pin| pin.checksum.to_string().starts_with(beginning);
            gone = pins.iter().filter(|pin| is_it(pin)).cloned().collect();
            pins.retain(|pin| !is_it(pin));
        })?;
        Ok(gone)
    }
}

fn broken(error: &dyn std::fmt::Display) -> PinsFact {
    let reason = format!("`approvals` in the state home can't be read: {error}");
    PinsFact { broken: Some(reason), ..PinsFact::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_home::FileStateHome;

    fn pin(name: &str, workflow: Option<&str>, text: &str) -> Pin {
        Pin {
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
        let pins = Pins::of(Arc::new(FileStateHome::new(home.path())));
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
        // Approved elsewhere is demanded here: another workflow frees nobody.
        assert_eq!(seen("c/d", Some("other")), (true, vec![]));
        assert_eq!(seen("e/f", Some("w")), (false, vec![]));
        assert_eq!(pins.revoke(&x.to_string()[..12]).unwrap(), [pin("a/b", None, "x")]);
        assert_eq!(seen("a/b", None), (true, vec![]));
    }

    #[test]
    fn what_can_t_be_read_shuts_the_gate() {
        let home = tempfile::tempdir().unwrap();
        let pins = Pins::of(Arc::new(FileStateHome::new(home.path())));
        pins.approve(&pin("a/b", None, "x")).unwrap();
        let text = std::fs::read_to_string(home.path().join("approvals")).unwrap();
        std::fs::write(home.path().join("approvals"), format!("{text}{{\n")).unwrap();
        assert!(pins.fact("a/b", None).broken.unwrap().contains("can't be read"));
        std::fs::remove_file(home.path().join("approvals")).unwrap();
        std::fs::create_dir(home.path().join("approvals")).unwrap();
        assert!(pins.fact("a/b", None).broken.is_some());
    }
}
