//! What was pressed, from the bytes that a terminal sends.

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
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

/// How long a sequence may be; what is longer is no key.
const SEQUENCE_MAX: usize = 32;

/// Makes keys of bytes. What it does not know it passes over.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// A sequence that has begun and not ended.
    pending: Vec<u8>,
    /// Text that is pasted presses no keys.
    pasting: bool,
}

impl Decoder {
    /// The keys in some bytes.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        bytes.iter().filter_map(|byte| self.take(*byte)).collect()
    }

    /// Whether it has to be waited for what follows.
    pub(super) fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Nothing follows: an escape that stands alone is the key.
    pub(super) fn settle(&mut self) -> Option<Key> {
        let alone = self.pending == [ESCAPE] && !self.pasting;
        self.pending.clear();
        alone.then_some(Key::Escape)
    }

    fn take(&mut self, byte: u8) -> Option<Key> {
        if self.pending.is_empty() {
            if byte == ESCAPE {
                self.pending.push(byte);
                return None;
            }
            return if self.pasting { None } else { simple(byte) };
        }
        self.pending.push(byte);
        let sequence = match self.pending.get(1..) {
            // `ESC [`, parameters, one letter; or `ESC O` and a letter.
            Some([b'[', .., b'@'..=b'~']) if self.pending.len() > 2 => self.pending.split_off(2),
            Some([b'O', _]) => self.pending.split_off(2),
            Some([b'[', ..] | [b'O']) if self.pending.len() < SEQUENCE_MAX => return None,
            _ => Vec::new(),
        };
        self.pending.clear();
        match sequence.as_slice() {
            b"200~" => self.pasting = true,
            b"201~" => self.pasting = false,
            _ if self.pasting => {}
            b"A" => return Some(Key::Up),
            b"B" => return Some(Key::Down),
            b"5~" => return Some(Key::PageUp),
            b"6~" => return Some(Key::PageDown),
            b"H" | b"1~" => return Some(Key::Home),
            b"F" | b"4~" => return Some(Key::End),
            _ => {}
        }
        None
    }
}

fn simple(byte: u8) -> Option<Key> {
    match byte {
        0x03 => Some(Key::Interrupt),
        0x1a => Some(Key::Suspend),
        b'\t' => Some(Key::Tab),
        b'\r' | b'\n' => Some(Key::Enter),
        b' '..=b'~' => Some(Key::Char(char::from(byte))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart_however_they_arrive() {
        let bytes = b"ja\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~\r\t\x03\x1a?";
        let keys = [
            Key::Char('j'),
            Key::Char('a'),
            Key::Up,
            Key::Down,
            Key::PageUp,
            Key::PageDown,
            Key::Home,
            Key::End,
            Key::Enter,
            Key::Tab,
            Key::Interrupt,
            Key::Suspend,
            Key::Char('?'),
        ];
        assert_eq!(Decoder::default().feed(bytes), keys);
        let mut decoder = Decoder::default();
        let one_by_one: Vec<Key> = bytes.chunks(1).flat_map(|byte| decoder.feed(byte)).collect();
        assert_eq!(one_by_one, keys);
    }

    #[test]
    fn an_escape_alone_is_a_key_once_nothing_follows() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.feed(b"\x1b"), []);
        assert!(decoder.is_waiting());
        assert_eq!(decoder.settle(), Some(Key::Escape));
        assert_eq!(decoder.settle(), None);
        assert_eq!(decoder.feed(b"q"), [Key::Char('q')]);
    }

    #[test]
    fn what_is_pasted_presses_nothing() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.feed(b"\x1b[200~says y\r\x1b[A\x03\x1b[201~k"), [Key::Char('k')]);
        assert_eq!(decoder.feed("\u{e4}\u{1f600}k".as_bytes()), [Key::Char('k')]);
    }

    #[test]
    fn a_sequence_that_is_none_ends() {
        let mut decoder = Decoder::default();
        let mut long = b"\x1b[".to_vec();
        long.extend([b'1'; 100]);
        decoder.feed(&long);
        decoder.feed(b"\x1b[99;99u\x1b[<0;1;1M\x1bx");
        assert_eq!(decoder.feed(b"q"), [Key::Char('q')]);
    }
}
