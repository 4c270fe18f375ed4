//! The open sessions that use a definition, for commands whose effect begins with a new session.

use std::path::Path;

use jackline_journal::SessionEntry;
use jackline_runtime::load_session;

use crate::terminal::{dim, format_age, load_sessions, print_line, sanitize};

/// How many of the latest sessions are checked for the definition.
const SESSIONS_MAX: usize = 20;

/// A session that has not stopped or ended.
struct OpenSession {
    name: String,
    /// When its journal was last written.
    last_active: String,
}

/// Names the open sessions that keep the old state of a definition, and how to update them.
pub(super) fn print_open_sessions(file: &Path) {
    for session in open_sessions(file) {
        let (name, when) = (&session.name, dim(format!("({})", session.last_active)));
        print_line(format!(
            "session `{name}` {when} still uses the old definition; update it with `jackline reload {name}`"
        ));
    }
}

/// The open sessions that use the file.
fn open_sessions(file: &Path) -> Vec<OpenSession> {
    let Ok((store, sessions)) = load_sessions() else { return Vec::new() };
    let open = |entry: SessionEntry| {
        let session = load_session(&store, &entry).ok()?;
        let uses_file = session.location().definition.iter().any(|at| Path::new(at) == file);
        let is_open = uses_file && session.summary().is_open();
        is_open.then(|| OpenSession {
            name: sanitize(&entry.name, 40),
            last_active: entry.modified.map(format_age).unwrap_or_default(),
        })
    };
    let latest = sessions.list().unwrap_or_default().into_iter().take(SESSIONS_MAX);
    latest.filter_map(open).collect()
}
