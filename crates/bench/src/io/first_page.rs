//! The first page of a file that is larger than memory.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use nix::sys::statvfs::statvfs;
use serde_json::{Value, json};

use super::peer::Peer;
use crate::Failure;
use crate::limits::Row;
use crate::report::{Report, median};

const ROUNDS: usize = 15;

/// What stays free beside the file.
const SPARE_BYTES: u64 = 2_000_000_000;

const FIRST_PAGE: Row = Row("io: first page of 10 GB");

pub(super) fn run(
    jackline: &Path,
    place: &Path,
    bytes: u64,
    report: &mut Report,
) -> Result<(), Failure> {
    let free = statvfs(place)?;
    let free = free.blocks_available().saturating_mul(free.fragment_size());
    if free < bytes.saturating_add(SPARE_BYTES) {
        let why = format!("{free} bytes are free, and {bytes} and some are needed; see --bytes");
        report.missing(FIRST_PAGE, &why);
        return Ok(());
    }
    let mut server = Peer::serving(jackline, place)?;
    write(&place.join("work/huge.log"), bytes)?;
    let mut times = Vec::new();
    let mut page = Value::Null;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        page = server.call("read_file", &json!({ "path": "huge.log" }))?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let first = times.first().copied().unwrap_or(f64::NAN);
    let context =
        format!("of {:.1} GB, by mcp serve; the first time {first:.1} ms", bytes as f64 / 1e9);
    report.add(FIRST_PAGE, median(times), context);
    let peak = server.memory_mb("VmHWM")?;
    report.add(Row("io: first page, peak memory"), peak, String::new());
    let field = |name: &str| page.pointer(&format!("/structuredContent/{name}"));
    let uncounted = field("total_lines") == Some(&Value::Null);
    let shown = field("lines_shown") == Some(&json!(500));
    let context = "500 lines, total_lines null".to_owned();
    report.holds(Row("io: first page, the rest is not counted"), shown && uncounted, context);
    Ok(())
}

/// Fills a file with lines; no block of it is left out.
fn write(path: &Path, bytes: u64) -> Result<(), Failure> {
    let line = b"2026-01-01T00:00:00Z INFO a line of some length, as there are many in a log\n";
    let block = line.repeat((1 << 20) / line.len());
    let mut file = File::create(path)?;
    let mut written = 0;
    while written < bytes {
        file.write_all(&block)?;
        written += block.len() as u64;
    }
    // What is still to be written would be measured with the reading.
    Ok(file.sync_all()?)
}
