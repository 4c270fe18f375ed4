//! Detects whether an agent started this process.
//!
//! An agent runs with its user's rights and can run the user's programs. Commands that loosen the
//! guard first check the processes above them: their names, their sessions and their environment.
//! This stops an agent that tries a command directly, but not one that plans an evasion;
//! `docs/reference/threat-model.md` lists the limits. Without `/proc`, only the environment of this
//! process is checked.

use std::fmt;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::agent_names::{AGENT_PACKAGES, AGENT_PROGRAMS, AGENT_VARIABLES};
use crate::environment::is_set;

/// Programs that run a script named in their arguments.
const INTERPRETERS: [&str; 10] =
    ["node", "bun", "deno", "python", "python3", "sh", "bash", "dash", "zsh", "ruby"];

/// Shells with which clients start their hooks.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ash"];

/// Programs without a terminal that give terminals to people.
const TERMINAL_HOSTS: [&str; 4] = ["sshd", "tmux", "SCREEN", "screen"];

/// The longest chain of parent processes that is followed.
const DEPTH_MAX: usize = 64;

/// How often the chain is read again when a parent ends during the reading.
const RETRIES_MAX: usize = 16;

/// How many processes of the machine are checked.
const PROCESSES_MAX: usize = 32_768;

/// The longest environment or command line that is read.
const PROC_FILE_BYTES_MAX: u64 = 4 << 20;

/// The usual length of an environment or a command line.
const PROC_FILE_BYTES_USUAL: usize = 4 << 10;

/// The agent that started this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedAgent {
    /// Its process id.
    pub pid: u32,
    /// Its process name.
    pub name: String,
    /// Why it counts as an agent.
    sign: AgentSign,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentSign {
    /// Its name is that of an agent program.
    Name,
    /// Its environment contains this marker of an agent.
    Marker(&'static str),
    /// This process is an orphan, and the agent was already at work beside it.
    Orphan,
}

impl fmt::Display for DetectedAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, name, sign } = self;
        match sign {
            AgentSign::Name => write!(f, "the agent `{name}` (process {pid}) started this"),
            AgentSign::Marker(marker) => {
                write!(f, "an agent started this: `{name}` (process {pid}) has {marker} set")
            }
            AgentSign::Orphan => write!(
                f,
                "no terminal started this, and the agent `{name}` (process {pid}) is at work"
            ),
        }
    }
}

/// The agent that started this process, if there is one.
pub fn agent_above() -> Option<DetectedAgent> {
    let pid = std::process::id();
    let marker = AGENT_VARIABLES.into_iter().find(|marker| is_set(marker));
    let own = marker.map(|marker| DetectedAgent {
        pid,
        name: "jackline".to_owned(),
        sign: AgentSign::Marker(marker),
    });
    own.or_else(|| ProcessTable::new("/proc").agent_above(pid))
}

/// Whether one of the agent's tools started this process, and not the agent's client. Only the
/// client may report events. Clients mark the two differently. A process that was detached from a
/// tool is also detached from the client, so it counts as the agent's.
pub fn is_started_by_agent_tool() -> bool {
    ProcessTable::new("/proc").is_started_by_agent_tool(std::process::id())
}

/// The data of one process in `/proc`.
#[derive(Debug, Clone)]
struct AncestorProcess {
    pid: u32,
    name: String,
    parent: u32,
    group: u32,
    session: u32,
    terminal: i64,
    started: u64,
}

struct ProcessTable {
    root: PathBuf,
}

impl ProcessTable {
    fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn agent_above(&self, own: u32) -> Option<DetectedAgent> {
        if let Some(marker) = self.marker(own) {
            let name = self.process(own).map_or_else(|| "jackline".to_owned(), |own| own.name);
            return Some(DetectedAgent { pid: own, name, sign: AgentSign::Marker(marker) });
        }
        let chain = self.chain(own);
        let above = chain.iter().skip(1).cloned();
        // A process whose parent ended still has the session in which it was started.
        let leaders = chain.iter().flat_map(|process| [process.session, process.group]);
        let leaders = leaders.filter(|pid| chain.iter().all(|process| process.pid != *pid));
        let leaders = leaders.filter(|pid| *pid > 1).filter_map(|pid| self.process(pid));
        let recognised = above.chain(leaders).find_map(|process| self.recognise(&process));
        recognised.or_else(|| self.owner_of_orphan(&chain))
    }

