//! `jackline notify`: sends notices; what the gate starts and does not wait for.

use std::io;

use jackline_runtime::deliver;

use crate::exit::Exit;
use crate::terminal::fail;

pub(crate) fn run() -> Exit {
    match deliver(&mut io::stdin().lock()) {
        Ok(()) => Exit::Fine,
        Err(error) => {
            let text =
                format!("no notices to send: {error}; the gate starts this command by itself");
            fail(Exit::Usage, text)
        }
    }
}
