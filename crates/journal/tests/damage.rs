//! A damaged journal never counts as intact. Changed bits, truncation and an incomplete last record
//! are distinguished, and the record is reported.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::fs;
use std::path::PathBuf;

use jackline_engine::definition::StoredDefinition;
use jackline_engine::{Digest, EventId, Facts, Now, SessionId, Timestamp, wire};
use jackline_journal::{FileStore, check_line};
use jackline_journal::{
    JournalHead, JournalLine, JournalProblem, JournalProblemKind, JournalView, OpenedDefinition,
    OpeningRecord, RecordBody, SessionLog, Store as _, StoreError, Verifier, VerifyReport,
    parse_record,
};
use serde_json::json;
use serde_json::value::to_raw_value;
use tempfile::TempDir;

/// The number of records in the journal, with the opening.
const RECORDS: u64 = 60;

/// The length of the hash at the end of a line, with its quotes, brace and newline.
const END_BYTES: usize = 64 + 4;

/// The number of random trials in each test.
const TRIALS: u64 = 1000;

/// Numbers that look random and are equal in every test run.
struct TestRandom(u64);

impl TestRandom {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}

/// A journal on disk, with its original contents.
struct DamagedJournal {
    _home: TempDir,
    store: FileStore,
    session: SessionId,
    bytes: Vec<u8>,
    /// The head after each record.
    heads: Vec<JournalHead>,
}

impl DamagedJournal {
    /// A journal whose state was saved with record `saved`, or has no state.
    fn new(saved: Option<u64>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = FileStore::new(home.path(), 7);
        let session = SessionId::parse("s").unwrap();
        let mut log = store.open(&session).unwrap();
        log.lock().unwrap();
        let mut heads = vec![log.append(None, &[opening(&session)]).unwrap()];
        for seq in 1..RECORDS {
            heads.push(log.append(heads.last().copied(), &[record(seq)]).unwrap());
        }
        if let Some(saved) = saved {
            let head = heads.iter().find(|head| head.seq == saved).unwrap();
            log.save_state(head, b"state").unwrap();
        }
        drop(log);
        let mut journal = Self { _home: home, store, session, bytes: Vec::new(), heads };
        journal.bytes = fs::read(journal.path()).unwrap();
        journal
    }

    fn path(&self) -> PathBuf {
        self.store.directory(&self.session).join("journal.jsonl")
    }

    fn ids_path(&self) -> PathBuf {
        self.store.directory(&self.session).join("ids")
    }

    /// The offset of a record.
    fn start(&self, record: u64) -> usize {
        let lines = self.bytes.split_inclusive(|byte| *byte == b'\n');
        lines.take(usize::try_from(record).unwrap()).map(<[u8]>::len).sum()
    }

    /// The record that contains a byte.
    fn record_at(&self, byte: usize) -> u64 {
        self.bytes[..byte].split(|byte| *byte == b'\n').count() as u64 - 1
    }

    fn write(&self, bytes: &[u8]) {
        fs::write(self.path(), bytes).unwrap();
    }

    /// The result of `jackline verify`.
    fn verify(&self) -> VerifyReport {
        let journal = JournalView::open(&self.path()).unwrap();
        let mut verifier = Verifier::new(journal.saved_head());
        let torn = journal
            .for_each(|line| {
                verifier.check_line(line);
                Ok::<(), StoreError>(())
            })
            .unwrap();
        verifier.finish(torn)
    }

    fn open(&self) -> Box<dyn SessionLog> {
        let mut log = self.store.open(&self.session).unwrap();
        log.lock().unwrap();
        log
    }

    /// The head that the next writer finds, and how many bytes were repaired.
    fn head(&self) -> Result<(Option<JournalHead>, Option<u64>), StoreError> {
        let mut log = self.open();
        log.head().map(|head| (head, log.take_repaired_bytes()))
    }

    /// The number of the record with an event id.
    fn find(&self, id: &str) -> Option<u64> {
        let line = self.open().find_event(&EventId::parse(id).unwrap()).unwrap()?;
        match parse_record(&line).unwrap() {
            JournalLine::Event(record) => Some(record.seq),
            JournalLine::Opened(_) => panic!("an opening has no id"),
        }
    }
}

