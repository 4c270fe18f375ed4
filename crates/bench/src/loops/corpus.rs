//! A file of recorded runs, and how many of them were found to loop.

use std::path::Path;

use jackline_engine::digest::Digest128;

use super::Found;
use super::reference::{Reference, Run};
use crate::Failure;
use crate::limits::Row;
use crate::report::Report;

/// Which runs they are, and so what must be reached.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    AgentDojo,
    MiniSwe,
}

/// The runs of one file, as far as they are wanted.
pub(super) struct Corpus {
    kind: Kind,
    runs: Vec<Known>,
    steps: usize,
}

/// One run, beside what was found.
struct Known {
    id: String,
    success: bool,
    reference: Reference,
    half: Half,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    One,
    Other,
}

impl Kind {
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
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let kind = Kind::of(path).ok_or("a file of another name")?;
        let output = std::process::Command::new("gzip").arg("-dc").arg(path).output()?;
        let text = String::from_utf8(output.stdout)?;
        let mut runs = Vec::new();
        let mut steps = 0;
        for line in text.lines() {
            let run: Run = serde_json::from_str(line)?;
            steps += run.steps.len();
            let even = Digest128::of(run.id.as_bytes()).as_bytes()[0].is_multiple_of(2);
            let half = if even { Half::One } else { Half::Other };
            let reference = run.reference();
            runs.push(Known { id: run.id, success: run.success, reference, half });
        }
        Ok(Self { kind, runs, steps })
    }

    /// Compares, and fills the table.
    pub(super) fn measure(
        &self,
        found: &[Found],
        seconds: f64,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let same = self.runs.iter().map(|run| &run.id).eq(found.iter().map(|run| &run.id));
        if !same {
            return Err("the runs came out in another order, or not at all".into());
        }
        for half in [None, Some(Half::One), Some(Half::Other)] {
            let pairs = self.runs.iter().zip(found);
            let pairs: Vec<_> =
                pairs.filter(|(run, _)| half.is_none_or(|half| half == run.half)).collect();
            let names = match half {
                None => "all",
                Some(Half::One) => "one half",
                Some(Half::Other) => "the other",
            };
            match self.kind {
                Kind::AgentDojo => agentdojo(names, half.is_none(), &pairs, report),
                Kind::MiniSwe => miniswe(names, &pairs, report),
            }
        }
        let row = match self.kind {
            Kind::AgentDojo => Row("loops: backtest of AgentDojo"),
            Kind::MiniSwe => Row("loops: backtest of mini-SWE"),
        };
        let speed = self.steps as f64 / seconds;
        let context =
            format!("{} in {:.0} ms, the best of some, with the start", self.steps, seconds * 1e3);
        report.add(row, speed, context);
        Ok(())
    }
}

type Pair<'a> = (&'a Known, &'a Found);

/// How many of some are hit.
struct Hits {
    hit: usize,
    of: usize,
}

impl Hits {
    fn share(&self) -> f64 {
        self.hit as f64 * 100.0 / self.of.max(1) as f64
    }

    fn context(&self, names: &str) -> String {
        format!("{names}: {} of {}", self.hit, self.of)
    }
}

fn hits(
    pairs: &[Pair<'_>],
    counts: impl Fn(&Known) -> bool,
    is_hit: impl Fn(&Found) -> bool,
) -> Hits {
    let counted = pairs.iter().filter(|(run, _)| counts(run));
    let of = counted.clone().count();
    Hits { hit: counted.filter(|(_, found)| is_hit(found)).count(), of }
}

/// Limits hold for all runs; a half is half as large, and its shares the same.
fn agentdojo(names: &str, whole: bool, pairs: &[Pair<'_>], report: &mut Report) {
    let none = |run: &Known| run.reference == Reference::None;
    let long = |run: &Known| run.reference == Reference::Long;
    let is_hard = |found: &Found| found.hard.is_some();
    let is_soft = |found: &Found| found.soft.is_some();
    let held = hits(pairs, long, is_hard);
    report.add(Row("loops: AgentDojo, long loops held"), held.share(), held.context(names));
    let others = hits(pairs, none, is_hard);
    let row = Row("loops: AgentDojo, other runs held");
    report.add(row, others.hit as f64, others.context(names));
    let warned = hits(pairs, |run| !none(run), is_soft);
    report.add(Row("loops: AgentDojo, loops warned"), warned.share(), warned.context(names));
    let others = hits(pairs, none, is_soft);
    let row = if whole {
        Row("loops: AgentDojo, other runs warned")
    } else {
        Row("loops: AgentDojo, other runs of a half warned")
    };
    report.add(row, others.hit as f64, others.context(names));
}

fn miniswe(names: &str, pairs: &[Pair<'_>], report: &mut Report) {
    let hard = hits(pairs, |run| run.success, |found| found.hard.is_some());
    let row = Row("loops: mini-SWE, successful runs held");
    report.add(row, hard.hit as f64, hard.context(names));
    let soft = hits(pairs, |run| run.success, |found| found.soft.is_some());
    report.add(Row("loops: mini-SWE, successful runs warned"), soft.share(), soft.context(names));
}
