//! Measures attempts: the time around a program, the snapshot of its context, and the files that it
//! changes.

mod context;
mod files;
mod program;

use std::path::Path;

use crate::BenchError;
use crate::report::BenchReport;

pub(crate) fn run(jackline: &Path, report: &mut BenchReport) -> Result<(), BenchError> {
    context::run(report);
    files::run(report)?;
    program::run(jackline, report)
}
