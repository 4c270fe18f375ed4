//! Decides on the calls of one file, or of a part of a file.

use jackline_journal::JournalView;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jackline_analysis::{
    Backtest, BacktestInput, BacktestJournal, BacktestOutcome, BacktestRun, BacktestStep,
    LINE_BYTES_MAX, LineEnd, RecordedRun, ResultMemo, open_lines, read_line,
};
use jackline_clients::Client;
use jackline_engine::{Event, SessionId};
use jackline_runtime::RuntimeFault;
use serde::Serialize;

use super::files::RecordedFile;
use super::report::{BacktestReport, CountedLoopLevels};

/// Buffers and counters that the reading thread shares with the deciding threads.
#[derive(Default)]
pub(super) struct InputBuffers {
    /// The number of bytes read from files.
    pub(super) read: Arc<AtomicU64>,
    /// Buffers of finished batches, for reuse.
    spare: Mutex<Vec<Vec<u8>>>,
}

/// What the deciding threads share.
pub(super) struct BacktestContext<'a> {
    pub(super) intake: &'a InputBuffers,
    pub(super) backtest: Backtest,
    /// A cache of parsed results.
    pub(super) memo: ResultMemo,
    pub(super) as_json: bool,
    /// The number of decided calls.
    pub(super) calls: AtomicU64,
}

/// A buffer for the events of one run, reused for the next run.
type Events = Vec<Event>;

/// A piece of work for a deciding thread.
pub(super) enum BacktestJob {
    /// Runs, one per line.
    Runs(RunBatch),
    /// One session.
    Session(Arc<RecordedFile>, SessionSource),
    /// No work, only a finished result.
    Finished(Box<BacktestPart>),
}

/// The program that recorded a session.
#[derive(Clone, Copy)]
pub(super) enum SessionSource {
    /// Jackline, in a journal.
    Journal,
    /// An agent client.
    Transcript(&'static Client),
}

/// Some lines of a file of runs.
pub(super) struct RunBatch {
    file: Arc<RecordedFile>,
    bytes: Vec<u8>,
    /// The line numbers from 1, with the range in `bytes`; `None` for a line over the limit.
    lines: Vec<(u64, Option<Range<usize>>)>,
}

/// The result of a job.
#[derive(Default)]
pub(super) struct BacktestPart {
    pub(super) report: BacktestReport,
    /// The lines for `--json`.
    pub(super) json: String,
    /// Lines that can't be read: file, number, why.
    pub(super) broken: Vec<(Arc<RecordedFile>, u64, String)>,
    /// The file, if it can't be read to its end, and the error.
    pub(super) unreadable: Option<(Arc<RecordedFile>, String)>,
}

/// The size of a batch.
const BATCH_BYTES: usize = 64 << 10;

/// The size of a buffer. The last line of a batch can exceed the batch size.
const BUFFER_BYTES: usize = BATCH_BYTES + BATCH_BYTES / 2;

impl RunBatch {
    /// Reads the next lines; `None` at the end of the file. With an error, the lines before it are
    /// returned too.
    pub(super) fn read(
        file: &Arc<RecordedFile>,
        source: &mut BacktestInput,
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

impl InputBuffers {
    /// Takes a buffer for lines. Buffers are reused, because memory that is allocated in one thread
    /// and freed in another is slow.
    pub(super) fn take_buffer(&self) -> Vec<u8> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES))
    }

    fn return_buffer(&self, mut bytes: Vec<u8>) {
        bytes.clear();
        // A long line can have enlarged the buffer.
        bytes.shrink_to(2 * BUFFER_BYTES);
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }
}

