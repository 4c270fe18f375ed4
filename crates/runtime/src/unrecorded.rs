//! Decides on an event that no journal will hold, for programs that explain.

use std::path::Path;

use jackline_engine::{Digest, Event, Facts, Session, Verdict};
use jackline_journal::MemoryStore;

use crate::definitions::Definitions;
use crate::facts::{FactSource as _, FactSources, Scene, gather};
use crate::runtime::Fault;

/// The definition of a session, as records name it.
#[derive(Debug, Clone, Copy)]
pub struct NamedDefinition {
    /// The checksum of its files.
    pub checksum: Digest,
    /// The digest of its stored form.
    pub digest: Digest,
}

/// Decides as a live session on this machine would, and records nothing. The facts hold what is
/// known already.
pub fn decide_unrecorded(
    session: &Session,
    (definitions, named): (&Definitions, NamedDefinition),
    event: &Event,
    mut facts: Facts,
) -> Result<(Verdict, Facts), Fault> {
    let place = session.place();
    let scene = Scene {
        session: &event.session,
        workspace: place.workspace.as_deref().map(Path::new),
        definitions,
        definition: session.definition(),
        definition_files: &place.definition,
        definition_checksum: named.checksum,
        definition_digest: named.digest,
        // What protected files hold is kept for as long as this takes.
        store: &MemoryStore::default(),
        // Without one, nothing can be started.
        session_directory: None,
    };
    let mut sources = FactSources::default();
    let deadline = sources.deadline();
    session.ground().understand(event, |understood| {
        let ask = |batch: &[_]| sources.answer(&scene, batch, deadline);
        gather(session, understood, &mut facts, ask)?;
        let verdict = session.decide_on(understood, &facts);
        Ok((verdict, facts))
    })
}
