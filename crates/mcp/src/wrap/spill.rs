//! Where the rest of a long result lies until the agent has turned its pages.
//!
//! The files are private, bounded together, and gone when the proxy ends: they hold
//! what tools have said, word for word.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use jackline_journal::{StoreError, write_private};

/// How much lies there at most; the oldest goes first.
const BYTES_MAX: u64 = 256 << 20;

/// A line that ends in the last part of a page ends the page: one in so many parts.
const LINE_END_PART: usize = 4;

/// The files of one session.
#[derive(Debug)]
pub(super) struct Spill {
    directory: PathBuf,
    kept: VecDeque<Kept>,
    next: u64,
    bytes_max: u64,
}

#[derive(Debug, Clone, Copy)]
struct Kept {
    number: u64,
    bytes: u64,
}

/// A part of a text that was kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) text: String,
    pub(super) cursor: Cursor,
    /// How long the whole is.
    pub(super) bytes: u64,
}

impl Page {
    /// Where the next page begins, unless this is the last.
    pub(super) fn next(&self) -> Option<Cursor> {
        let offset = self.cursor.offset + self.text.len() as u64;
        (offset < self.bytes).then_some(Cursor { offset, ..self.cursor })
    }
}

/// A place in a text that was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) number: u64,
    pub(super) offset: u64,
}

impl Cursor {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (number, offset) = text.split_once('-')?;
        Some(Self { number: number.parse().ok()?, offset: offset.parse().ok()? })
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.number, self.offset)
    }
}

/// Why there is no such page.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    /// No result has such a page.
    #[error("no result has a page at `{0}`; take the cursor as the cut result names it")]
    Unknown(String),
    /// The result was let go for newer ones.
    #[error("the result of the page `{0}` is not kept any more; call the tool again, for less")]
    Expired(String),
    /// The file can't be read.
    #[error("the page can't be read: {0}")]
    Io(#[from] io::Error),
}

impl Spill {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, kept: VecDeque::new(), next: 1, bytes_max: BYTES_MAX }
    }

    /// Keeps a text, for as long as newer ones leave room.
    pub(super) fn keep(&mut self, text: &str) -> Result<(u64, PathBuf), StoreError> {
        let (number, bytes) = (self.next, text.len() as u64);
        self.next += 1;
        while self.kept.iter().map(|kept| kept.bytes).sum::<u64>() + bytes > self.bytes_max
            && let Some(oldest) = self.kept.pop_front()
        {
            let _ = fs::remove_file(self.path(oldest.number));
        }
        let path = self.path(number);
        write_private(&path, text.as_bytes())?;
        self.kept.push_back(Kept { number, bytes });
        Ok((number, path))
    }

    /// A page of at most so many bytes.
    pub(super) fn page(&self, cursor: &str, most: usize) -> Result<Page, PageError> {
        let unknown = || PageError::Unknown(cursor.chars().take(40).collect());
        let at = Cursor::parse(cursor).filter(|at| (1..self.next).contains(&at.number));
        let at = at.ok_or_else(unknown)?;
        let kept = self.kept.iter().find(|kept| kept.number == at.number);
        let kept = kept.ok_or_else(|| PageError::Expired(cursor.to_owned()))?;
        let mut file = File::open(self.path(at.number))?;
        file.seek(SeekFrom::Start(at.offset))?;
        // A few more, so that the last letter is whole.
        let mut bytes = Vec::new();
        file.take(most as u64 + 4).read_to_end(&mut bytes)?;
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let whole = error.utf8_error().valid_up_to();
                let mut bytes = error.into_bytes();
                bytes.truncate(whole);
                String::from_utf8(bytes).unwrap_or_default()
            }
        };
        let text = first_part(&text, most);
        if text.is_empty() {
            return Err(unknown());
        }
        Ok(Page { text: text.to_owned(), cursor: at, bytes: kept.bytes })
    }

    /// Lets everything go.
    pub(super) fn remove(&self) {
        if self.next > 1 {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number}.txt"))
    }
}

/// The beginning of a text: whole letters, and whole lines where that costs little.
pub(super) fn first_part(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let part = text.get(..end).unwrap_or_default();
    match part.rfind('\n') {
        Some(line) if line + 1 >= most - most / LINE_END_PART => part.get(..=line).unwrap_or(part),
        _ => part,
    }
}

/// A file as programs name it.
pub(super) fn file_uri(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let mut uri = String::from("file://");
    for byte in path.display().to_string().bytes() {
        if plain(byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spill() -> (tempfile::TempDir, Spill) {
        let home = tempfile::tempdir().unwrap();
        let spill = Spill::new(home.path().join("spill"));
        (home, spill)
    }

    #[test]
    fn pages_together_are_the_whole_text() {
        let (_home, mut spill) = spill();
        let text = "Grüße, Jürgen\n€uro 🦀🦀\n".repeat(50);
        let (number, _) = spill.keep(&text).unwrap();
        for most in [4, 5, 7, 64, 5000] {
            let (mut whole, mut next) = (String::new(), Some(Cursor { number, offset: 0 }));
            while let Some(cursor) = next {
                let page = spill.page(&cursor.to_string(), most).unwrap();
                assert!(page.text.len() <= most);
                whole.push_str(&page.text);
                next = page.next();
            }
            assert_eq!(whole, text, "{most}");
        }
    }

    #[test]
    fn a_cursor_that_nobody_gave_shows_nothing() {
        let (_home, mut spill) = spill();
        spill.keep("äb").unwrap();
        for cursor in ["", "1", "x-y", "0-0", "2-0", "1-1", "1-3", "1-99", "../1-0", "1--1"] {
            assert!(matches!(spill.page(cursor, 10), Err(PageError::Unknown(_))), "{cursor}");
        }
        assert_eq!(spill.page("1-2", 10).unwrap().text, "b");
    }

    #[test]
    fn newer_results_push_older_ones_out() {
        let (_home, mut spill) = spill();
        spill.bytes_max = 10;
        let (_, first) = spill.keep("12345678").unwrap();
        spill.keep("abc").unwrap();
        assert!(!first.exists());
        assert!(matches!(spill.page("1-0", 5), Err(PageError::Expired(_))));
        assert_eq!(spill.page("2-0", 5).unwrap().text, "abc");
        spill.remove();
        assert!(!first.parent().unwrap().exists());
    }
}
