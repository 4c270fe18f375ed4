//! What each actor has read of which files. The `read_before_write` policy uses this memory.
//!
//! The memory is bounded: if it is full, the least recently used record is removed, and that file
//! has to be read again.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::short_hash;
use crate::digest::Digest128;
use crate::facts::{FileFact, FileKind, TrackedFile};
use crate::id::ActorId;
use crate::path::is_within;
use crate::time::Timestamp;

/// The maximum number of records.
const RECORDS_MAX: usize = 1024;

/// The maximum number of bytes of the records: enough for several hundred files of a common
/// project.
const BYTES_MAX: u32 = 42 * 1024;

/// The bytes of a record without its path and its ranges.
const RECORD_BYTES: usize = 42;

/// The bytes of a range.
const RANGE_BYTES: usize = 10;

/// How many searched directories are stored, and how long their paths may be.
const SEARCHED_MAX: usize = 16;
const DIRECTORY_BYTES_MAX: usize = 256;

/// How many separate ranges of lines are stored for one file.
const RANGES_MAX: usize = 4;

/// What actors have read of files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReadMemory {
    records: Vec<ReadRecord>,
    bytes: u32,
    /// Directories that were searched, the latest last.
    searched: Vec<SearchedDirectory>,
}

/// A directory that an actor searched. The actor knows a part of every file in it that has not
/// changed since.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SearchedDirectory {
    actor: u32,
    directory: String,
    at: Timestamp,
    seq: u64,
}

/// What one actor has read of one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReadRecord {
    actor: u32,
    path: String,
    /// The stamp of the file at that time, and its contents.
    stamp: u64,
    contents: ShortDigest,
    lines: u32,
    seen: SeenLines,
    /// Whether someone else is known to have changed the file since.
    stale: bool,
    /// The record in which it was last used.
    last_used_seq: u64,
}

/// Half of a fingerprint. That is enough to detect a change.
type ShortDigest = [u8; 8];

fn short_digest(digest: &Digest128) -> ShortDigest {
    digest.as_bytes().first_chunk().copied().unwrap_or_default()
}

/// A hash of an actor's id.
fn actor_hash(actor: &ActorId) -> u32 {
    let hash = short_hash(actor.as_str());
    u32::try_from((hash >> 32) ^ (hash & 0xffff_ffff)).unwrap_or_default()
}

/// How much of a file was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum SeenLines {
    Whole,
    /// These lines in ascending order, both ends included. An empty list means an unknown part.
    Ranges(Vec<(u32, u32)>),
}

/// The part of a file that a call showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FilePart {
    Whole,
    Lines(u32, u32),
    From(u32),
    Last(u32),
    Unknown,
}

/// How well an actor knows the current content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKnowledge {
    Nothing,
    /// The file changed after it was read.
    Stale,
    /// The number of lines that were read. 0 means that the number is not known.
    Part {
        seen: u32,
        of: u32,
    },
    Whole,
}

impl ReadMemory {
    /// How well an actor knows the file that `fact` describes.
    pub(crate) fn knowledge_of(
        &self,
        actor: &ActorId,
        path: &str,
        fact: &FileFact,
    ) -> FileKnowledge {
        let searched = self.was_searched(actor, path, fact);
        let Some(record) = self.find_record(actor, path) else {
            return if searched {
                FileKnowledge::Part { seen: 0, of: 0 }
            } else {
                FileKnowledge::Nothing
            };
        };
        if !record.is_current(fact) {
            return if searched {
                FileKnowledge::Part { seen: 0, of: 0 }
            } else {
                FileKnowledge::Stale
            };
        }
        match &record.seen {
            SeenLines::Whole => FileKnowledge::Whole,
            SeenLines::Ranges(ranges) if covers_all(ranges, record.lines) => FileKnowledge::Whole,
            SeenLines::Ranges(ranges) => {
                let seen = ranges.iter().map(|(from, to)| to - from + 1).sum();
                FileKnowledge::Part { seen, of: record.lines }
            }
        }
    }

    /// Records that an actor searched a directory with everything below it.
    pub(crate) fn searched(&mut self, actor: &ActorId, directory: &str, at: Timestamp, seq: u64) {
        let actor = actor_hash(actor);
        self.searched.retain(|it| (it.actor, it.directory.as_str()) != (actor, directory));
        if self.searched.len() >= SEARCHED_MAX {
            self.searched.remove(0);
        }
        if directory.len() <= DIRECTORY_BYTES_MAX {
            self.searched.push(SearchedDirectory {
                actor,
                directory: directory.to_string(),
                at,
                seq,
            });
        }
    }