fn opening(session: &SessionId) -> RecordBody {
    RecordBody::opened(&OpeningRecord {
        session: session.clone(),
        at: Timestamp::from_ms(1),
        place: jackline_engine::SessionLocation::default(),
        definition: OpenedDefinition {
            checksum: Digest::of(b""),
            lowered: StoredDefinition::new(std::sync::Arc::default()),
        },
    })
}

/// Records of many lengths, with multi-byte characters, each with an id.
fn record(seq: u64) -> RecordBody {
    let text = "Jäckline ✓ ".repeat(usize::try_from(seq % 7 * seq % 23).unwrap());
    let event = json!({"session": "s", "id": format!("e{seq}"), "event": "tool_proposed",
        "call": format!("c{seq}"), "tool": "t", "args": { "text": text }});
    let event = wire::parse_line(event.to_string().as_bytes(), None).unwrap();
    let facts = Facts::at(Now::wall(Timestamp::from_ms(i64::try_from(seq).unwrap())));
    let verdict = to_raw_value(&json!({"v": 1, "seq": seq, "decision": "allow"})).unwrap();
    RecordBody::event(seq, &event, &facts, &verdict, &[], None)
}

/// A journal with one changed bit, and the offset of its byte.
fn flip_bit(bytes: &[u8], random: &mut TestRandom) -> (Vec<u8>, usize) {
    let at = random.below(bytes.len());
    let mut damaged = bytes.to_vec();
    damaged[at] ^= 1 << random.below(8);
    (damaged, at)
}

#[test]
fn a_whole_journal_is_clean() {
    let journal = DamagedJournal::new(Some(RECORDS - 1));
    let report = journal.verify();
    assert_eq!((report.records, report.findings, report.more), (RECORDS, Vec::new(), 0));
    assert_eq!(journal.head().unwrap(), (journal.heads.last().copied(), None));
}

#[test]
fn any_changed_bit_is_found_and_its_record_is_reported() {
    let journal = DamagedJournal::new(Some(RECORDS - 1));
    let mut random = TestRandom(0x6a61_636b);
    // Only the end of the last record is checked before an append.
    let checked_from = journal.bytes.len() - END_BYTES;
    let (mut refused, mut newlines) = (0, 0);
    for trial in 0..TRIALS {
        let (damaged, at) = flip_bit(&journal.bytes, &mut random);
        journal.write(&damaged);
        let record = journal.record_at(at);
        let report = journal.verify();
        let newline = journal.bytes[at] == b'\n';
        newlines += u64::from(newline);
        let Some(first) = report.findings.first() else { panic!("trial {trial}: byte {at}") };
        assert!(
            first.record == record || (newline && first.record == record + 1),
            "trial {trial}: a flip in record {record} was found as {first:?}"
        );
        assert_eq!(first.kind.as_str(), "tampered", "trial {trial}: byte {at}");
        // Whether or not the gate reads that record, it does not repair it.
        match journal.head() {
            Ok(found) => {
                assert!(at < checked_from, "trial {trial}: byte {at}");
                assert_eq!(found, (journal.heads.last().copied(), None), "trial {trial}");
            }
            Err(StoreError::Tampered { record, .. }) => {
                assert_eq!(record, (RECORDS - 1).to_string(), "trial {trial}: byte {at}");
                refused += 1;
            }
            Err(other) => panic!("trial {trial}: {other}"),
        }
        assert_eq!(
            fs::read(journal.path()).unwrap(),
            damaged,
            "trial {trial}: the file was changed"
        );
    }
    println!("{TRIALS} flips found, {newlines} in a newline, {refused} refused before an append");
}

#[test]
fn every_byte_of_the_last_record_is_checked() {
    let journal = DamagedJournal::new(Some(RECORDS - 1));
    for at in journal.start(RECORDS - 1)..journal.bytes.len() {
        let mut damaged = journal.bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        journal.write(&damaged);
        let records: Vec<u64> =
            journal.verify().findings.iter().map(|finding| finding.record).collect();
        assert_eq!(records.first(), Some(&(RECORDS - 1)), "byte {at}");
    }
}

