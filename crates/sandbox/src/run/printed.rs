//! What a program prints: its beginning is kept, the rest counted.

use std::borrow::Cow;

use monty_types::{MontyException, PrintWriter, PrintWriterCallback};

/// What a program printed.
pub(crate) struct Printed {
    kept: String,
    bytes: u64,
    most: usize,
}

impl Printed {
    pub(crate) fn new(most: usize) -> Self {
        Self { kept: String::new(), bytes: 0, most }
    }

    /// What the interpreter prints to.
    pub(crate) fn writer(&mut self) -> PrintWriter<'_> {
        PrintWriter::Callback(self)
    }

    pub(crate) fn finish(self) -> (String, u64) {
        (self.kept, self.bytes)
    }

    fn add(&mut self, text: &str) {
        // Once something was left out, nothing is kept that came after it.
        let whole = self.bytes == self.kept.len() as u64;
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        if whole {
            let room = self.most.saturating_sub(self.kept.len());
            self.kept.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
        }
    }
}

impl PrintWriterCallback for Printed {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        self.add(&output);
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        self.add(end.encode_utf8(&mut [0; 4]));
        Ok(())
    }
}
