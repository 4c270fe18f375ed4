//! Verifications by command. This module starts them, and a separate process supervises them,
//! because a gate can't wait for a test suite.
//!
//! ```text
//! sessions/<id>/checks/<run>/task     the command; locked while its supervisor runs
//! sessions/<id>/checks/<run>/result   the result; written atomically
//! sessions/<id>/checks/<run>/end      exists if the check must end, because its session has ended
//! ```
//!
//! A directory that exists was started, and only one process can create it. The supervising process
//! inherits the lock. So the lock shows reliably whether the supervisor still runs, even after a
//! restart of the machine.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jackline_engine::facts::VerificationFact;
use serde::{Deserialize, Serialize};

use crate::bounded_child::{BoundedChild, OutputEnd, OutputStream};
use crate::redact::redact_text;
use jackline_host::clock::boot_ms;

/// How long a started check is waited for, so that a quick check gives its result at once.
const QUICK_WAIT_MS: u64 = 150;

/// The time between two checks during this wait.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// How much output is stored in memory.
const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// How much output a fact shows.
const TAIL_BYTES_MAX: usize = 2 << 10;

/// The time that a command gets to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);

/// The same after the session has ended, when the result is not needed.
const END_GRACE: Duration = Duration::from_millis(200);

/// How often a supervisor checks whether it must end.
const END_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long a caller waits for checks to end.
const END_WAIT_MS: u64 = 600;

/// The file that tells a supervisor to end its check.
const END_FILE: &str = "end";

/// The work of a supervisor.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct VerificationTask {
    line: String,
    workspace: PathBuf,
    timeout_seconds: u32,
}

/// One run of a check.
pub(crate) struct VerificationRun<'a> {
    /// The directory for the checks of a session.
    pub(crate) checks: &'a Path,
    pub(crate) workspace: &'a Path,
    pub(crate) run: u64,
    pub(crate) line: &'a str,
    pub(crate) timeout_seconds: u32,
}

/// Starts verifications and reads their state.
pub(crate) struct VerificationRunner {
    /// The program that supervises them.
    program: Option<PathBuf>,
    /// How long a check that was just started is waited for.
    quick_ms: u64,
    /// The supervisors that this process started and that may still run.
    supervisors: RefCell<Vec<Child>>,
}

impl Default for VerificationRunner {
    fn default() -> Self {
        Self { program: None, quick_ms: QUICK_WAIT_MS, supervisors: RefCell::default() }
    }
}

impl VerificationRunner {
    pub(crate) fn with_program(program: PathBuf) -> Self {
        Self { program: Some(program), ..Self::default() }
    }

    /// The state of a check. It is started if it does not exist.
    pub(crate) fn check_state(&self, check: &VerificationRun<'_>) -> VerificationFact {
        self.reap_supervisors();
        let directory = check.checks.join(check.run.to_string());
        if let Some(fact) = read_state(&directory) {
            return fact;
        }
        let Some(program) = &self.program else {
            return broken("this runtime has no program to run verifications".to_owned());
        };
        match self.start(check, &directory, program) {
            Ok(()) => read_state(&directory).unwrap_or(VerificationFact::Running),
            Err(error) => broken(format!(
                "can't start the verification in `{}`: {error}",
                directory.display()
            )),
        }
    }

