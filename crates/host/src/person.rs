//! Decides whether a person at a terminal started this process.
//!
//! Commands that open the gate are for people. An agent runs with the rights of its user, so it can
//! start the same commands. This check looks at every process above this one. It refuses unless the
//! whole chain can be seen and ends in a program that gives terminals to people. What it cannot see,
//! it refuses. `docs/reference/threat-model.md` lists what it cannot tell apart.

mod machine;
mod process;
#[cfg(test)]
mod recorded;
mod terminal_hosts;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::OnceLock;

pub use machine::MachineProcesses;
pub use process::{ProcessEntry, ProcessNamespaces, ProcessSource, ProgramFile, SshConnection};

use crate::ancestry::is_agent_command;
use terminal_hosts::{HostKind, is_interactive_shell, is_switch, terminal_host};

/// The longest chain of parent processes. A longer one is refused.
const DEPTH_MAX: usize = 256;

/// How often the chain is read again when a process ends during the reading.
const RETRIES_MAX: usize = 16;

/// What a person does where the check cannot succeed.
const WAY_OUT: &str = "run it in a terminal window that you opened before the agent started, or in a new \
     login (ssh, the console); where that is impossible, remove the lines with `jackline hook` from \
     the client's settings by hand (docs/guide/off.md)";

/// The source that a program passed; see [`use_processes`].
static SOURCE: OnceLock<Box<dyn ProcessSource>> = OnceLock::new();

/// Makes [`check_person`] look at other processes than those of this machine. A program calls it
/// once, before anything else. The release binary does not call it.
pub fn use_processes(source: Box<dyn ProcessSource>) {
    let _ = SOURCE.set(source);
}

/// Checks that a person at a terminal started this process.
pub fn check_person() -> Result<(), NotAPerson> {
    match SOURCE.get() {
        Some(source) => check_person_in(source.as_ref()),
        None => check_person_in(&MachineProcesses::default()),
    }
}

/// Why it is not certain that a person started this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAPerson {
    reason: DoubtReason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum DoubtReason {
    /// An agent is above this process.
    Agent { name: String, pid: u32 },
    /// A process above this one has this marker of an agent.
    Marker { name: String, pid: u32, marker: &'static str },
    /// The list of processes is missing, imitated or incomplete.
    Hidden(String),
    /// The chain of parents could not be followed to the first process.
    Broken(String),
    /// This process is in a container or in namespaces of its own.
    Namespaces,
    /// A process above this one is confined.
    Confined { name: String, pid: u32 },
    /// This process has no terminal.
    NoTerminal,
    /// No program that gives terminals is above this process.
    NoHost { name: String, pid: u32 },
    /// A user could have changed a program between the person and this process.
    ForeignProgram { path: String },
    /// The terminal was opened for a command, and not for a person who types.
    NoShell { name: String },
    /// An agent of the same user may have opened the terminal, or may type into it.
    BesideAgent { host: String, agent: String, agent_pid: u32, how: AgentAccess },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentAccess {
    /// The terminal was opened after the agent had started.
    Opens,
    /// Every program of the user can type into the terminal.
    Types,
    /// The terminal belongs to an ssh connection from this machine to itself.
    Connects,
}

impl fmt::Display for NotAPerson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            DoubtReason::Agent { name, pid } => {
                write!(f, "the agent `{name}` (process {pid}) started this")?;
            }
            DoubtReason::Marker { name, pid, marker } => {
                write!(f, "an agent started this: `{name}` (process {pid}) has {marker} set")?;
            }
            DoubtReason::Hidden(reason) | DoubtReason::Broken(reason) => write!(f, "{reason}")?,
            DoubtReason::Namespaces => {
                f.write_str("this process runs in a container or in namespaces of its own")?;
            }
            DoubtReason::Confined { name, pid } => {
                write!(f, "`{name}` (process {pid}) above this process is confined")?;
            }
            DoubtReason::NoTerminal => f.write_str("this process has no terminal")?,
            DoubtReason::NoHost { name, pid } => {
                write!(
                    f,
                    "no known terminal program is above this process, only `{name}` (process {pid})"
                )?;
            }
            DoubtReason::ForeignProgram { path } => {
                write!(
                    f,
                    "a program without the administrator's rights could have replaced `{path}`"
                )?;
            }
            DoubtReason::NoShell { name } => {
                write!(f, "the terminal was opened to run `{name}`, and not for a shell")?;
            }
            DoubtReason::BesideAgent { host, agent, agent_pid, how } => {
                write!(f, "the agent `{agent}` (process {agent_pid}) is at work and ")?;
                match how {
                    AgentAccess::Opens => {
                        write!(f, "may have opened this terminal, because `{host}` started later")?;
                    }
                    AgentAccess::Types => write!(f, "can type into the terminals of `{host}`")?,
                    AgentAccess::Connects => {
                        f.write_str(
                            "may have opened this ssh connection from this machine to itself",
                        )?;
                    }
                }
            }
        }
        write!(f, "; {WAY_OUT}")
    }
}