    fn is_started_by_agent_tool(&self, own: u32) -> bool {
        let chain = self.chain(own);
        let mut above = chain.iter().map(|process| process.pid).filter(|pid| *pid != own);
        if self.is_tool(own) || above.any(|pid| self.is_tool(pid)) {
            return true;
        }
        // A client that was not started from a terminal has its hooks directly below it, with only
        // shells between them.
        let mut above = chain.iter().skip(1);
        let nearest = above.find(|process| self.is_agent(process) || !is_shell(&process.name));
        let has_client = nearest.is_some_and(|process| self.is_agent(process));
        !has_client && self.owner_of_orphan(&chain).is_some()
    }

    /// A process and its ancestors. If a process ends while the chain is read, its children move to
    /// another parent, so the chain is read again.
    fn chain(&self, own: u32) -> Vec<AncestorProcess> {
        let mut chain = self.chain_once(own);
        for _ in 0..RETRIES_MAX {
            let gone =
                |last: &AncestorProcess| last.parent > 1 && self.process(last.parent).is_none();
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
            next = process.parent;
            chain.push(process);
        }
        chain
    }

    fn recognise(&self, process: &AncestorProcess) -> Option<DetectedAgent> {
        let agent = |sign| DetectedAgent { pid: process.pid, name: process.name.clone(), sign };
        if self.is_agent(process) {
            return Some(agent(AgentSign::Name));
        }
        self.marker(process.pid).map(|marker| agent(AgentSign::Marker(marker)))
    }

    /// Finds the agent that a detached process belongs to. Such a process has no parent and no
    /// terminal, so its origin is unknown. It counts as an agent's process if an agent runs beside
    /// it and started before it. Processes of a service manager, cron or a container are in another
    /// control group or started first. `tmux` and `sshd` serve people, so they are excluded.
    fn owner_of_orphan(&self, chain: &[AncestorProcess]) -> Option<DetectedAgent> {
        let adopts =
            |pid: u32| pid == 1 || self.process(pid).is_some_and(|parent| parent.name == "systemd");
        let is_lost = |process: &&AncestorProcess| {
            let alone = process.terminal == 0 && adopts(process.parent);
            alone && !TERMINAL_HOSTS.iter().any(|host| process.name.starts_with(host))
        };
        let lost = chain.iter().find(is_lost)?;
        let group = self.control_group(lost.pid)?;
        let owner = self.owner(lost.pid)?;
        let agents = self.pids().into_iter().filter_map(|pid| self.process(pid));
        let mut agents = agents.filter(|process| {
            // A process that was brought into a container has its session outside of the container.
            // There, only a session shared with the agent proves anything.
            let near = lost.session > 1 || process.session == lost.session;
            near && process.started <= lost.started
                && self.owner(process.pid) == Some(owner)
                && self.is_agent(process)
        });
        let beside = agents.find(|agent| self.control_group(agent.pid).as_ref() == Some(&group))?;
        Some(DetectedAgent { pid: beside.pid, name: beside.name, sign: AgentSign::Orphan })
    }

