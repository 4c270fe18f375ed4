//! `jackline verify`: checks the hash chain of a journal.

use anstyle::AnsiColor;
use jackline_journal::{JournalFile, Report, StoreError, Verifier};
use jackline_runtime::Found;
use serde_json::json;

use super::each_session;
use crate::args::SessionsArgs;
use crate::exit::Exit;
use crate::terminal::{bold, dim, fail, say, say_json, styled};

pub(crate) fn run(args: &SessionsArgs) -> Exit {
    each_session(args, |found| one(found, args.json))
}

fn one(found: &Found, as_json: bool) -> Exit {
    let name = &found.name;
    let report = match verify(found) {
        Ok(report) => report,
        Err(error) => return fail(Exit::Broken, format!("{name}: {error}; {}", error.remedy())),
    };
    if as_json {
        say_json(json!({ "session": name, "clean": report.is_clean(), "report": report }));
    } else {
        let verdict = if report.is_clean() {
            styled(AnsiColor::Green.on_default().bold(), "clean")
        } else {
            styled(AnsiColor::Red.on_default().bold(), "not clean")
        };
        let head = report.head.map_or_else(String::new, |head| dim(format!("head {head}")));
        say(format!("{}: {verdict}, {} records {head}", bold(name), report.records));
        show_findings(&report);
    }
    if report.is_clean() { Exit::Fine } else { Exit::No }
}

fn verify(found: &Found) -> Result<Report, StoreError> {
    let journal = JournalFile::open(&found.journal)?;
    let mut verifier = Verifier::new(journal.saved());
    let torn = journal.for_each(|line| {
        verifier.line(line);
        Ok::<(), StoreError>(())
    })?;
    Ok(verifier.finish(torn))
}

pub(super) fn show_findings(report: &Report) {
    for finding in &report.findings {
        let kind = styled(AnsiColor::Red.on_default(), finding.kind);
        say(format!("  record {} {kind}: {}", finding.record, finding.reason));
    }
    if report.more > 0 {
        say(format!("  and {} more", report.more));
    }
}
