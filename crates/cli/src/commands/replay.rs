//! `jackline replay`: decides every event again and compares the bytes.

use anstyle::AnsiColor;
use jackline_analysis::{Replay, ReplayReport};
use jackline_journal::{FileStore, Reading, SessionEntry, Store as _, StoreError, Verifier};
use serde_json::json;

use super::each_session;
use crate::args::SessionsArgs;
use crate::exit::Exit;
use crate::terminal::{bold, dim, fail, plain, say, say_json, styled};

pub(crate) fn run(args: &SessionsArgs) -> Exit {
    each_session(args, |store, found| one(store, found, args.json))
}

fn one(store: &FileStore, found: &SessionEntry, as_json: bool) -> Exit {
    let name = &found.name;
    let (report, chain) = match replay(store, found) {
        Ok(result) => result,
        Err(error) => return fail(Exit::Broken, format!("{name}: {error}; {}", error.remedy())),
    };
    let proven = report.is_proven() && chain.is_clean();
    if as_json {
        say_json(json!({ "session": name, "proven": proven, "replay": report, "chain": chain }));
    } else {
        show(name, &report, chain.is_clean());
        super::verify::show_findings(&chain);
    }
    if proven { Exit::Fine } else { Exit::No }
}

fn replay(
    store: &FileStore,
    found: &SessionEntry,
) -> Result<(ReplayReport, jackline_journal::Report), StoreError> {
    let journal = store.view(found, Reading::Consistent)?;
    let mut chain = Verifier::new(journal.saved());
    let mut replay = Replay::default();
    let torn = journal.for_each(|line| {
        // What was tampered with proves nothing and is only reported; and where
        // the beginning is missing, nothing can be decided again.
        if chain.line(line)
            && let Err(error) = replay.line(&journal, line)
            && chain.is_clean()
        {
            return Err(error);
        }
        Ok::<(), StoreError>(())
    })?;
    Ok((replay.finish(), chain.finish(torn)))
}

fn show(name: &str, report: &ReplayReport, is_whole: bool) {
    let text = if !is_whole {
        let not = styled(AnsiColor::Red.on_default().bold(), "not proven");
        format!("{}: {not}, the journal is not what was written", bold(name))
    } else if report.is_proven() {
        let proven = styled(AnsiColor::Green.on_default().bold(), "proven");
        format!("{}: {proven}, {} verdicts came out the same", bold(name), report.same)
    } else {
        let differs = styled(AnsiColor::Red.on_default().bold(), "differs");
        format!(
            "{}: {differs}, {} of {} verdicts",
            bold(name),
            report.events - report.same,
            report.events
        )
    };
    say(text);
    for difference in &report.differences {
        say(format!(
            "  record {} differs by {} {}",
            difference.seq,
            difference.by,
            dim(format!("(engine {}, semantics {})", difference.engine, difference.semantics))
        ));
        say(format!("    recorded {}", plain(&difference.recorded, 300)));
        say(format!("    decided  {}", plain(&difference.decided, 300)));
    }
}
