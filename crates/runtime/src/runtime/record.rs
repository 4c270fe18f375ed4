//! Appends a record and applies it.

use jackline_engine::facts::ReloadFact;
use jackline_engine::session::InterpretedEvent;
use jackline_engine::{Digest, FaultKind, Record};
use jackline_journal::{JournalNote, RecordBody, Retention};
use serde_json::value::RawValue;

use super::settings::StateSaving;
use super::{Runtime, RuntimeFault};
use crate::guard_links::known_target;
use crate::live_session::LiveSession;
use crate::restore::{self, OriginalFile};
use crate::session_process::SessionProcessLock;

/// How often a record contains a snapshot. This bounds the work of a rebuild.
const SNAPSHOT_EVERY: u64 = 4096;

impl Runtime {
    /// Restores protected files.
    pub(super) fn restore_files(
        &mut self,
        live: &LiveSession,
        damaged: &[(String, Option<Digest>)],
    ) {
        for (path, contents) in damaged {
            let Some(absolute) = live.workspace().map(|workspace| workspace.join(path)) else {
                continue;
            };
            let absolute = known_target(&absolute, &live.session.location().links);
            let was = contents.map_or(OriginalFile::Missing, OriginalFile::File);
            let path = path.clone();
            self.add_journal_note(
                match restore::restore_file(self.sessions.store(), &absolute, was) {
                    Ok(replaced) => JournalNote::GivenBack { path, kept: replaced.sha256 },
                    Err(error) => {
                        let reason = format!("can't restore `{path}`: {error}");
                        JournalNote::Fault { kind: FaultKind::Protected, reason }
                    }
                },
            );
        }
    }

    /// Appends a record and applies it to the session.
    pub(super) fn append(
        &mut self,
        live: &mut LiveSession,
        understood: &InterpretedEvent<'_>,
        record: &Record<'_>,
        json: &RawValue,
    ) -> Result<(), RuntimeFault> {
        let &Record { seq, event, facts, .. } = record;
        let defined = live.definition_identity.after(record);
        let after = (seq.is_multiple_of(SNAPSHOT_EVERY)).then(|| {
            let mut after = live.session.clone();
            after.apply_interpreted(understood, record);
            LiveSession::snapshot(&after, &defined)
        });
        if let Some(bytes) = live.log.take_repaired_bytes() {
            // Stored with the other notes, so that it stays if the append fails.
            self.faults.add_repair(bytes);
        }
        let notes = self.faults.all();
        let mut bodies: Vec<RecordBody> = live.opening.iter().map(RecordBody::opened).collect();
        bodies.push(RecordBody::event(seq, event, facts, json, &notes, after.as_ref()));
        if let Some(opening) = &live.opening {
            live.log.store_definition(&opening.definition.lowered)?;
        }
        // A definition that is refused is also a fact, and a replay needs its facts.
        if let Some(ReloadFact::New(new)) = &facts.reload {
            live.log.store_definition(&new.lowered)?;
        }
        let head = live.log.append(live.head, &bodies)?;
        self.faults.clear();

        if live.opening.take().is_some() {
            let journal = &live.session.definition().journal;
            self.sessions.set_retention(Retention {
                workspace: live.session.location().workspace.clone().unwrap_or_default(),
                bytes: journal.retain_bytes,
                days: journal.retain_days,
            });
        }
        if self.settings.holds_sessions && live.process_lock.is_none() {
            live.process_lock = live.log.directory().and_then(SessionProcessLock::acquire);
        }
        live.session.apply_interpreted(understood, record);
        live.definition_identity = defined;
        live.head = Some(head);
        live.has_unsaved_state = true;
        if self.settings.saving == StateSaving::AtOnce {
            let saved = live.save();
            self.note_failed(saved);
        }
        Ok(())
    }
}
