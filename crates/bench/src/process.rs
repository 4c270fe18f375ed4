//! One process an event, as hook clients do it, beside `/bin/true`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use jackline_engine::SessionId;
use jackline_engine::wire::parse_line;
use jackline_host::HostAccess;
use jackline_journal::FileStore;
use jackline_runtime::{Definitions, Runtime};
use nix::sys::resource::{UsageWho, getrusage};

use crate::limits::Row;
use crate::report::{Report, median};
use crate::{Failure, mix};

pub(crate) const BLOCKS: usize = 30;
pub(crate) const BLOCK: usize = 25;
const ROUNDS: usize = 60;
const AT_ONCE: usize = 8;

pub(crate) fn run(jackline: &Path, report: &mut Report) -> Result<(), Failure> {
    let place = tempfile::tempdir()?;
    let bench = Bench::new(jackline, place.path(), include_str!("../definition.yaml"))?;
    bench.grow("short", 10)?;
    bench.grow("long", 100_000)?;

    let (mut idle, mut short, mut long) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..BLOCKS {
        idle.push(Bench::cpu(&mut || bench.idle())?);
        short.push(Bench::cpu(&mut || bench.once("short").map(drop))?);
        long.push(Bench::cpu(&mut || bench.once("long").map(drop))?);
    }
    let (idle, short, long) = (median(idle), median(short), median(long));
    report.add(
        Row("stdio: CPU relative to /bin/true"),
        short / idle,
        format!("of /bin/true; {:.2} vs {:.2} ms", short * 1e3, idle * 1e3),
    );
    report.add(
        Row("stdio: CPU at 100,000 events vs at 10"),
        long / short,
        format!("{:.2} vs {:.2} ms", long * 1e3, short * 1e3),
    );
    bench.at_once(report)
}

pub(crate) struct Bench {
    pub(crate) jackline: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) workspace: PathBuf,
    definition: PathBuf,
    /// Where the events of the processes are, each in a file of its own.
    inputs: PathBuf,
}

impl Bench {
    pub(crate) fn new(jackline: &Path, place: &Path, source: &str) -> Result<Self, Failure> {
        let workspace = place.join("work");
        let definition = workspace.join("jackline.yaml");
        fs::create_dir(&workspace)?;
        fs::write(&definition, source)?;
        fs::create_dir(place.join("inputs"))?;
        // A copy, as an installation leaves it: the pages of a file that comes straight from
        // the linker lie one by one in the memory of the kernel, and are mapped one by one.
        let installed = place.join("jackline");
        fs::copy(jackline, &installed)?;
        Ok(Self {
            jackline: installed,
            home: place.join("home"),
            workspace,
            definition,
            inputs: place.join("inputs"),
        })
    }

    /// Makes a session of some events. The sync is what takes long, so it is
    /// grown in memory where the machine has such a place, and then moved.
    pub(crate) fn grow(&self, session: &str, events: usize) -> Result<(), Failure> {
        let memory = Path::new("/dev/shm");
        let quick =
            if memory.is_dir() { tempfile::tempdir_in(memory)? } else { tempfile::tempdir()? };
        let store = FileStore::new(quick.path(), jackline_host::clock::boot_number());
        let definitions = Definitions::new(
            Some(self.definition.clone()),
            HostAccess::of_machine(Some(store.home())),
        );
        let mut runtime = Runtime::new(store, definitions, self.workspace.clone());
        let id = SessionId::parse(session)?;
        for line in mix::lines(events, session)?.iter().take(events) {
            // Results of full size would only fill the disk.
            let line: String = line.chars().take_while(|_| line.len() < 4096).collect();
            if !line.is_empty() {
                runtime.answer(parse_line(line.as_bytes(), Some(&id))?);
            }
        }
        copy(quick.path(), &self.home)
    }

    pub(crate) fn idle(&self) -> Result<(), Failure> {
        let input = self.event("short")?;
        let status = Command::new("/bin/true").stdin(input).stdout(Stdio::null()).status()?;
        if status.success() { Ok(()) } else { Err("/bin/true failed".into()) }
    }

