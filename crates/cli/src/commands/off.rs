//! `jackline off`: a person switches the guard off for a while.
//!
//! The way out must not lead through what is broken: the word is given first,
//! and only then it is written into a journal, if there is one that takes it.

use std::path::PathBuf;

use jackline_engine::Action;
use jackline_host::clock::boot_number;
use jackline_host::environment::person;
use jackline_host::off::{OFF_MS_MAX, switch_off};
use jackline_host::{Off, state_home};
use jackline_journal::FileStore;
use jackline_runtime::Sessions;
use jackline_runtime::definitions::find_file;

use super::person::{Said, may_open, may_say, objections, off_in_words, parse_lasting};
use crate::args::{OffArgs, Word};
use crate::exit::Exit;
use crate::terminal::{dim, duration, fail, here, say, warn};

pub(crate) fn run(args: &OffArgs) -> Exit {
    if let Err(exit) = may_open("off") {
        return exit;
    }
    let lasting_ms = match parse_lasting(&args.lasting) {
        Ok(ms) if ms <= OFF_MS_MAX => ms,
        Ok(_) => {
            let most = duration(OFF_MS_MAX);
            return fail(Exit::Usage, format!("--for takes at most {most}; say it again then"));
        }
        Err(problem) => return fail(Exit::Usage, problem),
    };
    if args.why.trim().is_empty() {
        return fail(Exit::Usage, "--why takes a reason; whoever reads the journal will want one");
    }
    let by = args.by.clone().unwrap_or_else(person);
    let word = Word { by: Some(by.clone()), why: Some(args.why.clone()) };
    if let Err(exit) = may_say(&word) {
        return exit;
    }
    let workspace = match scope(args) {
        Ok(workspace) => workspace,
        Err(exit) => return exit,
    };
    let off = Off::lasting(lasting_ms, &by, &args.why, workspace.as_deref());
    let kept = match switch_off(&off) {
        Ok(kept) => kept,
        Err(error) => return fail(Exit::Broken, error),
    };
    say(format!("the guard is off {}", off_in_words(&off)));
    say(dim(format!("kept as `{}`", kept.display())));
    say(dim("objections are still written down, and none holds; `jackline on` ends it"));
    if let Err(problem) = journal(&word, lasting_ms) {
        warn(format!("that could not be written into the journal: {problem}"));
    }
    Exit::Fine
}

/// Where the guard is switched off; everywhere where there is none.
fn scope(args: &OffArgs) -> Result<Option<PathBuf>, Exit> {
    if args.everywhere {
        return Ok(None);
    }
    if args.here {
        return Ok(Some(here()));
    }
    // A session's workspace may lie above the definition, and the other way round.
    let session = latest().and_then(|(_, found)| found);
    let session = session.map(|(_, workspace)| workspace);
    let definition = find_file(&here()).and_then(|file| file.parent().map(PathBuf::from));
    let outermost =
        session.into_iter().chain(definition).min_by_key(|path| path.components().count());
    outermost.map(Some).ok_or_else(|| {
        fail(
            Exit::Usage,
            "no session has worked here, and there is no definition; go to the workspace, or say \
             --here or --everywhere",
        )
    })
}

/// The store, and the latest session that works here with its workspace.
fn latest() -> Option<(FileStore, Option<(jackline_engine::SessionId, PathBuf)>)> {
    let store = FileStore::new(state_home().ok()?, boot_number());
    let found = Sessions::new(store.clone()).select(None, &here()).ok();
    let opened = found.as_ref().and_then(|found| found.opened().ok());
    let session = opened.and_then(|opened| {
        Some((opened.session.clone(), PathBuf::from(opened.place.workspace.as_ref()?)))
    });
    Some((store, session))
}

/// Writes it down in the session that works here, if there is one.
fn journal(word: &Word, lasting_ms: u64) -> Result<(), String> {
    let Some((store, Some((session, _)))) = latest() else { return Ok(()) };
    let said = Said { seconds: Some(lasting_ms / 1000), ..Said::new(session, Action::Off, word) };
    let verdict = said.send(store)?;
    if verdict.violations.is_empty() { Ok(()) } else { Err(objections(&verdict)) }
}
