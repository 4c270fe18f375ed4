//! Decides on one file, or on a part of one.

use jackline_journal::JournalView;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jackline_analysis::{
    Backtest, BacktestJournal, BacktestOutcome, BacktestRun, BacktestStep, LINE_BYTES_MAX, LineEnd,
    Memo, Source, Trajectory, open_lines, read_line,
};
use jackline_clients::Client;
use jackline_engine::{Event, SessionId};
use jackline_runtime::Fault;
use serde::Serialize;

use super::files::File;
use super::report::{Report, Seen};

/// What whoever reads shares with those who decide.
#[derive(Default)]
pub(super) struct Intake {
    /// How many bytes of files were read.
    pub(super) read: Arc<AtomicU64>,
    /// Where lines were that are decided on: room for the next ones.
    spare: Mutex<Vec<Vec<u8>>>,
}

/// What those who decide share.
pub(super) struct Shop<'a> {
    pub(super) intake: &'a Intake,
    pub(super) backtest: Backtest,
    /// What results were seen to say.
    pub(super) memo: Memo,
    pub(super) as_json: bool,
    /// How many calls were decided on.
    pub(super) calls: AtomicU64,
}

/// Events of one run after the other, in the same room.
type Events = Vec<Event>;

/// One thing to do.
pub(super) enum Job {
    /// Runs, a line each.
    Runs(Batch),
    /// One session.
    Session(Arc<File>, Kind),
    /// Nothing; only something to say.
    Said(Box<Part>),
}

/// What a session was written by.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// This guard.
    Journal,
    /// An agent client.
    Transcript(&'static Client),
}

/// Some lines of a file of runs.
pub(super) struct Batch {
    file: Arc<File>,
    bytes: Vec<u8>,
    /// By their numbers from 1; nothing is one that is too long.
    lines: Vec<(u64, Option<Range<usize>>)>,
}

/// What came of a job.
#[derive(Default)]
pub(super) struct Part {
    pub(super) report: Report,
    /// Lines for programs.
    pub(super) json: String,
    /// Lines that can't be read: file, number, why.
    pub(super) broken: Vec<(Arc<File>, u64, String)>,
    /// A file that can't be read to its end.
    pub(super) unreadable: Option<(Arc<File>, String)>,
}

/// How much is decided on at a time.
const BATCH_BYTES: usize = 64 << 10;

/// How much room that mostly takes: the last line may go on.
const ROOM_BYTES: usize = BATCH_BYTES + BATCH_BYTES / 2;

impl Batch {
    /// Reads the next lines; none is the end of the file. An error comes after
    /// what could be read.
    pub(super) fn read(
        file: &Arc<File>,
        source: &mut Source,
        number: &mut u64,
        mut bytes: Vec<u8>,
    ) -> (Option<Self>, io::Result<()>) {
        let mut lines = Vec::new();
        let mut result = Ok(());
        while bytes.len() < BATCH_BYTES && lines.len() < BATCH_BYTES {
            let start = bytes.len();
            match read_line(source, &mut bytes) {
                Ok(None) => break,
                Ok(Some(end)) => {
                    *number += 1;
                    let whole = (end != LineEnd::TooLong).then_some(start..bytes.len());
                    lines.push((*number, whole));
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        let batch = (!lines.is_empty()).then(|| Self { file: Arc::clone(file), bytes, lines });
        (batch, result)
    }
}

impl Intake {
    /// Room for lines. What one thread asks the system for and another gives back is
    /// slow to come by, so it goes round.
    pub(super) fn room(&self) -> Vec<u8> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| Vec::with_capacity(ROOM_BYTES))
    }

    fn give_room(&self, mut bytes: Vec<u8>) {
        bytes.clear();
        // A line may have been long.
        bytes.shrink_to(2 * ROOM_BYTES);
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }
}

impl Shop<'_> {
    pub(super) fn play(&self, job: Job, events: &mut Events) -> Part {
        match job {
            Job::Runs(batch) => {
                let part = self.runs(&batch, events);
                self.intake.give_room(batch.bytes);
                part
            }
            Job::Session(file, kind) => self.session(&file, kind),
            Job::Said(part) => *part,
        }
    }

    fn runs(&self, batch: &Batch, events: &mut Events) -> Part {
        let mut part = Part::default();
        for (number, line) in &batch.lines {
            let played = match line {
                Some(line) => {
                    let line = batch.bytes.get(line.clone()).unwrap_or_default().trim_ascii();
                    self.run((&batch.file, *number), line, &mut part, events)
                }
                None => Err(format!("it is longer than {} MB", LINE_BYTES_MAX >> 20)),
            };
            if let Err(error) = played {
                part.broken.push((Arc::clone(&batch.file), *number, error));
            }
        }
        part
    }

