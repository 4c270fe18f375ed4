//! Verifications by command: started here, and gone on with by a process of
//! their own, because a gate can't wait for a test suite.
//!
//! ```text
//! sessions/<id>/checks/<run>/task     what to run; locked as long as somebody does
//! sessions/<id>/checks/<run>/result   how it ended; there completely or not at all
//! sessions/<id>/checks/<run>/end      where it is to end, because the session has
//! ```
//!
//! A directory that is there was started, and only one can put it there. The
//! lock goes over to the process that supervises the command, so nobody has to
//! guess whether that is still alive, not even after a restart of the machine.

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

use crate::child::{Keep, Running, Stream};
use crate::redact::redact_text;
use jackline_host::clock::boot_ms;

/// So long is waited: a quick one answers at once.
const QUICK_MS: u64 = 150;

/// How often it is looked at meanwhile.
const QUICK_TICK: Duration = Duration::from_millis(2);

/// How much output is kept in memory.
const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// How much of it an answer shows.
const TAIL_BYTES_MAX: usize = 2 << 10;

/// How long a command may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(2);

/// The same where the session is over: nobody waits for it any longer.
const END_GRACE: Duration = Duration::from_millis(200);

/// How often is looked whether it is to end.
const END_TICK: Duration = Duration::from_millis(50);

/// So long is waited until checks that are to end have done so.
const END_MS: u64 = 600;

/// The file that says that a check is to end.
const END: &str = "end";

/// What a supervisor has to do.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Task {
    line: String,
    workspace: PathBuf,
    timeout_seconds: u32,
}

/// One run of a check.
pub(crate) struct Check<'a> {
    /// Where the session keeps its checks.
    pub(crate) checks: &'a Path,
    pub(crate) workspace: &'a Path,
    pub(crate) run: u64,
    pub(crate) line: &'a str,
    pub(crate) timeout_seconds: u32,
}

/// Starts verifications and looks how they stand.
pub(crate) struct Verifications {
    /// The program that supervises them.
    program: Option<PathBuf>,
    /// How long one that was just started is waited for.
    quick_ms: u64,
    /// The supervisors that this process started and that were at work last.
    supervisors: RefCell<Vec<Child>>,
}

impl Default for Verifications {
    fn default() -> Self {
        Self { program: None, quick_ms: QUICK_MS, supervisors: RefCell::default() }
    }
}

impl Verifications {
    pub(crate) fn by(program: PathBuf) -> Self {
        Self { program: Some(program), ..Self::default() }
    }

    /// How a check stands; it is started if it is not there.
    pub(crate) fn look(&self, check: &Check<'_>) -> VerificationFact {
        self.forget_ended();
        let directory = check.checks.join(check.run.to_string());
        if let Some(fact) = read(&directory) {
            return fact;
        }
        let Some(program) = &self.program else {
            return broken("this runtime was given no program that runs verifications".to_owned());
        };
        match self.start(check, &directory, program) {
            Ok(()) => read(&directory).unwrap_or(VerificationFact::Running),
            Err(error) => broken(format!("can't start it in `{}`: {error}", directory.display())),
        }
    }

    /// Starts a check, unless somebody else did, and waits a moment for it.
    fn start(&self, check: &Check<'_>, directory: &Path, program: &Path) -> io::Result<()> {
        let Some(task) = claim(check, directory)? else { return Ok(()) };
        let mut supervisor = Command::new(program);
        supervisor.arg("verification").arg(directory.canonicalize()?).current_dir("/");
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
            std::thread::sleep(QUICK_TICK);
        }
        self.supervisors.borrow_mut().push(supervisor);
        Ok(())
    }

    /// Lets the system forget supervisors that have ended.
    fn forget_ended(&self) {
        let is_at_work = |supervisor: &mut Child| matches!(supervisor.try_wait(), Ok(None));
        self.supervisors.borrow_mut().retain_mut(is_at_work);
    }
}

/// Whether a check of a session is at work, given the session's directory.
pub fn is_checking(session: &Path) -> bool {
    started(session).iter().any(|directory| is_running(directory))
}

