//! Whether an agent started this process.
//!
//! An agent runs as its person and can run the person's programs. What opens
//! the guard asks first who is above: the processes that led here, their sessions,
//! and what they were started with. That holds off an agent that tries, not one
//! that plans; SECURITY.md says what is out of reach. Where there is no `/proc`,
//! only the environment of this process is left to look at.

use std::fmt;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::agent_names::{MARKERS, NAMES, PACKAGES};
use crate::environment::is_set;

/// Programs that run a script which is named behind them.
const INTERPRETERS: [&str; 10] =
    ["node", "bun", "deno", "python", "python3", "sh", "bash", "dash", "zsh", "ruby"];

/// Programs by which clients start their hooks.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ash"];

/// Programs without a terminal that give people theirs.
const HOSTS: [&str; 4] = ["sshd", "tmux", "SCREEN", "screen"];

/// How many processes are followed upwards.
const DEPTH_MAX: usize = 64;

/// How often it is looked again for who is above.
const RETRIES_MAX: usize = 16;

/// How many processes of the machine are looked at for an agent.
const PROCESSES_MAX: usize = 32_768;

/// How much of an environment or a command line is read.
const BYTES_MAX: u64 = 4 << 20;

/// How long most of them are.
const BYTES_MOSTLY: usize = 4 << 10;

/// An agent that started this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// The process.
    pub pid: u32,
    /// What it is called.
    pub name: String,
    /// How it was recognised.
    sign: Sign,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// By its name.
    Name,
    /// By what it was started with.
    Marker(&'static str),
    /// This process was cut loose from it.
    Orphan,
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, name, sign } = self;
        match sign {
            Sign::Name => write!(f, "the agent `{name}` (process {pid}) started this"),
            Sign::Marker(marker) => {
                write!(f, "an agent started this: `{name}` (process {pid}) has {marker} set")
            }
            Sign::Orphan => write!(
                f,
                "nobody's terminal started this, and the agent `{name}` (process {pid}) is at work"
            ),
        }
    }
}

/// The agent that started this process, if one did.
pub fn agent_above() -> Option<Agent> {
    let pid = std::process::id();
    let marker = MARKERS.into_iter().find(|marker| is_set(marker));
    let own =
        marker.map(|marker| Agent { pid, name: "jackline".to_owned(), sign: Sign::Marker(marker) });
    own.or_else(|| Processes::new("/proc").agent_above(pid))
}

/// Whether this process was started by an agent with a tool of its own, and not
/// by its client, which is to be told of what happens. Clients mark the two
/// apart; and what was cut loose from a tool has lost its client too.
pub fn forged_by_agent() -> bool {
    Processes::new("/proc").forged_by_agent(std::process::id())
}

/// What is known of a process.
#[derive(Debug, Clone)]
struct Process {
    pid: u32,
    name: String,
    parent: u32,
    group: u32,
    session: u32,
    terminal: i64,
    started: u64,
}

struct Processes {
    root: PathBuf,
}

impl Processes {
    fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn agent_above(&self, own: u32) -> Option<Agent> {
        if let Some(marker) = self.marker(own) {
            let name = self.process(own).map_or_else(|| "jackline".to_owned(), |own| own.name);
            return Some(Agent { pid: own, name, sign: Sign::Marker(marker) });
        }
        let chain = self.chain(own);
        let above = chain.iter().skip(1).cloned();
        // A process that was left by its parent still has the session in which
        // it was started.
        let leaders = chain.iter().flat_map(|process| [process.session, process.group]);
        let leaders = leaders.filter(|pid| chain.iter().all(|process| process.pid != *pid));
        let leaders = leaders.filter(|pid| *pid > 1).filter_map(|pid| self.process(pid));
        let recognised = above.chain(leaders).find_map(|process| self.recognise(&process));
        recognised.or_else(|| self.left_behind(&chain))
    }

    fn forged_by_agent(&self, own: u32) -> bool {
        let chain = self.chain(own);
        let mut above = chain.iter().map(|process| process.pid).filter(|pid| *pid != own);
        if self.is_tool(own) || above.any(|pid| self.is_tool(pid)) {
            return true;
        }
        // A client that nobody's terminal started has its hooks right below it,
        // behind nothing but shells.
        let mut above = chain.iter().skip(1);
        let nearest = above.find(|process| self.is_agent(process) || !is_shell(&process.name));
        let has_client = nearest.is_some_and(|process| self.is_agent(process));
        !has_client && self.left_behind(&chain).is_some()
    }

