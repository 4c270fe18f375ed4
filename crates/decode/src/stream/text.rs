//! Strings and keys: escapes, UTF-8, and what their schemas say.

use super::alternatives::{Alternatives, Cause, Facts, RuledOut, Standing};
use super::node::Node;
use super::why::Why;

/// How far a string is read.
#[derive(Debug, Default, Clone)]
pub(super) struct Text {
    state: State,
    /// Decoded, as far as somebody wants it.
    pub(super) decoded: Vec<u8>,
    keep: bool,
    /// Whether each byte has to be compared with literals.
    watched: bool,
    characters: u64,
    /// How many characters all schemas allow.
    room: u64,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    #[default]
    Plain,
    /// Within a character of UTF-8: what the next byte may be, how many follow it.
    Tail {
        low: u8,
        high: u8,
        left: u8,
    },
    Slash,
    Hex(Unit),
    /// A high surrogate wants `\`, then `u`.
    High(u16),
    HighSlash(u16),
}

/// A part of `\u` and four digits, after a high surrogate or not.
#[derive(Debug, Clone, Copy)]
struct Unit {
    before: Option<u16>,
    value: u16,
    digits: u32,
}

/// Whether the string goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Within,
    Closed,
}

impl Text {
    /// Begins, as a key whose decoded text is always wanted or as a value.
    pub(super) fn begin(&mut self, keep: bool, alternatives: &Alternatives<'_>) {
        self.state = State::Plain;
        self.decoded.clear();
        self.characters = 0;
        self.keep = keep;
        self.watched = false;
        alternatives.survey(|node| {
            self.keep |= node.text.pattern.is_some();
            self.watched |= node.text.literals.is_some();
        });
        self.keep |= self.watched;
        self.measure(alternatives);
    }

    fn measure(&mut self, alternatives: &Alternatives<'_>) {
        self.room = u64::MAX;
        alternatives.survey(|node| self.room = self.room.min(node.text.max.unwrap_or(u64::MAX)));
    }

    /// Takes as many plain characters as need no look each.
    pub(super) fn run(&mut self, bytes: &[u8]) -> usize {
        if self.watched || !matches!(self.state, State::Plain) {
            return 0;
        }
        let room = usize::try_from(self.room - self.characters.min(self.room));
        let bytes = bytes.get(..room.unwrap_or(usize::MAX).min(bytes.len())).unwrap_or_default();
        let plain = |byte: &u8| (0x20..0x80).contains(byte) && *byte != b'"' && *byte != b'\\';
        let length = bytes.iter().position(|byte| !plain(byte)).unwrap_or(bytes.len());
        if self.keep {
            self.decoded.extend_from_slice(bytes.get(..length).unwrap_or_default());
        }
        self.characters += length as u64;
        length
    }

    pub(super) fn step(
        &mut self,
        byte: u8,
        alternatives: &mut Alternatives<'_>,
    ) -> Result<Progress, Why> {
        self.state = match (self.state, byte) {
            (State::Plain, b'"') => {
                self.end(alternatives)?;
                return Ok(Progress::Closed);
            }
            (State::Plain, b'\\') => {
                self.character(alternatives)?;
                self.escape(Unit { before: None, value: 0, digits: 0 }, alternatives)?;
                State::Slash
            }
            (State::Plain, ..0x20) => {
                return Err(Why::Syntax("a character that needs no escape, or `\"`"));
            }
            (State::Plain, _) => {
                let next = lead(byte).ok_or(Why::Utf8)?;
                self.character(alternatives)?;
                self.push(&[byte], alternatives)?;
                next
            }
            (State::Tail { low, high, left }, _) => {
                if !(low..=high).contains(&byte) {
                    return Err(Why::Utf8);
                }
                self.push(&[byte], alternatives)?;
                match left.checked_sub(1) {
                    Some(left) => State::Tail { low: 0x80, high: 0xbf, left },
                    None => State::Plain,
                }
            }
            (State::Slash, b'u') => State::Hex(Unit { before: None, value: 0, digits: 0 }),
            (State::Slash, _) => {
                let plain =
                    unescaped(byte).ok_or(Why::Syntax("an escape: one of `\"\\/bfnrtu`"))?;
                self.push(&[plain], alternatives)?;
                State::Plain
            }
            (State::Hex(unit), _) => self.hex(unit, byte, alternatives)?,
            (State::High(high), b'\\') => State::HighSlash(high),
            (State::HighSlash(high), b'u') => {
                State::Hex(Unit { before: Some(high), value: 0, digits: 0 })
            }
            (State::High(_) | State::HighSlash(_), _) => {
                return Err(Why::Syntax("`\\u` with the second half of a surrogate pair"));
            }
        };
        Ok(Progress::Within)
    }