    fn run(
        &self,
        (file, number): (&File, u64),
        line: &[u8],
        part: &mut Part,
        events: &mut Events,
    ) -> Result<(), String> {
        if line.is_empty() {
            return Ok(());
        }
        let trajectory = Trajectory::parse(line, || format!("{}:{number}", file.stem()))?;
        let id = trajectory.id().as_str().to_owned();
        events.clear();
        trajectory.events(events)?;
        let mut run = self.backtest.start();
        let mut seen = Seen::default();
        for event in events {
            let step = run.event(event, &self.memo).map_err(|fault| part.report.fault(&fault))?;
            self.tell(&mut part.report, &id, &step, &mut seen);
        }
        self.end(&id, None, run, part);
        Ok(())
    }

    fn session(&self, file: &Arc<File>, kind: Kind) -> Part {
        let mut part = Part::default();
        let played = match kind {
            Kind::Journal => self.journal(file, &mut part),
            Kind::Transcript(client) => self.transcript(file, client, &mut part),
        };
        if let Err(error) = played {
            part.unreadable = Some((Arc::clone(file), error));
        }
        part
    }

    fn open(&self, file: &File) -> Result<Source, String> {
        open_lines(&file.path, Arc::clone(&self.intake.read)).map_err(|error| error.to_string())
    }

    fn transcript(&self, file: &File, client: &Client, part: &mut Part) -> Result<(), String> {
        let no_reader = || format!("transcripts of {} can't be read", client.title);
        let transcripts = client.transcripts.ok_or_else(no_reader)?;
        let session = SessionId::parse(file.stem()).map_err(|error| error.to_string())?;
        let mut transcript = transcripts.read(Box::new(self.open(file)?), session);
        let mut run = self.backtest.start();
        let mut seen = Seen::default();
        let mut id = None;
        let mut result = Ok(());
        for event in transcript.by_ref() {
            let mut event = match event {
                Ok(event) => event,
                Err(error) => {
                    result = Err(before_that(&error));
                    break;
                }
            };
            let session = id.get_or_insert_with(|| event.session.to_string());
            match run.event(&mut event, &self.memo) {
                Ok(step) => self.tell(&mut part.report, session, &step, &mut seen),
                Err(fault) => {
                    result = Err(part.report.fault(&fault));
                    break;
                }
            }
        }
        part.report.skipped.add(transcript.skipped());
        match (id, &result) {
            (Some(id), _) => self.end(&id, file.agent(), run, part),
            (None, Ok(())) if file.named => {
                result = Err("nothing in it is a call or a message".to_owned());
            }
            (None, _) => {}
        }
        result
    }

    fn journal(&self, file: &Arc<File>, part: &mut Part) -> Result<(), String> {
        let mut source = self.open(file)?;
        let mut journal = BacktestJournal::new(&self.backtest, JournalView::open(&file.path).ok());
        let mut seen = Seen::default();
        let mut line = Vec::new();
        let mut result = Ok(());
        for number in 1_u64.. {
            line.clear();
            match read_line(&mut source, &mut line) {
                // What was being written when the machine stopped was never answered.
                Ok(None | Some(LineEnd::Torn)) => break,
                Ok(Some(LineEnd::TooLong)) => {
                    let error = format!("it is longer than {} MB", LINE_BYTES_MAX >> 20);
                    part.broken.push((Arc::clone(file), number, error));
                }
                Ok(Some(LineEnd::Whole)) => match journal.line(&line) {
                    Ok(None) => {}
                    Ok(Some(Ok(step))) => {
                        let name = journal.name().unwrap_or_default();
                        self.tell(&mut part.report, name, &step, &mut seen);
                    }
                    Ok(Some(Err(fault))) => {
                        result = Err(part.report.fault(&fault));
                        break;
                    }
                    Err(error) => part.broken.push((Arc::clone(file), number, error)),
                },
                Err(error) => {
                    result = Err(before_that(&error));
                    break;
                }
            }
        }
        let name = journal.name().map(ToOwned::to_owned);
        if let (Some(name), Some(run)) = (name, journal.finish()) {
            self.end(&name, None, run, part);
        }
        result
    }

    /// Counts a step for the report, where somebody reads one.
    fn tell(&self, report: &mut Report, session: &str, step: &BacktestStep, seen: &mut Seen) {
        if !self.as_json {
            report.step(session, step, seen);
        }
    }

    /// A run has come to its end. That of a sub-agent is a run of its own.
    fn end(&self, session: &str, agent: Option<&str>, run: BacktestRun, part: &mut Part) {
        let outcome = run.finish();
        self.calls.fetch_add(outcome.calls, Ordering::Relaxed);
        if self.as_json {
            let id = match agent {
                Some(agent) => format!("{session}/{agent}"),
                None => session.to_owned(),
            };
            let line = Line { id, outcome: &outcome };
            part.json.push_str(&serde_json::to_string(&line).unwrap_or_default());
            part.json.push('\n');
        }
        part.report.run(agent.is_some(), &outcome);
    }
}

fn before_that(error: &io::Error) -> String {
    format!("{error}; what comes before was decided")
}

/// A run for programs.
#[derive(Serialize)]
struct Line<'a> {
    id: String,
    #[serde(flatten)]
    outcome: &'a BacktestOutcome,
}

impl Report {
    /// Counts that the guard itself broke, and says so.
    fn fault(&mut self, fault: &Fault) -> String {
        self.faults += 1;
        format!("{fault}; report this")
    }
}
