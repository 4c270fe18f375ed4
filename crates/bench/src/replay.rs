//! Measures replay, compared with parsing and hashing the same lines.

use std::path::PathBuf;
use std::time::Instant;

use jackline_analysis::Replay;
use jackline_engine::json::parse_strict;
use jackline_engine::wire::parse_line;
use jackline_engine::{Digest, SessionId};
use jackline_host::HostAccess;
use jackline_journal::{DefinitionSource, MemoryStore, Store as _, Verifier};
use jackline_runtime::{Definitions, Runtime};

use crate::limits::Row;
use crate::report::{BenchReport, median};
use crate::{BenchError, mix};

const CALLS: usize = 4000;

pub(crate) fn run(report: &mut BenchReport) -> Result<(), BenchError> {
    let (lines, definitions) = journal()?;
    let bytes: usize = lines.iter().map(Vec::len).sum();
    let (mut plain, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let start = Instant::now();
        for line in &lines {
            std::hint::black_box((Digest::of(line), parse_strict(line)?));
        }
        plain.push(start.elapsed().as_secs_f64());

        let start = Instant::now();
        let mut chain = Verifier::new(None);
        let mut replay = Replay::default();
        for line in &lines {
            chain.check_line(line);
            replay.replay_line(definitions.as_ref(), line)?;
        }
        whole.push(start.elapsed().as_secs_f64());
        let (chain, replay) = (chain.finish(0), replay.finish());
        if !chain.is_clean() || !replay.is_proven() {
            return Err("the journal of the benchmark does not replay".into());
        }
    }
    let (plain, whole) = (median(plain), median(whole));
    report.add(
        Row("replay: of the speed of parsing + hashing"),
        plain / whole,
        format!("{} records, {:.0} MB/s", lines.len(), bytes as f64 / 1e6 / whole),
    );
    Ok(())
}

/// The lines of a journal, and its definitions.
type WrittenJournal = (Vec<Vec<u8>>, Box<dyn DefinitionSource>);

/// Writes a journal through the whole runtime.
fn journal() -> Result<WrittenJournal, BenchError> {
    let store = MemoryStore::default();
    let file = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/definition.yaml"));
    let definitions = Definitions::new(Some(file), HostAccess::default());
    let mut runtime = Runtime::new(store.clone(), definitions, PathBuf::from("/"));
    let session = SessionId::parse("bench")?;
    for line in mix::event_lines(CALLS, "bench")? {
        runtime.answer(parse_line(line.as_bytes(), Some(&session))?);
    }
    let mut lines = Vec::new();
    store.open(&session)?.read(0, &mut |line| {
        lines.push(line.to_vec());
        Ok(())
    })?;
    Ok((lines, store.open(&session)?.definitions()))
}
