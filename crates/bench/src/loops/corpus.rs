//! A file of recorded runs, and how many of them were detected as loops.

use std::path::Path;

use jackline_engine::digest::Digest128;

use super::BacktestResult;
use super::reference::{ReferenceLoop, ReferenceRun};
use crate::BenchError;
use crate::limits::Row;
use crate::report::BenchReport;

/// The data set of the runs. It decides which limits apply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CorpusKind {
    AgentDojo,
    MiniSwe,
}

/// The runs of one file.
pub(super) struct Corpus {
    kind: CorpusKind,
    runs: Vec<CorpusEntry>,
    steps: usize,
}

/// One recorded run, for comparison with the result of the backtest.
struct CorpusEntry {
    id: String,
    success: bool,
    reference: ReferenceLoop,
    half: SplitHalf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SplitHalf {
    One,
    Other,
}

impl CorpusKind {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        match name {
            _ if name.starts_with("agentdojo") => Some(Self::AgentDojo),
            _ if name.starts_with("miniswe") => Some(Self::MiniSwe),
            _ => None,
        }
    }
}

impl Corpus {
    pub(super) fn read(path: &Path) -> Result<Self, BenchError> {
        let kind = CorpusKind::of(path).ok_or("the file name is not recognised")?;
        let output = std::process::Command::new("gzip").arg("-dc").arg(path).output()?;
        let text = String::from_utf8(output.stdout)?;
        let mut runs = Vec::new();
        let mut steps = 0;
        for line in text.lines() {
            let run: ReferenceRun = serde_json::from_str(line)?;
            steps += run.steps.len();
            let even = Digest128::of(run.id.as_bytes()).as_bytes()[0].is_multiple_of(2);
            let half = if even { SplitHalf::One } else { SplitHalf::Other };
            let reference = run.classify();
            runs.push(CorpusEntry { id: run.id, success: run.success, reference, half });
        }
        Ok(Self { kind, runs, steps })
    }

    /// Compares the results with the reference, and fills the report.
    pub(super) fn measure(
        &self,
        results: &[BacktestResult],
        seconds: f64,
        report: &mut BenchReport,
    ) -> Result<(), BenchError> {
        let same = self.runs.iter().map(|run| &run.id).eq(results.iter().map(|run| &run.id));
        if !same {
            return Err(
                "the backtest returned the runs in another order, or not all of them".into()
            );
        }
        for half in [None, Some(SplitHalf::One), Some(SplitHalf::Other)] {
            let pairs = self.runs.iter().zip(results);
            let pairs: Vec<_> =
                pairs.filter(|(run, _)| half.is_none_or(|half| half == run.half)).collect();
            let names = match half {
                None => "all",
                Some(SplitHalf::One) => "one half",
                Some(SplitHalf::Other) => "the other",
            };
            match self.kind {
                CorpusKind::AgentDojo => report_agentdojo(names, half.is_none(), &pairs, report),
                CorpusKind::MiniSwe => report_miniswe(names, &pairs, report),
            }
        }
        let row = match self.kind {
            CorpusKind::AgentDojo => Row("loops: backtest of AgentDojo"),
            CorpusKind::MiniSwe => Row("loops: backtest of mini-SWE"),
        };
        let speed = self.steps as f64 / seconds;
        let context = format!(
            "{} in {:.0} ms, the best of several rounds, with the process start",
            self.steps,
            seconds * 1e3
        );
        report.add(row, speed, context);
        Ok(())
    }
}

type ComparedRun<'a> = (&'a CorpusEntry, &'a BacktestResult);

/// How many of the counted runs are hits.
struct HitCount {
    hit: usize,
    of: usize,
}

impl HitCount {
    fn share(&self) -> f64 {
        self.hit as f64 * 100.0 / self.of.max(1) as f64
    }

    fn context(&self, names: &str) -> String {
        format!("{names}: {} of {}", self.hit, self.of)
    }
}

fn count_hits(
    pairs: &[ComparedRun<'_>],
    counts: impl Fn(&CorpusEntry) -> bool,
    is_hit: impl Fn(&BacktestResult) -> bool,
) -> HitCount {
    let counted = pairs.iter().filter(|(run, _)| counts(run));
    let of = counted.clone().count();
    HitCount { hit: counted.filter(|(_, found)| is_hit(found)).count(), of }
}

/// The limits are for all runs. A half has half as many runs, and the same shares.
fn report_agentdojo(names: &str, whole: bool, pairs: &[ComparedRun<'_>], report: &mut BenchReport) {
    let none = |run: &CorpusEntry| run.reference == ReferenceLoop::None;
    let long = |run: &CorpusEntry| run.reference == ReferenceLoop::Long;
    let is_hard = |found: &BacktestResult| found.hard.is_some();
    let is_soft = |found: &BacktestResult| found.soft.is_some();
    let held = count_hits(pairs, long, is_hard);
    report.add(Row("loops: AgentDojo, long loops held"), held.share(), held.context(names));
    let others = count_hits(pairs, none, is_hard);
    let row = Row("loops: AgentDojo, other runs held");
    report.add(row, others.hit as f64, others.context(names));
    let warned = count_hits(pairs, |run| !none(run), is_soft);
    report.add(Row("loops: AgentDojo, loops warned"), warned.share(), warned.context(names));
    let others = count_hits(pairs, none, is_soft);
    let row = if whole {
        Row("loops: AgentDojo, other runs warned")
    } else {
        Row("loops: AgentDojo, other runs of a half warned")
    };
    report.add(row, others.hit as f64, others.context(names));
}

fn report_miniswe(names: &str, pairs: &[ComparedRun<'_>], report: &mut BenchReport) {
    let hard = count_hits(pairs, |run| run.success, |found| found.hard.is_some());
    let row = Row("loops: mini-SWE, successful runs held");
    report.add(row, hard.hit as f64, hard.context(names));
    let soft = count_hits(pairs, |run| run.success, |found| found.soft.is_some());
    report.add(Row("loops: mini-SWE, successful runs warned"), soft.share(), soft.context(names));
}
