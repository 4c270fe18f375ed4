//! What each actor has seen of which files: the memory behind
//! `read_before_write`.
//!
//! Bounded: the record that was not used for longest gives way, and then that
//! file has to be read again.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::short;
use crate::digest::Digest128;
use crate::facts::{FileFact, FileKind, Tracked};
use crate::id::ActorId;
use crate::path::is_within;
use crate::time::Timestamp;

/// How many records are kept.
const RECORDS_MAX: usize = 1024;

/// How much room they may take: several hundred files of a common project.
const BYTES_MAX: u32 = 42 * 1024;

/// What a record takes besides its path and its ranges.
const RECORD_BYTES: usize = 42;

/// What a range takes.
const RANGE_BYTES: usize = 10;

/// How many searched directories are kept, and how long their names may be.
const SEARCHED_MAX: usize = 16;
const DIRECTORY_BYTES_MAX: usize = 256;

/// How many separate ranges of lines are kept of one file.
const RANGES_MAX: usize = 4;

/// What actors have seen of files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Reads {
    records: Vec<ReadRecord>,
    bytes: u32,
    /// Directories that were searched, the latest at the end.
    searched: Vec<Searched>,
}

/// A directory that an actor searched: it has seen something of every file that
/// was not changed since.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Searched {
    actor: u32,
    directory: String,
    at: Timestamp,
    seq: u64,
}

/// What one actor has seen of one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReadRecord {
    actor: u32,
    path: String,
    /// How the file looked then, and its contents.
    look: u64,
    contents: Contents,
    lines: u32,
    seen: Seen,
    /// Whether it is known to have been changed by somebody else since.
    stale: bool,
    /// The record that used it last.
    used: u64,
}

/// Half of a fingerprint: enough to see that a file is another.
type Contents = [u8; 8];

fn contents(digest: &Digest128) -> Contents {
    digest.as_bytes().first_chunk().copied().unwrap_or_default()
}

/// A short name for an actor.
fn whose(actor: &ActorId) -> u32 {
    let hash = short(actor.as_str());
    u32::try_from((hash >> 32) ^ (hash & 0xffff_ffff)).unwrap_or_default()
}

/// How much of a file was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Seen {
    Whole,
    /// These lines, both ends counted, in order; none is an unknown part.
    Ranges(Vec<(u32, u32)>),
}

/// Which part of a file a call showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Part {
    Whole,
    Lines(u32, u32),
    From(u32),
    Last(u32),
    Unknown,
}

/// How well an actor knows a file as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knows {
    Nothing,
    /// It was changed since it was read.
    Stale,
    /// So many of its lines were seen; nobody knows where that is 0.
    Part {
        seen: u32,
        of: u32,
    },
    Whole,
}

impl Reads {
    /// How well an actor knows a file that looks like `fact`.
    pub(crate) fn knows(&self, actor: &ActorId, path: &str, fact: &FileFact) -> Knows {
        let searched = self.was_searched(actor, path, fact);
        let Some(record) = self.find(actor, path) else {
            return if searched { Knows::Part { seen: 0, of: 0 } } else { Knows::Nothing };
        };
        if !record.is_current(fact) {
            return if searched { Knows::Part { seen: 0, of: 0 } } else { Knows::Stale };
        }
        match &record.seen {
            Seen::Whole => Knows::Whole,
            Seen::Ranges(ranges) if covers(ranges, record.lines) => Knows::Whole,
            Seen::Ranges(ranges) => {
                let seen = ranges.iter().map(|(from, to)| to - from + 1).sum();
                Knows::Part { seen, of: record.lines }
            }
        }
    }

    /// An actor searched a directory with everything below it.
    pub(crate) fn searched(&mut self, actor: &ActorId, directory: &str, at: Timestamp, seq: u64) {
        let actor = whose(actor);
        self.searched.retain(|known| (known.actor, known.directory.as_str()) != (actor, directory));
        if self.searched.len() >= SEARCHED_MAX {
            self.searched.remove(0);
        }
        if directory.len() <= DIRECTORY_BYTES_MAX {
            self.searched.push(Searched { actor, directory: directory.to_string(), at, seq });
        }
    }

