//! Finds and ends what a command started, however far it went.
//!
//! The supervisor adopts whoever loses a parent below it. So a process that
//! forks twice, begins a session of its own or takes another name is still below
//! us, and when there is no child left to wait for, nobody is.

use std::collections::BTreeSet;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open,
    pidfd_send_signal, set_child_subreaper, wait,
};

use crate::time::boot_ms;

/// How long is tried: what the kernel itself does not let go is not waited for.
const END_MS: u64 = 5000;

/// How long is waited between two looks.
const TICK: Duration = Duration::from_millis(1);

/// A process, as the kernel tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    pid: i32,
    /// When it was started: with it, a number is a process and no other.
    started: u64,
    parent: i32,
    session: i32,
    ended: bool,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name of the program stands in brackets, and may hold any of them.
        let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace();
        let ended = matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        let started = fields.nth(15)?.parse().ok()?;
        Some(Self { pid, started, parent, session, ended })
    }

    fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        match pidfd_open(pid, PidfdFlags::empty()) {
            // It is held now; a number that went to somebody else shows.
            Ok(held) => {
                if Self::read(self.pid).is_some_and(|now| now.started == self.started) {
                    let _ = pidfd_send_signal(held, signal);
                }
            }
            Err(Errno::NOSYS | Errno::PERM) => {
                let _ = kill_process(pid, signal);
            }
            Err(_) => {}
        }
    }
}

/// How many processes were ended, and how many could not be.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) ended: u32,
    pub(super) left: u32,
}

/// Has this process adopt whoever loses a parent below it; where that can't be, only those who
/// keep theirs are found later.
pub fn adopt() {
    let _ = set_child_subreaper(Some(getpid()));
}

/// Ends everything below this process, and whom it has adopted.
pub fn end_adopted() {
    end_all(|_, _| {});
}

/// Takes leave of children that ended; whether any is left.
pub(super) fn reap(mut each: impl FnMut(Pid, WaitStatus)) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => each(pid, status),
            Ok(None) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Sends a signal to everything below this process.
pub(super) fn signal_all(signal: Signal) {
    below(getpid()).into_iter().for_each(|process| process.signal(signal));
}

/// Ends everything below this process.
pub(super) fn end_all(mut each: impl FnMut(Pid, WaitStatus)) -> Count {
    let until = boot_ms().saturating_add(END_MS);
    let mut met = BTreeSet::new();
    while reap(&mut each) {
        let alive: Vec<Process> = below(getpid()).into_iter().filter(|one| !one.ended).collect();
        for process in &alive {
            met.insert((process.pid, process.started));
            process.signal(Signal::KILL);
        }
        if boot_ms() >= until {
            let left = u32::try_from(alive.len()).unwrap_or(u32::MAX);
            return Count { ended: count(&met).saturating_sub(left), left };
        }
        sleep(TICK);
    }
    Count { ended: count(&met), left: 0 }
}

/// Ends whoever is in a session. This is for a supervisor that was ended itself:
/// what it had adopted is below somebody else now.
pub(super) fn end_session(leader: Pid) {
    let session = leader.as_raw_nonzero().get();
    let until = boot_ms().saturating_add(END_MS);
    loop {
        let mut processes = all();
        processes.retain(|process| process.session == session && !process.ended);
        if processes.is_empty() || boot_ms() >= until {
            return;
        }
        processes.into_iter().for_each(|process| process.signal(Signal::KILL));
        sleep(TICK);
    }
}

fn count(met: &BTreeSet<(i32, u64)>) -> u32 {
    u32::try_from(met.len()).unwrap_or(u32::MAX)
}

fn below(above: Pid) -> Vec<Process> {
    let all = all();
    let mut known = BTreeSet::from([above.as_raw_nonzero().get()]);
    let mut found = Vec::new();
    // A number says nothing about age, so a child may stand before its parent.
    loop {
        let before = known.len();
        for process in &all {
            if known.contains(&process.parent) && known.insert(process.pid) {
                found.push(*process);
            }
        }
        if known.len() == before {
            return found;
        }
    }
}

fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok());
    pids.filter_map(Process::read).collect()
}