impl BacktestContext<'_> {
    pub(super) fn run_job(&self, job: BacktestJob, events: &mut Events) -> BacktestPart {
        match job {
            BacktestJob::Runs(batch) => {
                let part = self.play_runs(&batch, events);
                self.intake.return_buffer(batch.bytes);
                part
            }
            BacktestJob::Session(file, kind) => self.play_session(&file, kind),
            BacktestJob::Finished(part) => *part,
        }
    }

    fn play_runs(&self, batch: &RunBatch, events: &mut Events) -> BacktestPart {
        let mut part = BacktestPart::default();
        for (number, line) in &batch.lines {
            let played = match line {
                Some(line) => {
                    let line = batch.bytes.get(line.clone()).unwrap_or_default().trim_ascii();
                    self.play_run((&batch.file, *number), line, &mut part, events)
                }
                None => Err(format!("the line is longer than {} MB", LINE_BYTES_MAX >> 20)),
            };
            if let Err(error) = played {
                part.broken.push((Arc::clone(&batch.file), *number, error));
            }
        }
        part
    }

    fn play_run(
        &self,
        (file, number): (&RecordedFile, u64),
        line: &[u8],
        part: &mut BacktestPart,
        events: &mut Events,
    ) -> Result<(), String> {
        if line.is_empty() {
            return Ok(());
        }
        let trajectory = RecordedRun::parse(line, || format!("{}:{number}", file.stem()))?;
        let id = trajectory.id().as_str().to_owned();
        events.clear();
        trajectory.events(events)?;
        let mut run = self.backtest.start();
        let mut seen = CountedLoopLevels::default();
        for event in events {
            let step = run.event(event, &self.memo).map_err(|fault| part.report.fault(&fault))?;
            self.count_step(&mut part.report, &id, &step, &mut seen);
        }
        self.finish_run(&id, None, run, part);
        Ok(())
    }

    fn play_session(&self, file: &Arc<RecordedFile>, kind: SessionSource) -> BacktestPart {
        let mut part = BacktestPart::default();
        let played = match kind {
            SessionSource::Journal => self.journal(file, &mut part),
            SessionSource::Transcript(client) => self.transcript(file, client, &mut part),
        };
        if let Err(error) = played {
            part.unreadable = Some((Arc::clone(file), error));
        }
        part
    }

    fn open(&self, file: &RecordedFile) -> Result<BacktestInput, String> {
        open_lines(&file.path, Arc::clone(&self.intake.read)).map_err(|error| error.to_string())
    }

    fn transcript(
        &self,
        file: &RecordedFile,
        client: &Client,
        part: &mut BacktestPart,
    ) -> Result<(), String> {
        let no_reader = || format!("transcripts of {} can't be read", client.title);
        let transcripts = client.transcripts.ok_or_else(no_reader)?;
        let session = SessionId::parse(file.stem()).map_err(|error| error.to_string())?;
        let mut transcript = transcripts.read(Box::new(self.open(file)?), session);
        let mut run = self.backtest.start();
        let mut seen = CountedLoopLevels::default();
        let mut id = None;
        let mut result = Ok(());
        for event in transcript.by_ref() {
            let mut event = match event {
                Ok(event) => event,
                Err(error) => {
                    result = Err(describe_partial_read(&error));
                    break;
                }
            };
            let session = id.get_or_insert_with(|| event.session.to_string());
            match run.event(&mut event, &self.memo) {
                Ok(step) => self.count_step(&mut part.report, session, &step, &mut seen),
                Err(fault) => {
                    result = Err(part.report.fault(&fault));
                    break;
                }
            }
        }
        part.report.skipped.add(transcript.skipped());
        match (id, &result) {
            (Some(id), _) => self.finish_run(&id, file.agent(), run, part),
            (None, Ok(())) if file.named => {
                result = Err("it contains no call and no message".to_owned());
            }
            (None, _) => {}
        }
        result
    }

    fn journal(&self, file: &Arc<RecordedFile>, part: &mut BacktestPart) -> Result<(), String> {
        let mut source = self.open(file)?;
        let mut journal = BacktestJournal::new(&self.backtest, JournalView::open(&file.path).ok());
        let mut seen = CountedLoopLevels::default();
        let mut line = Vec::new();
        let mut result = Ok(());
        for number in 1_u64.. {
            line.clear();
            match read_line(&mut source, &mut line) {
                // A torn last record was interrupted while it was written, so it was never
                // answered.
                Ok(None | Some(LineEnd::WithoutNewline)) => break,
                Ok(Some(LineEnd::TooLong)) => {
                    let error = format!("the line is longer than {} MB", LINE_BYTES_MAX >> 20);
                    part.broken.push((Arc::clone(file), number, error));
                }
                Ok(Some(LineEnd::Complete)) => match journal.line(&line) {
                    Ok(None) => {}
                    Ok(Some(Ok(step))) => {
                        let name = journal.name().unwrap_or_default();
                        self.count_step(&mut part.report, name, &step, &mut seen);
                    }
                    Ok(Some(Err(fault))) => {
                        result = Err(part.report.fault(&fault));
                        break;
                    }
                    Err(error) => part.broken.push((Arc::clone(file), number, error)),
                },
                Err(error) => {
                    result = Err(describe_partial_read(&error));
                    break;
                }
            }
        }
        let name = journal.name().map(ToOwned::to_owned);
        if let (Some(name), Some(run)) = (name, journal.finish()) {
            self.finish_run(&name, None, run, part);
        }
        result
    }

    /// Counts a step, if a report is printed.
    fn count_step(
        &self,
        report: &mut BacktestReport,
        session: &str,
        step: &BacktestStep,
        seen: &mut CountedLoopLevels,
    ) {
        if !self.as_json {
            report.count_step(session, step, seen);
        }
    }

    /// Counts a finished run. The run of a sub-agent counts separately.
    fn finish_run(
        &self,
        session: &str,
        agent: Option<&str>,
        run: BacktestRun,
        part: &mut BacktestPart,
    ) {
        let outcome = run.finish();
        self.calls.fetch_add(outcome.calls, Ordering::Relaxed);
        if self.as_json {
            let id = match agent {
                Some(agent) => format!("{session}/{agent}"),
                None => session.to_owned(),
            };
            let line = RunOutcomeLine { id, outcome: &outcome };
            part.json.push_str(&serde_json::to_string(&line).unwrap_or_default());
            part.json.push('\n');
        }
        part.report.count_run(agent.is_some(), &outcome);
    }
}

fn describe_partial_read(error: &io::Error) -> String {
    format!("{error}; the part before the error was decided")
}

/// The outcome of a run, for `--json`.
#[derive(Serialize)]
struct RunOutcomeLine<'a> {
    id: String,
    #[serde(flatten)]
    outcome: &'a BacktestOutcome,
}

impl BacktestReport {
    /// Counts a fault of the guard itself, and returns the message.
    fn fault(&mut self, fault: &RuntimeFault) -> String {
        self.faults += 1;
        format!("{fault}; please report this bug")
    }
}
