//! Resource limits that the worker sets for itself before it reads a program.
//!
//! The interpreter gives programs no files and no processes. These limits are the second line of
//! defence, for errors in the interpreter.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// The address space of the process, whatever the limit of a program is.
const ADDRESS_SPACE_BYTES: u64 = 1 << 30;

/// Standard input, output and error: no other file is ever opened.
const FILES_MAX: u64 = 3;

/// Limits memory, files and core dumps permanently.
pub fn confine() -> io::Result<()> {
    set_limit(Resource::As, ADDRESS_SPACE_BYTES)?;
    set_limit(Resource::Nofile, FILES_MAX)?;
    set_limit(Resource::Fsize, 0)?;
    set_limit(Resource::Core, 0)
}

/// Forbids new processes and threads, once all threads are started.
pub fn confine_thread() -> io::Result<()> {
    set_limit(Resource::Nproc, 0)
}

/// Has the kernel end the process after this many more seconds of CPU time.
pub(crate) fn limit_cpu_time(seconds: u64) -> io::Result<()> {
    let used = clock_gettime(ClockId::ProcessCPUTime).tv_sec.unsigned_abs();
    let maximum = getrlimit(Resource::Cpu).maximum;
    let current = Some(used.saturating_add(seconds).saturating_add(1));
    Ok(setrlimit(Resource::Cpu, Rlimit { current, maximum })?)
}

fn set_limit(resource: Resource, most: u64) -> io::Result<()> {
    // Never raise a limit that was set from outside.
    let most = getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}