    fn was_searched(&self, actor: &ActorId, path: &str, fact: &FileFact) -> bool {
        let actor = actor_hash(actor);
        self.searched.iter().any(|search| {
            search.actor == actor
                && is_within(path, &search.directory)
                && fact.modified.is_some_and(|modified| modified < search.at)
        })
    }

    /// Whether the contents must be queried to find out how well the file is known.
    pub(crate) fn needs_contents(&self, actor: &ActorId, path: &str, fact: &FileFact) -> bool {
        let record = self.find_record(actor, path);
        record.is_some_and(|record| !record.stale && fact.stamp != Some(record.stamp))
            && fact.digest.is_none()
    }

    /// Whether an actor has read the current content of a file, or a part of it.
    pub(crate) fn is_current(&self, actor: &ActorId, path: &str, fact: &FileFact) -> bool {
        self.find_record(actor, path).is_some_and(|record| record.is_current(fact))
    }

    /// Whether there is a record of an actor and a file.
    pub(crate) fn has_record(&self, actor: &ActorId, path: &str) -> bool {
        self.find_record(actor, path).is_some()
    }

    /// Records that a part of a file was shown to an actor.
    pub(crate) fn record_shown(
        &mut self,
        actor: &ActorId,
        path: &str,
        part: FilePart,
        fact: &FileFact,
        seq: u64,
    ) {
        let Some(mut record) = ReadRecord::new(actor, path, fact, seq) else { return };
        let earlier = self.take_record(actor, path).filter(|it| it.is_current(fact));
        let read = earlier.map_or(SeenLines::Ranges(Vec::new()), |it| it.seen);
        record.seen = match (read, line_extent(part, record.lines)) {
            (SeenLines::Whole, _) | (_, Some(LineExtent::Whole)) => SeenLines::Whole,
            (SeenLines::Ranges(ranges), Some(LineExtent::Lines(from, to))) => {
                SeenLines::Ranges(add_range(ranges, from, to))
            }
            (read, None) => read,
        };
        self.store_record(record);
    }

    /// Records that an actor wrote a file. The actor then knows the file; the records of other
    /// actors become outdated.
    pub(crate) fn record_write(&mut self, actor: &ActorId, path: &str, fact: &FileFact, seq: u64) {
        let Some(mut record) = ReadRecord::new(actor, path, fact, seq) else { return };
        let _ = self.take_record(actor, path);
        record.seen = SeenLines::Whole;
        self.store_record(record);
    }

    /// Records that an actor gave a file a new name. The actor knows as much of the new path as of
    /// any file with these contents.
    pub(crate) fn record_new_name(
        &mut self,
        actor: &ActorId,
        path: &str,
        fact: &FileFact,
        seq: u64,
    ) {
        let Some(mut record) = ReadRecord::new(actor, path, fact, seq) else { return };
        let same = |other: &&ReadRecord| {
            other.actor == record.actor && !other.stale && other.contents == record.contents
        };
        let known =
            self.records.iter().filter(same).max_by_key(|other| other.seen == SeenLines::Whole);
        let known = known.map(|known| known.seen.clone());
        let _ = self.take_record(actor, path);
        if let Some(seen) = known {
            record.seen = seen;
            self.store_record(record);
        }
    }

    /// Records that an actor appended to a file. The actor knows as much of it as before.
    pub(crate) fn record_append(&mut self, actor: &ActorId, path: &str, fact: &FileFact, seq: u64) {
        let Some(mut record) = ReadRecord::new(actor, path, fact, seq) else { return };
        let Some(earlier) = self.take_record(actor, path) else { return };
        record.seen = earlier.seen;
        record.stale = earlier.stale;
        self.store_record(record);
    }

    /// Removes the records of a path that no longer exists.
    pub(crate) fn forget_path(&mut self, path: &str) {
        self.retain(|record| record.path != path);
    }

    /// Removes the records of an actor whose context was compacted, because it may have forgotten
    /// the files.
    pub(crate) fn forget_actor(&mut self, actor: &ActorId) {
        let actor = actor_hash(actor);
        self.searched.retain(|it| it.actor != actor);
        self.retain(|record| record.actor != actor);
    }

