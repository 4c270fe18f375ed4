//! What the proxy costs beside what it can't do without: the server itself, and two
//! durable records.

use std::fs;
use std::path::Path;
use std::time::Instant;

use jackline_engine::SessionId;
use jackline_journal::{Body, FileStore, Log, Store as _};

use super::peer::Peer;
use crate::Failure;
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
    report.at_most(
        "MCP proxy, beyond two appends; p50",
        proxied - direct - 2.0 * appended,
        "us",
        60.0,
        format!(
            "{proxied:.0} us, the server alone {direct:.0}, an append of {} bytes {appended:.0}",
            store.record_bytes
        ),
    );
    let context = "what two pipes and two threads more take here".to_owned();
    report.plain("  a proxy that only copies", copied, "us", context);
    Ok(())
}

fn micros(run: impl FnOnce() -> Result<(), Failure>) -> Result<f64, Failure> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

/// A session that only appends, as the runtime does it before it answers: under the lock,
/// and without the state, which it saves behind the answer.
struct Appends {
    log: Box<dyn Log>,
    record_bytes: usize,
    seq: u64,
}

impl Appends {
    /// With records as large as those of the session that is there.
    fn like(place: &Path) -> Result<Self, Failure> {
        let home = place.join("home");
        let entry = fs::read_dir(home.join("sessions"))?.next().ok_or("no session")??;
        let journal = fs::read(entry.path().join("journal.jsonl"))?;
        // The first record holds the definition.
        let lines: Vec<&[u8]> = journal.split(|byte| *byte == b'\n').skip(2).collect();
        let record_bytes = lines.iter().map(|line| line.len()).sum::<usize>() / lines.len().max(1);
        let store = FileStore::new(place.join("appends"), jackline_runtime::boot_number());
        let log = store.open(&SessionId::parse("appends")?)?;
        Ok(Self { log, record_bytes, seq: 0 })
    }

    fn append(&mut self) -> Result<(), Failure> {
        let text = "x".repeat(self.record_bytes.saturating_sub(SEAL_BYTES));
        let json = format!(r#"{{"v":1,"seq":{},"text":"{text}""#, self.seq).into_bytes();
        self.log.lock()?;
        self.log.append(&[Body { json, seq: self.seq, id: None }])?;
        self.log.unlock();
        self.seq += 1;
        Ok(())
    }
}

/// About as many bytes as a record has beside what it says.
const SEAL_BYTES: usize = 180;
