//! Recorded processes, so that tests can ask about machines that they do not run on.

use super::process::{ProcessEntry, ProcessNamespaces, ProcessSource, ProgramFile};

/// A process list. The last added process is the one that asks.
#[derive(Debug, Clone, Default)]
pub(super) struct RecordedProcesses {
    entries: Vec<ProcessEntry>,
    pub(super) hidden: Option<String>,
}

pub(super) const USER: u32 = 1000;
pub(super) const LOGIN_NAMESPACES: ProcessNamespaces = ProcessNamespaces {
    user: ProcessNamespaces::INITIAL_USER,
    pid: ProcessNamespaces::INITIAL_PID,
    mount: 7,
};

impl RecordedProcesses {
    /// A machine with its first process.
    pub(super) fn new() -> Self {
        let mut machine = Self::default();
        machine.add(1, 0, "systemd", |it| it.owner = 0);
        machine
    }

    /// Adds a process of the user, with a terminal and a program of the system that has its name.
    /// Higher numbers started later.
    pub(super) fn add(
        &mut self,
        pid: u32,
        parent: u32,
        name: &str,
        change: impl FnOnce(&mut ProcessEntry),
    ) -> &mut Self {
        let mut entry = ProcessEntry {
            pid,
            name: name.to_owned(),
            parent,
            group: pid,
            session: pid,
            terminal: 34_816,
            started: pid.into(),
            owner: USER,
            program: Some(ProgramFile {
                path: format!("/usr/bin/{name}").into(),
                is_of_system: true,
            }),
            arguments: vec![name.to_owned()],
            namespaces: Some(LOGIN_NAMESPACES),
            ..ProcessEntry::default()
        };
        change(&mut entry);
        self.entries.push(entry);
        self
    }

    /// The answer of the check, as text.
    pub(super) fn doubt(&self) -> Option<String> {
        super::check_person_in(self).err().map(|doubt| {
            let text = doubt.to_string();
            text.strip_suffix(&format!("; {}", super::WAY_OUT)).unwrap().to_owned()
        })
    }
}

impl ProcessSource for RecordedProcesses {
    fn own_pid(&self) -> u32 {
        self.entries.last().unwrap().pid
    }

    fn check_complete(&self) -> Result<(), String> {
        self.hidden.clone().map_or(Ok(()), Err)
    }

    fn process(&self, pid: u32) -> Option<ProcessEntry> {
        self.entries.iter().find(|entry| entry.pid == pid).cloned()
    }

    fn pids(&self) -> Vec<u32> {
        self.entries.iter().map(|entry| entry.pid).collect()
    }
}
