//! What the proxy costs beside what it can't do without: the server itself, and two
//! durable records.

use std::path::Path;
use std::time::Instant;

use super::peer::Peer;
use crate::Failure;
use crate::appends::Appends;
use crate::limits::Row;
use crate::report::{Report, median};

const CALLS: usize = 1500;

/// So many calls come first, and are not measured.
const WARM_UP: usize = 100;

pub(super) fn run(jackline: &Path, place: &Path, report: &mut Report) -> Result<(), Failure> {
    let (mut echo, mut copies) = (Peer::echo()?, Peer::copied()?);
    let mut proxy = Peer::wrapped(jackline, place)?;
    for _ in 0..WARM_UP {
        echo.echoes()?;
        copies.echoes()?;
        proxy.echoes()?;
    }
    let mut store = Appends::like(place)?;
    let (mut direct, mut copied) = (Vec::new(), Vec::new());
    let (mut proxied, mut appended) = (Vec::new(), Vec::new());
    // All in turn, so that a disk that is slow for a while is slow for all.
    for _ in 0..CALLS {
        direct.push(micros(|| echo.echoes())?);
        copied.push(micros(|| copies.echoes())?);
        proxied.push(micros(|| proxy.echoes())?);
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
    let context = "what two pipes and two threads more take here".to_owned();
    report.add(Row("io: a proxy that only copies, p50"), copied, context);
    Ok(())
}

fn micros(run: impl FnOnce() -> Result<(), Failure>) -> Result<f64, Failure> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed().as_secs_f64() * 1e6)
}
