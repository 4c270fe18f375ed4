//! What agent clients write down of their own sessions, read as events.

use std::io::{self, BufRead};
use std::path::PathBuf;

use jackline_engine::{Event, SessionId};

use crate::list::{CLIENTS, Client};

/// The transcripts of one agent client.
pub trait Transcripts: Sync {
    /// The directory below which the client keeps them; it need not exist.
    fn directory(&self) -> Option<PathBuf>;

    /// The variables that lead to the directory, for an error message.
    fn variables(&self) -> &'static str;

    /// Whether a line, given without its newline, can only come from such a transcript.
    fn recognizes(&self, line: &[u8]) -> bool;

    /// Reads a transcript. `session` is its name where no line names another.
    fn read<'a>(
        &self,
        source: Box<dyn BufRead + 'a>,
        session: SessionId,
    ) -> Box<dyn TranscriptReader + 'a>;
}

/// A transcript while it is read: the events, and after them what could not be read.
pub trait TranscriptReader: Iterator<Item = io::Result<Event>> {
    /// The lines that could not be read so far.
    fn skipped(&self) -> SkippedLines;
}

/// How many lines of a transcript could not be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SkippedLines {
    /// Lines that are not JSON objects: torn, or written by another program.
    pub torn: u64,
    /// Lines beyond the longest that is read.
    pub long: u64,
    /// Messages, calls and results of another shape.
    pub odd: u64,
}

impl SkippedLines {
    /// Adds the counts of another transcript.
    pub fn add(&mut self, other: Self) {
        self.torn += other.torn;
        self.long += other.long;
        self.odd += other.odd;
    }
}

/// The client whose transcripts have such a line.
pub fn client_of_transcript(line: &[u8]) -> Option<&'static Client> {
    CLIENTS.into_iter().find(|client| client.transcripts.is_some_and(|it| it.recognizes(line)))
}
