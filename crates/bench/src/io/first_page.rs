//! Measures how fast the first page of a file larger than memory is read.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use nix::sys::statvfs::statvfs;
use serde_json::{Value, json};

use super::bench_server::BenchServer;
use crate::BenchError;
use crate::limits::Row;
use crate::report::{BenchReport, median};

const ROUNDS: usize = 15;

/// How many bytes must stay free on the disk.
const FREE_BYTES_MIN: u64 = 2_000_000_000;

const FIRST_PAGE: Row = Row("io: first page of 10 GB");

pub(super) fn run(
    jackline: &Path,
    place: &Path,
    bytes: u64,
    report: &mut BenchReport,
) -> Result<(), BenchError> {
    let free = statvfs(place)?;
    let free = free.blocks_available().saturating_mul(free.fragment_size());
    if free < bytes.saturating_add(FREE_BYTES_MIN) {
        let why = format!("{free} bytes are free, but more than {bytes} are needed; see --bytes");
        report.add_missing(FIRST_PAGE, &why);
        return Ok(());
    }
    let mut server = BenchServer::start_serve(jackline, place)?;
    write_large_file(&place.join("work/huge.log"), bytes)?;
    let mut times = Vec::new();
    let mut page = Value::Null;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        page = server.call("read_file", &json!({ "path": "huge.log" }))?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let first = times.first().copied().unwrap_or(f64::NAN);
    let context =
        format!("of {:.1} GB, by mcp serve; the first read {first:.1} ms", bytes as f64 / 1e9);
    report.add(FIRST_PAGE, median(times), context);
    let peak = server.memory_mb("VmHWM")?;
    report.add(Row("io: first page, peak memory"), peak, String::new());
    let field = |name: &str| page.pointer(&format!("/structuredContent/{name}"));
    let uncounted = field("total_lines") == Some(&Value::Null);
    let shown = field("lines_shown") == Some(&json!(500));
    let context = "500 lines, total_lines null".to_owned();
    report.add_claim(Row("io: first page, the rest is not counted"), shown && uncounted, context);
    Ok(())
}

/// Fills a file with lines, without holes.
fn write_large_file(path: &Path, bytes: u64) -> Result<(), BenchError> {
    let line = b"2026-01-01T00:00:00Z INFO a line of some length, as there are many in a log\n";
    let block = line.repeat((1 << 20) / line.len());
    let mut file = File::create(path)?;
    let mut written = 0;
    while written < bytes {
        file.write_all(&block)?;
        written += block.len() as u64;
    }
    // Sync, so that pending writes are not measured together with the reads.
    Ok(file.sync_all()?)
}
