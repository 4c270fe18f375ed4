//! What attempts cost: around a program, and with the files that they touch.

mod files;
mod program;

use std::path::Path;

use crate::Failure;
use crate::report::Report;

pub(crate) fn run(jackline: &Path, report: &mut Report) -> Result<(), Failure> {
    files::run(report)?;
    program::run(jackline, report)
}
