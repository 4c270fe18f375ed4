//! Decodes the bytes of tokens, which may end within a character, to text.

/// Decodes bytes to text.
#[derive(Debug, Default)]
pub(super) struct TokenDecoder {
    /// The first bytes of an incomplete character.
    incomplete: Vec<u8>,
}

impl TokenDecoder {
    /// Adds bytes, and returns the complete characters. Invalid bytes become replacement
    /// characters.
    pub(super) fn decode(&mut self, more: &[u8]) -> String {
        self.incomplete.extend_from_slice(more);
        let mut text = String::new();
        let mut rest_bytes = 0;
        for chunk in self.incomplete.utf8_chunks() {
            text.push_str(chunk.valid());
            let rest = chunk.invalid();
            // Only the last chunk can be an incomplete character.
            let is_incomplete =
                std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
            if is_incomplete {
                rest_bytes = rest.len();
            } else if !rest.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.incomplete.drain(..self.incomplete.len().saturating_sub(rest_bytes));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_characters_are_joined() {
        let text = "aé😀z";
        let mut words = TokenDecoder::default();
        let pieces: Vec<String> = text.bytes().map(|byte| words.decode(&[byte])).collect();
        assert_eq!(pieces.concat(), text);
        assert_eq!(pieces[1], "");
        assert_eq!(TokenDecoder::default().decode(b"a\xffb\xf0\x9f"), "a\u{fffd}b");
    }
}
