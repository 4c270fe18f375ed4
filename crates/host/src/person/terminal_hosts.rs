//! The programs that give terminals to people, and the shells that people type into.

use std::path::Path;

use super::process::ProcessEntry;

/// How far a program that gives a terminal can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostKind {
    /// It checks who logs in: a login on the console, or ssh.
    Login,
    /// It shows a window. Only the person's keyboard types into it.
    Window,
    /// Any program of the same user can type into its terminals.
    Remote,
}

/// Programs that check who logs in. The administrator starts them.
const LOGINS: [&str; 4] = ["sshd", "sshd-session", "login", "mosh-server"];

/// Programs that show a terminal in a window.
const WINDOWS: [&str; 17] = [
    "gnome-terminal-server",
    "ptyxis-agent",
    "kgx",
    "konsole",
    "xfce4-terminal",
    "mate-terminal",
    "lxterminal",
    "terminator",
    "tilix",
    "xterm",
    "urxvt",
    "rxvt",
    "st",
    "alacritty",
    "foot",
    "ghostty",
    "code",
];

/// Programs whose terminals other programs of the same user can type into.
const REMOTES: [&str; 8] =
    ["tmux", "screen", "zellij", "kitty", "wezterm-gui", "wezterm-mux-server", "emacs", "dtach"];

/// Programs that run a command as another user, below the person's shell.
const SWITCHES: [&str; 5] = ["sudo", "su", "doas", "runuser", "pkexec"];

/// Shells that people type into.
const SHELLS: [&str; 13] = [
    "sh", "bash", "dash", "ash", "busybox", "zsh", "fish", "ksh", "mksh", "tcsh", "csh", "nu",
    "elvish",
];

/// Returns what kind of terminal host the first process of a chain is, by the program that it runs.
/// Some systems add a version to the file name: `screen-4.9.0`. The other processes are those above
/// it.
///
/// A user may not see the programs of the administrator. There, the name of the process counts,
/// because only the administrator can start such a process. `sshd` hides the program of the process
/// that it gives to the user; the parent tells who started that one.
pub(super) fn terminal_host(chain: &[ProcessEntry]) -> Option<HostKind> {
    let (process, above) = chain.split_first()?;
    let is_of_administrator = process.owner == 0
        || above.first().is_some_and(|parent| {
            parent.owner == 0 && terminal_host(above) == Some(HostKind::Login)
        });
    let name = match &process.program {
        Some(program) => program_name(&program.path),
        None if is_of_administrator => process.name.as_str(),
        None => return None,
    };
    let is_in = |names: &[&str]| names.iter().any(|known| is_named(name, known));
    if is_in(&LOGINS) {
        Some(HostKind::Login)
    } else if is_in(&REMOTES) {
        Some(HostKind::Remote)
    } else {
        is_in(&WINDOWS).then_some(HostKind::Window)
    }
}

/// Whether a process only runs a command as another user.
pub(super) fn is_switch(process: &ProcessEntry) -> bool {
    let name = process.program.as_ref().map_or(&*process.name, |it| program_name(&it.path));
    SWITCHES.iter().any(|known| is_named(name, known))
}

/// Whether a process is a shell without a command or a script, so that a person types into it.
pub(super) fn is_interactive_shell(process: &ProcessEntry) -> bool {
    let Some(program) = &process.program else { return false };
    let name = program_name(&program.path);
    let mut options = process.arguments.iter().skip(1);
    let mut takes_file = false;
    SHELLS.contains(&name)
        && options.all(|option| {
            let is_value = std::mem::replace(&mut takes_file, false);
            takes_file = matches!(option.as_str(), "--rcfile" | "--init-file" | "-o");
            is_value || (option.starts_with('-') && !gives_command(option))
        })
}

/// Whether an option of a shell gives it a command: `-c`, also among other letters.
fn gives_command(option: &str) -> bool {
    let short = option.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    short.is_some_and(|letters| letters.contains('c') || letters.contains('s'))
        || matches!(option, "--command" | "--commands" | "--init-command")
}

fn program_name(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // The kernel marks a program whose file was replaced by an update.
    name.strip_suffix(" (deleted)").unwrap_or(name)
}

fn is_named(name: &str, known: &str) -> bool {
    let version = name.strip_prefix(known).map(|rest| rest.trim_start_matches('-'));
    version.is_some_and(|version| {
        version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && !version.contains("..")
    })
}