    fn was_searched(&self, actor: &ActorId, path: &str, fact: &FileFact) -> bool {
        let actor = whose(actor);
        self.searched.iter().any(|known| {
            known.actor == actor
                && is_within(path, &known.directory)
                && fact.modified.is_some_and(|modified| modified < known.at)
        })
    }

    /// Whether the contents must be looked at to say how well a file is known.
    pub(crate) fn must_compare(&self, actor: &ActorId, path: &str, fact: &FileFact) -> bool {
        let record = self.find(actor, path);
        record.is_some_and(|record| !record.stale && fact.look != Some(record.look))
            && fact.digest.is_none()
    }

    /// Whether an actor saw a file as it is now, or a part of it.
    pub(crate) fn is_current(&self, actor: &ActorId, path: &str, fact: &FileFact) -> bool {
        self.find(actor, path).is_some_and(|record| record.is_current(fact))
    }

    /// Whether there is a record of what an actor saw of a file.
    pub(crate) fn has(&self, actor: &ActorId, path: &str) -> bool {
        self.find(actor, path).is_some()
    }

    /// An actor was shown a part of a file.
    pub(crate) fn saw(
        &mut self,
        actor: &ActorId,
        path: &str,
        part: Part,
        fact: &FileFact,
        seq: u64,
    ) {
        let Some(mut record) = ReadRecord::new(actor, path, fact, seq) else { return };
        let earlier = self.take(actor, path).filter(|known| known.is_current(fact));
        let known = earlier.map_or(Seen::Ranges(Vec::new()), |known| known.seen);
        record.seen = match (known, range(part, record.lines)) {
            (Seen::Whole, _) | (_, Some(Extent::Whole)) => Seen::Whole,
            (Seen::Ranges(ranges), Some(Extent::Lines(from, to))) => {
                Seen::Ranges(merged(ranges, from, to))
            }
            (known, None) => known,
        };
        self.keep(record);
    }

    /// An actor wrote a file, so it knows it; whoever else knew it does not.
    pub(crate) fn wrote(&mut self, actor: &ActorId, path: &str, fact: &FileFact, seq: u64) {
        let Some(mut record) = ReadRecord::new(actor, path, fact, seq) else { return };
        let _ = self.take(actor, path);
        record.seen = Seen::Whole;
        self.keep(record);
    }

    /// An actor gave a file another name: it knows as much of it as it knew of these contents.
    pub(crate) fn named(&mut self, actor: &ActorId, path: &str, fact: &FileFact, seq: u64) {
        let Some(mut record) = ReadRecord::new(actor, path, fact, seq) else { return };
        let same = |known: &&ReadRecord| {
            known.actor == record.actor && !known.stale && known.contents == record.contents
        };
        let known = self.records.iter().filter(same).max_by_key(|known| known.seen == Seen::Whole);
        let known = known.map(|known| known.seen.clone());
        let _ = self.take(actor, path);
        if let Some(seen) = known {
            record.seen = seen;
            self.keep(record);
        }
    }

    /// An actor added to a file: it knows as much of it as before.
    pub(crate) fn appended(&mut self, actor: &ActorId, path: &str, fact: &FileFact, seq: u64) {
        let Some(mut record) = ReadRecord::new(actor, path, fact, seq) else { return };
        let Some(earlier) = self.take(actor, path) else { return };
        record.seen = earlier.seen;
        record.stale = earlier.stale;
        self.keep(record);
    }

    /// Nothing is at this path any more.
    pub(crate) fn gone(&mut self, path: &str) {
        self.retain(|record| record.path != path);
    }

    /// An actor's context was compacted: it may have forgotten what it saw.
    pub(crate) fn forget(&mut self, actor: &ActorId) {
        let actor = whose(actor);
        self.searched.retain(|known| known.actor != actor);
        self.retain(|record| record.actor != actor);
    }

