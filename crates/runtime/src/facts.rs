//! Answers the engine's questions about the world.

use std::fs;
use std::io;
use std::path::Path;

use jackline_engine::{
    DefinitionFact, Digest, Event, Facts, FileFact, FileKind, Query, ROUNDS_MAX, Session,
};

use crate::clock::from_system;
use crate::extensions::Extensions;

/// The largest file that is read to see whether it is JSON.
const JSON_BYTES_MAX: u64 = 64 << 20;

/// Where to look.
pub(crate) struct World<'a> {
    pub(crate) workspace: Option<&'a Path>,
    pub(crate) definition_file: Option<&'a Path>,
    pub(crate) definition_checksum: Digest,
    pub(crate) extensions: &'a Extensions,
}

/// Asks until nothing is open, for a bounded number of rounds.
pub(crate) fn gather(session: &Session, event: &Event, facts: &mut Facts, world: &World<'_>) {
    for _ in 0..ROUNDS_MAX {
        let queries = session.needs(event, facts);
        if queries.is_empty() {
            return;
        }
        queries.iter().for_each(|query| world.answer(query, facts));
    }
}

impl World<'_> {
    fn answer(&self, query: &Query, facts: &mut Facts) {
        match query {
            Query::File { path, wants } => {
                // One file may be asked about twice, once of them thoroughly.
                let json =
                    wants.json || facts.files.get(path).is_some_and(|fact| fact.json.is_some());
                facts.files.insert(path.clone(), file_fact(self.workspace, path, json));
            }
            Query::PolicyCheck { number, name, state, call } => {
                facts.policies.insert(*number, self.extensions.check(name, state, call));
            }
            Query::PolicyResult { number, name, state, call } => {
                facts.policies.insert(*number, self.extensions.on_result(name, state, call));
            }
            Query::Checker { name } => {
                facts.checkers.insert(name.clone(), self.extensions.complete(name));
            }
            Query::Definition => facts.definition = Some(self.definition()),
            Query::Changed { .. }
            | Query::Git { .. }
            | Query::Ignored { .. }
            | Query::Verification { .. }
            | Query::Feedback { .. } => {}
        }
    }

    /// Looks again at what may have changed while the session was waited for.
    /// A file that looks the same is not read again.
    pub(crate) fn recheck(&self, facts: &mut Facts) {
        for (path, fact) in &mut facts.files {
            let now = file_fact(self.workspace, path, false);
            let looks_same =
                (now.kind, now.bytes, now.modified) == (fact.kind, fact.bytes, fact.modified);
            if !looks_same {
                *fact = file_fact(self.workspace, path, fact.json.is_some());
            }
        }
    }

    fn definition(&self) -> DefinitionFact {
        match self.definition_file.map(fs::read) {
            // A session without a file can't lose it.
            None => DefinitionFact::Same,
            Some(Err(_)) => DefinitionFact::Missing,
            Some(Ok(source)) => match Digest::of(&source) {
                checksum if checksum == self.definition_checksum => DefinitionFact::Same,
                checksum => DefinitionFact::Changed { checksum },
            },
        }
    }
}

fn file_fact(workspace: Option<&Path>, path: &str, json: bool) -> FileFact {
    let Some(root) =
        workspace.and_then(|root| root.canonicalize().ok()).filter(|root| root.is_dir())
    else {
        return FileFact::of(FileKind::NoFilesystem);
    };
    let kind_of = |error: &io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileKind::Missing,
        _ => FileKind::Unreadable,
    };
    let real = match root.join(path).canonicalize() {
        Ok(real) => real,
        Err(error) => return FileFact::of(kind_of(&error)),
    };
    if !real.starts_with(&root) {
        return FileFact::of(FileKind::Escape);
    }
    let metadata = match real.metadata() {
        Ok(metadata) => metadata,
        Err(error) => return FileFact::of(kind_of(&error)),
    };
    if !metadata.is_file() {
        let kind = if metadata.is_dir() { FileKind::Directory } else { FileKind::Other };
        return FileFact::of(kind);
    }
    FileFact {
        kind: FileKind::File,
        bytes: metadata.len(),
        modified: metadata.modified().ok().map(from_system),
        json: json.then(|| metadata.len() <= JSON_BYTES_MAX && is_json(&real)),
        ..FileFact::of(FileKind::File)
    }
}

fn is_json(path: &Path) -> bool {
    // Into values and not past them: only that looks into texts and numbers.
    fs::read(path).is_ok_and(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).is_ok())
}
