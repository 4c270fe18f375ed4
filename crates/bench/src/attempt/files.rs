//! Measures an attempt that changes many files and is rolled back, compared with copying these
//! files.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use jackline_workspace::{Workspace, WorkspaceLimits};
use serde_json::json;

use crate::BenchError;
use crate::limits::Row;
use crate::report::{BenchReport, median};

const ROUNDS: usize = 7;

/// How many files an attempt changes.
const CHANGED_FILES: usize = 1000;

/// How many files the workspace has: a small and a large tree.
const TREE_FILES: [usize; 2] = [2000, 100_000];

pub(super) fn run(report: &mut BenchReport) -> Result<(), BenchError> {
    // No tree is removed before all are measured: ext4 searches long for a free inode after many
    // files were removed.
    let (mut directories, mut costs) = (Vec::new(), Vec::new());
    for files in TREE_FILES {
        let directory = tempfile::tempdir()?;
        let root = directory.path().join("work");
        create_tree(&root, files)?;
        costs.push(measure(&root, directory.path())?);
        directories.push(directory);
    }
    let (Some(small), Some(large)) = (costs.first(), costs.last()) else { return Ok(()) };
    let context = format!(
        "{:.0} ms without the writes themselves, durable copies {:.0} ms; median of {ROUNDS}",
        large.undone_ms, large.copied_ms
    );
    report.add(Row("attempt: 1,000 of 100,000 files kept and undone"), large.ratio, context);
    let follows = large.undone_ms / small.undone_ms;
    let context = format!("of the cost in a tree of {} files", TREE_FILES[0]);
    report.add(Row("attempt: undoing in the large tree"), follows, context);
    Ok(())
}

/// Creates directories with a hundred files each.
fn create_tree(root: &Path, files: usize) -> Result<(), BenchError> {
    for number in 0..files {
        let path = root.join(name(number));
        if number % 100 == 0 {
            fs::create_dir_all(path.parent().unwrap_or(root))?;
        }
        fs::write(path, text(number, "original"))?;
    }
    Ok(())
}

fn name(number: usize) -> String {
    format!("part{}/file{number}.txt", number / 100)
}

fn text(number: usize, what: &str) -> String {
    format!("line {number} of a file, {what}\n").repeat(100)
}

struct RollbackTimes {
    /// Saving and rolling back, without the writes of the attempt.
    undone_ms: f64,
    copied_ms: f64,
    /// The ratio of both in the same round.
    ratio: f64,
}

fn measure(root: &Path, place: &Path) -> Result<RollbackTimes, BenchError> {
    let workspace = Workspace::open(root, WorkspaceLimits::default())?;
    let (mut undone, mut copied) = (Vec::new(), Vec::new());
    // The three parts take turns, so that a slow period of the disk affects all of them.
    for round in 0..ROUNDS {
        let log = place.join(format!("undo/{round}"));
        let start = Instant::now();
        workspace.begin_attempt(&log)?;
        write(&workspace, "by the attempt")?;
        let rollback = workspace.roll_back_attempt()?;
        let all_ms = start.elapsed().as_secs_f64() * 1e3;
        if rollback.restored.len() != CHANGED_FILES {
            return Err(format!("{} files were restored", rollback.restored.len()).into());
        }
        let start = Instant::now();
        write(&workspace, "without an attempt")?;
        undone.push(all_ms - start.elapsed().as_secs_f64() * 1e3);
        let start = Instant::now();
        copy(root, &place.join(format!("copy{round}")))?;
        copied.push(start.elapsed().as_secs_f64() * 1e3);
        for number in 0..CHANGED_FILES {
            fs::write(root.join(name(number)), text(number, "original"))?;
        }
    }
    let ratios = undone.iter().zip(&copied).map(|(undone, copied)| undone / copied).collect();
    Ok(RollbackTimes {
        ratio: median(ratios),
        undone_ms: median(undone),
        copied_ms: median(copied),
    })
}

fn write(workspace: &Workspace, what: &str) -> Result<(), BenchError> {
    for number in 0..CHANGED_FILES {
        let args = json!({ "path": name(number), "content": text(number, what) });
        workspace.call("write_file", &args)?;
    }
    Ok(())
}

/// A durable copy: each file is synced to the disk, like the files that an attempt saves.
fn copy(root: &Path, to: &Path) -> Result<(), BenchError> {
    fs::create_dir_all(to)?;
    for number in 0..CHANGED_FILES {
        let mut copy = fs::File::create(to.join(number.to_string()))?;
        copy.write_all(&fs::read(root.join(name(number)))?)?;
        copy.sync_data()?;
    }
    Ok(())
}