impl From<DoubtReason> for NotAPerson {
    fn from(reason: DoubtReason) -> Self {
        Self { reason }
    }
}

fn check_person_in(source: &dyn ProcessSource) -> Result<(), NotAPerson> {
    source.check_complete().map_err(DoubtReason::Hidden)?;
    let chain = ProcessChain::read(source)?;
    chain.check_agents(source)?;
    let terminal = chain.find_terminal()?;
    terminal.check_confinement()?;
    terminal.check_shell()?;
    terminal.check_agents_beside(source)?;
    Ok(())
}

/// This process and all processes above it, up to the first one.
struct ProcessChain(Vec<ProcessEntry>);

impl ProcessChain {
    /// Reads the chain. If a process ends while it is read, its children move to another parent, so
    /// the chain is read again.
    fn read(source: &dyn ProcessSource) -> Result<Self, DoubtReason> {
        let mut read = Self::read_once(source);
        for _ in 0..RETRIES_MAX {
            if read.is_ok() {
                break;
            }
            read = Self::read_once(source);
        }
        read
    }

    fn read_once(source: &dyn ProcessSource) -> Result<Self, DoubtReason> {
        let mut chain: Vec<ProcessEntry> = Vec::new();
        let mut next = source.own_pid();
        while next > 0 {
            if chain.len() >= DEPTH_MAX || chain.iter().any(|known| known.pid == next) {
                let reason = format!("more than {DEPTH_MAX} processes are above this one");
                return Err(DoubtReason::Broken(reason));
            }
            let Some(process) = source.process(next) else {
                let reason = format!("the process {next} above this one can't be seen");
                return Err(DoubtReason::Broken(reason));
            };
            next = process.parent;
            chain.push(process);
        }
        if chain.last().is_none_or(|first| first.pid != 1) {
            let reason = "the chain of processes does not lead to the first process".to_owned();
            return Err(DoubtReason::Broken(reason));
        }
        Ok(Self(chain))
    }

    fn own(&self) -> Option<&ProcessEntry> {
        self.0.first()
    }

    /// Refuses if an agent is in the chain, or leads a session or a group of it. A process whose
    /// parent has ended still has the session in which it was started.
    fn check_agents(&self, source: &dyn ProcessSource) -> Result<(), DoubtReason> {
        let own_pid = source.own_pid();
        let leaders = self.0.iter().flat_map(|process| [process.session, process.group]);
        let missing =
            leaders.filter(|pid| *pid > 1 && self.0.iter().all(|process| process.pid != *pid));
        let leaders: Vec<ProcessEntry> = missing.filter_map(|pid| source.process(pid)).collect();
        for process in self.0.iter().chain(&leaders) {
            let (name, pid) = (process.name.clone(), process.pid);
            if pid != own_pid && is_agent(process) {
                return Err(DoubtReason::Agent { name, pid });
            }
            if let Some(marker) = process.marker {
                return Err(DoubtReason::Marker { name, pid, marker });
            }
        }
        Ok(())
    }

