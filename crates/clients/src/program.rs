//! Programs that are found by their name, asked one question, and have to answer soon.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use jackline_host::environment::find_program;
use rustix::process::{Pid, Signal, kill_process_group};

/// How long an answer may take; clients written in JavaScript start slowly.
const ALLOWED: Duration = Duration::from_secs(10);

/// How much of an answer is read.
const ANSWER_BYTES_MAX: u64 = 16 << 10;

/// Where a program is: a path as it is, a bare name in the directories where programs are.
pub fn locate(wanted: &Path) -> Option<PathBuf> {
    if wanted.parent() == Some(Path::new("")) {
        return find_program(wanted.to_str()?);
    }
    std::path::absolute(wanted).ok().filter(|path| path.is_file())
}

/// What a program says when it is asked for its version.
pub fn version(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version");
    ask(command)
}

/// What a program says on its standard output, if it ends well and in time.
pub fn ask(command: Command) -> Option<String> {
    ask_within(command, ALLOWED)
}

fn ask_within(mut command: Command, allowed: Duration) -> Option<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().ok()?;
    let group = Pid::from_child(&child);
    let output = child.stdout.take()?;
    let (sender, answers) = mpsc::channel();
    // Whoever else holds on to the output may keep this thread, but not us.
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
        ask_within(command, Duration::from_millis(if line.contains("sleep") { 50 } else { 60_000 }))
    }

    #[test]
    fn a_bare_name_is_looked_up_and_a_path_is_not() {
        assert!(locate(Path::new("sh")).is_some_and(|path| path.is_absolute()));
        assert_eq!(locate(Path::new("./sh")), None);
        assert_eq!(locate(Path::new("/nowhere/claude")), None);
    }

    #[test]
    fn an_answer_is_one_that_comes_in_time_and_ends_well() {
        assert_eq!(shell("echo 2.1.0").as_deref(), Some("2.1.0\n"));
        assert_eq!(shell("echo 2.1.0; exit 1"), None);
        assert_eq!(shell("printf '\\377'"), None);
        assert_eq!(shell("sleep 1000"), None);
        assert_eq!(shell("kill -9 $$"), None);
        assert_eq!(ask(Command::new("/nowhere/at/all")), None);
    }
}
