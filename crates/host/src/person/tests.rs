//! Tests with recorded processes: terminals of people, and the ways of an agent.

use super::process::{ProcessEntry, ProcessNamespaces, ProgramFile, SshConnection};
use super::recorded::{LOGIN_NAMESPACES, RecordedProcesses};

/// What a user sees of a process of the administrator.
fn of_system(entry: &mut ProcessEntry) {
    entry.owner = 0;
    entry.terminal = 0;
    entry.program = None;
    entry.namespaces = None;
}

fn windowless(entry: &mut ProcessEntry) {
    entry.terminal = 0;
}

/// A login through ssh, with the shell as process 30.
fn ssh_login() -> RecordedProcesses {
    let mut machine = RecordedProcesses::new();
    machine
        .add(10, 1, "sshd", of_system)
        .add(20, 10, "sshd", of_system)
        .add(21, 20, "sshd", |it| {
            it.terminal = 0;
            it.program = None;
            it.namespaces = None;
        })
        .add(30, 21, "bash", |it| {
            it.arguments = vec!["-bash".to_owned()];
            it.connection = Some(SshConnection {
                client: "192.0.2.7".to_owned(),
                server: "192.0.2.1".to_owned(),
            });
        });
    machine
}

/// A desktop with a window that was opened first, and the shell in it as process 30.
fn desktop(window: &str) -> RecordedProcesses {
    let mut machine = RecordedProcesses::new();
    machine.add(5, 1, "systemd", windowless).add(10, 5, window, windowless).add(
        30,
        10,
        "zsh",
        |_| {},
    );
    machine
}

fn ask(mut machine: RecordedProcesses) -> Option<String> {
    machine.add(900, 30, "jackline", |_| {});
    machine.doubt()
}

#[test]
fn a_person_in_a_usual_terminal_is_recognised() {
    assert_eq!(ask(ssh_login()), None, "ssh");
    for window in ["gnome-terminal-server", "konsole", "alacritty", "code", "tmux", "screen-4.9.0"]
    {
        assert_eq!(ask(desktop(window)), None, "{window}");
    }
    let mut console = RecordedProcesses::new();
    console.add(20, 1, "login", of_system).add(30, 20, "bash", |_| {});
    assert_eq!(ask(console), None, "the console");
}

#[test]
fn a_command_below_sudo_make_and_a_nested_shell_is_a_persons() {
    let mut machine = ssh_login();
    machine
        .add(40, 30, "sudo", |it| it.owner = 0)
        .add(41, 40, "sudo", |it| it.owner = 0)
        .add(42, 41, "make", |it| it.owner = 0)
        .add(43, 42, "bash", |it| {
            it.owner = 0;
            it.arguments = ["bash", "-c", "jackline allow"].map(str::to_owned).to_vec();
        })
        .add(900, 43, "jackline", |it| it.owner = 0);
    assert_eq!(machine.doubt(), None);
}

#[test]
fn an_editors_terminal_starts_its_shell_with_a_file() {
    let mut machine = desktop("code");
    machine.add(31, 10, "bash", |it| {
        it.arguments = ["/usr/bin/bash", "--init-file", "/usr/share/code/shell.sh", "-i"]
            .map(str::to_owned)
            .to_vec();
    });
    machine.add(900, 31, "jackline", |_| {});
    assert_eq!(machine.doubt(), None);
}

#[test]
fn an_agent_in_the_chain_is_named() {
    for (name, line) in [
        ("claude", &["claude"][..]),
        ("node", &["node", "/x/node_modules/@anthropic-ai/claude-code/cli.js"]),
        ("python3", &["python3", "/usr/bin/gemini"]),
        ("MainThread", &["/usr/local/bin/codex", "exec"]),
    ] {
        let mut machine = ssh_login();
        machine.add(40, 30, name, |it| {
            it.arguments = line.iter().map(|word| (*word).to_owned()).collect();
        });
        machine.add(900, 40, "jackline", |_| {});
        let said = format!("the agent `{name}` (process 40) started this");
        assert_eq!(machine.doubt(), Some(said), "{line:?}");
    }
    let mut machine = ssh_login();
    machine.add(40, 30, "bash", |it| it.marker = Some("CLAUDECODE"));
    machine.add(41, 40, "env", |_| {}).add(900, 41, "jackline", |_| {});
    let said = "an agent started this: `bash` (process 40) has CLAUDECODE set";
    assert_eq!(machine.doubt().as_deref(), Some(said));
}

#[test]
fn the_leader_of_a_session_counts_although_it_is_no_parent() {
    let mut machine = ssh_login();
    machine.add(40, 30, "claude", |_| {});
    machine.add(900, 30, "jackline", |it| it.session = 40);
    assert_eq!(machine.doubt().as_deref(), Some("the agent `claude` (process 40) started this"));
}

#[test]
fn what_cannot_be_seen_is_refused() {
    let mut hidden = ssh_login();
    hidden.hidden = Some("`/proc` is not the kernel's list of processes".to_owned());
    assert_eq!(ask(hidden).as_deref(), Some("`/proc` is not the kernel's list of processes"));

    let mut orphan = RecordedProcesses::new();
    orphan.add(900, 77, "jackline", |_| {});
    assert_eq!(orphan.doubt().as_deref(), Some("the process 77 above this one can't be seen"));

    let mut nested = ssh_login();
    for pid in 100..400 {
        nested.add(pid, if pid == 100 { 30 } else { pid - 1 }, "sh", |_| {});
    }
    nested.add(900, 399, "jackline", |_| {});
    assert_eq!(nested.doubt().as_deref(), Some("more than 256 processes are above this one"));
}

