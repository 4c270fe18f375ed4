//! `jackline verification`: what the gate starts and does not wait for.

use jackline_runtime::verification::supervise;
use jackline_workspace::shell::{adopt, end_adopted};

use crate::args::VerificationArgs;
use crate::exit::Exit;
use crate::terminal::fail;

pub(crate) fn run(args: &VerificationArgs) -> Exit {
    adopt();
    match supervise(&args.directory, &end_adopted) {
        Ok(()) => Exit::Fine,
        Err(error) => {
            let directory = args.directory.display();
            let text = format!(
                "no verification to run in `{directory}`: {error}; the gate starts this command by itself"
            );
            fail(Exit::Usage, text)
        }
    }
}
