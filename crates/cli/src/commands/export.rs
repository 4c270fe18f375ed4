//! `jackline export`: writes a session to one file, which can be read and replayed anywhere.

use std::io::IsTerminal as _;
use std::path::Path;

use super::{hand_out, select};
use crate::args::ExportArgs;
use crate::exit::ExitKind;
use crate::terminal::{fail, format_bytes, load_sessions, print_note};

pub(crate) fn run(args: &ExportArgs) -> ExitKind {
    let selected = load_sessions()
        .and_then(|(store, all)| Ok((store, select(&all, args.session.as_deref())?)));
    let (store, entry) = match selected {
        Ok(selected) => selected,
        Err(exit) => return exit,
    };
    let (export, steps) = match jackline_analysis::export_session(&store, &entry) {
        Ok(exported) => exported,
        Err(error) => {
            return fail(ExitKind::No, format!("{}: {error}; {}", entry.name, error.remedy()));
        }
    };
    let out = args.out.as_deref();
    let text = export.render();
    if out.is_none() && std::io::stdout().is_terminal() {
        let size = format_bytes(text.len().try_into().unwrap_or(u64::MAX));
        let text = format!(
            "the export is {size} of JSON, too much for a terminal; write it to a file with `-o FILE`, or pipe it"
        );
        return fail(ExitKind::Usage, text);
    }
    match hand_out(&text, out) {
        Ok(true) => {}
        Ok(false) => return ExitKind::Success,
        Err(exit) => return exit,
    }
    print_note(format!(
        "{}: {} records, {} steps, {} actions in the trajectory; {} secrets removed; written to `{}`",
        export.session_id,
        export.journal.len(),
        steps,
        export.trajectory.len(),
        export.redacted.places,
        out.unwrap_or(Path::new("-")).display()
    ));
    ExitKind::Success
}
