//! Reads transcripts: the records that agent clients write of their own sessions.

use std::io::{self, BufRead};
use std::path::PathBuf;

use jackline_engine::{Event, SessionId};

use crate::client_list::{CLIENTS, Client};

/// The transcripts of one agent client.
pub trait TranscriptStore: Sync {
    /// The directory in which the client stores them. It may be missing.
    fn directory(&self) -> Option<PathBuf>;

    /// The variables that decide the directory, for an error message.
    fn variables(&self) -> &'static str;

    /// Whether a line, without its newline, can only come from such a transcript.
    fn recognizes(&self, line: &[u8]) -> bool;

    /// Reads a transcript. `session` is its id if no line has one.
    fn read<'a>(
        &self,
        source: Box<dyn BufRead + 'a>,
        session: SessionId,
    ) -> Box<dyn TranscriptReader + 'a>;
}

/// An iterator over the events of a transcript. It also counts the lines that could not be read.
pub trait TranscriptReader: Iterator<Item = io::Result<Event>> {
    /// The lines that could not be read so far.
    fn skipped(&self) -> SkippedLines;
}

/// How many lines of a transcript could not be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SkippedLines {
    /// Lines that are not JSON objects: incomplete, or written by another program.
    pub invalid: u64,
    /// Lines that are longer than the limit.
    pub too_long: u64,
    /// Messages, calls and results of an unexpected format.
    pub unexpected: u64,
}

impl SkippedLines {
    /// Adds the counts of another transcript.
    pub fn add(&mut self, other: Self) {
        self.invalid += other.invalid;
        self.too_long += other.too_long;
        self.unexpected += other.unexpected;
    }
}

/// The client whose transcripts have such lines.
pub fn find_transcript_client(line: &[u8]) -> Option<&'static Client> {
    CLIENTS.into_iter().find(|client| client.transcripts.is_some_and(|it| it.recognizes(line)))
}
