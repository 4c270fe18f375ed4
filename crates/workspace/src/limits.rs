//! Limits on the size of answers and on the work for them.

use jackline_engine::definition::IoLimits;

use crate::shell::ShellLimits;

/// The limits of the workspace tools. A definition sets the first three, `output_bytes_max` and the
/// shell limits. The others limit work, not answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceLimits {
    /// How many lines a page of a file may have (`io.read_file.max_lines`).
    pub read_lines_max: u64,
    /// How many bytes a page may have (`io.read_file.max_bytes`).
    pub read_bytes_max: usize,
    /// The length at which a line of a page is cut (`io.read_file.max_line_bytes`).
    pub line_bytes_max: usize,
    /// How many bytes of text any other answer may have (`io.output.max_bytes`).
    pub output_bytes_max: usize,
    /// How many bytes after a page are scanned to count the remaining lines.
    pub count_bytes_max: u64,
    /// How far into a file a page may start.
    pub skip_bytes_max: u64,
    /// How many directory entries one answer lists.
    pub entries_max: usize,
    /// How many files or matching lines one answer shows.
    pub results_max: usize,
    /// The length at which a matching line is cut.
    pub match_bytes_max: usize,
    /// How many entries a walk visits.
    pub walk_entries_max: u64,
    /// How many entries a walk for a suggestion visits.
    pub hint_entries_max: u64,
    /// The time limit of a search or walk.
    pub search_ms_max: u64,
    /// The memory of a searcher, which limits the length of the lines it can search.
    pub search_heap_bytes_max: usize,
    /// The largest file that can be written or edited.
    pub write_bytes_max: usize,
    /// The number of threads of a walk; 0 uses the number of cores.
    pub threads: usize,
    /// The limits of a command.
    pub shell: ShellLimits,
}

impl Default for WorkspaceLimits {
    fn default() -> WorkspaceLimits {
        WorkspaceLimits {
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

impl WorkspaceLimits {
    /// The limits that a definition sets. All others have their defaults.
    pub fn from_definition(io: IoLimits) -> WorkspaceLimits {
        let bytes = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        let page = bytes(io.read_file.max_bytes);
        WorkspaceLimits {
            read_lines_max: io.read_file.max_lines.into(),
            read_bytes_max: page,
            // A page has whole lines, so a shown line must fit into a page.
            line_bytes_max: bytes(io.read_file.max_line_bytes).min(page.saturating_sub(1)),
            output_bytes_max: bytes(io.output.max_bytes),
            shell: ShellLimits {
                timeout_ms: u64::from(io.shell.seconds) * 1000,
                output_bytes_max: bytes(io.shell.output_bytes),
                ..ShellLimits::default()
            },
            ..WorkspaceLimits::default()
        }
    }

    /// Raises limits that are so small that no call could make progress.
    pub(crate) fn raised_to_minimum(mut self) -> WorkspaceLimits {
        // A character has up to four bytes, and a page holds at least one line.
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
    use jackline_engine::definition::{IoLimits, ReadFileLimits};

    use super::*;

    #[test]
    fn a_definition_without_io_settings_has_the_default_limits() {
        assert_eq!(
            WorkspaceLimits::from_definition(IoLimits::default()),
            WorkspaceLimits::default()
        );
    }

    #[test]
    fn a_line_is_never_longer_than_its_page() {
        let read_file = ReadFileLimits { max_bytes: 1024, ..ReadFileLimits::default() };
        let limits =
            WorkspaceLimits::from_definition(IoLimits { read_file, ..IoLimits::default() })
                .raised_to_minimum();
        assert_eq!((limits.read_bytes_max, limits.line_bytes_max), (1024, 1023));
    }
}
