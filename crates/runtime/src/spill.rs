//! Files with whole outputs, of which the agent is shown one page.
//!
//! The files are private, and their total size is bounded. They contain tool output unchanged. They
//! are removed with the proxy in front of a server, or with the session.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use jackline_engine::output_page::first_part;
use jackline_journal::{StoreError, write_private};

/// The largest total size; the oldest files are removed first.
const BYTES_MAX: u64 = 256 << 20;

/// The output files of one session.
#[derive(Debug)]
pub struct Spill {
    directory: PathBuf,
    /// The files, the oldest first.
    files: VecDeque<SpilledFile>,
    next: u64,
    bytes_max: u64,
}

#[derive(Debug, Clone, Copy)]
struct SpilledFile {
    number: u64,
    bytes: u64,
}

impl SpilledFile {
    fn of(entry: &fs::DirEntry) -> Option<Self> {
        let name = entry.file_name();
        let number = name.to_str()?.strip_suffix(".txt")?.parse().ok()?;
        Some(Self { number, bytes: entry.metadata().ok()?.len() })
    }
}

/// A part of a stored output.
#[derive(Debug, PartialEq, Eq)]
pub struct OutputPage {
    /// The text of this part.
    pub text: String,
    /// Its position.
    pub cursor: PageCursor,
    /// The length of the whole output.
    pub bytes: u64,
}

impl OutputPage {
    /// The position of the next page; `None` for the last page.
    pub fn next(&self) -> Option<PageCursor> {
        let offset = self.cursor.offset + self.text.len() as u64;
        (offset < self.bytes).then_some(PageCursor { offset, ..self.cursor })
    }
}

/// A position in a stored output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageCursor {
    /// The number of the output.
    pub number: u64,
    /// The number of bytes before the position.
    pub offset: u64,
}

impl PageCursor {
    /// Parses the form that [`Display`](std::fmt::Display) writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, offset) = text.split_once('-')?;
        Some(Self { number: number.parse().ok()?, offset: offset.parse().ok()? })
    }
}

impl std::fmt::Display for PageCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.number, self.offset)
    }
}

/// Why a page is not available.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// No output has such a page.
    #[error(
        "there is no page `{0}`; a cursor is two numbers such as `1-31744`; the truncated result contains it"
    )]
    Unknown(String),
    /// The output was removed to make room for newer ones.
    #[error(
        "the result of the page `{0}` is no longer stored; call the tool again and request less output"
    )]
    Expired(String),
    /// The file can't be read.
    #[error("can't read the page: {0}")]
    Io(#[from] io::Error),
}

impl Spill {
    /// Opens a directory, with the files that an earlier process left there.
    pub fn new(directory: PathBuf) -> Self {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let mut files: Vec<SpilledFile> =
            entries.filter_map(|entry| SpilledFile::of(&entry)).collect();
        files.sort_unstable_by_key(|file| file.number);
        let next = files.last().map_or(1, |last| last.number + 1);
        Self { directory, files: files.into(), next, bytes_max: BYTES_MAX }
    }

    /// Stores a text until newer ones need its space.
    pub fn store(&mut self, text: &str) -> Result<(u64, PathBuf), StoreError> {
        let bytes = text.len() as u64;
        while self.files.iter().map(|kept| kept.bytes).sum::<u64>() + bytes > self.bytes_max
            && let Some(oldest) = self.files.pop_front()
        {
            let _ = fs::remove_file(self.path(oldest.number));
        }
        let written = self.directory.join(format!(".{}", std::process::id()));
        write_private(&written, text.as_bytes())?;
        let named = self.name(&written);
        let _ = fs::remove_file(&written);
        let (number, path) = named?;
        self.files.push_back(SpilledFile { number, bytes });
        Ok((number, path))
    }

    /// Gives a file the next free number. Another process may store an output at the same time.
    fn name(&mut self, written: &Path) -> Result<(u64, PathBuf), StoreError> {
        loop {
            let number = self.next;
            self.next += 1;
            let path = self.path(number);
            match fs::hard_link(written, &path) {
                Ok(()) => return Ok((number, path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => {
                    return Err(StoreError::Io { what: "name a stored output", source });
                }
            }
        }
    }

    /// A page of at most this many bytes.
    pub fn page(&self, cursor: &str, most: usize) -> Result<OutputPage, PageError> {
        let unknown = || PageError::Unknown(cursor.chars().take(40).collect());
        let at = PageCursor::parse(cursor).filter(|at| (1..self.next).contains(&at.number));
        let at = at.ok_or_else(unknown)?;
        let file_entry = self.files.iter().find(|file_entry| file_entry.number == at.number);
        let file_entry = file_entry.ok_or_else(|| PageError::Expired(cursor.to_owned()))?;
        let mut file = File::open(self.path(at.number))?;
        file.seek(SeekFrom::Start(at.offset))?;
        // Read a few more bytes, so that the last character is complete.
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
        Ok(OutputPage { text: text.to_owned(), cursor: at, bytes: file_entry.bytes })
    }

    /// Removes all files.
    pub fn remove(&self) {
        if self.next > 1 {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number}.txt"))
    }
}

/// The `file:` URI of a path.
pub fn file_uri(path: &Path) -> String {
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
        let (number, _) = spill.store(&text).unwrap();
        for most in [4, 5, 7, 64, 5000] {
            let (mut whole, mut next) = (String::new(), Some(PageCursor { number, offset: 0 }));
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
    fn an_invalid_cursor_shows_nothing() {
        let (_home, mut spill) = spill();
        spill.store("äb").unwrap();
        for cursor in ["", "1", "x-y", "0-0", "2-0", "1-1", "1-3", "1-99", "../1-0", "1--1"] {
            assert!(matches!(spill.page(cursor, 10), Err(PageError::Unknown(_))), "{cursor}");
        }
        assert_eq!(spill.page("1-2", 10).unwrap().text, "b");
    }

    #[test]
    fn the_next_process_continues_the_numbers() {
        let (home, mut first) = spill();
        let mut other = Spill::new(home.path().join("spill"));
        assert_eq!(first.store("one").unwrap().0, 1);
        assert_eq!(other.store("two").unwrap().0, 2, "at the same time");
        let mut next = Spill::new(home.path().join("spill"));
        next.bytes_max = 8;
        assert_eq!(next.store("three").unwrap().0, 3);
        assert_eq!(next.page("2-0", 9).unwrap().text, "two");
        assert!(matches!(next.page("1-0", 9), Err(PageError::Expired(_))));
    }

    #[test]
    fn newer_results_push_older_ones_out() {
        let (_home, mut spill) = spill();
        spill.bytes_max = 10;
        let (_, first) = spill.store("12345678").unwrap();
        spill.store("abc").unwrap();
        assert!(!first.exists());
        assert!(matches!(spill.page("1-0", 5), Err(PageError::Expired(_))));
        assert_eq!(spill.page("2-0", 5).unwrap().text, "abc");
        spill.remove();
        assert!(!first.parent().unwrap().exists());
    }
}