    /// Undoing an attempt changes files back: what was seen since is not there.
    pub(crate) fn forget_since(&mut self, seq: u64) {
        self.searched.retain(|known| known.seq < seq);
        self.retain(|record| record.used < seq);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// What to compare with the files as they are.
    pub(crate) fn tracked(&self) -> Vec<Tracked> {
        let mut tracked: Vec<Tracked> = self
            .records
            .iter()
            .filter(|record| !record.stale)
            .map(|record| Tracked { path: record.path.clone(), look: record.look })
            .collect();
        tracked.sort_unstable_by(|a, b| (&a.path, a.look).cmp(&(&b.path, b.look)));
        tracked.dedup();
        tracked
    }

    /// Whether a file that is remembered has other contents now. One whose
    /// contents are the same only looks different.
    pub(crate) fn differs(&self, path: &str, fact: &FileFact) -> bool {
        self.records
            .iter()
            .any(|record| record.path == path && !record.stale && !record.is_current(fact))
    }

    /// Somebody else changed a file.
    pub(crate) fn changed_outside(&mut self, path: &str, fact: &FileFact) {
        for record in self.records.iter_mut().filter(|record| record.path == path) {
            if record.is_current(fact) {
                record.look = fact.look.unwrap_or(record.look);
            } else {
                record.stale = true;
            }
        }
    }

    /// An actor's own command changed a file: it knows it, as a person knows
    /// what their formatter does.
    pub(crate) fn changed_by(&mut self, actor: &ActorId, path: &str, fact: &FileFact, seq: u64) {
        if fact.kind != FileKind::File {
            return self.gone(path);
        }
        let known = self.find(actor, path).is_some_and(|record| !record.stale);
        if known && self.differs(path, fact) {
            self.wrote(actor, path, fact, seq);
        }
        self.changed_outside(path, fact);
    }

    fn find(&self, actor: &ActorId, path: &str) -> Option<&ReadRecord> {
        let actor = whose(actor);
        self.records.iter().find(|record| record.actor == actor && record.path == path)
    }

    fn take(&mut self, actor: &ActorId, path: &str) -> Option<ReadRecord> {
        let actor = whose(actor);
        let at =
            self.records.iter().position(|record| record.actor == actor && record.path == path)?;
        let record = self.records.swap_remove(at);
        self.bytes -= room(&record);
        Some(record)
    }

    fn keep(&mut self, record: ReadRecord) {
        self.bytes += room(&record);
        self.records.push(record);
        while self.records.len() > RECORDS_MAX || self.bytes > BYTES_MAX {
            let oldest = self
                .records
                .iter()
                .enumerate()
                .min_by_key(|(_, record)| record.used)
                .map(|(at, _)| at);
            let Some(at) = oldest else { return };
            self.bytes -= room(&self.records.swap_remove(at));
        }
    }

    fn retain(&mut self, keep: impl Fn(&ReadRecord) -> bool) {
        self.records.retain(keep);
        self.bytes = self.records.iter().map(room).sum();
    }
}

impl ReadRecord {
    /// A record of a file of which nothing was seen yet.
    fn new(actor: &ActorId, path: &str, fact: &FileFact, seq: u64) -> Option<Self> {
        let (Some(look), Some(digest), FileKind::File) = (fact.look, fact.digest, fact.kind) else {
            return None;
        };
        Some(Self {
            actor: whose(actor),
            path: path.to_string(),
            look,
            contents: contents(&digest),
            lines: fact.lines.map_or(u32::MAX, |lines| u32::try_from(lines).unwrap_or(u32::MAX)),
            seen: Seen::Ranges(Vec::new()),
            stale: false,
            used: seq,
        })
    }

