//! Measures one process for each event, as hook clients start it, compared with `/bin/true`.

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
use crate::report::{BenchReport, median};
use crate::{BenchError, mix};

pub(crate) const BLOCKS: usize = 30;
pub(crate) const BLOCK_RUNS: usize = 25;
const ROUNDS: usize = 60;
const PARALLEL_PROCESSES: usize = 8;

pub(crate) fn run(jackline: &Path, report: &mut BenchReport) -> Result<(), BenchError> {
    let directory = tempfile::tempdir()?;
    let bench = ProcessBench::new(jackline, directory.path(), include_str!("../definition.yaml"))?;
    bench.create_session("short", 10)?;
    bench.create_session("long", 100_000)?;

    let (mut idle, mut short, mut long) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..BLOCKS {
        idle.push(ProcessBench::cpu_seconds(&mut || bench.run_true())?);
        short.push(ProcessBench::cpu_seconds(&mut || bench.run_event("short").map(drop))?);
        long.push(ProcessBench::cpu_seconds(&mut || bench.run_event("long").map(drop))?);
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
    bench.measure_parallel(report)
}

pub(crate) struct ProcessBench {
    pub(crate) jackline: PathBuf,
    pub(crate) home: PathBuf,
    pub(crate) workspace: PathBuf,
    definition: PathBuf,
    /// The directory with the input of each process, one file for each.
    inputs: PathBuf,
}

impl ProcessBench {
    pub(crate) fn new(jackline: &Path, place: &Path, source: &str) -> Result<Self, BenchError> {
        let workspace = place.join("work");
        let definition = workspace.join("jackline.yaml");
        fs::create_dir(&workspace)?;
        fs::write(&definition, source)?;
        fs::create_dir(place.join("inputs"))?;
        // A copy, as an installation makes it: the kernel maps the pages of a file one by one if
        // the linker has just written it.
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

    /// Creates a session with some events. The disk sync takes long, so the session is created in
    /// memory if possible, and then copied.
    pub(crate) fn create_session(&self, session: &str, events: usize) -> Result<(), BenchError> {
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
        for line in mix::event_lines(events, session)?.iter().take(events) {
            // Results of full size would only fill the disk.
            let line: String = line.chars().take_while(|_| line.len() < 4096).collect();
            if !line.is_empty() {
                runtime.answer(parse_line(line.as_bytes(), Some(&id))?);
            }
        }
        copy_directory(quick.path(), &self.home)
    }

    pub(crate) fn run_true(&self) -> Result<(), BenchError> {
        let input = self.event("short")?;
        let status = Command::new("/bin/true").stdin(input).stdout(Stdio::null()).status()?;
        if status.success() { Ok(()) } else { Err("/bin/true failed".into()) }
    }

    fn command(&self, session: &str) -> Result<Command, BenchError> {
        let mut command = Command::new(&self.jackline);
        command
            .args(["stdio", "-d"])
            .arg(&self.definition)
            .env("JACKLINE_HOME", &self.home)
            .stdin(self.event(session)?)
            .stdout(Stdio::null());
        Ok(command)
    }

    fn event(&self, session: &str) -> Result<File, BenchError> {
        self.input(|number| {
            format!(
                "{{\"session\":\"{session}\",\"event\":\"tool_proposed\",\"call\":\"{number}\",\
                 \"tool\":\"Bash\",\"args\":{{\"command\":\"cargo test --workspace\"}}}}\n",
            )
        })
    }

    /// A file with one event that no other process reads.
    pub(crate) fn input(&self, event: impl Fn(usize) -> String) -> Result<File, BenchError> {
        let number = next_number();
        let path = self.inputs.join(format!("{}.jsonl", number % (2 * PARALLEL_PROCESSES)));
        fs::write(&path, event(number))?;
        Ok(File::open(path)?)
    }

    fn run_event(&self, session: &str) -> Result<(), BenchError> {
        let status = self.command(session)?.status()?;
        if status.success() { Ok(()) } else { Err(format!("jackline exited with {status}").into()) }
    }

    /// The seconds of CPU time of a child process, as the mean of a block.
    pub(crate) fn cpu_seconds(
        run: &mut dyn FnMut() -> Result<(), BenchError>,
    ) -> Result<f64, BenchError> {
        let before = children_cpu_seconds()?;
        for _ in 0..BLOCK_RUNS {
            run()?;
        }
        Ok((children_cpu_seconds()? - before) / BLOCK_RUNS as f64)
    }

    /// Measures eight processes that use one session at the same time.
    fn measure_parallel(&self, report: &mut BenchReport) -> Result<(), BenchError> {
        let session = "short";
        let before = self.records(session)?;
        let mut spreads = Vec::new();
        let mut errors = 0;
        for _ in 0..ROUNDS {
            let mut running = Vec::new();
            for _ in 0..PARALLEL_PROCESSES {
                let mut command = self.command(session)?;
                running.push((Instant::now(), command.spawn()?));
            }
            // A separate thread waits for each process, so that waiting for one does not delay the
            // end time of another.
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
                let (time, ok) = thread.join().map_err(|_| "a waiting thread panicked")?;
                times.push(time);
                errors += usize::from(!ok);
            }
            times.sort_by(f64::total_cmp);
            if let (Some(best), Some(worst)) = (times.first(), times.last()) {
                spreads.push(worst - best);
            }
        }
        let lost = (before + ROUNDS * PARALLEL_PROCESSES) as f64 - self.records(session)? as f64;
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

    fn records(&self, session: &str) -> Result<usize, BenchError> {
        let journal = self.home.join("sessions").join(session).join("journal.jsonl");
        Ok(fs::read_to_string(journal)?.lines().count())
    }
}

/// The seconds of CPU time of all finished child processes.
fn children_cpu_seconds() -> Result<f64, BenchError> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// The minor page faults of the child processes that a function runs.
pub(crate) fn page_faults(run: impl FnOnce() -> Result<(), BenchError>) -> Result<f64, BenchError> {
    let count = || getrusage(UsageWho::RUSAGE_CHILDREN).map(|usage| usage.minor_page_faults());
    let before = count()?;
    run()?;
    Ok((count()? - before) as f64)
}

/// A unique number for a call.
fn next_number() -> usize {
    static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

fn copy_directory(from: &Path, to: &Path) -> Result<(), BenchError> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_directory(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
