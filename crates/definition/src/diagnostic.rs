//! Errors and warnings about a definition, each with its position.

use std::fmt;

/// The maximum number of problems that one run reports.
const DIAGNOSTICS_MAX: usize = 200;

/// A position in one of the files that a definition is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePosition {
    /// The number of the file, in the order in which files were read.
    pub file: u16,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl SourcePosition {
    /// The beginning of a file.
    pub fn start_of(file: u16) -> Self {
        Self { file, line: 1, column: 1 }
    }

    pub(crate) fn new(file: u16, line: usize, column: usize) -> Self {
        let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Self { file, line: count(line), column: count(column) }
    }
}

/// One problem in a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file that contains the problem.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The problem.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

/// All problems in a file and in the files that it extends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    files: Vec<String>,
    list: Vec<(SourcePosition, Diagnostic)>,
    dropped: usize,
}

impl Diagnostics {
    /// Creates an empty list for `file`.
    pub fn new(file: &str) -> Self {
        Self { files: vec![replace_control_characters(file)], list: Vec::new(), dropped: 0 }
    }

    /// Whether there are no problems.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The problems, sorted by file and position.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter().map(|(_, problem)| problem)
    }

    /// The file that was loaded. Problems can also be in files that it extends.
    pub fn file(&self) -> &str {
        self.files.first().map_or("", String::as_str)
    }

    /// Registers another file and returns its number.
    pub(crate) fn add_file(&mut self, name: &str) -> u16 {
        self.files.push(replace_control_characters(name));
        u16::try_from(self.files.len() - 1).unwrap_or(u16::MAX)
    }

    /// Whether the list is full. Further problems are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= DIAGNOSTICS_MAX
    }

    /// Adds a problem at a position, with a hint how to fix it.
    pub fn push(&mut self, at: SourcePosition, message: impl Into<String>, hint: Option<String>) {
        if self.is_full() {
            self.dropped += 1;
            return;
        }
        let file = self.files.get(usize::from(at.file)).map_or("", String::as_str).to_owned();
        let problem = Diagnostic {
            file,
            line: at.line as usize,
            column: at.column as usize,
            message: replace_control_characters(&message.into()),
            hint: hint.map(|hint| replace_control_characters(&hint)),
        };
        self.list.push((at, problem));
    }

    /// Sorts the problems by file and position and removes duplicates.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.list.sort_by(|(a, one), (b, other)| {
            (a, &one.message, &one.hint).cmp(&(b, &other.message, &other.hint))
        });
        self.list.dedup();
        self
    }

    pub(crate) fn into_list(self) -> Vec<Diagnostic> {
        self.sorted().list.into_iter().map(|(_, problem)| problem).collect()
    }
}

/// Replaces control characters: a message quotes the file, and a terminal would act on them.
fn replace_control_characters(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        if self.dropped > 0 {
            write!(f, "\n{}: and {} more problems", self.file(), self.dropped)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