    /// Removes what was read since a record. A rollback of an attempt restores the files.
    pub(crate) fn forget_since(&mut self, seq: u64) {
        self.searched.retain(|it| it.seq < seq);
        self.retain(|record| record.last_used_seq < seq);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The stamps to compare with the current files.
    pub(crate) fn tracked(&self) -> Vec<TrackedFile> {
        let mut tracked: Vec<TrackedFile> = self
            .records
            .iter()
            .filter(|record| !record.stale)
            .map(|record| TrackedFile { path: record.path.clone(), stamp: record.stamp })
            .collect();
        tracked.sort_unstable_by(|a, b| (&a.path, a.stamp).cmp(&(&b.path, b.stamp)));
        tracked.dedup();
        tracked
    }

    /// Whether a recorded file has other contents now. If only its stamp differs, the contents are
    /// the same.
    pub(crate) fn differs(&self, path: &str, fact: &FileFact) -> bool {
        self.records
            .iter()
            .any(|record| record.path == path && !record.stale && !record.is_current(fact))
    }

    /// Records that someone else changed a file.
    pub(crate) fn record_outside_change(&mut self, path: &str, fact: &FileFact) {
        for record in self.records.iter_mut().filter(|record| record.path == path) {
            if record.is_current(fact) {
                record.stamp = fact.stamp.unwrap_or(record.stamp);
            } else {
                record.stale = true;
            }
        }
    }

    /// Records that an actor's own command changed a file. The actor still counts as knowing it,
    /// because it expects that change, for example from a formatter.
    pub(crate) fn record_own_change(
        &mut self,
        actor: &ActorId,
        path: &str,
        fact: &FileFact,
        seq: u64,
    ) {
        if fact.kind != FileKind::File {
            return self.forget_path(path);
        }
        let known = self.find_record(actor, path).is_some_and(|record| !record.stale);
        if known && self.differs(path, fact) {
            self.record_write(actor, path, fact, seq);
        }
        self.record_outside_change(path, fact);
    }

    fn find_record(&self, actor: &ActorId, path: &str) -> Option<&ReadRecord> {
        let actor = actor_hash(actor);
        self.records.iter().find(|record| record.actor == actor && record.path == path)
    }

    fn take_record(&mut self, actor: &ActorId, path: &str) -> Option<ReadRecord> {
        let actor = actor_hash(actor);
        let at =
            self.records.iter().position(|record| record.actor == actor && record.path == path)?;
        let record = self.records.swap_remove(at);
        self.bytes -= record_bytes(&record);
        Some(record)
    }

    fn store_record(&mut self, record: ReadRecord) {
        self.bytes += record_bytes(&record);
        self.records.push(record);
        while self.records.len() > RECORDS_MAX || self.bytes > BYTES_MAX {
            let oldest = self
                .records
                .iter()
                .enumerate()
                .min_by_key(|(_, record)| record.last_used_seq)
                .map(|(at, _)| at);
            let Some(at) = oldest else { return };
            self.bytes -= record_bytes(&self.records.swap_remove(at));
        }
    }

    fn retain(&mut self, keep: impl Fn(&ReadRecord) -> bool) {
        self.records.retain(keep);
        self.bytes = self.records.iter().map(record_bytes).sum();
    }
}

impl ReadRecord {
    /// A record of a file of which nothing was read yet.
    fn new(actor: &ActorId, path: &str, fact: &FileFact, seq: u64) -> Option<Self> {
        let (Some(look), Some(digest), FileKind::File) = (fact.stamp, fact.digest, fact.kind)
        else {
            return None;
        };
        Some(Self {
            actor: actor_hash(actor),
            path: path.to_string(),
            stamp: look,
            contents: short_digest(&digest),
            lines: fact.lines.map_or(u32::MAX, |lines| u32::try_from(lines).unwrap_or(u32::MAX)),
            seen: SeenLines::Ranges(Vec::new()),
            stale: false,
            last_used_seq: seq,
        })
    }

