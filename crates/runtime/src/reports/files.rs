//! Which files a session has changed, for a report: read from its journal when a person is
//! about to be told, because no session remembers all of them.

use std::collections::{BTreeMap, BTreeSet};

use jackline_engine::understanding::{How, Points, Runs, Touched, Understanding};
use jackline_engine::{CallId, EventKind, Session, SessionId, Status, ToolFinished, ToolProposed};
use jackline_journal::{Line, Reading, Store, StoreError, parse_record};

/// The files of the workspace that calls have written or removed, as far as that can be seen;
/// none where the journal can't be read. What a script changed unseen is not among them.
pub(super) fn changed(
    store: &dyn Store,
    id: &SessionId,
    session: &Session,
) -> Option<BTreeSet<String>> {
    let journal = store.view_session(id, Reading::Glance).ok()??;
    let mut open: BTreeMap<CallId, Vec<String>> = BTreeMap::new();
    let mut changed = BTreeSet::new();
    let read = journal.for_each(|line| {
        let Line::Event(record) = parse_record(line)? else { return Ok(()) };
        match &record.event.kind {
            EventKind::ToolProposed(ToolProposed { call: Some(call), .. })
                if record.verdict.lets_run() =>
            {
                let understood = session.understand(&record.event);
                open.insert(call.clone(), understood.as_ref().map(writes).unwrap_or_default());
            }
            EventKind::ToolFinished(ToolFinished {
                call: Some(call), status: Status::Ok, ..
            }) => {
                changed.extend(open.remove(call).unwrap_or_default());
            }
            _ => {}
        }
        Ok::<(), StoreError>(())
    });
    read.is_ok().then_some(changed)
}

/// What a call writes or removes in the workspace.
fn writes(call: &Understanding) -> Vec<String> {
    let commands = match &call.runs {
        Runs::Line { commands, .. } => commands.as_slice(),
        Runs::Nothing | Runs::Unseen => &[],
    };
    let all = call.touches.iter().chain(commands.iter().flat_map(|command| &command.touches));
    let changes = |touched: &&Touched| {
        matches!(touched.how, How::Writes | How::Deletes)
            && touched.points == Points::Path
            && !touched.path.starts_with('/')
    };
    all.filter(changes).map(|touched| touched.path.clone()).collect()
}
