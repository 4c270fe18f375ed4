//! The printed output of a program: the beginning is stored, the rest is only counted.

use std::borrow::Cow;

use monty_types::{MontyException, PrintWriter, PrintWriterCallback};

/// The printed output of a program.
pub(crate) struct PrintBuffer {
    stored: String,
    bytes: u64,
    bytes_max: usize,
}

impl PrintBuffer {
    pub(crate) fn new(most: usize) -> Self {
        Self { stored: String::new(), bytes: 0, bytes_max: most }
    }

    /// A writer for the interpreter.
    pub(crate) fn writer(&mut self) -> PrintWriter<'_> {
        PrintWriter::Callback(self)
    }

    pub(crate) fn finish(self) -> (String, u64) {
        (self.stored, self.bytes)
    }

    fn add(&mut self, text: &str) {
        // After the first gap nothing more is stored.
        let whole = self.bytes == self.stored.len() as u64;
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        if whole {
            let room = self.bytes_max.saturating_sub(self.stored.len());
            self.stored.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
        }
    }
}

impl PrintWriterCallback for PrintBuffer {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        self.add(&output);
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        self.add(end.encode_utf8(&mut [0; 4]));
        Ok(())
    }
}
