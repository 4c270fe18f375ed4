//! What attempts cost: around a program, with what it remembers, and with the files that
//! they touch.

mod context;
mod files;
mod program;

use std::path::Path;

use crate::Failure;
use crate::report::Report;

pub(crate) fn run(jackline: &Path, report: &mut Report) -> Result<(), Failure> {
    context::run(report);
    files::run(report)?;
    program::run(jackline, report)
}