/// Without a saved state, the gate reads the whole journal and finds the damage.
#[test]
fn without_a_state_the_gate_refuses_any_flipped_bit() {
    let journal = DamagedJournal::new(None);
    let mut random = TestRandom(0x6c69_6e65);
    for trial in 0..TRIALS / 4 {
        // Without a saved state, a missing last newline can't be detected.
        let (damaged, at) = flip_bit(&journal.bytes[..journal.bytes.len() - 1], &mut random);
        let damaged = [damaged.as_slice(), b"\n"].concat();
        journal.write(&damaged);
        let record = journal.record_at(at);
        match journal.head() {
            Err(StoreError::Tampered { record: named, .. }) => {
                let named: u64 = named.split(' ').next().unwrap().parse().unwrap();
                assert_eq!(named, record, "trial {trial}: byte {at}");
            }
            other => panic!("trial {trial}: byte {at}: {other:?}"),
        }
        assert_eq!(
            fs::read(journal.path()).unwrap(),
            damaged,
            "trial {trial}: the file was changed"
        );
    }
}

#[test]
fn a_journal_cut_after_any_record_is_truncated() {
    let journal = DamagedJournal::new(Some(RECORDS - 1));
    for records in 0..RECORDS {
        journal.write(&journal.bytes[..journal.start(records)]);
        let last = RECORDS - 1;
        let reason = if records == last {
            "it is missing".to_owned()
        } else {
            format!("records {records} to {last} are missing")
        };
        assert_eq!(
            journal.verify().findings,
            [JournalProblem { kind: JournalProblemKind::Truncated, record: records, reason }],
            "{records} records are left"
        );
        let found = records.checked_sub(1).map_or("none".to_owned(), |last| last.to_string());
        assert_eq!(
            journal.head().unwrap_err().to_string(),
            format!(
                "the journal was truncated: it ends at record {found}, but record {last} was answered"
            )
        );
    }
}

#[test]
fn a_missing_journal_counts_as_truncated() {
    let journal = DamagedJournal::new(Some(RECORDS - 1));
    fs::remove_file(journal.path()).unwrap();
    let error = journal.head().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the journal was truncated: it ends at record none, but record 59 was answered"
    );
}

#[test]
fn an_answered_record_cut_at_any_byte_is_tampered_with() {
    let journal = DamagedJournal::new(Some(RECORDS - 1));
    let start = journal.start(RECORDS - 1);
    for end in start + 1..journal.bytes.len() {
        let damaged = &journal.bytes[..end];
        journal.write(damaged);
        let reason = format!("it is incomplete: only {} bytes of it are left", end - start);
        assert_eq!(
            journal.verify().findings,
            [JournalProblem { kind: JournalProblemKind::Tampered, record: RECORDS - 1, reason }],
            "cut at {end}"
        );
        assert!(matches!(journal.head(), Err(StoreError::Truncated { .. })), "cut at {end}");
        assert_eq!(
            fs::read(journal.path()).unwrap(),
            damaged,
            "cut at {end}: the file was changed"
        );
    }
}

#[test]
fn an_incomplete_unanswered_record_is_removed() {
    let saved = RECORDS - 2;
    let journal = DamagedJournal::new(Some(saved));
    let start = journal.start(RECORDS - 1);
    let before = journal.heads.iter().find(|head| head.seq == saved).copied();
    for end in start + 1..journal.bytes.len() {
        journal.write(&journal.bytes[..end]);
        let torn = (end - start) as u64;
        let reason = format!("an incomplete record of {torn} bytes, which was never answered");
        assert_eq!(
            journal.verify().findings,
            [JournalProblem { kind: JournalProblemKind::Torn, record: RECORDS - 1, reason }],
            "cut at {end}"
        );
        assert_eq!(journal.head().unwrap(), (before, Some(torn)), "cut at {end}");
        assert_eq!(fs::read(journal.path()).unwrap(), journal.bytes[..start], "cut at {end}");
        assert!(journal.verify().is_clean(), "cut at {end}");
    }
    // A complete record after the state was written but not answered. It stays.
    journal.write(&journal.bytes);
    assert_eq!(journal.head().unwrap(), (journal.heads.last().copied(), None));
}