/// Ends the checks of a session that are at work, with all that they started, and waits a
/// moment for that. They are told by a file: only who runs a check knows what is its.
pub fn end_checks(session: &Path) {
    let mut running = started(session);
    running.retain(|directory| is_running(directory));
    for directory in &running {
        // One that can't be told ends with its own time limit.
        let _ = private().create(true).truncate(false).open(directory.join(END));
    }
    let until = boot_ms() + END_MS;
    while running.iter().any(|directory| is_running(directory)) && boot_ms() < until {
        std::thread::sleep(QUICK_TICK);
    }
}

/// The directories of the checks that a session has started.
fn started(session: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(session.join("checks")) else { return Vec::new() };
    // Those that are being made have names with a dot.
    let is_named = |name: &OsStr| name.to_str().is_some_and(|name| name.parse::<u64>().is_ok());
    let named = entries.flatten().filter(|entry| is_named(&entry.file_name()));
    named.map(|entry| entry.path()).collect()
}

fn is_running(directory: &Path) -> bool {
    read(directory) == Some(VerificationFact::Running)
}

fn broken(reason: String) -> VerificationFact {
    VerificationFact::Broken { reason }
}

/// How a check stands, or nothing if it was never started.
fn read(directory: &Path) -> Option<VerificationFact> {
    let task = match File::open(directory.join("task")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return Some(broken(format!("can't read its task: {error}"))),
        Ok(task) => task,
    };
    // In this order: a supervisor writes first, and lets go then.
    let is_free = task.try_lock_shared();
    if let Ok(result) = fs::read(directory.join("result")) {
        let fact = serde_json::from_slice(&result);
        return Some(fact.unwrap_or_else(|_| broken("its result can't be read".to_owned())));
    }
    Some(match is_free {
        Err(TryLockError::WouldBlock) => VerificationFact::Running,
        Err(TryLockError::Error(error)) => broken(format!("can't look after it: {error}")),
        Ok(()) => broken("the verification did not finish; it can be started again".to_owned()),
    })
}