    /// A process and those above it, up to the first of all. One that ends while
    /// it is looked at leaves its children to another, so that is seen again.
    fn chain(&self, own: u32) -> Vec<Process> {
        let mut chain = self.chain_once(own);
        for _ in 0..RETRIES_MAX {
            let gone = |last: &Process| last.parent > 1 && self.process(last.parent).is_none();
            if !chain.last().is_some_and(gone) {
                break;
            }
            chain = self.chain_once(own);
        }
        chain
    }

    fn chain_once(&self, own: u32) -> Vec<Process> {
        let mut chain: Vec<Process> = Vec::new();
        let mut next = own;
        while chain.len() < DEPTH_MAX && next > 1 && chain.iter().all(|known| known.pid != next) {
            let Some(process) = self.process(next) else { break };
            next = process.parent;
            chain.push(process);
        }
        chain
    }

    fn recognise(&self, process: &Process) -> Option<Agent> {
        let agent = |sign| Agent { pid: process.pid, name: process.name.clone(), sign };
        if self.is_agent(process) {
            return Some(agent(Sign::Name));
        }
        self.marker(process.pid).map(|marker| agent(Sign::Marker(marker)))
    }

    /// A process that cut itself loose (its parent gone, no terminal) has lost
    /// its past. It is taken for an agent's if one is at work beside it that was
    /// there before. What a service manager, cron or a container starts lies in
    /// another control group, or was there first; and people sit behind `tmux`
    /// and `sshd`.
    fn left_behind(&self, chain: &[Process]) -> Option<Agent> {
        let adopts =
            |pid: u32| pid == 1 || self.process(pid).is_some_and(|parent| parent.name == "systemd");
        let is_lost = |process: &&Process| {
            let alone = process.terminal == 0 && adopts(process.parent);
            alone && !HOSTS.iter().any(|host| process.name.starts_with(host))
        };
        let lost = chain.iter().find(is_lost)?;
        let group = self.control_group(lost.pid)?;
        let owner = self.owner(lost.pid)?;
        let agents = self.pids().into_iter().filter_map(|pid| self.process(pid));
        let mut agents = agents.filter(|process| {
            // What was brought into a container has its session outside of it,
            // and only there a session shared with the agent says anything.
            let near = lost.session > 1 || process.session == lost.session;
            near && process.started <= lost.started
                && self.owner(process.pid) == Some(owner)
                && self.is_agent(process)
        });
        let beside = agents.find(|agent| self.control_group(agent.pid).as_ref() == Some(&group))?;
        Some(Agent { pid: beside.pid, name: beside.name, sign: Sign::Orphan })
    }

    fn process(&self, pid: u32) -> Option<Process> {
        let text = self.read(pid, "stat")?;
        let text = String::from_utf8_lossy(&text);
        // The name may hold anything, brackets and spaces included.
        let (head, rest) = text.rsplit_once(')')?;
        let name = head.split_once('(')?.1.to_owned();
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u32>().ok();
        Some(Process {
            pid,
            name,
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            terminal: fields.get(4)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }

    /// Whether a process is an agent, by what it is called.
    fn is_agent(&self, process: &Process) -> bool {
        if is_name(&process.name) {
            return true;
        }
        let exe = fs::read_link(self.root.join(process.pid.to_string()).join("exe")).ok();
        if exe.as_deref().and_then(Path::to_str).is_some_and(is_name) {
            return true;
        }
        let line = self.read(process.pid, "cmdline").unwrap_or_default();
        let words: Vec<String> = line
            .split(|byte| *byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        let Some((program, arguments)) = words.split_first() else { return false };
        is_name(program) || script(program, arguments).is_some_and(is_agents_script)
    }

    /// The first marker of an agent in what a process was started with. Values
    /// may be secret, and are not looked at.
    fn marker(&self, pid: u32) -> Option<&'static str> {
        let environment = self.read(pid, "environ")?;
        let mut variables = environment.split(|byte| *byte == 0);
        variables.find_map(|variable| {
            let at = variable.iter().position(|byte| *byte == b'=')?;
            let (name, value) = variable.split_at(at);
            let set = value.len() > 1;
            MARKERS.into_iter().find(|marker| set && marker.as_bytes() == name)
        })
    }

    /// Whether a process was marked as one of the agent's own, as opposed to its
    /// client's. The mark says what it is, and is no secret.
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
        let mut bytes = Vec::with_capacity(BYTES_MOSTLY);
        opened.take(BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// Whether a path or a name is that of an agent's program.
fn is_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let endings = [".js", ".mjs", ".cjs", ".py", ".sh", ".exe"];
    let name = endings.into_iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    NAMES.iter().any(|agent| agent.eq_ignore_ascii_case(name))
}

fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// The script that an interpreter runs.
fn script<'a>(program: &str, arguments: &'a [String]) -> Option<&'a str> {
    let name = program.rsplit('/').next().unwrap_or(program);
    if !INTERPRETERS.contains(&name) {
        return None;
    }
    // Behind `-c` and its like stands a text, and no file.
    let inline = |word: &&String| matches!(word.as_str(), "-c" | "-e" | "-p" | "--eval" | "eval");
    let first = arguments.iter().find(|word| inline(word) || !word.starts_with('-'))?;
    (!inline(&first)).then_some(first.as_str())
}

fn is_agents_script(path: &str) -> bool {
    is_name(path) || PACKAGES.iter().any(|package| path.contains(package))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A machine made of files.
    struct Machine(TempDir);

    /// What a process looks like: its parent, its session, its terminal.
    struct Is<'a>(u32, u32, i64, &'a str);

