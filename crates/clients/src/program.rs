//! Finds programs by name, and runs them with a timeout to read their output.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use jackline_host::environment::find_program;
use rustix::process::{Pid, Signal, kill_process_group};

/// How long a program may take to answer. Clients written in JavaScript start slowly.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How many bytes of the output are read.
const ANSWER_BYTES_MAX: u64 = 16 << 10;

/// Finds a program: a path is used as it is, a bare name is searched in PATH.
pub fn find_program_path(wanted: &Path) -> Option<PathBuf> {
    if wanted.parent() == Some(Path::new("")) {
        return find_program(wanted.to_str()?);
    }
    std::path::absolute(wanted).ok().filter(|path| path.is_file())
}

/// The output of `PROGRAM --version`.
pub fn read_version(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version");
    read_output(command)
}

/// The standard output of a command, if it succeeds in time.
pub fn read_output(command: Command) -> Option<String> {
    read_output_within(command, TIMEOUT)
}

fn read_output_within(mut command: Command, allowed: Duration) -> Option<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().ok()?;
    let group = Pid::from_child(&child);
    let output = child.stdout.take()?;
    let (sender, answers) = mpsc::channel();
    // Another process may keep the pipe open. That blocks only this thread.
    thread::spawn(move || {
        let mut answer = String::new();
        let read = output.take(ANSWER_BYTES_MAX).read_to_string(&mut answer);
        let ended = child.wait().is_ok_and(|status| status.success());
        let _ = sender.send((read.is_ok() && ended).then_some(answer));
    });
    let answer = answers.recv_timeout(allowed);
    if answer.is_err() {
        let _ = kill_process_group(group, Signal::KILL);
    }
    answer.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Option<String> {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        read_output_within(
            command,
            Duration::from_millis(if line.contains("sleep") { 50 } else { 60_000 }),
        )
    }

    #[test]
    fn a_bare_name_is_looked_up_and_a_path_is_not() {
        assert!(find_program_path(Path::new("sh")).is_some_and(|path| path.is_absolute()));
        assert_eq!(find_program_path(Path::new("./sh")), None);
        assert_eq!(find_program_path(Path::new("/nowhere/claude")), None);
    }

    #[test]
    fn only_a_successful_and_timely_output_counts() {
        assert_eq!(shell("echo 2.1.0").as_deref(), Some("2.1.0\n"));
        assert_eq!(shell("echo 2.1.0; exit 1"), None);
        assert_eq!(shell("printf '\\377'"), None);
        assert_eq!(shell("sleep 1000"), None);
        assert_eq!(shell("kill -9 $$"), None);
        assert_eq!(read_output(Command::new("/nowhere/at/all")), None);
    }
}