/// Puts the directory of a check in its place, and gives the locked task; none
/// if it is there already.
fn claim(check: &Check<'_>, directory: &Path) -> io::Result<Option<File>> {
    static CLAIMS: AtomicU64 = AtomicU64::new(0);
    DirBuilder::new().recursive(true).mode(0o700).create(check.checks)?;
    let (process, claim) = (std::process::id(), CLAIMS.fetch_add(1, Ordering::Relaxed));
    let unnamed = check.checks.join(format!(".{}.{process}.{claim}", check.run));
    let _ = fs::remove_dir_all(&unnamed);
    let claimed = (|| {
        DirBuilder::new().mode(0o700).create(&unnamed)?;
        let mut task = private().create_new(true).open(unnamed.join("task"))?;
        task.try_lock()?;
        task.write_all(&serde_json::to_vec(&Task {
            line: check.line.to_owned(),
            workspace: check.workspace.to_owned(),
            timeout_seconds: check.timeout_seconds,
        })?)?;
        task.rewind()?;
        // A directory that holds something is never replaced.
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

/// Runs the task of a check to its end and leaves the result. This is what
/// the supervising process does; it outlives whoever started it. `end_rest` ends
/// what the command started and what has cut itself loose from it.
pub fn supervise(directory: &Path, end_rest: &dyn Fn()) -> io::Result<()> {
    // Signals to whoever started this are not meant for it. It fails where this
    // is done already.
    let _ = rustix::process::setsid();
    let task: Task = serde_json::from_slice(&fs::read(directory.join("task"))?)?;
    let is_to_end = || directory.join(END).exists();
    let fact = run(&task, &is_to_end, end_rest).unwrap_or_else(|error| {
        broken(format!("can't run it in `{}`: {error}", task.workspace.display()))
    });
    write_result(directory, &fact)
}

fn run(
    task: &Task,
    is_to_end: &dyn Fn() -> bool,
    end_rest: &dyn Fn(),
) -> io::Result<VerificationFact> {
    let (pipe, stdout) = io::pipe()?;
    let mut command = Command::new("sh");
    command.arg("-c").arg(&task.line).current_dir(&task.workspace);
    command.stdin(Stdio::null()).stderr(stdout.try_clone()?).stdout(stdout);
    let stream = Stream::new(pipe, Keep::Tail(OUTPUT_BYTES_MAX));
    let mut running = Running::start(command, vec![stream])?;
    let until = boot_ms() + 1000 * u64::from(task.timeout_seconds);
    let ended = loop {
        let left = Duration::from_millis(until.saturating_sub(boot_ms()));
        let ended = running.wait(left.min(END_TICK))?;
        if ended.is_some() || left.is_zero() {
            break ended;
        }
        if is_to_end() {
            running.end(END_GRACE);
            end_rest();
            return Ok(broken("it was ended, because its session is over".to_owned()));
        }
    };
    Ok(match ended {
        Some(status) if status.success() => VerificationFact::Passed,
        Some(status) => {
            VerificationFact::Failed { exit: status.code(), tail: tail(&running.outputs()) }
        }
        None => {
            let tail = tail(&running.end(GRACE));
            end_rest();
            VerificationFact::TimedOut { tail }
        }
    })
}

/// The end of an output, without secrets: it is recorded, and shown.
fn tail(outputs: &[Vec<u8>]) -> String {
    let text = String::from_utf8_lossy(outputs.first().map_or(&[], Vec::as_slice)).into_owned();
    let text = redact_text(&text).unwrap_or(text);
    let most = text.len().saturating_sub(TAIL_BYTES_MAX);
    let from = (most..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(from..).unwrap_or_default().to_owned()
}

/// Writes a result as a whole. A session that was removed stays removed.
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
    use crate::child::tests::write_script;

    struct Place {
        root: TempDir,
        verifications: Verifications,
    }

    impl Place {
        /// With a shell script as the program that supervises.
        fn with(script: &str) -> Self {
            let root = tempfile::tempdir().unwrap();
            let program = write_script(&root.path().join("verifier"), script);
            Self { verifications: Verifications::by(program), root }
        }

        /// Where nobody minds how long it takes.
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

        fn look_by(&self, verifications: &Verifications) -> VerificationFact {
            look_in(&self.checks(), verifications)
        }

        fn look(&self) -> VerificationFact {
            self.look_by(&self.verifications)
        }

        /// Looks until there is another answer than the given one.
        fn look_while(&self, fact: &VerificationFact) -> VerificationFact {
            (0..10_000)
                .map(|_| {
                    std::thread::sleep(QUICK_TICK);
                    self.look()
                })
                .find(|found| found != fact)
                .unwrap()
        }
    }

    fn look_in(checks: &Path, verifications: &Verifications) -> VerificationFact {
        verifications.look(&Check {
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
    fn a_quick_one_answers_at_once() {
        let place = Place::with_patience(r#"echo '{"answer":"passed"}' > "$2/result""#);
        assert_eq!(place.look(), VerificationFact::Passed);
        assert_eq!(place.look(), VerificationFact::Passed);
    }

    #[test]
    fn a_slow_one_runs_until_it_has_ended() {
        let place = Place::with(
            r#"while [ ! -e "$2/go" ]; do sleep 0.01; done
            echo '{"answer":"failed","exit":2,"tail":"no"}' > "$2/tmp"; mv "$2/tmp" "$2/result""#,
        );
        assert_eq!(place.look(), VerificationFact::Running);
        // Another process sees the same, and starts nothing.
        assert_eq!(place.look_by(&Verifications::default()), VerificationFact::Running);
        assert_eq!(place.look(), VerificationFact::Running);
        fs::write(place.directory().join("go"), "").unwrap();
        let failed = VerificationFact::Failed { exit: Some(2), tail: "no".to_owned() };
        assert_eq!(place.look_while(&VerificationFact::Running), failed);
    }

    #[test]
    fn it_is_started_once_and_told_what_to_do() {
        let place = Place::with(r#"cat >> "$2/read"; echo "$1" >> "$2/words"; sleep 0.3"#);
        place.look();
        place.look();
        assert_eq!(place.look_while(&VerificationFact::Running), did_not_finish());
        let read = fs::read(place.directory().join("read")).unwrap();
        let task = Task {
            line: "make test".to_owned(),
            workspace: PathBuf::from("/"),
            timeout_seconds: 5,
        };
        assert_eq!(serde_json::from_slice::<Task>(&read).unwrap(), task);
        assert_eq!(fs::read(place.directory().join("words")).unwrap(), b"verification\n");
        assert_eq!(fs::read_dir(place.checks()).unwrap().count(), 1);
    }

    #[test]
    fn many_at_once_start_it_once() {
        let place = Place::with(
            r#"echo >> "$2/starts"; sleep 0.2
            echo '{"answer":"passed"}' > "$2/tmp"; mv "$2/tmp" "$2/result""#,
        );
        let (checks, program) = (place.checks(), place.root.path().join("verifier"));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| look_in(&checks, &Verifications::by(program.clone())));
            }
        });
        assert_eq!(place.look_while(&VerificationFact::Running), VerificationFact::Passed);
        assert_eq!(fs::read(place.directory().join("starts")).unwrap(), b"\n");
    }

    #[test]
    fn one_that_died_did_not_finish() {
        let place = Place::with("kill -9 $$");
        // Another thread that starts a program holds every lock for a moment.
        assert_eq!(place.look_while(&VerificationFact::Running), did_not_finish());
    }

    #[test]
    fn without_a_program_it_is_broken_and_says_so() {
        let place = Place::with("");
        let fact = place.look_by(&Verifications::default());
        assert!(
            matches!(&fact, VerificationFact::Broken { reason } if reason.contains("no program"))
        );
        assert!(!place.checks().exists());
        let nowhere = Verifications::by(PathBuf::from("/nowhere/jackline"));
        for _ in 0..2 {
            let fact = place.look_by(&nowhere);
            let VerificationFact::Broken { reason } = fact else { panic!("{fact:?}") };
            assert!(reason.starts_with("can't run `/nowhere/jackline`: "), "{reason}");
        }
    }

    fn supervised(line: &str, timeout_seconds: u32) -> VerificationFact {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().to_owned();
        run(&Task { line: line.to_owned(), workspace, timeout_seconds }, &|| false, &|| {}).unwrap()
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
            panic!("it failed")
        };
        assert!(tail.ends_with("ä\nend\n") && tail.len() <= TAIL_BYTES_MAX, "{tail}");
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended() {
        let fact = supervised("echo begun; sleep 1000", 1);
        assert_eq!(fact, VerificationFact::TimedOut { tail: "begun\n".to_owned() });
    }

    #[test]
    fn what_a_command_left_running_does_not_hold_it_up() {
        assert_eq!(supervised("sleep 3 & exit 0", 60), VerificationFact::Passed);
    }

    #[test]
    fn no_secret_is_in_what_a_command_said() {
        let fact = supervised("echo AKIAIOSFODNN7EXAMPLE; exit 1", 60);
        let tail = "REDACTED-aws-key-id\n".to_owned();
        assert_eq!(fact, VerificationFact::Failed { exit: Some(1), tail });
    }

    #[test]
    fn a_workspace_that_is_gone_is_a_broken_guard() {
        let root = tempfile::tempdir().unwrap();
        let task = Task {
            line: "true".to_owned(),
            workspace: PathBuf::from("/nowhere/at/all"),
            timeout_seconds: 1,
        };
        fs::write(root.path().join("task"), serde_json::to_vec(&task).unwrap()).unwrap();
        supervise(root.path(), &|| {}).unwrap();
        let fact = read(root.path()).unwrap();
        let VerificationFact::Broken { reason } = fact else { panic!("{fact:?}") };
        assert!(reason.starts_with("can't run it in `/nowhere/at/all`: "), "{reason}");
    }
}