    fn is_current(&self, fact: &FileFact) -> bool {
        !self.stale
            && (fact.look == Some(self.look)
                || fact.digest.as_ref().map(contents) == Some(self.contents))
    }
}

/// How much room a record takes.
fn room(record: &ReadRecord) -> u32 {
    let ranges = match &record.seen {
        Seen::Whole => 0,
        Seen::Ranges(ranges) => ranges.len(),
    };
    let bytes = record.path.len() + RECORD_BYTES + ranges * RANGE_BYTES;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

enum Extent {
    Whole,
    Lines(u32, u32),
}

/// The lines that a part is, in a file of so many; nothing where nobody knows.
fn range(part: Part, lines: u32) -> Option<Extent> {
    let (from, to) = match part {
        Part::Whole => return Some(Extent::Whole),
        Part::Unknown => return None,
        Part::Lines(from, to) => (from.max(1), to.min(lines)),
        Part::From(from) => (from.max(1), lines),
        Part::Last(count) => (lines.saturating_sub(count).saturating_add(1), lines),
    };
    // An empty file has nothing to show, and was shown.
    if lines == 0 || (from <= 1 && to >= lines) {
        return Some(Extent::Whole);
    }
    (from <= to).then_some(Extent::Lines(from, to))
}

fn covers(ranges: &[(u32, u32)], lines: u32) -> bool {
    matches!(ranges, [(from, to)] if *from <= 1 && *to >= lines)
}

/// Adds a range, joining those that touch.
fn merged(mut ranges: Vec<(u32, u32)>, from: u32, to: u32) -> Vec<(u32, u32)> {
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
        // What does not fit counts as not seen: the smallest is the least loss.
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
            look: Some(short(text)),
            digest: Some(Digest128::of(text.as_bytes())),
            lines: Some(text.lines().count() as u64),
            ..FileFact::of(FileKind::File)
        }
    }

    #[test]
    fn pages_add_up_to_the_whole() {
        let (mut reads, main) = (Reads::default(), ActorId::main());
        let file = fact(&"x\n".repeat(900));
        let knows = |reads: &Reads| reads.knows(&main, "f", &file);
        assert_eq!(knows(&reads), Knows::Nothing);
        reads.saw(&main, "f", Part::Lines(1, 500), &file, 1);
        assert_eq!(knows(&reads), Knows::Part { seen: 500, of: 900 });
        reads.saw(&main, "f", Part::Lines(700, 800), &file, 2);
        reads.saw(&main, "f", Part::From(750), &file, 3);
        assert_eq!(knows(&reads), Knows::Part { seen: 701, of: 900 });
        reads.saw(&main, "f", Part::Lines(400, 699), &file, 4);
        assert_eq!(knows(&reads), Knows::Whole);
        assert_eq!(reads.knows(&main, "f", &fact("other")), Knows::Stale);
        assert_eq!(reads.knows(&ActorId::parse("sub").unwrap(), "f", &file), Knows::Nothing);
    }

    #[test]
    fn what_was_changed_by_others_has_to_be_read_again() {
        let (mut reads, main) = (Reads::default(), ActorId::main());
        reads.saw(&main, "f", Part::Whole, &fact("a"), 1);
        reads.changed_outside("f", &fact("b"));
        assert_eq!(reads.knows(&main, "f", &fact("a")), Knows::Stale);
        reads.changed_by(&main, "f", &fact("c"), 2);
        assert_eq!(reads.knows(&main, "f", &fact("c")), Knows::Stale);
        reads.saw(&main, "f", Part::Whole, &fact("c"), 3);
        reads.changed_by(&main, "f", &fact("d"), 4);
        assert_eq!(reads.knows(&main, "f", &fact("d")), Knows::Whole);
    }

    #[test]
    fn the_memory_is_bounded() {
        let (mut reads, main) = (Reads::default(), ActorId::main());
        for n in 0..5000 {
            reads.saw(&main, &alloc::format!("f{n}"), Part::Whole, &fact("a"), n);
        }
        assert!(reads.records.len() > 500 && reads.records.len() <= RECORDS_MAX);
        assert_eq!(reads.knows(&main, "f0", &fact("a")), Knows::Nothing);
        assert_eq!(reads.knows(&main, "f4999", &fact("a")), Knows::Whole);
        reads.saw(&main, &"long".repeat(8000), Part::Whole, &fact("a"), 6000);
        assert!(reads.bytes <= BYTES_MAX);
    }

    #[test]
    fn many_ranges_forget_the_smallest() {
        let (mut reads, main) = (Reads::default(), ActorId::main());
        let file = fact(&"x\n".repeat(900));
        for (n, from) in (0..).zip([1, 100, 200, 300, 400]) {
            reads.saw(&main, "f", Part::Lines(from, from + 1 + n), &file, 1);
        }
        assert_eq!(reads.knows(&main, "f", &file), Knows::Part { seen: 18, of: 900 });
    }
}
