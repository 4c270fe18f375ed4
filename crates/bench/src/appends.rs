//! What durable records cost by themselves, to be taken off what everything costs.

use std::fs;
use std::path::Path;

use jackline_engine::SessionId;
use jackline_journal::{Body, FileStore, Log, Store as _};

use crate::Failure;

/// A session that only appends, as the runtime does it before it answers: under the lock,
/// and without the state, which it saves behind the answer.
pub(crate) struct Appends {
    log: Box<dyn Log>,
    pub(crate) record_bytes: usize,
    seq: u64,
}

impl Appends {
    /// With records as large as those of the session in the `home` of a place.
    pub(crate) fn like(place: &Path) -> Result<Self, Failure> {
        let home = place.join("home");
        let entry = fs::read_dir(home.join("sessions"))?.next().ok_or("no session")??;
        let journal = fs::read(entry.path().join("journal.jsonl"))?;
        // The first record holds the definition.
        let lines: Vec<&[u8]> = journal.split(|byte| *byte == b'\n').skip(2).collect();
        let record_bytes = lines.iter().map(|line| line.len()).sum::<usize>() / lines.len().max(1);
        let store = FileStore::new(place.join("appends"), jackline_host::clock::boot_number());
        let log = store.open(&SessionId::parse("appends")?)?;
        Ok(Self { log, record_bytes, seq: 0 })
    }

    pub(crate) fn append(&mut self) -> Result<(), Failure> {
        let text = "x".repeat(self.record_bytes.saturating_sub(SEAL_BYTES));
        let json = format!(r#"{{"v":1,"seq":{},"text":"{text}""#, self.seq).into_bytes();
        self.log.lock()?;
        let end = self.log.head()?;
        self.log.append(end, &[Body { json, seq: self.seq, id: None }])?;
        self.log.unlock();
        self.seq += 1;
        Ok(())
    }
}

/// About as many bytes as a record has beside what it says.
const SEAL_BYTES: usize = 180;
