//! Detects whether a tool of an agent started this process, and not the agent's client.
//!
//! Clients report events through hooks. A tool of the agent can start the same program and imitate
//! such a report. Clients mark their tools differently from their hooks, and this module looks for
//! the mark in all processes above this one.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::agent_names::{AGENT_PACKAGES, AGENT_PROGRAMS};
use crate::proc_files::{ProcFiles, ProcStat, parse_stat};

/// Programs that run a script named in their arguments.
const INTERPRETERS: [&str; 10] =
    ["node", "bun", "deno", "python", "python3", "sh", "bash", "dash", "zsh", "ruby"];

/// Shells with which clients start their hooks.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ash"];

/// Programs without a terminal that give terminals to people.
const TERMINAL_HOSTS: [&str; 4] = ["sshd", "tmux", "SCREEN", "screen"];

/// The longest chain of parent processes that is followed. What is below a longer one counts as the
/// agent's.
const DEPTH_MAX: usize = 256;

/// How often the chain is read again when a parent ends during the reading.
const RETRIES_MAX: usize = 16;

/// How many processes of the machine are checked.
const PROCESSES_MAX: usize = 32_768;

/// Whether one of the agent's tools started this process, and not the agent's client. Only the
/// client may report events. A process that was detached from a tool is also detached from the
/// client, so it counts as the agent's.
pub fn is_started_by_agent_tool() -> bool {
    ProcessTable::new("/proc").is_started_by_agent_tool(std::process::id())
}

/// A process above this one.
#[derive(Debug, Clone)]
struct AncestorProcess {
    pid: u32,
    stat: ProcStat,
}

struct ProcessTable {
    files: ProcFiles,
}

impl ProcessTable {
    fn new(root: impl Into<PathBuf>) -> Self {
        Self { files: ProcFiles::new(root) }
    }

    fn is_started_by_agent_tool(&self, own: u32) -> bool {
        let chain = self.chain(own);
        // Without a visible and complete chain, the origin is unknown.
        if chain.is_empty() || chain.len() >= DEPTH_MAX {
            return true;
        }
        let mut above = chain.iter().map(|process| process.pid).filter(|pid| *pid != own);
        if self.is_tool(own) || above.any(|pid| self.is_tool(pid)) {
            return true;
        }
        // A client that was not started from a terminal has its hooks directly below it, with only
        // shells between them.
        let mut above = chain.iter().skip(1);
        let nearest = above.find(|process| self.is_agent(process) || !is_shell(&process.stat.name));
        let has_client = nearest.is_some_and(|process| self.is_agent(process));
        !has_client && self.owner_of_orphan(&chain).is_some()
    }

    /// A process and its ancestors. If a process ends while the chain is read, its children move to
    /// another parent, so the chain is read again.
    fn chain(&self, own: u32) -> Vec<AncestorProcess> {
        let mut chain = self.chain_once(own);
        for _ in 0..RETRIES_MAX {
            let gone = |last: &AncestorProcess| {
                last.stat.parent > 1 && self.process(last.stat.parent).is_none()
            };
            if !chain.last().is_some_and(gone) {
                break;
            }
            chain = self.chain_once(own);
        }
        chain
    }

    fn chain_once(&self, own: u32) -> Vec<AncestorProcess> {
        let mut chain: Vec<AncestorProcess> = Vec::new();
        let mut next = own;
        while chain.len() < DEPTH_MAX && next > 1 && chain.iter().all(|known| known.pid != next) {
            let Some(process) = self.process(next) else { break };
            next = process.stat.parent;
            chain.push(process);
        }
        chain
    }

