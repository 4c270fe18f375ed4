//! Measures calls at a steady rate, long enough to notice growing memory.

use std::path::Path;
use std::time::{Duration, Instant};

use super::bench_server::BenchServer;
use crate::BenchError;
use crate::limits::Row;
use crate::report::BenchReport;

const CALLS_A_SECOND: u32 = 200;

/// When the memory is measured for the first time.
const WARM_UP: Duration = Duration::from_secs(5);

pub(super) fn run(
    jackline: &Path,
    place: &Path,
    seconds: u64,
    report: &mut BenchReport,
) -> Result<(), BenchError> {
    let mut proxy = BenchServer::start_wrapped_echo(jackline, place)?;
    let whole = Duration::from_secs(seconds);
    let settled = WARM_UP.min(whole / 2);
    let planned = u32::try_from(seconds)?.saturating_mul(CALLS_A_SECOND);
    let (mut before, mut missed, mut latest) = (None, 0, Duration::ZERO);
    let start = Instant::now();
    for number in 0..planned {
        let due = Duration::from_secs(1) * number / CALLS_A_SECOND;
        std::thread::sleep(due.saturating_sub(start.elapsed()));
        // A call that starts a second late counts as missed.
        let late = start.elapsed().saturating_sub(due);
        latest = latest.max(late);
        if late >= Duration::from_secs(1) {
            missed += 1;
        }
        proxy.call_echo()?;
        if before.is_none() && due >= settled {
            before = Some(proxy.memory_mb("VmRSS")?);
        }
    }
    let after = proxy.memory_mb("VmRSS")?;
    let before = before.unwrap_or(after);
    report.add(
        Row("io: MCP proxy, memory after steady calls"),
        after / before,
        format!(
            "{CALLS_A_SECOND} a second for {seconds} s; {after:.1} MB vs {before:.1} after {} s",
            settled.as_secs()
        ),
    );
    let context = format!(
        "of {planned}, started a second late or more; the latest {} ms",
        latest.as_millis()
    );
    report.add(Row("io: MCP proxy, missed calls"), f64::from(missed), context);
    Ok(())
}
