//! How much an answer may hold, and how much work it may take.

use jackline_engine::definition::Io;

use crate::shell::ShellLimits;

/// The limits of a workspace's tools. What people set is the first three, and
/// `output_bytes_max`; the others bound work, not answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How many lines a page of a file has at most (`io.read_file.max_lines`).
    pub read_lines_max: u64,
    /// How many bytes a page has at most (`io.read_file.max_bytes`).
    pub read_bytes_max: usize,
    /// Where a line of a page is cut (`io.read_file.max_line_bytes`).
    pub line_bytes_max: usize,
    /// How many bytes of text any other answer has at most (`io.output.max_bytes`).
    pub output_bytes_max: usize,
    /// How far behind a page lines are counted.
    pub count_bytes_max: u64,
    /// How far into a file a page may begin.
    pub skip_bytes_max: u64,
    /// How many entries of a directory are listed at once.
    pub entries_max: usize,
    /// How many files are found, and how many matching lines are shown.
    pub results_max: usize,
    /// Where a matching line is cut.
    pub match_bytes_max: usize,
    /// How many entries a walk looks at.
    pub walk_entries_max: u64,
    /// How many entries the search for a hint looks at.
    pub hint_entries_max: u64,
    /// How long a search or a walk takes at most.
    pub search_ms_max: u64,
    /// The longest line a search looks into, as memory of a searcher.
    pub search_heap_bytes_max: usize,
    /// The largest file that is written or edited.
    pub write_bytes_max: usize,
    /// How many threads walk; none is as many as the machine has.
    pub threads: usize,
    /// What a command may do.
    pub shell: ShellLimits,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            read_lines_max: 500,
            read_bytes_max: 262_144,
            line_bytes_max: 2000,
            output_bytes_max: 65_536,
            count_bytes_max: 16 << 20,
            skip_bytes_max: 4 << 30,
            entries_max: 1000,
            results_max: 200,
            match_bytes_max: 500,
            walk_entries_max: 2_000_000,
            hint_entries_max: 20_000,
            search_ms_max: 20_000,
            search_heap_bytes_max: 8 << 20,
            write_bytes_max: 16 << 20,
            threads: 0,
            shell: ShellLimits::default(),
        }
    }
}

impl Limits {
    /// The limits that a definition sets; work is bounded as usual.
    pub fn of(io: Io) -> Limits {
        let bytes = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let page = bytes(io.read_file.max_bytes);
        Limits {
            read_lines_max: io.read_file.max_lines.into(),
            read_bytes_max: page,
            // A page has whole lines, as far as they are shown.
            line_bytes_max: bytes(io.read_file.max_line_bytes).min(page.saturating_sub(1)),
            output_bytes_max: bytes(io.output.max_bytes),
            shell: ShellLimits {
                timeout_ms: u64::from(io.shell.seconds) * 1000,
                output_bytes_max: bytes(io.shell.output_bytes),
                ..ShellLimits::default()
            },
            ..Limits::default()
        }
    }

    /// The same limits, where none is so small that nothing could go on.
    pub(crate) fn workable(mut self) -> Limits {
        // A character has four bytes at most, and a page holds a line at least.
        self.line_bytes_max = self.line_bytes_max.max(4);
        self.read_bytes_max = self.read_bytes_max.max(self.line_bytes_max.saturating_add(1));
        self.match_bytes_max = self.match_bytes_max.max(4);
        self.read_lines_max = self.read_lines_max.max(1);
        self.entries_max = self.entries_max.max(1);
        self.results_max = self.results_max.max(1);
        self
    }

    pub(crate) fn threads(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, |cores| cores.get().min(12)),
            threads => threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use jackline_engine::definition::{Io, ReadFileIo};

    use super::*;

    #[test]
    fn a_definition_that_says_nothing_has_the_usual_limits() {
        assert_eq!(Limits::of(Io::default()), Limits::default());
    }

    #[test]
    fn a_line_is_never_longer_than_its_page() {
        let read_file = ReadFileIo { max_bytes: 1024, ..ReadFileIo::default() };
        let limits = Limits::of(Io { read_file, ..Io::default() }).workable();
        assert_eq!((limits.read_bytes_max, limits.line_bytes_max), (1024, 1023));
    }
}
