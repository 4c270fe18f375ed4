//! `jackline gate-notify`: sends notifications. The gate starts it and does not wait for it.

use std::io;

use jackline_runtime::deliver;

use crate::exit::ExitKind;
use crate::terminal::fail;

pub(crate) fn run() -> ExitKind {
    match deliver(&mut io::stdin().lock()) {
        Ok(()) => ExitKind::Success,
        Err(error) => {
            let text =
                format!("no notifications to send: {error}; only the gate starts this command");
            fail(ExitKind::Usage, text)
        }
    }
}