    fn command(&self, session: &str) -> Result<Command, Failure> {
        let mut command = Command::new(&self.jackline);
        command
            .args(["stdio", "-d"])
            .arg(&self.definition)
            .env("JACKLINE_HOME", &self.home)
            .stdin(self.event(session)?)
            .stdout(Stdio::null());
        Ok(command)
    }

    fn event(&self, session: &str) -> Result<File, Failure> {
        self.input(|number| {
            format!(
                "{{\"session\":\"{session}\",\"event\":\"tool_proposed\",\"call\":\"{number}\",\
                 \"tool\":\"Bash\",\"args\":{{\"command\":\"cargo test --workspace\"}}}}\n",
            )
        })
    }

    /// A file with one event that no other process reads.
    pub(crate) fn input(&self, event: impl Fn(usize) -> String) -> Result<File, Failure> {
        let number = next();
        let path = self.inputs.join(format!("{}.jsonl", number % (2 * AT_ONCE)));
        fs::write(&path, event(number))?;
        Ok(File::open(path)?)
    }

    fn once(&self, session: &str) -> Result<(), Failure> {
        let status = self.command(session)?.status()?;
        if status.success() { Ok(()) } else { Err(format!("jackline ended with {status}").into()) }
    }

    /// Seconds of processor time of a child, as the mean of a block.
    pub(crate) fn cpu(run: &mut dyn FnMut() -> Result<(), Failure>) -> Result<f64, Failure> {
        let before = children()?;
        for _ in 0..BLOCK {
            run()?;
        }
        Ok((children()? - before) / BLOCK as f64)
    }

    /// Eight processes on one session.
    fn at_once(&self, report: &mut Report) -> Result<(), Failure> {
        let session = "short";
        let before = self.records(session)?;
        let mut spreads = Vec::new();
        let mut errors = 0;
        for _ in 0..ROUNDS {
            let mut running = Vec::new();
            for _ in 0..AT_ONCE {
                let mut command = self.command(session)?;
                running.push((Instant::now(), command.spawn()?));
            }
            // Each is waited for by a thread of its own, so that the clock of
            // one does not run on while another is waited for.
            let waiting: Vec<_> = running
                .into_iter()
                .map(|(start, mut child)| {
                    std::thread::spawn(move || {
                        let ok = child.wait().is_ok_and(|status| status.success());
                        (start.elapsed().as_secs_f64() * 1e3, ok)
                    })
                })
                .collect();
            let mut times = Vec::new();
            for thread in waiting {
                let (time, ok) = thread.join().map_err(|_| "a waiting thread died")?;
                times.push(time);
                errors += usize::from(!ok);
            }
            times.sort_by(f64::total_cmp);
            if let (Some(best), Some(worst)) = (times.first(), times.last()) {
                spreads.push(worst - best);
            }
        }
        let lost = (before + ROUNDS * AT_ONCE) as f64 - self.records(session)? as f64;
        let worst = spreads.iter().copied().fold(0.0, f64::max);
        report.add(Row("stdio: 8 on one session, lost records"), lost, String::new());
        report.add(Row("stdio: 8 on one session, errors"), errors as f64, String::new());
        report.add(
            Row("stdio: 8 on one session, worst over best"),
            worst,
            format!("of {ROUNDS} rounds; median {:.1} ms", median(spreads)),
        );
        Ok(())
    }

    fn records(&self, session: &str) -> Result<usize, Failure> {
        let journal = self.home.join("sessions").join(session).join("journal.jsonl");
        Ok(fs::read_to_string(journal)?.lines().count())
    }
}

/// Seconds of processor time of all children so far.
fn children() -> Result<f64, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Minor page faults of the children that a function starts and waits for.
pub(crate) fn page_faults(run: impl FnOnce() -> Result<(), Failure>) -> Result<f64, Failure> {
    let count = || getrusage(UsageWho::RUSAGE_CHILDREN).map(|usage| usage.minor_page_faults());
    let before = count()?;
    run()?;
    Ok((count()? - before) as f64)
}

/// A number for a call, never the same twice.
fn next() -> usize {
    static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
