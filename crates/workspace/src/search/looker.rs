//! One thread of a search: opens files, and keeps the first matches by path.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkFinish, SinkMatch};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};

use crate::glob::Filter;
use crate::hints::Skipped;
use crate::jail::kind;
use crate::limits::Limits;
use crate::time::{Deadline, Timed};
use crate::walk::{Directory, Visitor};

/// How many files are named that could not be searched.
const UNSEARCHED_MAX: usize = 20;

/// A matching line.
pub(crate) struct Hit {
    pub(crate) line: u64,
    /// The byte in the line where the match begins, from 1.
    pub(crate) column: usize,
    pub(crate) text: String,
    pub(crate) cut: bool,
}

/// What one thread found.
pub(crate) struct Looker<'l> {
    searcher: Searcher,
    matcher: RegexMatcher,
    filter: Option<&'l Filter>,
    start: &'l Path,
    limits: &'l Limits,
    deadline: Deadline,
    /// Whether a file could not be read to its end in time.
    pub(crate) late: bool,
    /// Where to stop, and which files are too large to be looked into on the way.
    stop_after: u64,
    file_bytes_max: u64,
    /// How much is still read; nothing is once a file does not fit.
    pub(crate) bytes_left: u64,
    pub(crate) kept: BTreeMap<PathBuf, Vec<Hit>>,
    kept_hits: usize,
    pub(crate) matches: u64,
    pub(crate) files_matched: u64,
    /// How many files were searched.
    pub(crate) looked: u64,
    pub(crate) unsearched: BTreeMap<PathBuf, &'static str>,
    pub(crate) skipped: Skipped,
}

impl<'l> Looker<'l> {
    pub(crate) fn new(
        matcher: RegexMatcher,
        filter: Option<&'l Filter>,
        start: &'l Path,
        limits: &'l Limits,
        deadline: Deadline,
    ) -> Looker<'l> {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(limits.search_heap_bytes_max))
            .build();
        Looker {
            searcher,
            matcher,
            filter,
            start,
            limits,
            deadline,
            late: false,
            stop_after: u64::MAX,
            file_bytes_max: u64::MAX,
            bytes_left: u64::MAX,
            kept: BTreeMap::new(),
            kept_hits: 0,
            matches: 0,
            files_matched: 0,
            looked: 0,
            unsearched: BTreeMap::new(),
            skipped: Skipped::default(),
        }
    }

    /// One that stops after a few files, or after so many bytes, and looks into small ones only.
    pub(crate) fn first(self, files: u64, file_bytes_max: u64, bytes_left: u64) -> Looker<'l> {
        Looker { stop_after: files, file_bytes_max, bytes_left, ..self }
    }

    pub(crate) fn join(&mut self, other: Looker<'_>) {
        self.matches += other.matches;
        self.files_matched += other.files_matched;
        self.looked += other.looked;
        self.late |= other.late;
        self.skipped.join(other.skipped);
        other.kept.into_iter().for_each(|(path, hits)| self.keep(path, hits));
        self.unsearched.extend(other.unsearched);
        while self.unsearched.len() > UNSEARCHED_MAX {
            self.unsearched.pop_last();
        }
    }

    /// Searches an open file.
    pub(crate) fn look(&mut self, file: &File, path: &Path) {
        self.looked += 1;
        let mut hits = Hits {
            matcher: &self.matcher,
            found: Vec::new(),
            count: 0,
            max: self.limits.results_max,
            cut: self.limits.match_bytes_max,
            binary: false,
        };
        let mut timed = Timed { inner: file, deadline: self.deadline, is_up: false };
        let outcome = self.searcher.search_reader(&self.matcher, &mut timed, &mut hits);
        self.late |= timed.is_up;
        let Hits { found, count, binary, .. } = hits;
        if binary {
            // A walk passes binary files by without a word, as ripgrep does.
            if path == self.start {
                self.leave(path, "binary");
            }
            return;
        }
        if let Err(error) = outcome {
            let long = error.to_string().contains("limit");
            self.leave(
                path,
                match () {
                    () if timed.is_up => "the time was up",
                    () if long => "a line is too long",
                    () => "can't be read",
                },
            );
        }
        if count > 0 {
            self.matches += count;
            self.files_matched += 1;
            self.keep(path.to_owned(), found);
        }
    }

    fn leave(&mut self, path: &Path, why: &'static str) {
        self.unsearched.insert(path.to_owned(), why);
        if self.unsearched.len() > UNSEARCHED_MAX {
            self.unsearched.pop_last();
        }
    }

    /// Keeps the hits of a file, as long as no earlier files have enough.
    fn keep(&mut self, path: PathBuf, hits: Vec<Hit>) {
        self.kept_hits += hits.len();
        self.kept.insert(path, hits);
        while let Some(last) = self.kept.last_entry() {
            let without = self.kept_hits - last.get().len();
            if without < self.limits.results_max {
                break;
            }
            self.kept_hits = without;
            last.remove();
        }
    }
}

impl Visitor for Looker<'_> {
    fn file(&mut self, directory: &Directory, name: &OsStr) -> bool {
        let path = directory.path.join(name);
        let below = path.strip_prefix(self.start).unwrap_or(&path);
        if self.filter.is_some_and(|filter| !filter.wants(below)) {
            return true;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(opened) = openat(&directory.opened, name, flags, Mode::empty()) else {
            self.leave(&path, "can't be opened");
            return true;
        };
        // It may be something else by now.
        let size = fstat(&opened).ok().filter(|look| kind(look) == FileType::RegularFile);
        let size = size.and_then(|look| u64::try_from(look.st_size).ok());
        if let Some(size) = size.filter(|size| *size <= self.file_bytes_max) {
            let Some(left) = self.bytes_left.checked_sub(size) else {
                self.bytes_left = 0;
                return false;
            };
            self.bytes_left = left;
            self.look(&File::from(opened), &path);
        }
        self.files_matched < self.stop_after
    }

    fn skipped(&mut self, path: &Path, kind: FileType) {
        self.skipped.keep(path, kind);
    }
}

/// What the searcher tells about one file.
struct Hits<'m> {
    matcher: &'m RegexMatcher,
    found: Vec<Hit>,
    count: u64,
    max: usize,
    cut: usize,
    binary: bool,
}

impl Sink for Hits<'_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, std::io::Error> {
        self.count += 1;
        if self.found.len() < self.max {
            let line = found.bytes();
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let at = self.matcher.find(line).ok().flatten().map_or(0, |found| found.start());
            let (text, cut) = window(line, at, self.cut);
            let number = found.line_number().unwrap_or_default();
            self.found.push(Hit { line: number, column: at + 1, text, cut });
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, std::io::Error> {
        self.binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), std::io::Error> {
        self.binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}

/// The line, or as much of it around the match as may be shown.
fn window(line: &[u8], at: usize, max: usize) -> (String, bool) {
    if line.len() <= max {
        return (String::from_utf8_lossy(line).into_owned(), false);
    }
    let start = if at + max / 2 <= max { 0 } else { (at - max / 4).min(line.len() - max) };
    // Back to where a character begins, so that none is cut in two.
    let begins = |at: usize| line.get(at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let to_start =
        |at: usize| (at.saturating_sub(3)..=at).rev().find(|at| begins(*at)).unwrap_or(at);
    let shown = line.get(to_start(start)..to_start(start + max)).unwrap_or_default();
    (String::from_utf8_lossy(shown).into_owned(), true)
}
