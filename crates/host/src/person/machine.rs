//! The processes of this machine, read from `/proc`.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::process::{
    ProcessEntry, ProcessNamespaces, ProcessSource, ProgramFile, SshConnection, find_marker,
};
use crate::proc_files::{ProcFiles, parse_stat};

/// The number by which the kernel identifies a file system of processes.
const PROC_MAGIC: u64 = 0x9fa0;

/// How many processes of the machine are checked.
const PROCESSES_MAX: usize = 65_536;

/// The processes of this machine.
#[derive(Debug)]
pub struct MachineProcesses {
    files: ProcFiles,
}

impl Default for MachineProcesses {
    fn default() -> Self {
        Self { files: ProcFiles::new("/proc") }
    }
}

impl ProcessSource for MachineProcesses {
    fn own_pid(&self) -> u32 {
        std::process::id()
    }

    fn check_complete(&self) -> Result<(), String> {
        let root = self.files.root();
        let system =
            rustix::fs::statfs(root).map_err(|error| format!("can't read `/proc`: {error}"))?;
        if u64::try_from(system.f_type).ok() != Some(PROC_MAGIC) {
            return Err("`/proc` is not the kernel's list of processes".to_owned());
        }
        let own = fs::read_link(root.join("self")).unwrap_or_default();
        if own != Path::new(&self.own_pid().to_string()) {
            return Err("`/proc` belongs to another namespace of processes".to_owned());
        }
        if self.files.read(1, "stat").is_none() {
            return Err("`/proc` hides the processes of other users (`hidepid`)".to_owned());
        }
        Ok(())
    }

    fn process(&self, pid: u32) -> Option<ProcessEntry> {
        let stat = parse_stat(&self.files.read(pid, "stat")?)?;
        let status = self.files.read(pid, "status")?;
        let status = String::from_utf8_lossy(&status);
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u32>().ok()
        };
        let environment = self.files.read(pid, "environ").unwrap_or_default();
        let line = self.files.read(pid, "cmdline").unwrap_or_default();
        let words = line.strip_suffix(b"\0").unwrap_or(&line).split(|byte| *byte == 0);
        Some(ProcessEntry {
            pid,
            name: stat.name,
            parent: stat.parent,
            group: stat.group,
            session: stat.session,
            terminal: stat.terminal,
            started: stat.started,
            owner: field("Uid:")?,
            program: self.program(pid),
            arguments: words.map(|word| String::from_utf8_lossy(word).into_owned()).collect(),
            marker: find_marker(&environment),
            connection: find_connection(&environment),
            namespaces: self.namespaces(pid),
            no_new_privileges: field("NoNewPrivs:") != Some(0),
        })
    }

    fn pids(&self) -> Vec<u32> {
        self.files.pids(PROCESSES_MAX)
    }
}

impl MachineProcesses {
    fn program(&self, pid: u32) -> Option<ProgramFile> {
        let link = self.files.path(pid, "exe");
        let path = fs::read_link(&link).ok()?;
        // Following the link leads to the running file, even if another one has its name now.
        let file = fs::metadata(&link).ok()?;
        let is_of_system = is_of_system(&file) && path.parent().is_some_and(are_of_system);
        Some(ProgramFile { path, is_of_system })
    }

    fn namespaces(&self, pid: u32) -> Option<ProcessNamespaces> {
        let number = |name: &str| {
            let link = fs::read_link(self.files.path(pid, "ns").join(name)).ok()?;
            let (_, number) = link.to_str()?.split_once('[')?;
            number.strip_suffix(']')?.parse().ok()
        };
        Some(ProcessNamespaces {
            user: number("user")?,
            pid: number("pid")?,
            mount: number("mnt")?,
        })
    }
}

/// Whether only the administrator can change a file.
fn is_of_system(file: &fs::Metadata) -> bool {
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    file.uid() == 0 && file.mode() & WRITABLE_BY_OTHERS == 0
}

/// Whether only the administrator can replace the files of a directory or rename one above it.
fn are_of_system(directory: &Path) -> bool {
    let mut above: Vec<PathBuf> = directory.ancestors().map(Path::to_owned).collect();
    above.pop_if(|last| last.as_os_str().is_empty());
    above.iter().all(|path| fs::metadata(path).is_ok_and(|metadata| is_of_system(&metadata)))
}

fn find_connection(environment: &[u8]) -> Option<SshConnection> {
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(b"SSH_CONNECTION="))?;
    SshConnection::parse(std::str::from_utf8(value).ok()?)
}
