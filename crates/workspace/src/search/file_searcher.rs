//! One thread of a search: it searches files and collects the first matches by path.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkFinish, SinkMatch};
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};

use crate::glob::GlobFilter;
use crate::jail::file_type;
use crate::limits::WorkspaceLimits;
use crate::suggestions::SkippedEntries;
use crate::time::{SearchDeadline, TimedReader};
use crate::walk::{WalkDirectory, WalkVisitor};

/// How many files that could not be searched are listed.
const UNSEARCHED_MAX: usize = 20;

/// A matching line.
pub(crate) struct SearchHit {
    pub(crate) line: u64,
    /// The byte offset of the match in the line, from 1.
    pub(crate) column: usize,
    pub(crate) text: String,
    pub(crate) cut: bool,
}

/// The searcher of one thread, with its results.
pub(crate) struct FileSearcher<'l> {
    searcher: Searcher,
    matcher: RegexMatcher,
    filter: Option<&'l GlobFilter>,
    start: &'l Path,
    limits: &'l WorkspaceLimits,
    deadline: SearchDeadline,
    /// Whether the deadline passed within a file.
    pub(crate) is_timed_out: bool,
    /// The number of matching files that ends the search, and the largest file that is searched.
    stop_after: u64,
    file_bytes_max: u64,
    /// How many bytes may still be read. It becomes 0 when a file is larger than the rest.
    pub(crate) bytes_left: u64,
    pub(crate) hits_by_path: BTreeMap<PathBuf, Vec<SearchHit>>,
    hit_count: usize,
    pub(crate) matches: u64,
    pub(crate) files_matched: u64,
    /// How many files were searched.
    pub(crate) files_searched: u64,
    pub(crate) unsearched: BTreeMap<PathBuf, &'static str>,
    pub(crate) skipped: SkippedEntries,
}

impl<'l> FileSearcher<'l> {
    pub(crate) fn new(
        matcher: RegexMatcher,
        filter: Option<&'l GlobFilter>,
        start: &'l Path,
        limits: &'l WorkspaceLimits,
        deadline: SearchDeadline,
    ) -> FileSearcher<'l> {
        let searcher = SearcherBuilder::new()
            .line_number(true)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(limits.search_heap_bytes_max))
            .build();
        FileSearcher {
            searcher,
            matcher,
            filter,
            start,
            limits,
            deadline,
            is_timed_out: false,
            stop_after: u64::MAX,
            file_bytes_max: u64::MAX,
            bytes_left: u64::MAX,
            hits_by_path: BTreeMap::new(),
            hit_count: 0,
            matches: 0,
            files_matched: 0,
            files_searched: 0,
            unsearched: BTreeMap::new(),
            skipped: SkippedEntries::default(),
        }
    }

    /// A searcher that stops after a few matching files or after `bytes_left` bytes, and skips
    /// large files.
    pub(crate) fn stopping_early(
        self,
        files: u64,
        file_bytes_max: u64,
        bytes_left: u64,
    ) -> FileSearcher<'l> {
        FileSearcher { stop_after: files, file_bytes_max, bytes_left, ..self }
    }

    pub(crate) fn merge(&mut self, other: FileSearcher<'_>) {
        self.matches += other.matches;
        self.files_matched += other.files_matched;
        self.files_searched += other.files_searched;
        self.is_timed_out |= other.is_timed_out;
        self.skipped.merge(other.skipped);
        other.hits_by_path.into_iter().for_each(|(path, hits)| self.insert_hits(path, hits));
        self.unsearched.extend(other.unsearched);
        while self.unsearched.len() > UNSEARCHED_MAX {
            self.unsearched.pop_last();
        }
    }

    /// Searches an open file.
    pub(crate) fn search_file(&mut self, file: &File, path: &Path) {
        self.files_searched += 1;
        let mut hits = FileHits {
            matcher: &self.matcher,
            hits: Vec::new(),
            count: 0,
            hits_max: self.limits.results_max,
            line_bytes_max: self.limits.match_bytes_max,
            binary: false,
        };
        let mut timed = TimedReader { inner: file, deadline: self.deadline, is_timed_out: false };
        let outcome = self.searcher.search_reader(&self.matcher, &mut timed, &mut hits);
        self.is_timed_out |= timed.is_timed_out;
        let FileHits { hits: lines, count, binary, .. } = hits;
        if binary {
            // A walk skips binary files silently, as ripgrep does.
            if path == self.start {
                self.note_unsearched(path, "binary");
            }
            return;
        }
        if let Err(error) = outcome {
            let long = error.to_string().contains("limit");
            self.note_unsearched(
                path,
                match () {
                    () if timed.is_timed_out => "the search ran out of time",
                    () if long => "a line is too long",
                    () => "can't be read",
                },
            );
        }
        if count > 0 {
            self.matches += count;
            self.files_matched += 1;
            self.insert_hits(path.to_owned(), lines);
        }
    }

    fn note_unsearched(&mut self, path: &Path, why: &'static str) {
        self.unsearched.insert(path.to_owned(), why);
        if self.unsearched.len() > UNSEARCHED_MAX {
            self.unsearched.pop_last();
        }
    }

    /// Stores the matches of a file, unless files with earlier paths already fill the answer.
    fn insert_hits(&mut self, path: PathBuf, hits: Vec<SearchHit>) {
        self.hit_count += hits.len();
        self.hits_by_path.insert(path, hits);
        while let Some(last) = self.hits_by_path.last_entry() {
            let without = self.hit_count - last.get().len();
            if without < self.limits.results_max {
                break;
            }
            self.hit_count = without;
            last.remove();
        }
    }
}

