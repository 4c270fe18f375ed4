//! Measures how much time the proxy adds to the time of the server and of two durable records.

use std::path::Path;
use std::time::Instant;

use super::bench_server::BenchServer;
use crate::BenchError;
use crate::appends::AppendBaseline;
use crate::limits::Row;
use crate::report::{BenchReport, median};

const CALLS: usize = 1500;

/// How many calls come first, without being measured.
const WARM_UP_CALLS: usize = 100;

pub(super) fn run(
    jackline: &Path,
    place: &Path,
    report: &mut BenchReport,
) -> Result<(), BenchError> {
    let (mut echo, mut copies) = (BenchServer::start_echo()?, BenchServer::start_copied_echo()?);
    let mut proxy = BenchServer::start_wrapped_echo(jackline, place)?;
    for _ in 0..WARM_UP_CALLS {
        echo.call_echo()?;
        copies.call_echo()?;
        proxy.call_echo()?;
    }
    let mut store = AppendBaseline::with_records_of(place)?;
    let (mut direct, mut copied) = (Vec::new(), Vec::new());
    let (mut proxied, mut appended) = (Vec::new(), Vec::new());
    // All take turns, so that a slow period of the disk affects all of them.
    for _ in 0..CALLS {
        direct.push(micros(|| echo.call_echo())?);
        copied.push(micros(|| copies.call_echo())?);
        proxied.push(micros(|| proxy.call_echo())?);
        appended.push(micros(|| store.append())?);
        appended.push(micros(|| store.append())?);
    }
    let (direct, proxied, appended) = (median(direct), median(proxied), median(appended));
    let copied = median(copied) - direct;
    report.add(
        Row("io: MCP proxy beyond two appends, p50"),
        proxied - direct - 2.0 * appended,
        format!(
            "{proxied:.0} us, the server alone {direct:.0}, an append of {} bytes {appended:.0}",
            store.record_bytes
        ),
    );
    let context = "the time of two more pipes and two more threads".to_owned();
    report.add(Row("io: a proxy that only copies, p50"), copied, context);
    Ok(())
}

fn micros(run: impl FnOnce() -> Result<(), BenchError>) -> Result<f64, BenchError> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed().as_secs_f64() * 1e6)
}
