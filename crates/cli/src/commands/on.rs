//! `jackline on`: turns the guard on again.

use jackline_host::OffSwitch;
use jackline_host::off_switch::turn_guard_on;

use super::person::describe_off;
use crate::args::OnArgs;
use crate::exit::ExitKind;
use crate::terminal::{current_directory, dim, fail, print_line};

pub(crate) fn run(args: &OnArgs) -> ExitKind {
    let directory = current_directory();
    let directory = directory.canonicalize().unwrap_or(directory);
    let ended = match turn_guard_on((!args.all).then_some(&*directory)) {
        Ok(ended) => ended,
        Err(error) => {
            return fail(
                ExitKind::Broken,
                format!("{error}; the guard turns on again when the time is up"),
            );
        }
    };
    if ended.is_empty() {
        print_line("the guard is not off here");
    }
    for off in &ended {
        print_line(format!("the guard is on again; it was off {}", describe_off(off)));
    }
    let remaining = OffSwitch::for_machine().active_periods();
    for off in &remaining {
        print_line(dim(format!(
            "still off {}; `jackline on --all` turns it on there too",
            describe_off(off)
        )));
    }
    ExitKind::Success
}
