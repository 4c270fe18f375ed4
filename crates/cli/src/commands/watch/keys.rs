//! Decodes pressed keys from the bytes that a terminal sends.

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PressedKey {
    Char(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Tab,
    Enter,
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
}

const ESCAPE: u8 = 0x1b;

/// The maximum length of an escape sequence. Longer sequences are ignored.
const SEQUENCE_BYTES_MAX: usize = 32;

/// Decodes bytes into keys. Unknown sequences are ignored.
#[derive(Debug, Default)]
pub(super) struct KeyDecoder {
    /// An incomplete escape sequence.
    pending: Vec<u8>,
    /// Whether the input is pasted text, which must not count as keys.
    pasting: bool,
}

impl KeyDecoder {
    /// The keys in some bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<PressedKey> {
        bytes.iter().filter_map(|byte| self.take(*byte)).collect()
    }

    /// Whether an escape sequence is incomplete.
    pub(super) fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Handles a timeout without more bytes: a single escape byte is then the Escape key.
    pub(super) fn end_of_input(&mut self) -> Option<PressedKey> {
        let alone = self.pending == [ESCAPE] && !self.pasting;
        self.pending.clear();
        alone.then_some(PressedKey::Escape)
    }

    fn take(&mut self, byte: u8) -> Option<PressedKey> {
        if self.pending.is_empty() {
            if byte == ESCAPE {
                self.pending.push(byte);
                return None;
            }
            return if self.pasting { None } else { single_byte_key(byte) };
        }
        self.pending.push(byte);
        let sequence = match self.pending.get(1..) {
            // `ESC [`, parameters and one letter; or `ESC O` and a letter.
            Some([b'[', .., b'@'..=b'~']) if self.pending.len() > 2 => self.pending.split_off(2),
            Some([b'O', _]) => self.pending.split_off(2),
            Some([b'[', ..] | [b'O']) if self.pending.len() < SEQUENCE_BYTES_MAX => return None,
            _ => Vec::new(),
        };
        self.pending.clear();
        match sequence.as_slice() {
            b"200~" => self.pasting = true,
            b"201~" => self.pasting = false,
            _ if self.pasting => {}
            b"A" => return Some(PressedKey::Up),
            b"B" => return Some(PressedKey::Down),
            b"5~" => return Some(PressedKey::PageUp),
            b"6~" => return Some(PressedKey::PageDown),
            b"H" | b"1~" => return Some(PressedKey::Home),
            b"F" | b"4~" => return Some(PressedKey::End),
            _ => {}
        }
        None
    }
}

fn single_byte_key(byte: u8) -> Option<PressedKey> {
    match byte {
        0x03 => Some(PressedKey::Interrupt),
        0x1a => Some(PressedKey::Suspend),
        b'\t' => Some(PressedKey::Tab),
        b'\r' | b'\n' => Some(PressedKey::Enter),
        b' '..=b'~' => Some(PressedKey::Char(char::from(byte))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_decoded_in_any_chunks() {
        let bytes = b"ja\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~\r\t\x03\x1a?";
        let keys = [
            PressedKey::Char('j'),
            PressedKey::Char('a'),
            PressedKey::Up,
            PressedKey::Down,
            PressedKey::PageUp,
            PressedKey::PageDown,
            PressedKey::Home,
            PressedKey::End,
            PressedKey::Enter,
            PressedKey::Tab,
            PressedKey::Interrupt,
            PressedKey::Suspend,
            PressedKey::Char('?'),
        ];
        assert_eq!(KeyDecoder::default().feed(bytes), keys);
        let mut decoder = KeyDecoder::default();
        let one_by_one: Vec<PressedKey> =
            bytes.chunks(1).flat_map(|byte| decoder.feed(byte)).collect();
        assert_eq!(one_by_one, keys);
    }

    #[test]
    fn a_single_escape_is_a_key_after_the_timeout() {
        let mut decoder = KeyDecoder::default();
        assert_eq!(decoder.feed(b"\x1b"), []);
        assert!(decoder.is_waiting());
        assert_eq!(decoder.end_of_input(), Some(PressedKey::Escape));
        assert_eq!(decoder.end_of_input(), None);
        assert_eq!(decoder.feed(b"q"), [PressedKey::Char('q')]);
    }

    #[test]
    fn pasted_text_presses_no_keys() {
        let mut decoder = KeyDecoder::default();
        assert_eq!(decoder.feed(b"\x1b[200~says y\r\x1b[A\x03\x1b[201~k"), [PressedKey::Char('k')]);
        assert_eq!(decoder.feed("\u{e4}\u{1f600}k".as_bytes()), [PressedKey::Char('k')]);
    }

    #[test]
    fn an_invalid_sequence_is_skipped() {
        let mut decoder = KeyDecoder::default();
        let mut long = b"\x1b[".to_vec();
        long.extend([b'1'; 100]);
        decoder.feed(&long);
        decoder.feed(b"\x1b[99;99u\x1b[<0;1;1M\x1bx");
        assert_eq!(decoder.feed(b"q"), [PressedKey::Char('q')]);
    }
}