    /// Finds the agent that a detached process belongs to. Such a process has no parent and no
    /// terminal, so its origin is unknown. It counts as an agent's process if an agent runs beside
    /// it and started before it. Processes of a service manager, cron or a container are in another
    /// control group or started first. `tmux` and `sshd` serve people, so they are excluded.
    fn owner_of_orphan(&self, chain: &[AncestorProcess]) -> Option<u32> {
        let adopts = |pid: u32| {
            pid == 1 || self.process(pid).is_some_and(|parent| parent.stat.name == "systemd")
        };
        let is_lost = |process: &&AncestorProcess| {
            let alone = process.stat.terminal == 0 && adopts(process.stat.parent);
            alone && !TERMINAL_HOSTS.iter().any(|host| process.stat.name.starts_with(host))
        };
        let lost = chain.iter().find(is_lost)?;
        let group = self.control_group(lost.pid)?;
        let owner = self.owner(lost.pid)?;
        let agents = self.pids().into_iter().filter_map(|pid| self.process(pid));
        let mut agents = agents.filter(|process| {
            // A process that was brought into a container has its session outside of the container.
            // There, only a session shared with the agent proves anything.
            let near = lost.stat.session > 1 || process.stat.session == lost.stat.session;
            near && process.stat.started <= lost.stat.started
                && self.owner(process.pid) == Some(owner)
                && self.is_agent(process)
        });
        let beside = agents.find(|agent| self.control_group(agent.pid).as_ref() == Some(&group))?;
        Some(beside.pid)
    }

    fn process(&self, pid: u32) -> Option<AncestorProcess> {
        Some(AncestorProcess { pid, stat: parse_stat(&self.files.read(pid, "stat")?)? })
    }

    /// Whether a process is an agent, judged by its names.
    fn is_agent(&self, process: &AncestorProcess) -> bool {
        let program = fs::read_link(self.files.path(process.pid, "exe")).ok();
        let program = program.as_deref().and_then(Path::to_str);
        let line = self.files.read(process.pid, "cmdline").unwrap_or_default();
        let words = line.split(|byte| *byte == 0);
        let words: Vec<String> =
            words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        is_agent_command(&process.stat.name, program, &words)
    }

    /// Whether the process environment marks a tool of the agent, as opposed to its client. This
    /// value is not secret.
    fn is_tool(&self, pid: u32) -> bool {
        let environment = self.files.read(pid, "environ").unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|it| it.starts_with(b"AI_AGENT=") && it.ends_with(b"_agent"))
    }

    fn control_group(&self, pid: u32) -> Option<Vec<u8>> {
        self.files.read(pid, "cgroup")
    }

    fn owner(&self, pid: u32) -> Option<u32> {
        fs::metadata(self.files.root().join(pid.to_string())).ok().map(|metadata| metadata.uid())
    }

    fn pids(&self) -> Vec<u32> {
        self.files.pids(PROCESSES_MAX)
    }
}

/// Whether a process is an agent, by its name, its program, and its command line.
pub(crate) fn is_agent_command(name: &str, program: Option<&str>, words: &[String]) -> bool {
    if is_agent_program(name) || program.is_some_and(is_agent_program) {
        return true;
    }
    let Some((first, arguments)) = words.split_first() else { return false };
    is_agent_program(first) || script_argument(first, arguments).is_some_and(is_agent_script)
}

/// Whether a path or a name is that of an agent program.
fn is_agent_program(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let endings = [".js", ".mjs", ".cjs", ".py", ".sh", ".exe"];
    let name = endings.into_iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    AGENT_PROGRAMS.iter().any(|agent| agent.eq_ignore_ascii_case(name))
}

fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// The script that an interpreter runs.
fn script_argument<'a>(program: &str, arguments: &'a [String]) -> Option<&'a str> {
    let name = program.rsplit('/').next().unwrap_or(program);
    if !INTERPRETERS.contains(&name) {
        return None;
    }
    // After `-c` and similar options comes program text and not a file.
    let inline = |word: &&String| matches!(word.as_str(), "-c" | "-e" | "-p" | "--eval" | "eval");
    let first = arguments.iter().find(|word| inline(word) || !word.starts_with('-'))?;
    (!inline(&first)).then_some(first.as_str())
}

