//! What the worker takes from itself before it reads a program.
//!
//! The interpreter gives programs no files and no processes. This holds where the
//! interpreter is wrong.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// How much address space there is, whatever a program's own limit is.
const ADDRESS_SPACE_BYTES: u64 = 1 << 30;

/// Standard input, output and errors: nothing else is ever opened.
const FILES_MAX: u64 = 3;

/// Takes away memory, files and core dumps, for good.
pub fn confine() -> io::Result<()> {
    limit(Resource::As, ADDRESS_SPACE_BYTES)?;
    limit(Resource::Nofile, FILES_MAX)?;
    limit(Resource::Fsize, 0)?;
    limit(Resource::Core, 0)
}

/// Takes away processes and threads, once the last one is there.
pub fn confine_thread() -> io::Result<()> {
    limit(Resource::Nproc, 0)
}

/// Lets the kernel end the process after so many more seconds of computing.
pub(crate) fn compute_at_most(seconds: u64) -> io::Result<()> {
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec.unsigned_abs();
    let maximum = getrlimit(Resource::Cpu).maximum;
    let current = Some(used.saturating_add(seconds).saturating_add(1));
    Ok(setrlimit(Resource::Cpu, Rlimit { current, maximum })?)
}

fn limit(resource: Resource, most: u64) -> io::Result<()> {
    // What was forbidden from outside already stays forbidden.
    let most = getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}
