//! Opens a session: from its journal, or new with the definition of its workspace.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use jackline_engine::definition::StoredDefinition;
use jackline_engine::{Digest, Event, FaultKind, Session, SessionId, SessionLocation};
use jackline_journal::{JournalNote, OpenedDefinition, OpeningRecord, StoreError};

use super::{Runtime, RuntimeFault};
use crate::definitions::{DefinitionError, ResolvedDefinition};
use crate::guard_links::add_links;
use crate::live_session::LiveSession;
use crate::notify::NotificationContext;
use crate::session_definition::DefinitionIdentity;
use jackline_host::clock;

impl Runtime {
    pub(super) fn open(&mut self, event: &Event) -> Result<LiveSession, RuntimeFault> {
        match self.open_once(event) {
            Err(RuntimeFault::Store(StoreError::Io { source, .. }))
                if source.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
                    && !self.sessions.is_empty() =>
            {
                // Every open session holds file descriptors. Closed sessions can be opened again.
                self.forget_sessions();
                self.open_once(event)
            }
            opened => opened,
        }
    }

    pub(super) fn open_once(&mut self, event: &Event) -> Result<LiveSession, RuntimeFault> {
        let log = self.sessions.store().open(&event.session)?;
        if let Some(live) = LiveSession::load(log, &event.session, &self.definitions)? {
            return Ok(live);
        }
        let workspace = self.settings.workspace_of(event);
        if workspace.to_str().is_none() {
            return Err(RuntimeFault::Workspace(workspace));
        }
        let ResolvedDefinition { definition, stored, checksum, files, broken } =
            self.definitions.resolve(&workspace)?;
        if let Some(name) = self.sources.extensions.first_unnamed(&definition) {
            return Err(DefinitionError::UnusedExtension(name.to_owned()).into());
        }
        if let Some(reason) = broken {
            self.warn_outdated_definition(&event.session, &checksum, &reason);
            let shown = workspace.display().to_string();
            let at = clock::now().wall;
            let happened =
                NotificationContext { session: &event.session, workspace: Some(&shown), at };
            self.outbox.queue_notification(&definition, &happened.for_outdated_definition(&reason));
        }
        let shown = |path: PathBuf| path.display().to_string();
        let host = self.definitions.host();
        let mut place = SessionLocation {
            workspace: Some(workspace.display().to_string()),
            home: host.home.clone().map(shown),
            state_home: self.definitions.state_home().map(shown),
            own: host.own_files.iter().cloned().map(shown).collect(),
            links: BTreeMap::new(),
            definition: files.into_iter().map(shown).collect(),
        };
        add_links(&mut place);
        let opening = OpeningRecord {
            session: event.session.clone(),
            at: event.at.unwrap_or_else(|| clock::now().wall),
            place,
            definition: OpenedDefinition {
                checksum,
                lowered: StoredDefinition::with_digest(stored, Arc::clone(&definition)),
            },
        };
        Ok(LiveSession {
            log: self.sessions.store().open(&event.session)?,
            id: event.session.clone(),
            session: Session::new(definition, Arc::new(opening.place.clone())),
            head: None,
            definition_identity: DefinitionIdentity::opened(&opening.definition),
            opening: Some(opening),
            has_unsaved_state: false,
            process_lock: None,
        })
    }

    /// Warns that the definition in force differs from the files.
    pub(super) fn warn_outdated_definition(
        &mut self,
        session: &SessionId,
        checksum: &Digest,
        reason: &str,
    ) {
        let warning = format!(
            "the definition does not load, and the last good one ({checksum}) stays in force in \
             session `{session}`: {reason}; fix the definition (`jackline check` shows the errors)"
        );
        self.add_journal_note(JournalNote::Fault {
            kind: FaultKind::Definition,
            reason: warning.clone(),
        });
        self.outbox.add_warning(warning);
    }
}