    fn hex(
        &mut self,
        unit: Unit,
        byte: u8,
        alternatives: &mut Alternatives<'_>,
    ) -> Result<State, Why> {
        let digit = char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok());
        let digit = digit.ok_or(Why::Syntax("a hexadecimal digit"))?;
        let value = unit.value << 4 | digit;
        let unit = Unit { value, digits: unit.digits + 1, ..unit };
        // The second digit says whether it is a surrogate, and which.
        let half = match (unit.digits, value) {
            (1, 0xd) => return self.go_on(unit, alternatives),
            (2, 0xdc..=0xdf) => Some(Half::Low),
            (2, 0xd8..=0xdb) => Some(Half::High),
            (1 | 2, _) => None,
            _ => return self.go_on(unit, alternatives),
        };
        match (unit.before, half) {
            (None, Some(Half::Low)) => {
                Err(Why::Syntax("a character, not the second half of a surrogate pair"))
            }
            (Some(_), None | Some(Half::High)) => {
                Err(Why::Syntax("the second half of a surrogate pair"))
            }
            _ => self.go_on(unit, alternatives),
        }
    }

    fn go_on(&mut self, unit: Unit, alternatives: &mut Alternatives<'_>) -> Result<State, Why> {
        self.escape(unit, alternatives)?;
        if unit.digits < 4 {
            return Ok(State::Hex(unit));
        }
        if unit.before.is_none() && (0xd800..0xdc00).contains(&unit.value) {
            return Ok(State::High(unit.value));
        }
        let units = unit.before.into_iter().chain([unit.value]);
        let character = char::decode_utf16(units).next().and_then(Result::ok);
        let character = character.ok_or(Why::Syntax("a surrogate pair"))?;
        self.push(character.encode_utf8(&mut [0; 4]).as_bytes(), alternatives)?;
        Ok(State::Plain)
    }

    /// One more character begins.
    fn character(&mut self, alternatives: &mut Alternatives<'_>) -> Result<(), RuledOut> {
        self.characters += 1;
        if self.characters <= self.room {
            return Ok(());
        }
        let characters = self.characters;
        alternatives.sift(|node, _, _| {
            node.text.max.is_some_and(|max| max < characters).then_some(Cause::LengthMax)
        })?;
        self.measure(alternatives);
        Ok(())
    }

    fn push(&mut self, bytes: &[u8], alternatives: &mut Alternatives<'_>) -> Result<(), RuledOut> {
        for byte in bytes {
            if self.watched {
                let at = self.decoded.len();
                alternatives.sift(|node, standing, facts| {
                    let literals = node.text.literals.as_ref()?;
                    narrow(literals, standing, at, *byte);
                    let possible = range(literals, standing).iter().any(|text| facts.free(text));
                    (!possible).then_some(Cause::Literal)
                })?;
            }
            if self.keep {
                self.decoded.push(*byte);
            }
        }
        Ok(())
    }

    /// Whether some literal goes on with a character that such an escape can mean.
    fn escape(&self, unit: Unit, alternatives: &mut Alternatives<'_>) -> Result<(), RuledOut> {
        if !self.watched {
            return Ok(());
        }
        let at = self.decoded.len();
        alternatives.sift(|node, standing, facts| {
            let literals = node.text.literals.as_ref()?;
            let possible = range(literals, standing).iter().any(|text| {
                let next = text.get(at..).and_then(|rest| rest.chars().next());
                next.is_some_and(|next| unit.may_be(next)) && facts.free(text)
            });
            (!possible).then_some(Cause::Literal)
        })
    }

    fn end(&self, alternatives: &mut Alternatives<'_>) -> Result<(), RuledOut> {
        let text = std::cell::OnceCell::new();
        alternatives.sift(|node: &Node, standing, facts| {
            let rules = &node.text;
            if self.characters < rules.min {
                return Some(Cause::LengthMin);
            }
            if let Some(literals) = &rules.literals {
                let whole = range(literals, standing).first();
                if !whole.is_some_and(|text| text.len() == self.decoded.len() && facts.free(text)) {
                    return Some(Cause::Literal);
                }
            }
            let pattern = rules.pattern.as_ref()?;
            let text = text.get_or_init(|| String::from_utf8_lossy(&self.decoded).into());
            (!pattern.check.is_valid(text)).then_some(Cause::Pattern)
        })
    }
}

enum Half {
    High,
    Low,
}

impl Unit {
    fn may_be(self, character: char) -> bool {
        let mut buffer = [0; 2];
        let (own, before) = match (&*character.encode_utf16(&mut buffer), self.before) {
            ([own, ..], None) => (*own, None),
            ([high, low], Some(_)) => (*low, Some(*high)),
            _ => return false,
        };
        let rest = 4 * (4 - self.digits.min(4));
        before == self.before && u32::from(own) >> rest == u32::from(self.value)
    }
}

impl Facts<'_> {
    /// Whether a key is not there yet; any text is, as a value.
    fn free(&self, text: &str) -> bool {
        self.around.is_none_or(|keys| !keys.contains(text))
    }
}

/// The literals that are still possible.
pub(super) fn range<'l>(literals: &'l [String], standing: &Standing) -> &'l [String] {
    literals.get(standing.low..standing.high.min(literals.len())).unwrap_or_default()
}

/// Leaves those that have this byte at this place; they are sorted, and equal before it.
fn narrow(literals: &[String], standing: &mut Standing, at: usize, byte: u8) {
    let possible = range(literals, standing);
    let byte_of = |text: &String| text.as_bytes().get(at).copied();
    let low = possible.partition_point(|text| byte_of(text) < Some(byte));
    let high = possible.partition_point(|text| byte_of(text) <= Some(byte));
    (standing.low, standing.high) = (standing.low + low, standing.low + high);
}

/// What follows the first byte of a character; none for a byte that begins none.
fn lead(byte: u8) -> Option<State> {
    let (low, high, left) = match byte {
        ..0x80 => return Some(State::Plain),
        0xc2..=0xdf => (0x80, 0xbf, 0),
        0xe0 => (0xa0, 0xbf, 1),
        0xed => (0x80, 0x9f, 1),
        0xe1..=0xef => (0x80, 0xbf, 1),
        0xf0 => (0x90, 0xbf, 2),
        0xf1..=0xf3 => (0x80, 0xbf, 2),
        0xf4 => (0x80, 0x8f, 2),
        _ => return None,
    };
    Some(State::Tail { low, high, left })
}

fn unescaped(byte: u8) -> Option<u8> {
    Some(match byte {
        b'"' | b'\\' | b'/' => byte,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    })
}
