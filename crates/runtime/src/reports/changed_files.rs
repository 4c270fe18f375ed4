//! The files that a session has changed, for a report. They are read from the journal when a report
//! is written, because the session state does not contain all of them.

use std::collections::{BTreeMap, BTreeSet};

use jackline_engine::call_description::{
    CallDescription, DescribedRun, PathEffect, PathMeaning, TouchedPath,
};
use jackline_engine::{
    CallId, CallStatus, EventKind, Session, SessionId, ToolFinished, ToolProposed,
};
use jackline_journal::{JournalLine, ReadMode, Store, StoreError, parse_record};

/// The files of the workspace that calls have written or removed, as far as the calls show it;
/// `None` if the journal can't be read. Files that a script changed are missing.
pub(super) fn changed(
    store: &dyn Store,
    id: &SessionId,
    session: &Session,
) -> Option<BTreeSet<String>> {
    let journal = store.view_session(id, ReadMode::Unlocked).ok()??;
    let mut open: BTreeMap<CallId, Vec<String>> = BTreeMap::new();
    let mut changed = BTreeSet::new();
    let read = journal.for_each(|line| {
        let JournalLine::Event(record) = parse_record(line)? else { return Ok(()) };
        match &record.event.kind {
            EventKind::ToolProposed(ToolProposed { call: Some(call), .. })
                if record.verdict.allows_run() =>
            {
                let understood = session.describe_call(&record.event);
                open.insert(call.clone(), understood.as_ref().map(writes).unwrap_or_default());
            }
            EventKind::ToolFinished(ToolFinished {
                call: Some(call),
                status: CallStatus::Ok,
                ..
            }) => {
                changed.extend(open.remove(call).unwrap_or_default());
            }
            _ => {}
        }
        Ok::<(), StoreError>(())
    });
    read.is_ok().then_some(changed)
}

/// The files of the workspace that a call writes or removes.
fn writes(call: &CallDescription) -> Vec<String> {
    let commands = match &call.runs {
        DescribedRun::Line { commands, .. } => commands.as_slice(),
        DescribedRun::Nothing | DescribedRun::Unseen => &[],
    };
    let all = call.touches.iter().chain(commands.iter().flat_map(|command| &command.touches));
    let changes = |touched: &&TouchedPath| {
        matches!(touched.effect, PathEffect::Writes | PathEffect::Deletes)
            && touched.meaning == PathMeaning::Path
            && !touched.path.starts_with('/')
    };
    all.filter(changes).map(|touched| touched.path.clone()).collect()
}