    fn process(&self, pid: u32) -> Option<AncestorProcess> {
        let text = self.read(pid, "stat")?;
        let text = String::from_utf8_lossy(&text);
        // The name may contain any character, also brackets and spaces.
        let (head, rest) = text.rsplit_once(')')?;
        let name = head.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u32>().ok();
        Some(AncestorProcess {
            pid,
            name,
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            terminal: fields.get(4)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    /// Whether a process is an agent, judged by its names.
    fn is_agent(&self, process: &AncestorProcess) -> bool {
        if is_agent_program(&process.name) {
            return true;
        }
        let exe = fs::read_link(self.root.join(process.pid.to_string()).join("exe")).ok();
        if exe.as_deref().and_then(Path::to_str).is_some_and(is_agent_program) {
            return true;
        }
        let line = self.read(process.pid, "cmdline").unwrap_or_default();
        let words: Vec<String> = line
            .split(|byte| *byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        let Some((program, arguments)) = words.split_first() else { return false };
        is_agent_program(program)
            || script_argument(program, arguments).is_some_and(is_agent_script)
    }

    /// The first agent marker in the environment of a process. Values may be secret, so they are
    /// not read.
    fn marker(&self, pid: u32) -> Option<&'static str> {
        let environment = self.read(pid, "environ")?;
        let mut variables = environment.split(|byte| *byte == 0);
        variables.find_map(|variable| {
            let at = variable.iter().position(|byte| *byte == b'=')?;
            let (name, value) = variable.split_at(at);
            let set = value.len() > 1;
            AGENT_VARIABLES.into_iter().find(|marker| set && marker.as_bytes() == name)
        })
    }

    /// Whether the process environment marks a tool of the agent, as opposed to its client. This
    /// value is not secret.
    fn is_tool(&self, pid: u32) -> bool {
        let environment = self.read(pid, "environ").unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|it| it.starts_with(b"AI_AGENT=") && it.ends_with(b"_agent"))
    }

    fn control_group(&self, pid: u32) -> Option<Vec<u8>> {
        self.read(pid, "cgroup")
    }

    fn owner(&self, pid: u32) -> Option<u32> {
        fs::metadata(self.root.join(pid.to_string())).ok().map(|metadata| metadata.uid())
    }

    fn pids(&self) -> Vec<u32> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().filter_map(Result::ok);
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.take(PROCESSES_MAX).collect()
    }

    fn read(&self, pid: u32, file: &str) -> Option<Vec<u8>> {
        let opened = fs::File::open(self.root.join(pid.to_string()).join(file)).ok()?;
        let mut bytes = Vec::with_capacity(PROC_FILE_BYTES_USUAL);
        opened.take(PROC_FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
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

        fn above(&self, pid: u32) -> Option<String> {
            ProcessTable::new(self.0.path()).agent_above(pid).map(|agent| agent.to_string())
        }
    }

    #[test]
    fn a_person_at_a_terminal_is_no_agent() {
        let machine = ProcDirectory::new();
        machine
            .add(10, &TestProcess(1, 10, 0, "sshd"), &["sshd"], &[])
            .add(
                20,
                &TestProcess(10, 20, 34816, "bash"),
                &["-bash"],
                &["HOME=/h", "CODEX_HOME=/c", "OPENCODE="],
            )
            .add(30, &TestProcess(20, 20, 34816, "jackline"), &["jackline"], &["HOME=/h"])
            // An agent at work in another terminal, in the same control group.
            .add(5, &TestProcess(1, 5, 34817, "claude"), &["claude"], &[]);
        assert_eq!(machine.above(30), None);
    }

    #[test]
    fn an_agent_is_recognised_by_its_name() {
        for line in [
            &["claude"][..],
            &["/usr/local/bin/codex", "exec"],
            &["node", "/x/node_modules/@anthropic-ai/claude-code/cli.js"],
            &["node", "--no-warnings", "/usr/bin/gemini"],
            &["/bin/sh", "/home/u/bin/claude"],
            &["bun", "/x/opencode-ai/bin/main.js"],
        ] {
            let machine = ProcDirectory::new();
            machine.add(10, &TestProcess(1, 10, 1, "agent"), line, &[]);
            machine.add(20, &TestProcess(10, 10, 1, "a) (b"), &["sh", "-c", "x"], &[]);
            machine.add(30, &TestProcess(20, 10, 1, "jackline"), &["jackline"], &[]);
            let said = machine.above(30);
            assert_eq!(
                said.as_deref(),
                Some("the agent `agent` (process 10) started this"),
                "{line:?}"
            );
        }
        for line in [
            &["bash", "-c", "vim claude"][..],
            &["vim", "/x/claude"],
            &["node", "claude-notes.js"],
            &["bash", "-c", "claude"],
        ] {
            let machine = ProcDirectory::new();
            machine.add(10, &TestProcess(1, 10, 1, "bash"), line, &[]);
            machine.add(30, &TestProcess(10, 10, 1, "jackline"), &["jackline"], &[]);
            assert_eq!(machine.above(30), None, "{line:?}");
        }
    }

    #[test]
    fn a_marker_is_not_lost_by_clearing_it() {
        let machine = ProcDirectory::new();
        machine.add(10, &TestProcess(1, 10, 0, "x"), &["x"], &["A=1", "CLAUDECODE=1"]);
        machine.add(20, &TestProcess(10, 10, 0, "env"), &["env"], &[]);
        machine.add(30, &TestProcess(20, 10, 0, "jackline"), &["jackline"], &[]);
        let said = "an agent started this: `x` (process 10) has CLAUDECODE set";
        assert_eq!(machine.above(30).as_deref(), Some(said));
        machine.add(40, &TestProcess(1, 40, 0, "jackline"), &["jackline"], &["GEMINI_CLI=1"]);
        assert!(machine.above(40).is_some(), "its own environment counts");
    }

    #[test]
    fn a_process_without_a_parent_is_recognised_by_its_session() {
        let machine = ProcDirectory::new();
        machine.add(20, &TestProcess(19, 20, 0, "bash"), &["bash"], &["CLAUDECODE=1"]);
        machine.add(30, &TestProcess(1, 20, 0, "jackline"), &["jackline"], &[]);
        let said = "an agent started this: `bash` (process 20) has CLAUDECODE set";
        assert_eq!(machine.above(30).as_deref(), Some(said));
    }

    #[test]
    fn a_detached_process_beside_an_agent_counts_as_its_own() {
        let said = "no terminal started this, and the agent `claude` (process 20) is at work";
        let machine = ProcDirectory::new();
        machine.add(20, &TestProcess(1, 20, 1, "claude"), &["claude"], &[]);
        machine.add(30, &TestProcess(1, 30, 0, "script"), &["script"], &[]);
        machine.add(31, &TestProcess(30, 31, 7, "jackline"), &["jackline"], &[]);
        assert_eq!(machine.above(31).as_deref(), Some(said));
        machine.add(32, &TestProcess(1, 29, 0, "jackline"), &["jackline"], &[]);
        assert_eq!(machine.above(32).as_deref(), Some(said), "its session has no leader");
        // A service that started first, one in another control group, and a build step.
        machine.add(10, &TestProcess(1, 10, 0, "cron"), &["cron"], &[]);
        machine.add(41, &TestProcess(10, 41, 0, "jackline"), &["jackline"], &[]);
        machine.add(50, &TestProcess(1, 50, 0, "timer"), &["timer"], &[]);
        fs::write(machine.0.path().join("50/cgroup"), "0::/system.slice\n").unwrap();
        machine.add(51, &TestProcess(50, 50, 0, "jackline"), &["jackline"], &[]);
        machine.add(60, &TestProcess(1, 0, 0, "runner"), &["runner"], &[]);
        machine.add(61, &TestProcess(60, 61, 0, "jackline"), &["jackline"], &[]);
        for pid in [41, 51, 61] {
            assert_eq!(machine.above(pid), None, "{pid}");
        }
        // An agent that was itself brought into the container, and its detached process.
        machine.add(70, &TestProcess(60, 0, 0, "claude"), &["claude"], &[]);
        machine.add(71, &TestProcess(1, 0, 0, "jackline"), &["jackline"], &[]);
        let said = said.replace("20", "70");
        assert_eq!(machine.above(71), Some(said));
        assert_eq!(machine.above(61), None, "the build step was there before it");
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
    fn a_machine_without_proc_shows_no_agent() {
        assert_eq!(ProcessTable::new("/nowhere").agent_above(7), None);
        let machine = ProcDirectory::new();
        machine.add(30, &TestProcess(30, 30, 0, "loop"), &[], &[]);
        assert_eq!(machine.above(30), None);
    }
}
