//! A session that is opened: from its journal, or with the definition of its workspace.

use std::path::PathBuf;
use std::sync::Arc;

use jackline_engine::definition::StoredDefinition;
use jackline_engine::{Digest, Event, FaultKind, Place, Session, SessionId};
use jackline_journal::{Note, Opened, OpenedDefinition, StoreError};

use super::{Fault, Runtime};
use crate::defined::Defined;
use crate::definitions::{DefinitionError, Resolved};
use crate::live::Live;
use crate::notify::Happened;
use jackline_host::clock;

impl Runtime {
    pub(super) fn open(&mut self, event: &Event) -> Result<Live, Fault> {
        match self.open_once(event) {
            Err(Fault::Store(StoreError::Io { source, .. }))
                if source.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error())
                    && !self.sessions.is_empty() =>
            {
                // Every open session holds files; they can be opened again.
                self.forget();
                self.open_once(event)
            }
            opened => opened,
        }
    }

    pub(super) fn open_once(&mut self, event: &Event) -> Result<Live, Fault> {
        let log = self.sessions.store().open(&event.session)?;
        if let Some(live) = Live::load(log, &event.session, &self.definitions)? {
            return Ok(live);
        }
        let workspace = self.settings.workspace_of(event);
        if workspace.to_str().is_none() {
            return Err(Fault::Workspace(workspace));
        }
        let Resolved { definition, stored, checksum, files, broken } =
            self.definitions.resolve(&workspace)?;
        if let Some(name) = self.sources.custom.unnamed(&definition) {
            return Err(DefinitionError::NeverAsked(name.to_owned()).into());
        }
        if let Some(reason) = broken {
            self.warn_broken(&event.session, &checksum, &reason);
            let shown = workspace.display().to_string();
            let at = clock::now().wall;
            let happened = Happened { session: &event.session, workspace: Some(&shown), at };
            self.outbox.notify(&definition, &happened.outdated(&reason));
        }
        let shown = |path: PathBuf| path.display().to_string();
        let host = self.definitions.host();
        let opening = Opened {
            session: event.session.clone(),
            at: event.at.unwrap_or_else(|| clock::now().wall),
            place: Place {
                workspace: Some(workspace.display().to_string()),
                home: host.home.clone().map(shown),
                state_home: self.definitions.state_home().map(shown),
                own: host.own_files.iter().cloned().map(shown).collect(),
                definition: files.into_iter().map(shown).collect(),
            },
            definition: OpenedDefinition {
                checksum,
                lowered: StoredDefinition::with_digest(stored, Arc::clone(&definition)),
            },
        };
        Ok(Live {
            log: self.sessions.store().open(&event.session)?,
            id: event.session.clone(),
            session: Session::new(definition, Arc::new(opening.place.clone())),
            head: None,
            defined: Defined::opened(&opening.definition),
            opening: Some(opening),
            unsaved: false,
        })
    }

    /// Says loudly that what is in force is not what the files say.
    pub(super) fn warn_broken(&mut self, session: &SessionId, checksum: &Digest, reason: &str) {
        let warning = format!(
            "the definition does not load, and the last good one ({checksum}) stays in force in \
             session `{session}`: {reason}; mend it (`jackline check`)"
        );
        self.note(Note::Fault { kind: FaultKind::Definition, reason: warning.clone() });
        self.outbox.warn(warning);
    }
}
