//! Decides on an event without recording it, for programs that explain decisions.

use std::path::Path;

use jackline_engine::{Digest, Event, Facts, Session, Verdict};
use jackline_journal::MemoryStore;

use crate::definitions::Definitions;
use crate::facts::{FactContext, FactSource as _, FactSources, gather};
use crate::runtime::RuntimeFault;

/// The identity of a session's definition, as records contain it.
#[derive(Debug, Clone, Copy)]
pub struct DefinitionDigests {
    /// The checksum of its files.
    pub checksum: Digest,
    /// The digest of its stored form.
    pub digest: Digest,
}

/// Decides as a live session on this machine would, but records nothing. `facts` holds the facts
/// that are already available.
pub fn decide_unrecorded(
    session: &Session,
    (definitions, named): (&Definitions, DefinitionDigests),
    event: &Event,
    mut facts: Facts,
) -> Result<(Verdict, Facts), RuntimeFault> {
    let place = session.location();
    let scene = FactContext {
        session: &event.session,
        workspace: place.workspace.as_deref().map(Path::new),
        definitions,
        definition: session.definition(),
        definition_files: &place.definition,
        guard_links: &place.links,
        definition_checksum: named.checksum,
        definition_digest: named.digest,
        // The contents of protected files are stored only during this call.
        store: &MemoryStore::default(),
        // Without a session directory, no check can be started.
        session_directory: None,
    };
    let mut sources = FactSources::default();
    let deadline = sources.deadline();
    session.event_interpreter().with_interpreted(event, |understood| {
        let ask = |batch: &[_]| sources.answer(&scene, batch, deadline);
        gather(session, understood, &mut facts, ask)?;
        let verdict = session.decide_interpreted(understood, &facts);
        Ok((verdict, facts))
    })
}
