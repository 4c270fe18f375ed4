//! What is wrong with a definition, and where.

use std::fmt;

/// How many problems are reported at once.
const DIAGNOSTICS_MAX: usize = 200;

/// A place in one of the files that a definition is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// Which file, in the order in which they were read.
    pub file: u16,
    /// The line, from 1.
    pub line: u32,
    /// The column in letters, from 1.
    pub column: u32,
}

impl At {
    /// The beginning of a file.
    pub fn start_of(file: u16) -> Self {
        Self { file, line: 1, column: 1 }
    }

    pub(crate) fn new(file: u16, line: usize, column: usize) -> Self {
        let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Self { file, line: count(line), column: count(column) }
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file it is in.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

/// Everything that is wrong with a file and those it extends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    files: Vec<String>,
    list: Vec<(At, Diagnostic)>,
    dropped: usize,
}

impl Diagnostics {
    /// No problems yet in `file`.
    pub fn new(file: &str) -> Self {
        Self { files: vec![printable(file)], list: Vec::new(), dropped: 0 }
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The problems by file, in the order of each.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter().map(|(_, problem)| problem)
    }

    /// The file that was loaded; problems may lie in those it extends.
    pub fn file(&self) -> &str {
        self.files.first().map_or("", String::as_str)
    }

    /// Makes a further file known, and gives its number.
    pub(crate) fn add_file(&mut self, name: &str) -> u16 {
        self.files.push(printable(name));
        u16::try_from(self.files.len() - 1).unwrap_or(u16::MAX)
    }

    /// Whether a further problem would only be counted.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= DIAGNOSTICS_MAX
    }

    /// Adds a problem at a place, with what to do about it.
    pub fn push(&mut self, at: At, message: impl Into<String>, hint: Option<String>) {
        if self.is_full() {
            self.dropped += 1;
            return;
        }
        let file = self.files.get(usize::from(at.file)).map_or("", String::as_str).to_owned();
        let problem = Diagnostic {
            file,
            line: at.line as usize,
            column: at.column as usize,
            message: printable(&message.into()),
            hint: hint.map(|hint| printable(&hint)),
        };
        self.list.push((at, problem));
    }

    /// The same, in the order of the files, each once.
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

/// A message quotes the file, and a file can hold what a terminal would act on.
fn printable(text: &str) -> String {
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