    impl Machine {
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            machine.add(1, &Is(0, 1, 0, "init"), &["/sbin/init"], &[]);
            machine
        }

        /// A process; those with higher numbers were started later.
        fn add(&self, pid: u32, is: &Is<'_>, line: &[&str], environment: &[&str]) -> &Self {
            let Is(parent, session, terminal, name) = is;
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
            Processes::new(self.0.path()).agent_above(pid).map(|agent| agent.to_string())
        }
    }

    #[test]
    fn a_person_at_a_terminal_is_nobodys_agent() {
        let machine = Machine::new();
        machine
            .add(10, &Is(1, 10, 0, "sshd"), &["sshd"], &[])
            .add(
                20,
                &Is(10, 20, 34816, "bash"),
                &["-bash"],
                &["HOME=/h", "CODEX_HOME=/c", "OPENCODE="],
            )
            .add(30, &Is(20, 20, 34816, "jackline"), &["jackline"], &["HOME=/h"])
            // An agent at work elsewhere, in the same control group.
            .add(5, &Is(1, 5, 34817, "claude"), &["claude"], &[]);
        assert_eq!(machine.above(30), None);
    }

    #[test]
    fn an_agent_is_known_by_its_name() {
        for line in [
            &["claude"][..],
            &["/usr/local/bin/codex", "exec"],
            &["node", "/x/node_modules/@anthropic-ai/claude-code/cli.js"],
            &["node", "--no-warnings", "/usr/bin/gemini"],
            &["/bin/sh", "/home/u/bin/claude"],
            &["bun", "/x/opencode-ai/bin/main.js"],
        ] {
            let machine = Machine::new();
            machine.add(10, &Is(1, 10, 1, "agent"), line, &[]);
            machine.add(20, &Is(10, 10, 1, "a) (b"), &["sh", "-c", "x"], &[]);
            machine.add(30, &Is(20, 10, 1, "jackline"), &["jackline"], &[]);
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
            let machine = Machine::new();
            machine.add(10, &Is(1, 10, 1, "bash"), line, &[]);
            machine.add(30, &Is(10, 10, 1, "jackline"), &["jackline"], &[]);
            assert_eq!(machine.above(30), None, "{line:?}");
        }
    }

    #[test]
    fn a_marker_is_not_lost_by_clearing_it() {
        let machine = Machine::new();
        machine.add(10, &Is(1, 10, 0, "x"), &["x"], &["A=1", "CLAUDECODE=1"]);
        machine.add(20, &Is(10, 10, 0, "env"), &["env"], &[]);
        machine.add(30, &Is(20, 10, 0, "jackline"), &["jackline"], &[]);
        let said = "an agent started this: `x` (process 10) has CLAUDECODE set";
        assert_eq!(machine.above(30).as_deref(), Some(said));
        machine.add(40, &Is(1, 40, 0, "jackline"), &["jackline"], &["GEMINI_CLI=1"]);
        assert!(machine.above(40).is_some(), "its own environment counts");
    }

    #[test]
    fn who_lost_its_parent_is_known_by_its_session() {
        let machine = Machine::new();
        machine.add(20, &Is(19, 20, 0, "bash"), &["bash"], &["CLAUDECODE=1"]);
        machine.add(30, &Is(1, 20, 0, "jackline"), &["jackline"], &[]);
        let said = "an agent started this: `bash` (process 20) has CLAUDECODE set";
        assert_eq!(machine.above(30).as_deref(), Some(said));
    }

    #[test]
    fn who_cut_itself_loose_beside_an_agent_is_taken_for_its_own() {
        let said = "nobody's terminal started this, and the agent `claude` (process 20) is at work";
        let machine = Machine::new();
        machine.add(20, &Is(1, 20, 1, "claude"), &["claude"], &[]);
        machine.add(30, &Is(1, 30, 0, "script"), &["script"], &[]);
        machine.add(31, &Is(30, 31, 7, "jackline"), &["jackline"], &[]);
        assert_eq!(machine.above(31).as_deref(), Some(said));
        machine.add(32, &Is(1, 29, 0, "jackline"), &["jackline"], &[]);
        assert_eq!(machine.above(32).as_deref(), Some(said), "its session has no leader");
        // A service that was there first, one of another group, a build step.
        machine.add(10, &Is(1, 10, 0, "cron"), &["cron"], &[]);
        machine.add(41, &Is(10, 41, 0, "jackline"), &["jackline"], &[]);
        machine.add(50, &Is(1, 50, 0, "timer"), &["timer"], &[]);
        fs::write(machine.0.path().join("50/cgroup"), "0::/system.slice\n").unwrap();
        machine.add(51, &Is(50, 50, 0, "jackline"), &["jackline"], &[]);
        machine.add(60, &Is(1, 0, 0, "runner"), &["runner"], &[]);
        machine.add(61, &Is(60, 61, 0, "jackline"), &["jackline"], &[]);
        for pid in [41, 51, 61] {
            assert_eq!(machine.above(pid), None, "{pid}");
        }
        // An agent that was itself brought into the container, and its orphan.
        machine.add(70, &Is(60, 0, 0, "claude"), &["claude"], &[]);
        machine.add(71, &Is(1, 0, 0, "jackline"), &["jackline"], &[]);
        let said = said.replace("20", "70");
        assert_eq!(machine.above(71), Some(said));
        assert_eq!(machine.above(61), None, "the build step was there before it");
    }

    #[test]
    fn an_event_of_the_agents_own_is_told_from_its_clients() {
        let machine = Machine::new();
        let forged = |pid| Processes::new(machine.0.path()).forged_by_agent(pid);
        // A client that a service manager started, and its hook.
        machine.add(20, &Is(1, 20, 0, "claude"), &["claude"], &[]);
        machine.add(21, &Is(20, 20, 0, "sh"), &["sh", "-c", "x"], &["AI_AGENT=x_harness"]);
        machine.add(22, &Is(21, 20, 0, "jackline"), &["jackline"], &["AI_AGENT=x_harness"]);
        assert!(!forged(22), "the client's own");
        // What its tool started, whatever that has cleared since.
        machine.add(30, &Is(20, 30, 0, "bash"), &["bash"], &["AI_AGENT=x_agent"]);
        machine.add(31, &Is(30, 30, 0, "jackline"), &["jackline"], &[]);
        assert!(forged(31), "below a tool");
        machine.add(32, &Is(30, 30, 0, "claude"), &["claude"], &[]);
        machine.add(33, &Is(32, 30, 0, "jackline"), &["jackline"], &[]);
        assert!(forged(33), "a tool that goes by the name of a client");
        // What was cut loose.
        machine.add(40, &Is(1, 40, 0, "sh"), &["sh"], &[]);
        machine.add(41, &Is(40, 40, 0, "jackline"), &["jackline"], &[]);
        assert!(forged(41), "an orphan");
        // A client at a person's terminal, beside another one.
        machine.add(50, &Is(1, 50, 0, "tmux: server"), &["tmux"], &[]);
        machine.add(51, &Is(50, 51, 7, "bash"), &["bash"], &[]);
        machine.add(52, &Is(51, 51, 7, "claude"), &["claude"], &[]);
        machine.add(53, &Is(52, 51, 7, "jackline"), &["jackline"], &["AI_AGENT=x_harness"]);
        assert!(!forged(53), "a person's");
    }

    #[test]
    fn a_machine_that_cannot_be_looked_at_shows_nothing() {
        assert_eq!(Processes::new("/nowhere").agent_above(7), None);
        let machine = Machine::new();
        machine.add(30, &Is(30, 30, 0, "loop"), &[], &[]);
        assert_eq!(machine.above(30), None);
    }
}