#[test]
fn a_complete_invalid_line_after_the_state_is_tampering() {
    let saved = RECORDS - 2;
    let journal = DamagedJournal::new(Some(saved));
    let start = journal.start(RECORDS - 1);
    let mut random = TestRandom(0x6a6c);
    for trial in 0..200 {
        let at = start + random.below(journal.bytes.len() - 1 - start);
        let mut damaged = journal.bytes.clone();
        damaged[at] ^= 1 << random.below(8);
        journal.write(&damaged);
        let error = journal.head().unwrap_err().to_string();
        let expected = "the journal was tampered with at record 59";
        assert!(error.starts_with(expected), "trial {trial}: {error}");
        assert_eq!(
            fs::read(journal.path()).unwrap(),
            damaged,
            "trial {trial}: the file was changed"
        );
    }
    let foreign = [journal.bytes.as_slice(), b"{\"v\":1}\n"].concat();
    journal.write(&foreign);
    assert_eq!(
        journal.head().unwrap_err().to_string(),
        "the journal was tampered with at record 60: it does not end with a hash"
    );
}

#[test]
fn moved_or_removed_records_are_found() {
    let journal = DamagedJournal::new(Some(RECORDS - 1));
    let lines: Vec<&[u8]> = journal.bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let first = |order: &[&[u8]]| {
        journal.write(&order.concat());
        let found = journal.verify().findings;
        found.first().map(|finding| (finding.kind.as_str(), finding.record))
    };
    let mut without = lines.clone();
    without.remove(20);
    assert_eq!(first(&without), Some(("tampered", 20)));
    let mut swapped = lines.clone();
    swapped.swap(20, 21);
    assert_eq!(first(&swapped), Some(("tampered", 20)));
    let mut doubled = lines.clone();
    doubled.insert(20, lines[20]);
    assert_eq!(first(&doubled), Some(("tampered", 21)));
    // Every line has a valid hash of its own. Only the chain shows the change.
    assert!(lines.iter().all(|line| check_line(&line[..line.len() - 1]).is_ok()));
}

#[test]
fn a_missing_or_truncated_table_of_ids_is_created_again() {
    let journal = DamagedJournal::new(Some(RECORDS - 1));
    let whole = fs::read(journal.ids_path()).unwrap();
    for length in [None, Some(0), Some(7), Some(23), Some(24)] {
        match length {
            None => fs::remove_file(journal.ids_path()).unwrap(),
            // A table without entries covers no records.
            Some(24) => fs::write(journal.ids_path(), [&whole[..16], &[0; 8]].concat()).unwrap(),
            Some(length) => fs::write(journal.ids_path(), &whole[..length]).unwrap(),
        }
        for seq in 1..RECORDS {
            assert_eq!(journal.find(&format!("e{seq}")), Some(seq), "cut at {length:?}");
        }
        assert_eq!(journal.find("unknown"), None, "cut at {length:?}");
    }
}

/// The table is a cache. A resend that the table does not contain must not be decided again,
/// because the event would be recorded twice.
#[test]
fn a_damaged_table_of_ids_is_not_used() {
    let journal = DamagedJournal::new(Some(RECORDS - 1));
    let whole = fs::read(journal.ids_path()).unwrap();
    let expected: Vec<Option<u64>> = (1..RECORDS).map(Some).collect();
    let mut random = TestRandom(0x6964_7300);
    let mut damages: Vec<(String, Vec<u8>)> =
        (0..40).map(|trial| (format!("flip {trial}"), flip_bit(&whole, &mut random).0)).collect();
    damages.push(("cut after its header".to_owned(), whole[..64].to_vec()));
    damages.push(("cut in the middle".to_owned(), whole[..whole.len() / 2].to_vec()));
    let mut wrong_results = Vec::new();
    for (damage, bytes) in damages {
        fs::write(journal.ids_path(), bytes).unwrap();
        let found: Vec<Option<u64>> =
            (1..RECORDS).map(|seq| journal.find(&format!("e{seq}"))).collect();
        if found != expected {
            let lost = found.iter().filter(|found| found.is_none()).count();
            wrong_results.push(format!("{damage}: {lost} ids lost"));
        }
    }
    assert!(wrong_results.is_empty(), "{}", wrong_results.join("\n"));
}
