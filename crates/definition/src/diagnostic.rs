//! What is wrong with a definition, and where.

use std::fmt;

/// How many problems are reported at once.
const DIAGNOSTICS_MAX: usize = 200;

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Everything that is wrong with one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    file: String,
    list: Vec<Diagnostic>,
    dropped: usize,
}

impl Diagnostics {
    /// No problems yet in `file`.
    pub fn new(file: &str) -> Self {
        Self { file: file.to_owned(), list: Vec::new(), dropped: 0 }
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The problems, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// The file they are in.
    pub fn file(&self) -> &str {
        &self.file
    }

    pub(crate) fn push(
        &mut self,
        (line, column): (usize, usize),
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        if self.list.len() < DIAGNOSTICS_MAX {
            let (message, hint) = (printable(&message.into()), hint.map(|hint| printable(&hint)));
            self.list.push(Diagnostic { line, column, message, hint });
        } else {
            self.dropped += 1;
        }
    }

    pub(crate) fn sorted(mut self) -> Self {
        self.list.sort();
        self.list.dedup();
        self
    }
}

/// A message quotes the file, and a file can hold what a terminal would act on.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.list.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{}:{}:{}: {}", self.file, problem.line, problem.column, problem.message)?;
            if let Some(hint) = &problem.hint {
                write!(f, "; {hint}")?;
            }
        }
        if self.dropped > 0 {
            write!(f, "\n{}: and {} more problems", self.file, self.dropped)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
