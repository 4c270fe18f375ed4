//! `jackline on`: the guard holds again.

use jackline_host::Switch;
use jackline_host::off::switch_on;

use super::person::off_in_words;
use crate::args::OnArgs;
use crate::exit::Exit;
use crate::terminal::{dim, fail, here, say};

pub(crate) fn run(args: &OnArgs) -> Exit {
    let directory = here();
    let directory = directory.canonicalize().unwrap_or(directory);
    let ended = match switch_on((!args.all).then_some(&*directory)) {
        Ok(ended) => ended,
        Err(error) => return fail(Exit::Broken, format!("{error}; it ends by itself in time")),
    };
    if ended.is_empty() {
        say("the guard is not off here");
    }
    for off in &ended {
        say(format!("the guard is on again; it was off {}", off_in_words(off)));
    }
    let left = Switch::here().all();
    for off in &left {
        say(dim(format!("still off {}; `jackline on --all` ends that too", off_in_words(off))));
    }
    Exit::Fine
}
