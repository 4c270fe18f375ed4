//! `jackline gate-verification`: runs a verification command. The gate starts it and does not wait for
//! it.

use jackline_runtime::verification::supervise;
use jackline_workspace::shell::{adopt_orphans, end_descendants};

use crate::args::VerificationArgs;
use crate::exit::ExitKind;
use crate::terminal::fail;

pub(crate) fn run(args: &VerificationArgs) -> ExitKind {
    adopt_orphans();
    match supervise(&args.directory, &end_descendants) {
        Ok(()) => ExitKind::Success,
        Err(error) => {
            let directory = args.directory.display();
            let text = format!(
                "no verification to run in `{directory}`: {error}; only the gate starts this command"
            );
            fail(ExitKind::Usage, text)
        }
    }
}