    /// Starts a check unless another process did, and waits a moment for its result.
    fn start(
        &self,
        check: &VerificationRun<'_>,
        directory: &Path,
        program: &Path,
    ) -> io::Result<()> {
        let Some(task) = claim(check, directory)? else { return Ok(()) };
        let mut supervisor = Command::new(program);
        supervisor.arg("gate-verification").arg(directory.canonicalize()?).current_dir("/");
        supervisor.stdin(task).stdout(Stdio::null()).stderr(Stdio::null());
        let mut supervisor = match supervisor.spawn() {
            Ok(supervisor) => supervisor,
            Err(error) => {
                let reason = format!("can't run `{}`: {error}", program.display());
                return write_result(directory, &broken(reason));
            }
        };
        let until = boot_ms() + self.quick_ms;
        while boot_ms() < until {
            if supervisor.try_wait()?.is_some() {
                return Ok(());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        self.supervisors.borrow_mut().push(supervisor);
        Ok(())
    }

    /// Reaps supervisors that have ended.
    fn reap_supervisors(&self) {
        let is_at_work = |supervisor: &mut Child| matches!(supervisor.try_wait(), Ok(None));
        self.supervisors.borrow_mut().retain_mut(is_at_work);
    }
}

/// Whether a check of a session is running, by the session's directory.
pub fn is_checking(session: &Path) -> bool {
    started_checks(session).iter().any(|directory| is_running(directory))
}

/// Ends the running checks of a session with all their child processes, and waits a moment for
/// that. A file tells the supervisors to end, because only a supervisor knows its child processes.
pub fn end_checks(session: &Path) {
    let mut running = started_checks(session);
    running.retain(|directory| is_running(directory));
    for directory in &running {
        // If the file can't be written, the check ends at its own time limit.
        let _ = private().create(true).truncate(false).open(directory.join(END_FILE));
    }
    let until = boot_ms() + END_WAIT_MS;
    while running.iter().any(|directory| is_running(directory)) && boot_ms() < until {
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The directories of the checks that a session has started.
fn started_checks(session: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(session.join("checks")) else { return Vec::new() };
    // Incomplete directories have names with a dot.
    let is_named = |name: &OsStr| name.to_str().is_some_and(|name| name.parse::<u64>().is_ok());
    let named = entries.flatten().filter(|entry| is_named(&entry.file_name()));
    named.map(|entry| entry.path()).collect()
}

fn is_running(directory: &Path) -> bool {
    read_state(directory) == Some(VerificationFact::Running)
}

fn broken(reason: String) -> VerificationFact {
    VerificationFact::Broken { reason }
}

/// The state of a check; `None` if it was never started.
fn read_state(directory: &Path) -> Option<VerificationFact> {
    let task = match File::open(directory.join("task")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            return Some(broken(format!("can't read the task of the verification: {error}")));
        }
        Ok(task) => task,
    };
    // This order matters: a supervisor writes the result before it releases the lock.
    let is_free = task.try_lock_shared();
    if let Ok(result) = fs::read(directory.join("result")) {
        let fact = serde_json::from_slice(&result);
        return Some(fact.unwrap_or_else(|_| {
            broken("the result of the verification can't be parsed".to_owned())
        }));
    }
    Some(match is_free {
        Err(TryLockError::WouldBlock) => VerificationFact::Running,
        Err(TryLockError::Error(error)) => {
            broken(format!("can't read the lock of the verification: {error}"))
        }
        Ok(()) => broken("the verification did not finish; it can be started again".to_owned()),
    })
}

/// Creates the directory of a check, and returns the locked task file; `None` if the directory
/// already exists.
fn claim(check: &VerificationRun<'_>, directory: &Path) -> io::Result<Option<File>> {
    static CLAIMS: AtomicU64 = AtomicU64::new(0);
    DirBuilder::new().recursive(true).mode(0o700).create(check.checks)?;
    let (process, claim) = (std::process::id(), CLAIMS.fetch_add(1, Ordering::Relaxed));
    let unnamed = check.checks.join(format!(".{}.{process}.{claim}", check.run));
    let _ = fs::remove_dir_all(&unnamed);
    let claimed = (|| {
        DirBuilder::new().mode(0o700).create(&unnamed)?;
        let mut task = private().create_new(true).open(unnamed.join("task"))?;
        task.try_lock()?;
        task.write_all(&serde_json::to_vec(&VerificationTask {
            line: check.line.to_owned(),
            workspace: check.workspace.to_owned(),
            timeout_seconds: check.timeout_seconds,
        })?)?;
        task.rewind()?;
        // Renaming never replaces a directory with contents.
        match fs::rename(&unnamed, directory) {
            Ok(()) => Ok(Some(task)),
            Err(_) if directory.join("task").exists() => Ok(None),
            Err(error) => Err(error),
        }
    })();
    if !matches!(claimed, Ok(Some(_))) {
        let _ = fs::remove_dir_all(&unnamed);
    }
    claimed
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

/// Runs the task of a check to its end and writes the result. The supervising process calls this,
/// and it outlives its parent. `end_rest` ends the child processes of the command, including those
/// that have detached themselves.
pub fn supervise(directory: &Path, end_rest: &dyn Fn()) -> io::Result<()> {
    // Signals for the parent process must not reach this one. An error means that this is already
    // the case.
    let _ = rustix::process::setsid();
    let task: VerificationTask = serde_json::from_slice(&fs::read(directory.join("task"))?)?;
    let is_to_end = || directory.join(END_FILE).exists();
    let fact = run(&task, &is_to_end, end_rest).unwrap_or_else(|error| {
        broken(format!("can't run the verification in `{}`: {error}", task.workspace.display()))
    });
    write_result(directory, &fact)
}

fn run(
    task: &VerificationTask,
    is_to_end: &dyn Fn() -> bool,
    end_rest: &dyn Fn(),
) -> io::Result<VerificationFact> {
    let (pipe, stdout) = io::pipe()?;
    let mut command = Command::new("sh");
    command.arg("-c").arg(&task.line).current_dir(&task.workspace);
    command.stdin(Stdio::null()).stderr(stdout.try_clone()?).stdout(stdout);
    let stream = OutputStream::new(pipe, OutputEnd::Tail(OUTPUT_BYTES_MAX));
    let mut running = BoundedChild::start(command, vec![stream])?;
    let until = boot_ms() + 1000 * u64::from(task.timeout_seconds);
    let ended = loop {
        let remaining = Duration::from_millis(until.saturating_sub(boot_ms()));
        let ended = running.wait(remaining.min(END_POLL_INTERVAL))?;
        if ended.is_some() || remaining.is_zero() {
            break ended;
        }
        if is_to_end() {
            running.end(END_GRACE);
            end_rest();
            return Ok(broken(
                "the verification was ended, because its session has ended".to_owned(),
            ));
        }
    };
    Ok(match ended {
        Some(status) if status.success() => VerificationFact::Passed,
        Some(status) => VerificationFact::Failed {
            exit: status.code(),
            tail: output_tail(&running.take_outputs()),
        },
        None => {
            let tail = output_tail(&running.end(GRACE));
            end_rest();
            VerificationFact::TimedOut { tail }
        }
    })
}

/// The end of an output without secrets, because it is recorded and shown.
fn output_tail(outputs: &[Vec<u8>]) -> String {
    let text = String::from_utf8_lossy(outputs.first().map_or(&[], Vec::as_slice)).into_owned();
    let text = redact_text(&text).unwrap_or(text);
    let most = text.len().saturating_sub(TAIL_BYTES_MAX);
    let from = (most..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(from..).unwrap_or_default().to_owned()
}

/// Writes a result atomically. If the session was removed, this does not create it again.
fn write_result(directory: &Path, fact: &VerificationFact) -> io::Result<()> {
    let unnamed = directory.join(format!(".result.{}", std::process::id()));
    let mut file = private().create(true).truncate(true).open(&unnamed)?;
    file.write_all(&serde_json::to_vec(fact)?)?;
    file.sync_all()?;
    fs::rename(&unnamed, directory.join("result"))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::bounded_child::tests::write_script;

    struct TestVerifier {
        root: TempDir,
        verifications: VerificationRunner,
    }

    impl TestVerifier {
        /// A test verifier with a shell script as the supervising program.
        fn with(script: &str) -> Self {
            let root = tempfile::tempdir().unwrap();
            let program = write_script(&root.path().join("verifier"), script);
            Self { verifications: VerificationRunner::with_program(program), root }
        }

        /// The same without a tight time limit.
        fn with_patience(script: &str) -> Self {
            let mut place = Self::with(script);
            place.verifications.quick_ms = 60_000;
            place
        }

        fn checks(&self) -> PathBuf {
            self.root.path().join("sessions/s/checks")
        }

        fn directory(&self) -> PathBuf {
            self.checks().join("1")
        }

        fn look_by(&self, verifications: &VerificationRunner) -> VerificationFact {
            look_in(&self.checks(), verifications)
        }

        fn look(&self) -> VerificationFact {
            self.look_by(&self.verifications)
        }

        /// Reads the state until it differs from the given one.
        fn look_while(&self, fact: &VerificationFact) -> VerificationFact {
            (0..10_000)
                .map(|_| {
                    std::thread::sleep(POLL_INTERVAL);
                    self.look()
                })
                .find(|current| current != fact)
                .unwrap()
        }
    }

    fn look_in(checks: &Path, verifications: &VerificationRunner) -> VerificationFact {
        verifications.check_state(&VerificationRun {
            checks,
            workspace: Path::new("/"),
            run: 1,
            line: "make test",
            timeout_seconds: 5,
        })
    }

    fn did_not_finish() -> VerificationFact {
        broken("the verification did not finish; it can be started again".to_owned())
    }

    #[test]
    fn a_quick_check_gives_its_result_at_once() {
        let place = TestVerifier::with_patience(r#"echo '{"answer":"passed"}' > "$2/result""#);
        assert_eq!(place.look(), VerificationFact::Passed);
        assert_eq!(place.look(), VerificationFact::Passed);
    }

    #[test]
    fn a_slow_check_is_running_until_it_ends() {
        let place = TestVerifier::with(
            r#"while [ ! -e "$2/go" ]; do sleep 0.01; done
            echo '{"answer":"failed","exit":2,"tail":"no"}' > "$2/tmp"; mv "$2/tmp" "$2/result""#,
        );
        assert_eq!(place.look(), VerificationFact::Running);
        // Another process reads the same state, and starts nothing.
        assert_eq!(place.look_by(&VerificationRunner::default()), VerificationFact::Running);
        assert_eq!(place.look(), VerificationFact::Running);
        fs::write(place.directory().join("go"), "").unwrap();
        let failed = VerificationFact::Failed { exit: Some(2), tail: "no".to_owned() };
        assert_eq!(place.look_while(&VerificationFact::Running), failed);
    }

    #[test]
    fn a_check_is_started_once_with_its_task() {
        let place = TestVerifier::with(r#"cat >> "$2/read"; echo "$1" >> "$2/words"; sleep 0.3"#);
        place.look();
        place.look();
        assert_eq!(place.look_while(&VerificationFact::Running), did_not_finish());
        let read = fs::read(place.directory().join("read")).unwrap();
        let task = VerificationTask {
            line: "make test".to_owned(),
            workspace: PathBuf::from("/"),
            timeout_seconds: 5,
        };
        assert_eq!(serde_json::from_slice::<VerificationTask>(&read).unwrap(), task);
        assert_eq!(fs::read(place.directory().join("words")).unwrap(), b"gate-verification\n");
        assert_eq!(fs::read_dir(place.checks()).unwrap().count(), 1);
    }

    #[test]
    fn concurrent_readers_start_a_check_once() {
        let place = TestVerifier::with(
            r#"echo >> "$2/starts"; sleep 0.2
            echo '{"answer":"passed"}' > "$2/tmp"; mv "$2/tmp" "$2/result""#,
        );
        let (checks, program) = (place.checks(), place.root.path().join("verifier"));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope
                    .spawn(|| look_in(&checks, &VerificationRunner::with_program(program.clone())));
            }
        });
        assert_eq!(place.look_while(&VerificationFact::Running), VerificationFact::Passed);
        assert_eq!(fs::read(place.directory().join("starts")).unwrap(), b"\n");
    }

    #[test]
    fn a_killed_supervisor_did_not_finish() {
        let place = TestVerifier::with("kill -9 $$");
        // A thread that starts another program holds every lock for a moment.
        assert_eq!(place.look_while(&VerificationFact::Running), did_not_finish());
    }

    #[test]
    fn without_a_program_a_check_is_broken_with_a_reason() {
        let place = TestVerifier::with("");
        let fact = place.look_by(&VerificationRunner::default());
        assert!(
            matches!(&fact, VerificationFact::Broken { reason } if reason.contains("no program"))
        );
        assert!(!place.checks().exists());
        let nowhere = VerificationRunner::with_program(PathBuf::from("/nowhere/jackline"));
        for _ in 0..2 {
            let fact = place.look_by(&nowhere);
            let VerificationFact::Broken { reason } = fact else { panic!("{fact:?}") };
            assert!(reason.starts_with("can't run `/nowhere/jackline`: "), "{reason}");
        }
    }

    fn supervised(line: &str, timeout_seconds: u32) -> VerificationFact {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().to_owned();
        run(
            &VerificationTask { line: line.to_owned(), workspace, timeout_seconds },
            &|| false,
            &|| {},
        )
        .unwrap()
    }

    #[test]
    fn a_command_passes_or_fails_with_the_end_of_its_output() {
        assert_eq!(supervised("true", 60), VerificationFact::Passed);
        assert_eq!(
            supervised("echo out; echo err >&2; exit 3", 60),
            VerificationFact::Failed { exit: Some(3), tail: "out\nerr\n".to_owned() }
        );
        assert_eq!(
            supervised("kill -9 $$", 60),
            VerificationFact::Failed { exit: None, tail: String::new() }
        );
        let VerificationFact::Failed { tail, .. } =
            supervised("yes ä | head -n 100000; echo end; exit 1", 60)
        else {
            panic!("the check failed")
        };
        assert!(tail.ends_with("ä\nend\n") && tail.len() <= TAIL_BYTES_MAX, "{tail}");
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended() {
        let fact = supervised("echo begun; sleep 1000", 1);
        assert_eq!(fact, VerificationFact::TimedOut { tail: "begun\n".to_owned() });
    }

    #[test]
    fn a_remaining_child_process_does_not_delay_the_result() {
        assert_eq!(supervised("sleep 3 & exit 0", 60), VerificationFact::Passed);
    }

    #[test]
    fn output_is_recorded_without_secrets() {
        let fact = supervised("echo AKIAIOSFODNN7EXAMPLE; exit 1", 60);
        let tail = "REDACTED-aws-key-id\n".to_owned();
        assert_eq!(fact, VerificationFact::Failed { exit: Some(1), tail });
    }

    #[test]
    fn a_workspace_that_is_gone_is_a_broken_guard() {
        let root = tempfile::tempdir().unwrap();
        let task = VerificationTask {
            line: "true".to_owned(),
            workspace: PathBuf::from("/nowhere/at/all"),
            timeout_seconds: 1,
        };
        fs::write(root.path().join("task"), serde_json::to_vec(&task).unwrap()).unwrap();
        supervise(root.path(), &|| {}).unwrap();
        let fact = read_state(root.path()).unwrap();
        let VerificationFact::Broken { reason } = fact else { panic!("{fact:?}") };
        assert!(
            reason.starts_with("can't run the verification in `/nowhere/at/all`: "),
            "{reason}"
        );
    }
}
