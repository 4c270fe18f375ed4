//! Finds and ends all processes that a command started.
//!
//! The supervisor adopts every process below it whose parent ended. So a process that forks twice,
//! starts its own session or changes its name is still a descendant. Once there is no child left to
//! wait for, no descendant is left.

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

/// How long processes are killed repeatedly. A process that the kernel does not release is given
/// up.
const END_MS: u64 = 5000;

/// The delay between two checks.
const KILL_TICK: Duration = Duration::from_millis(1);

/// A process, as `/proc` describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ProcessStat {
    pid: i32,
    /// The start time: together with the id, it identifies the process even if the id is reused.
    started: u64,
    parent: i32,
    session: i32,
    ended: bool,
}

impl ProcessStat {
    fn read(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The program name is in parentheses, and may itself contain parentheses.
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
            // The pidfd holds the process now. If the id was reused before, the start time differs.
            Ok(pidfd) => {
                if Self::read(self.pid).is_some_and(|now| now.started == self.started) {
                    let _ = pidfd_send_signal(pidfd, signal);
                }
            }
            Err(Errno::NOSYS | Errno::PERM) => {
                let _ = kill_process(pid, signal);
            }
            Err(_) => {}
        }
    }
}

/// How many processes were ended, and how many could not be ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EndedProcesses {
    pub(super) ended: u32,
    pub(super) not_ended: u32,
}

/// Makes this process adopt every process below it whose parent ended. Without this kernel feature,
/// only processes whose parents still run are found later.
pub fn adopt_orphans() {
    let _ = set_child_subreaper(Some(getpid()));
}

/// Ends all processes below this one, including adopted ones.
pub fn end_descendants() {
    kill_descendants(|_, _| {});
}

/// Reaps children that ended. Returns whether any child is left.
pub(super) fn reap_children(mut each: impl FnMut(Pid, WaitStatus)) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => each(pid, status),
            Ok(None) => return true,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Sends a signal to all processes below this one.
pub(super) fn signal_all(signal: Signal) {
    descendants_of(getpid()).into_iter().for_each(|process| process.signal(signal));
}

/// Kills all processes below this one.
pub(super) fn kill_descendants(mut each: impl FnMut(Pid, WaitStatus)) -> EndedProcesses {
    let until = boot_ms().saturating_add(END_MS);
    let mut killed = BTreeSet::new();
    while reap_children(&mut each) {
        let alive: Vec<ProcessStat> =
            descendants_of(getpid()).into_iter().filter(|one| !one.ended).collect();
        for process in &alive {
            killed.insert((process.pid, process.started));
            process.signal(Signal::KILL);
        }
        if boot_ms() >= until {
            let left = u32::try_from(alive.len()).unwrap_or(u32::MAX);
            return EndedProcesses {
                ended: process_count(&killed).saturating_sub(left),
                not_ended: left,
            };
        }
        sleep(KILL_TICK);
    }
    EndedProcesses { ended: process_count(&killed), not_ended: 0 }
}

/// Kills all processes of a session. This is for a supervisor that was killed: another process has
/// adopted its descendants.
pub(super) fn kill_session(leader: Pid) {
    let session = leader.as_raw_nonzero().get();
    let until = boot_ms().saturating_add(END_MS);
    loop {
        let mut processes = all_processes();
        processes.retain(|process| process.session == session && !process.ended);
        if processes.is_empty() || boot_ms() >= until {
            return;
        }
        processes.into_iter().for_each(|process| process.signal(Signal::KILL));
        sleep(KILL_TICK);
    }
}

fn process_count(killed: &BTreeSet<(i32, u64)>) -> u32 {
    u32::try_from(killed.len()).unwrap_or(u32::MAX)
}

fn descendants_of(above: Pid) -> Vec<ProcessStat> {
    let all = all_processes();
    let mut ancestors = BTreeSet::from([above.as_raw_nonzero().get()]);
    let mut found = Vec::new();
    // Process ids can be reused, so a child may be listed before its parent.
    loop {
        let before = ancestors.len();
        for process in &all {
            if ancestors.contains(&process.parent) && ancestors.insert(process.pid) {
                found.push(*process);
            }
        }
        if ancestors.len() == before {
            return found;
        }
    }
}

fn all_processes() -> Vec<ProcessStat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok());
    pids.filter_map(ProcessStat::read).collect()
}
