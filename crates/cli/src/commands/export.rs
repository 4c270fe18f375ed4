//! `jackline export`: a session in one file, to be looked at and replayed anywhere.

use std::path::Path;

use super::{hand_out, select};
use crate::args::ExportArgs;
use crate::exit::Exit;
use crate::terminal::{fail, note, sessions};

pub(crate) fn run(args: &ExportArgs) -> Exit {
    let selected =
        sessions().and_then(|(store, all)| Ok((store, select(&all, args.session.as_deref())?)));
    let (store, found) = match selected {
        Ok(selected) => selected,
        Err(exit) => return exit,
    };
    let (export, steps) = match jackline_analysis::export(&store, &found) {
        Ok(exported) => exported,
        Err(error) => {
            return fail(Exit::No, format!("{}: {error}; {}", found.name, error.remedy()));
        }
    };
    let out = args.out.as_deref();
    match hand_out(&export.render(), out) {
        Ok(true) => {}
        Ok(false) => return Exit::Fine,
        Err(exit) => return exit,
    }
    note(format!(
        "{}: {} records, {} steps, {} actions in the trajectory; {} places stand for secrets; written to `{}`",
        export.session_id,
        export.journal.len(),
        steps,
        export.trajectory.len(),
        export.redacted.places,
        out.unwrap_or(Path::new("-")).display()
    ));
    Exit::Fine
}