fn is_agent_script(path: &str) -> bool {
    is_agent_program(path) || AGENT_PACKAGES.iter().any(|package| path.contains(package))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A `/proc` directory made of test files.
    struct ProcDirectory(TempDir);

    /// A test process: parent, session, terminal, name.
    struct TestProcess<'a>(u32, u32, i64, &'a str);

    impl ProcDirectory {
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            machine.add(1, &TestProcess(0, 1, 0, "init"), &["/sbin/init"], &[]);
            machine
        }

        /// Adds a process. Higher numbers started later.
        fn add(
            &self,
            pid: u32,
            is: &TestProcess<'_>,
            line: &[&str],
            environment: &[&str],
        ) -> &Self {
            let TestProcess(parent, session, terminal, name) = is;
            let at = self.0.path().join(pid.to_string());
            fs::create_dir(&at).unwrap();
            let zeros = "0 ".repeat(14);
            let stat = format!(
                "{pid} ({name}) S {parent} {session} {session} {terminal} {zeros}{pid}00 0 0"
            );
            fs::write(at.join("stat"), stat).unwrap();
            fs::write(at.join("cmdline"), line.join("\0")).unwrap();
            fs::write(at.join("environ"), environment.join("\0")).unwrap();
            fs::write(at.join("cgroup"), "0::/user.slice\n").unwrap();
            self
        }
    }

    #[test]
    fn events_of_an_agents_tool_and_of_its_client_are_distinguished() {
        let machine = ProcDirectory::new();
        let forged = |pid| ProcessTable::new(machine.0.path()).is_started_by_agent_tool(pid);
        // A client that a service manager started, and its hook.
        machine.add(20, &TestProcess(1, 20, 0, "claude"), &["claude"], &[]);
        machine.add(21, &TestProcess(20, 20, 0, "sh"), &["sh", "-c", "x"], &["AI_AGENT=x_harness"]);
        machine.add(
            22,
            &TestProcess(21, 20, 0, "jackline"),
            &["jackline"],
            &["AI_AGENT=x_harness"],
        );
        assert!(!forged(22), "the client's own");
        // A process of its tool, whose environment was cleared later.
        machine.add(30, &TestProcess(20, 30, 0, "bash"), &["bash"], &["AI_AGENT=x_agent"]);
        machine.add(31, &TestProcess(30, 30, 0, "jackline"), &["jackline"], &[]);
        assert!(forged(31), "below a tool");
        machine.add(32, &TestProcess(30, 30, 0, "claude"), &["claude"], &[]);
        machine.add(33, &TestProcess(32, 30, 0, "jackline"), &["jackline"], &[]);
        assert!(forged(33), "a tool with the name of a client");
        // A process that was detached.
        machine.add(40, &TestProcess(1, 40, 0, "sh"), &["sh"], &[]);
        machine.add(41, &TestProcess(40, 40, 0, "jackline"), &["jackline"], &[]);
        assert!(forged(41), "an orphan");
        // A client at a person's terminal, beside another client.
        machine.add(50, &TestProcess(1, 50, 0, "tmux: server"), &["tmux"], &[]);
        machine.add(51, &TestProcess(50, 51, 7, "bash"), &["bash"], &[]);
        machine.add(52, &TestProcess(51, 51, 7, "claude"), &["claude"], &[]);
        machine.add(
            53,
            &TestProcess(52, 51, 7, "jackline"),
            &["jackline"],
            &["AI_AGENT=x_harness"],
        );
        assert!(!forged(53), "a person's client");
    }

    #[test]
    fn without_a_visible_chain_the_origin_is_unknown() {
        assert!(ProcessTable::new("/nowhere").is_started_by_agent_tool(7));
        let machine = ProcDirectory::new();
        for pid in 2..400 {
            machine.add(pid, &TestProcess(pid - 1, pid, 0, "nest"), &["nest"], &[]);
        }
        assert!(ProcessTable::new(machine.0.path()).is_started_by_agent_tool(399));
    }
}
