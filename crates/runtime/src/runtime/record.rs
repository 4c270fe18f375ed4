//! Makes a record durable and goes on from it.

use jackline_engine::facts::ReloadFact;
use jackline_engine::session::Understood;
use jackline_engine::{Digest, FaultKind, Record};
use jackline_journal::{Body, Note, Retention};
use serde_json::value::RawValue;

use super::settings::Saving;
use super::{Fault, Runtime};
use crate::live::Live;
use crate::restore::{self, Was};

/// A record carries a snapshot this often, which bounds a rebuild.
const SNAPSHOT_EVERY: u64 = 4096;

impl Runtime {
    /// Gives protected files back.
    pub(super) fn give_back(&mut self, live: &Live, damaged: &[(String, Option<Digest>)]) {
        for (path, contents) in damaged {
            let Some(absolute) = live.workspace().map(|workspace| workspace.join(path)) else {
                continue;
            };
            let was = contents.map_or(Was::Missing, Was::File);
            let path = path.clone();
            self.note(match restore::give_back(self.sessions.store(), &absolute, was) {
                Ok(replaced) => Note::GivenBack { path, kept: replaced.sha256 },
                Err(error) => {
                    let reason = format!("can't give `{path}` back: {error}");
                    Note::Fault { kind: FaultKind::Protected, reason }
                }
            });
        }
    }

    /// Appends a record, and folds it into the session.
    pub(super) fn append(
        &mut self,
        live: &mut Live,
        understood: &Understood<'_>,
        record: &Record<'_>,
        json: &RawValue,
    ) -> Result<(), Fault> {
        let &Record { seq, event, facts, .. } = record;
        let defined = live.defined.after(record);
        let after = (seq.is_multiple_of(SNAPSHOT_EVERY)).then(|| {
            let mut after = live.session.clone();
            after.apply_on(understood, record);
            Live::snapshot(&after, &defined)
        });
        if let Some(bytes) = live.log.take_repaired() {
            // Kept with the others, so that it outlasts an append that fails.
            self.faults.note_repaired(bytes);
        }
        let notes = self.faults.pending();
        let mut bodies: Vec<Body> = live.opening.iter().map(Body::opened).collect();
        bodies.push(Body::event(seq, event, facts, json, &notes, after.as_ref()));
        if let Some(opening) = &live.opening {
            live.log.keep_definition(&opening.definition.lowered)?;
        }
        // One that is refused is a fact all the same, and replay needs its facts.
        if let Some(ReloadFact::New(new)) = &facts.reload {
            live.log.keep_definition(&new.lowered)?;
        }
        let head = live.log.append(live.head, &bodies)?;
        self.faults.clear();

        if live.opening.take().is_some() {
            let journal = &live.session.definition().journal;
            self.sessions.set_retention(Retention {
                workspace: live.session.place().workspace.clone().unwrap_or_default(),
                bytes: journal.retain_bytes,
                days: journal.retain_days,
            });
        }
        live.session.apply_on(understood, record);
        live.defined = defined;
        live.head = Some(head);
        live.unsaved = true;
        if self.settings.saving == Saving::AtOnce {
            let saved = live.save();
            self.note_failed(saved);
        }
        Ok(())
    }
}
