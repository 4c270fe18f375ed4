//! Measures durable appends alone, to subtract them from the total time.

use std::fs;
use std::path::Path;

use jackline_engine::SessionId;
use jackline_journal::{FileStore, RecordBody, SessionLog, Store as _};

use crate::BenchError;

/// A session that only appends, as the runtime does before it answers: under the lock, and without
/// the state, which the runtime saves after the answer.
pub(crate) struct AppendBaseline {
    log: Box<dyn SessionLog>,
    pub(crate) record_bytes: usize,
    seq: u64,
}

impl AppendBaseline {
    /// Uses records of the same size as those of the session in `place/home`.
    pub(crate) fn with_records_of(place: &Path) -> Result<Self, BenchError> {
        let home = place.join("home");
        let entry = fs::read_dir(home.join("sessions"))?.next().ok_or("no session")??;
        let journal = fs::read(entry.path().join("journal.jsonl"))?;
        // The first record contains the definition.
        let lines: Vec<&[u8]> = journal.split(|byte| *byte == b'\n').skip(2).collect();
        let record_bytes = lines.iter().map(|line| line.len()).sum::<usize>() / lines.len().max(1);
        let store = FileStore::new(place.join("appends"), jackline_host::clock::boot_number());
        let log = store.open(&SessionId::parse("appends")?)?;
        Ok(Self { log, record_bytes, seq: 0 })
    }

    pub(crate) fn append(&mut self) -> Result<(), BenchError> {
        let text = "x".repeat(self.record_bytes.saturating_sub(RECORD_OVERHEAD_BYTES));
        let json = format!(r#"{{"v":1,"seq":{},"text":"{text}""#, self.seq).into_bytes();
        self.log.lock()?;
        let end = self.log.head()?;
        self.log.append(end, &[RecordBody { json, seq: self.seq, id: None }])?;
        self.log.unlock();
        self.seq += 1;
        Ok(())
    }
}

/// The approximate size of the fields of a record without its text.
const RECORD_OVERHEAD_BYTES: usize = 180;
