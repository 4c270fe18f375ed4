//! What the check for a person needs to know about a process, and where it comes from.

use std::path::PathBuf;

use crate::agent_names::AGENT_VARIABLES;

/// The processes of a machine, as this process sees them.
///
/// A release binary uses [`super::MachineProcesses`]. Tests pass recorded processes in code.
pub trait ProcessSource: Send + Sync {
    /// The id of this process.
    fn own_pid(&self) -> u32;

    /// Whether the process list is the kernel's own and complete. The error says what is wrong.
    fn check_complete(&self) -> Result<(), String>;

    /// One process, or `None` if it has ended or may not be seen.
    fn process(&self, pid: u32) -> Option<ProcessEntry>;

    /// All processes.
    fn pids(&self) -> Vec<u32>;
}

/// A process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessEntry {
    /// Its id.
    pub pid: u32,
    /// Its name, which the process itself may choose.
    pub name: String,
    /// Its parent.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
    /// Its session.
    pub session: u32,
    /// Its terminal; 0 means none.
    pub terminal: i64,
    /// When it started, in ticks since the machine started.
    pub started: u64,
    /// The user to whom it belongs.
    pub owner: u32,
    /// The program that it runs, if it may be seen.
    pub program: Option<ProgramFile>,
    /// Its command line. The process itself may choose it.
    pub arguments: Vec<String>,
    /// The first variable in its environment by which agents mark their processes.
    pub marker: Option<&'static str>,
    /// The two addresses of the network connection through which it was started.
    pub connection: Option<SshConnection>,
    /// Its namespaces, if they may be seen.
    pub namespaces: Option<ProcessNamespaces>,
    /// Whether the kernel withholds new privileges from it, as from a confined command.
    pub no_new_privileges: bool,
}

/// The program of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramFile {
    /// Its path, without links.
    pub path: PathBuf,
    /// Whether only the administrator can change or replace the file.
    pub is_of_system: bool,
}

/// The addresses of an ssh connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshConnection {
    /// The address of the client.
    pub client: String,
    /// The address of this machine.
    pub server: String,
}

/// The numbers of a process's namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessNamespaces {
    /// The namespace of users.
    pub user: u64,
    /// The namespace of process ids.
    pub pid: u64,
    /// The namespace of mounts.
    pub mount: u64,
}

impl ProcessNamespaces {
    /// The numbers that Linux gives to the first namespaces of users and process ids.
    pub const INITIAL_USER: u64 = 0xEFFF_FFFD;
    /// See [`Self::INITIAL_USER`].
    pub const INITIAL_PID: u64 = 0xEFFF_FFFC;
}

impl SshConnection {
    /// Reads the value of `SSH_CONNECTION`.
    pub(super) fn parse(value: &str) -> Option<Self> {
        let mut words = value.split(' ');
        let (client, _, server) = (words.next()?, words.next()?, words.next()?);
        Some(Self { client: client.to_owned(), server: server.to_owned() })
    }

    /// Whether the client is this machine itself.
    pub(super) fn is_local(&self) -> bool {
        let is_loopback = self.client.starts_with("127.") || self.client == "::1";
        is_loopback || self.client == self.server
    }
}

/// Returns the first marker of an agent in an environment. Values may be secret, so only their
/// presence is checked.
pub(crate) fn find_marker(environment: &[u8]) -> Option<&'static str> {
    environment.split(|byte| *byte == 0).find_map(|variable| {
        let at = variable.iter().position(|byte| *byte == b'=')?;
        let (name, value) = variable.split_at(at);
        let is_set = value.len() > 1;
        AGENT_VARIABLES.into_iter().find(|marker| is_set && marker.as_bytes() == name)
    })
}