impl WalkVisitor for FileSearcher<'_> {
    fn visit_file(&mut self, directory: &WalkDirectory, name: &OsStr) -> bool {
        let path = directory.path.join(name);
        let below = path.strip_prefix(self.start).unwrap_or(&path);
        if self.filter.is_some_and(|filter| !filter.matches_path(below)) {
            return true;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(opened) = openat(&directory.opened, name, flags, Mode::empty()) else {
            self.note_unsearched(&path, "can't be opened");
            return true;
        };
        // Another process may have replaced the file since it was listed.
        let size = fstat(&opened).ok().filter(|stat| file_type(stat) == FileType::RegularFile);
        let size = size.and_then(|stat| u64::try_from(stat.st_size).ok());
        if let Some(size) = size.filter(|size| *size <= self.file_bytes_max) {
            let Some(left) = self.bytes_left.checked_sub(size) else {
                self.bytes_left = 0;
                return false;
            };
            self.bytes_left = left;
            self.search_file(&File::from(opened), &path);
        }
        self.files_matched < self.stop_after
    }

    fn visit_skipped(&mut self, path: &Path, kind: FileType) {
        self.skipped.insert(path, kind);
    }
}

/// Receives the matches of one file from the searcher library.
struct FileHits<'m> {
    matcher: &'m RegexMatcher,
    hits: Vec<SearchHit>,
    count: u64,
    hits_max: usize,
    line_bytes_max: usize,
    binary: bool,
}

impl Sink for FileHits<'_> {
    type Error = std::io::Error;

    fn matched(
        &mut self,
        _: &Searcher,
        line_match: &SinkMatch<'_>,
    ) -> Result<bool, std::io::Error> {
        self.count += 1;
        if self.hits.len() < self.hits_max {
            let line = line_match.bytes();
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let at = self.matcher.find(line).ok().flatten().map_or(0, |position| position.start());
            let (text, cut) = cut_around_match(line, at, self.line_bytes_max);
            let number = line_match.line_number().unwrap_or_default();
            self.hits.push(SearchHit { line: number, column: at + 1, text, cut });
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

/// The line, or the part of it around the match that fits into `max` bytes.
fn cut_around_match(line: &[u8], at: usize, max: usize) -> (String, bool) {
    if line.len() <= max {
        return (String::from_utf8_lossy(line).into_owned(), false);
    }
    let start = if at + max / 2 <= max { 0 } else { (at - max / 4).min(line.len() - max) };
    // Move back to the start of a character, so that none is split.
    let begins = |at: usize| line.get(at).is_none_or(|byte| byte & 0xc0 != 0x80);
    let to_start =
        |at: usize| (at.saturating_sub(3)..=at).rev().find(|at| begins(*at)).unwrap_or(at);
    let shown = line.get(to_start(start)..to_start(start + max)).unwrap_or_default();
    (String::from_utf8_lossy(shown).into_owned(), true)
}