    fn is_current(&self, fact: &FileFact) -> bool {
        !self.stale
            && (fact.stamp == Some(self.stamp)
                || fact.digest.as_ref().map(short_digest) == Some(self.contents))
    }
}

/// The number of bytes that a record takes.
fn record_bytes(record: &ReadRecord) -> u32 {
    let ranges = match &record.seen {
        SeenLines::Whole => 0,
        SeenLines::Ranges(ranges) => ranges.len(),
    };
    let bytes = record.path.len() + RECORD_BYTES + ranges * RANGE_BYTES;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

enum LineExtent {
    Whole,
    Lines(u32, u32),
}

/// The lines of a part in a file of this length; `None` if they are not known.
fn line_extent(part: FilePart, lines: u32) -> Option<LineExtent> {
    let (from, to) = match part {
        FilePart::Whole => return Some(LineExtent::Whole),
        FilePart::Unknown => return None,
        FilePart::Lines(from, to) => (from.max(1), to.min(lines)),
        FilePart::From(from) => (from.max(1), lines),
        FilePart::Last(count) => (lines.saturating_sub(count).saturating_add(1), lines),
    };
    // An empty file counts as shown completely.
    if lines == 0 || (from <= 1 && to >= lines) {
        return Some(LineExtent::Whole);
    }
    (from <= to).then_some(LineExtent::Lines(from, to))
}

fn covers_all(ranges: &[(u32, u32)], lines: u32) -> bool {
    matches!(ranges, [(from, to)] if *from <= 1 && *to >= lines)
}

/// Adds a range and joins ranges that overlap or touch.
fn add_range(mut ranges: Vec<(u32, u32)>, from: u32, to: u32) -> Vec<(u32, u32)> {
    ranges.push((from, to));
    ranges.sort_unstable();
    let mut joined: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
    for (from, to) in ranges {
        match joined.last_mut() {
            Some((_, end)) if from <= end.saturating_add(1) => *end = (*end).max(to),
            _ => joined.push((from, to)),
        }
    }
    if joined.len() > RANGES_MAX {
        // If there are too many ranges, the smallest one is removed and counts as not read.
        let smallest = joined.iter().enumerate().min_by_key(|(_, (from, to))| to - from);
        if let Some(at) = smallest.map(|(at, _)| at) {
            joined.remove(at);
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(text: &str) -> FileFact {
        FileFact {
            bytes: text.len() as u64,
            stamp: Some(short_hash(text)),
            digest: Some(Digest128::of(text.as_bytes())),
            lines: Some(text.lines().count() as u64),
            ..FileFact::without_details(FileKind::File)
        }
    }

    #[test]
    fn pages_add_up_to_the_whole() {
        let (mut reads, main) = (ReadMemory::default(), ActorId::main());
        let file = fact(&"x\n".repeat(900));
        let knows = |reads: &ReadMemory| reads.knowledge_of(&main, "f", &file);
        assert_eq!(knows(&reads), FileKnowledge::Nothing);
        reads.record_shown(&main, "f", FilePart::Lines(1, 500), &file, 1);
        assert_eq!(knows(&reads), FileKnowledge::Part { seen: 500, of: 900 });
        reads.record_shown(&main, "f", FilePart::Lines(700, 800), &file, 2);
        reads.record_shown(&main, "f", FilePart::From(750), &file, 3);
        assert_eq!(knows(&reads), FileKnowledge::Part { seen: 701, of: 900 });
        reads.record_shown(&main, "f", FilePart::Lines(400, 699), &file, 4);
        assert_eq!(knows(&reads), FileKnowledge::Whole);
        assert_eq!(reads.knowledge_of(&main, "f", &fact("other")), FileKnowledge::Stale);
        assert_eq!(
            reads.knowledge_of(&ActorId::parse("sub").unwrap(), "f", &file),
            FileKnowledge::Nothing
        );
    }

    #[test]
    fn a_file_that_others_changed_must_be_read_again() {
        let (mut reads, main) = (ReadMemory::default(), ActorId::main());
        reads.record_shown(&main, "f", FilePart::Whole, &fact("a"), 1);
        reads.record_outside_change("f", &fact("b"));
        assert_eq!(reads.knowledge_of(&main, "f", &fact("a")), FileKnowledge::Stale);
        reads.record_own_change(&main, "f", &fact("c"), 2);
        assert_eq!(reads.knowledge_of(&main, "f", &fact("c")), FileKnowledge::Stale);
        reads.record_shown(&main, "f", FilePart::Whole, &fact("c"), 3);
        reads.record_own_change(&main, "f", &fact("d"), 4);
        assert_eq!(reads.knowledge_of(&main, "f", &fact("d")), FileKnowledge::Whole);
    }

    #[test]
    fn the_memory_is_bounded() {
        let (mut reads, main) = (ReadMemory::default(), ActorId::main());
        for n in 0..5000 {
            reads.record_shown(&main, &alloc::format!("f{n}"), FilePart::Whole, &fact("a"), n);
        }
        assert!(reads.records.len() > 500 && reads.records.len() <= RECORDS_MAX);
        assert_eq!(reads.knowledge_of(&main, "f0", &fact("a")), FileKnowledge::Nothing);
        assert_eq!(reads.knowledge_of(&main, "f4999", &fact("a")), FileKnowledge::Whole);
        reads.record_shown(&main, &"long".repeat(8000), FilePart::Whole, &fact("a"), 6000);
        assert!(reads.bytes <= BYTES_MAX);
    }

    #[test]
    fn many_ranges_forget_the_smallest() {
        let (mut reads, main) = (ReadMemory::default(), ActorId::main());
        let file = fact(&"x\n".repeat(900));
        for (n, from) in (0..).zip([1, 100, 200, 300, 400]) {
            reads.record_shown(&main, "f", FilePart::Lines(from, from + 1 + n), &file, 1);
        }
        assert_eq!(
            reads.knowledge_of(&main, "f", &file),
            FileKnowledge::Part { seen: 18, of: 900 }
        );
    }
}
