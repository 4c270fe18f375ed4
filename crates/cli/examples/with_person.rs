//! `jackline` as tests start it: it sees recorded processes, in which a person typed the command into
//! a shell. The released binary has no way to do this.

use std::process::ExitCode;

use jackline_host::person::{
    MachineProcesses, ProcessEntry, ProcessNamespaces, ProcessSource, ProgramFile, use_processes,
};

/// A login on the console, a shell, and this process.
struct PersonAtTerminal;

const SHELL: u32 = 3;
const LOGIN: u32 = 2;

impl ProcessSource for PersonAtTerminal {
    fn own_pid(&self) -> u32 {
        std::process::id()
    }

    fn check_complete(&self) -> Result<(), String> {
        Ok(())
    }

    fn process(&self, pid: u32) -> Option<ProcessEntry> {
        let (parent, name, path) = match pid {
            1 => (0, "init", "/sbin/init"),
            LOGIN => (1, "login", "/usr/bin/login"),
            SHELL => (LOGIN, "bash", "/usr/bin/bash"),
            own if own == self.own_pid() => (SHELL, "jackline", "/usr/bin/jackline"),
            _ => return None,
        };
        // A test may mark the command as an agent's.
        let machine = MachineProcesses::default();
        let real = (pid == self.own_pid()).then(|| machine.process(pid)).flatten();
        Some(ProcessEntry {
            pid,
            marker: real.and_then(|real| real.marker),
            name: name.to_owned(),
            parent,
            group: SHELL,
            session: SHELL,
            terminal: 1,
            program: Some(ProgramFile { path: path.into(), is_of_system: true }),
            arguments: vec![name.to_owned()],
            namespaces: Some(ProcessNamespaces {
                user: ProcessNamespaces::INITIAL_USER,
                pid: ProcessNamespaces::INITIAL_PID,
                mount: 0,
            }),
            ..ProcessEntry::default()
        })
    }

    fn pids(&self) -> Vec<u32> {
        vec![1, LOGIN, SHELL, self.own_pid()]
    }
}

fn main() -> ExitCode {
    use_processes(Box::new(PersonAtTerminal));
    jackline_cli::run()
}