    /// Finds the program that gives this process its terminal.
    fn find_terminal(&self) -> Result<Terminal<'_>, DoubtReason> {
        if self.own().is_none_or(|own| own.terminal == 0) {
            return Err(DoubtReason::NoTerminal);
        }
        let host_at = |at: usize| terminal_host(self.0.get(at..).unwrap_or_default());
        let found = (1..self.0.len()).find_map(|at| Some((at, host_at(at)?)));
        let Some((at, kind)) = found else {
            let last = self.0.iter().rev().nth(1).or(self.own());
            let (name, pid) = last.map_or_else(Default::default, |it| (it.name.clone(), it.pid));
            return Err(DoubtReason::NoHost { name, pid });
        };
        let (below, above) = self.0.split_at(at);
        // A program may have several processes. The first one decides when and by whom it was
        // started.
        let count = (at..self.0.len()).take_while(|at| host_at(*at) == Some(kind)).count();
        let hosts = above.get(..count).unwrap_or_default();
        let is_checked = kind != HostKind::Login || hosts.last().is_some_and(|it| it.owner == 0);
        // A program that checks logins does so only if the administrator started it.
        let kind = if is_checked { kind } else { HostKind::Window };
        Ok(Terminal { below, hosts, kind })
    }
}

/// The terminal of this process.
struct Terminal<'c> {
    /// The processes below the program that gives the terminal; this process is the first.
    below: &'c [ProcessEntry],
    /// The processes of that program, from the lowest to the highest.
    hosts: &'c [ProcessEntry],
    kind: HostKind,
}

impl Terminal<'_> {
    /// Refuses processes in namespaces of their own, and confined ones.
    fn check_confinement(&self) -> Result<(), DoubtReason> {
        let own = self.below.first().and_then(|own| own.namespaces);
        let own = own.ok_or(DoubtReason::Namespaces)?;
        let is_initial = own.user == ProcessNamespaces::INITIAL_USER
            && own.pid == ProcessNamespaces::INITIAL_PID;
        let mut visible = self.below.iter().filter_map(|process| process.namespaces);
        if !is_initial || visible.any(|other| other != own) {
            return Err(DoubtReason::Namespaces);
        }
        match self.below.iter().find(|process| process.no_new_privileges) {
            Some(process) => {
                Err(DoubtReason::Confined { name: process.name.clone(), pid: process.pid })
            }
            None => Ok(()),
        }
    }

    /// Refuses unless a trusted program opened the terminal for a shell.
    fn check_shell(&self) -> Result<(), DoubtReason> {
        // A person types into the shell. `sudo` may open a terminal of its own below it.
        let shell = self.below.iter().rev().find(|process| !is_switch(process));
        let programs = self.hosts.first().into_iter().chain(shell);
        let mut programs = programs.filter_map(|process| process.program.as_ref());
        if let Some(program) = programs.find(|program| !program.is_of_system) {
            return Err(DoubtReason::ForeignProgram { path: program.path.display().to_string() });
        }
        match shell {
            Some(shell) if is_interactive_shell(shell) => Ok(()),
            _ => {
                let name = shell.map_or_else(String::new, |shell| shell.name.clone());
                Err(DoubtReason::NoShell { name })
            }
        }
    }

    /// Refuses if an agent of the same user may have opened the terminal, or can type into it.
    fn check_agents_beside(&self, source: &dyn ProcessSource) -> Result<(), DoubtReason> {
        let Some(host) = self.hosts.first() else { return Ok(()) };
        let started = self.hosts.iter().map(|host| host.started).min().unwrap_or(host.started);
        let mut connections = self.below.iter().filter_map(|process| process.connection.as_ref());
        let is_local = connections.any(SshConnection::is_local);
        let users: Vec<u32> = self.below.iter().map(|process| process.owner).collect();
        let others = source.pids().into_iter().filter_map(|pid| source.process(pid));
        let agents = others.filter(|process| is_agent(process) || process.marker.is_some());
        for agent in agents.filter(|process| users.contains(&process.owner)) {
            let how = match self.kind {
                HostKind::Remote => AgentAccess::Types,
                _ if is_local => AgentAccess::Connects,
                HostKind::Window if started >= agent.started => AgentAccess::Opens,
                HostKind::Window | HostKind::Login => continue,
            };
            return Err(DoubtReason::BesideAgent {
                host: host.name.clone(),
                agent: agent.name,
                agent_pid: agent.pid,
                how,
            });
        }
        Ok(())
    }
}

/// Whether a process is an agent, by the names of the process, its program and its script.
fn is_agent(process: &ProcessEntry) -> bool {
    let program = process.program.as_ref().and_then(|program| program.path.to_str());
    is_agent_command(&process.name, program, &process.arguments)
}
