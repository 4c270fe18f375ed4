//! An attempt that touches many files and is undone, beside copying these files.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use jackline_workspace::{Limits, Workspace};
use serde_json::json;

use crate::Failure;
use crate::limits::Row;
use crate::report::{Report, median};

const ROUNDS: usize = 7;

/// How many files an attempt touches.
const TOUCHED: usize = 1000;

/// How many files there are: few besides these, and many.
const TREES: [usize; 2] = [2000, 100_000];

pub(super) fn run(report: &mut Report) -> Result<(), Failure> {
    // No tree goes before all are measured: ext4 looks long for a file's number where many
    // files have just been removed.
    let (mut places, mut costs) = (Vec::new(), Vec::new());
    for files in TREES {
        let place = tempfile::tempdir()?;
        let root = place.path().join("work");
        plant(&root, files)?;
        costs.push(measure(&root, place.path())?);
        places.push(place);
    }
    let (Some(small), Some(large)) = (costs.first(), costs.last()) else { return Ok(()) };
    let context = format!(
        "{:.0} ms beside the writes themselves, copies that are on the disk {:.0} ms; median of {ROUNDS}",
        large.undone_ms, large.copied_ms
    );
    report.add(Row("attempt: 1,000 of 100,000 files kept and undone"), large.ratio, context);
    let follows = large.undone_ms / small.undone_ms;
    let context = format!("of the cost in a tree of {} files", TREES[0]);
    report.add(Row("attempt: undoing in the large tree"), follows, context);
    Ok(())
}

/// Directories of a hundred files each.
fn plant(root: &Path, files: usize) -> Result<(), Failure> {
    for number in 0..files {
        let path = root.join(name(number));
        if number % 100 == 0 {
            fs::create_dir_all(path.parent().unwrap_or(root))?;
        }
        fs::write(path, text(number, "as it was"))?;
    }
    Ok(())
}

fn name(number: usize) -> String {
    format!("part{}/file{number}.txt", number / 100)
}

fn text(number: usize, what: &str) -> String {
    format!("line {number} of a file, {what}\n").repeat(100)
}

struct Costs {
    /// Of keeping and undoing, without the writes that are undone.
    undone_ms: f64,
    copied_ms: f64,
    /// Of one to the other, in the same round.
    ratio: f64,
}

fn measure(root: &Path, place: &Path) -> Result<Costs, Failure> {
    let workspace = Workspace::open(root, Limits::default())?;
    let (mut undone, mut copied) = (Vec::new(), Vec::new());
    // All in turn, so that a disk that is slow for a while is slow for all.
    for round in 0..ROUNDS {
        let log = place.join(format!("undo/{round}"));
        let start = Instant::now();
        workspace.begin(&log)?;
        write(&workspace, "by the attempt")?;
        let back = workspace.roll_back()?;
        let all_ms = start.elapsed().as_secs_f64() * 1e3;
        if back.restored.len() != TOUCHED {
            return Err(format!("{} files were put back", back.restored.len()).into());
        }
        let start = Instant::now();
        write(&workspace, "by nobody's attempt")?;
        undone.push(all_ms - start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        copy(root, &place.join(format!("copy{round}")))?;
        copied.push(start.elapsed().as_secs_f64() * 1e3);
        for number in 0..TOUCHED {
            fs::write(root.join(name(number)), text(number, "as it was"))?;
        }
    }
    let ratios = undone.iter().zip(&copied).map(|(undone, copied)| undone / copied).collect();
    Ok(Costs { ratio: median(ratios), undone_ms: median(undone), copied_ms: median(copied) })
}

fn write(workspace: &Workspace, what: &str) -> Result<(), Failure> {
    for number in 0..TOUCHED {
        let args = json!({ "path": name(number), "content": text(number, what) });
        workspace.call("write_file", &args)?;
    }
    Ok(())
}

/// A copy that a crash does not take: each file is on the disk, as what an attempt keeps is.
fn copy(root: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir_all(to)?;
    for number in 0..TOUCHED {
        let mut copy = fs::File::create(to.join(number.to_string()))?;
        copy.write_all(&fs::read(root.join(name(number)))?)?;
        copy.sync_data()?;
    }
    Ok(())
}
