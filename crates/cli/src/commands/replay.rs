//! `jackline replay`: decides every event again and checks that the bytes are the same.

use anstyle::AnsiColor;
use jackline_analysis::{Replay, ReplayReport};
use jackline_journal::{FileStore, ReadMode, SessionEntry, Store as _, StoreError, Verifier};
use serde_json::json;

use super::each_session;
use crate::args::SessionsArgs;
use crate::exit::ExitKind;
use crate::terminal::{bold, dim, fail, print_json_line, print_line, sanitize, styled};

pub(crate) fn run(args: &SessionsArgs) -> ExitKind {
    each_session(args, |store, entry| replay_one(store, entry, args.json))
}

fn replay_one(store: &FileStore, entry: &SessionEntry, as_json: bool) -> ExitKind {
    let name = &entry.name;
    let (report, chain) = match replay_journal(store, entry) {
        Ok(result) => result,
        Err(error) => {
            return fail(ExitKind::Broken, format!("{name}: {error}; {}", error.remedy()));
        }
    };
    let proven = report.is_proven() && chain.is_clean();
    if as_json {
        print_json_line(
            json!({ "session": name, "proven": proven, "replay": report, "chain": chain }),
        );
    } else {
        show(name, &report, chain.is_clean());
        super::verify::show_findings(&chain);
    }
    if proven { ExitKind::Success } else { ExitKind::No }
}

fn replay_journal(
    store: &FileStore,
    entry: &SessionEntry,
) -> Result<(ReplayReport, jackline_journal::VerifyReport), StoreError> {
    let journal = store.view(entry, ReadMode::Consistent)?;
    let mut chain = Verifier::new(journal.saved_head());
    let mut replay = Replay::default();
    let torn = journal.for_each(|line| {
        // A changed record is reported, and later replay errors are then expected. Without the
        // first record nothing can be decided again.
        if chain.check_line(line)
            && let Err(error) = replay.replay_line(&journal, line)
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
        format!("{}: {not}, the journal was changed after it was written", bold(name))
    } else if report.is_proven() {
        let proven = styled(AnsiColor::Green.on_default().bold(), "proven");
        format!("{}: {proven}, all {} verdicts are the same", bold(name), report.same)
    } else {
        let differs = styled(AnsiColor::Red.on_default().bold(), "differs");
        format!(
            "{}: {differs}, {} of {} verdicts",
            bold(name),
            report.events - report.same,
            report.events
        )
    };
    print_line(text);
    for difference in &report.differences {
        print_line(format!(
            "  record {} differs by {} {}",
            difference.seq,
            difference.by,
            dim(format!("(engine {}, semantics {})", difference.engine, difference.semantics))
        ));
        print_line(format!("    recorded {}", sanitize(&difference.recorded, 300)));
        print_line(format!("    decided  {}", sanitize(&difference.decided, 300)));
    }
}
