//! Text out of the bytes of tokens, which may end in the middle of a character.

/// Takes bytes, and gives text.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// The beginning of a character.
    begun: Vec<u8>,
}

impl Words {
    /// Takes more bytes, and gives what is whole now. What can't become a character is told
    /// as one that says so.
    pub(super) fn take(&mut self, more: &[u8]) -> String {
        self.begun.extend_from_slice(more);
        let mut text = String::new();
        let mut kept = 0;
        for chunk in self.begun.utf8_chunks() {
            text.push_str(chunk.valid());
            let rest = chunk.invalid();
            // Only the last one can be the beginning of something.
            let begins = std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
            if begins {
                kept = rest.len();
            } else if !rest.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.begun.drain(..self.begun.len().saturating_sub(kept));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_come_whole_however_they_are_split() {
        let text = "aé😀z";
        let mut words = Words::default();
        let told: Vec<String> = text.bytes().map(|byte| words.take(&[byte])).collect();
        assert_eq!(told.concat(), text);
        assert_eq!(told[1], "");
        assert_eq!(Words::default().take(b"a\xffb\xf0\x9f"), "a\u{fffd}b");
    }
}