#[test]
fn a_container_and_namespaces_of_ones_own_are_refused() {
    let own = |change: fn(&mut ProcessNamespaces)| {
        let mut machine = ssh_login();
        machine.add(900, 30, "jackline", |it| {
            let mut namespaces = LOGIN_NAMESPACES;
            change(&mut namespaces);
            it.namespaces = Some(namespaces);
        });
        machine.doubt()
    };
    let said = Some("this process runs in a container or in namespaces of its own".to_owned());
    assert_eq!(own(|it| it.user = 1), said);
    assert_eq!(own(|it| it.pid = 1), said);
    assert_eq!(own(|it| it.mount = 1), said);
}

#[test]
fn a_confined_process_is_refused() {
    let mut machine = ssh_login();
    machine.add(40, 30, "bash", |it| it.no_new_privileges = true).add(900, 40, "jackline", |_| {});
    assert_eq!(
        machine.doubt().as_deref(),
        Some("`bash` (process 40) above this process is confined")
    );
}

#[test]
fn without_a_terminal_there_is_no_person() {
    let mut machine = ssh_login();
    machine.add(900, 30, "jackline", windowless);
    assert_eq!(machine.doubt().as_deref(), Some("this process has no terminal"));
}

#[test]
fn a_detached_process_with_a_terminal_of_its_own_has_no_host() {
    let mut machine = ssh_login();
    machine.add(40, 1, "script", |_| {}).add(41, 40, "sh", |_| {}).add(900, 41, "jackline", |_| {});
    let said = "no known terminal program is above this process, only `script` (process 40)";
    assert_eq!(machine.doubt().as_deref(), Some(said));
}

#[test]
fn a_program_that_only_has_the_name_of_a_host_is_no_host() {
    // The name of the process is `tmux`, and its program is a shell.
    let mut machine = ssh_login();
    machine.add(40, 1, "tmux", |it| {
        it.program = Some(ProgramFile { path: "/usr/bin/dash".into(), is_of_system: true });
    });
    machine.add(41, 40, "bash", |_| {}).add(900, 41, "jackline", |_| {});
    let said = "no known terminal program is above this process, only `tmux` (process 40)";
    assert_eq!(machine.doubt().as_deref(), Some(said));

    let mut machine = ssh_login();
    machine.add(40, 1, "tmux", |it| {
        it.program = Some(ProgramFile { path: "/home/u/tmux".into(), is_of_system: false });
    });
    machine.add(41, 40, "bash", |_| {}).add(900, 41, "jackline", |_| {});
    let said = "a program without the administrator's rights could have replaced `/home/u/tmux`";
    assert_eq!(machine.doubt().as_deref(), Some(said));
}

#[test]
fn a_terminal_that_was_opened_for_a_command_is_no_persons() {
    let opened = |name: &str, line: &[&str]| {
        let mut machine = desktop("gnome-terminal-server");
        machine.add(40, 10, name, |it| {
            it.arguments = line.iter().map(|word| (*word).to_owned()).collect();
        });
        machine.add(900, 40, "jackline", |_| {});
        machine.doubt()
    };
    for (name, line) in [
        ("bash", &["bash", "-c", "jackline off"][..]),
        ("bash", &["bash", "-ic", "jackline off"]),
        ("sh", &["sh", "/tmp/x.sh"]),
        ("python3", &["python3"]),
        ("env", &["env"]),
    ] {
        let said = format!("the terminal was opened to run `{name}`, and not for a shell");
        assert_eq!(opened(name, line), Some(said), "{line:?}");
    }
    assert_eq!(opened("bash", &["bash", "-i"]), None);
}

#[test]
fn beside_an_agent_only_older_windows_count() {
    let machine = |window: u32, agent: u32, name: &str| {
        let mut machine = RecordedProcesses::new();
        machine.add(5, 1, "systemd", windowless);
        machine.add(window, 5, name, windowless).add(30, window, "zsh", |_| {});
        machine.add(agent, 5, "claude", |_| {});
        ask(machine)
    };
    assert_eq!(machine(10, 20, "konsole"), None, "the window was there first");
    let said = "the agent `claude` (process 20) is at work and may have opened this terminal, \
                because `konsole` started later";
    assert_eq!(machine(25, 20, "konsole").as_deref(), Some(said));
    let said =
        "the agent `claude` (process 20) is at work and can type into the terminals of `tmux`";
    assert_eq!(machine(10, 20, "tmux").as_deref(), Some(said));
}

#[test]
fn a_login_beside_an_agent_counts_unless_it_comes_from_this_machine() {
    let beside = |owner: u32, client: &str, server: &str| {
        let mut machine = RecordedProcesses::new();
        machine.add(8, 1, "claude", |it| it.owner = owner);
        machine.add(10, 1, "sshd", of_system).add(20, 10, "sshd", of_system);
        machine.add(30, 20, "bash", |it| {
            let (client, server) = (client.to_owned(), server.to_owned());
            it.connection = Some(SshConnection { client, server });
        });
        ask(machine)
    };
    assert_eq!(beside(1000, "192.0.2.7", "192.0.2.1"), None);
    let said = "the agent `claude` (process 8) is at work and may have opened this ssh connection \
                from this machine to itself";
    for (client, server) in [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("192.0.2.1", "192.0.2.1")]
    {
        assert_eq!(beside(1000, client, server).as_deref(), Some(said), "{client}");
        assert_eq!(beside(1001, client, server), None, "the agent of another user");
    }
}

#[test]
fn a_login_program_that_a_user_started_is_no_login() {
    let mut machine = RecordedProcesses::new();
    machine.add(8, 1, "claude", |_| {}).add(20, 1, "sshd", windowless).add(30, 20, "bash", |_| {});
    let said = "the agent `claude` (process 8) is at work and may have opened this terminal, because \
                `sshd` started later";
    assert_eq!(ask(machine).as_deref(), Some(said));
}
