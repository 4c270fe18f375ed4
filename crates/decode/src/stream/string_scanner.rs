//! Checks strings and keys: escapes, UTF-8 and the rules of their schemas.

use super::refusal_reason::RefusalReason;
use super::schema_alternatives::{
    ActiveSchema, RuleOutCause, SchemaAlternatives, SchemaRuledOut, ValueFacts,
};
use super::schema_node::SchemaNode;

/// The state of a string that is being read.
#[derive(Debug, Default, Clone)]
pub(super) struct StringScanner {
    state: StringState,
    /// The decoded text, if the schemas or the caller need it.
    pub(super) decoded: Vec<u8>,
    decodes_text: bool,
    /// Whether each byte must be compared with listed strings.
    compares_literals: bool,
    characters: u64,
    /// How many characters all schemas allow.
    characters_max: u64,
}

#[derive(Debug, Default, Clone, Copy)]
enum StringState {
    #[default]
    Plain,
    /// Inside a UTF-8 character: the range of the next byte, and how many bytes follow it.
    InCharacter {
        low: u8,
        high: u8,
        left: u8,
    },
    Backslash,
    Hex(EscapeUnit),
    /// After a high surrogate: `\` and `u` must follow.
    HighSurrogate(u16),
    HighSurrogateBackslash(u16),
}

/// An escape `\u` of which some digits are read, and the high surrogate before it.
#[derive(Debug, Clone, Copy)]
struct EscapeUnit {
    high_surrogate: Option<u16>,
    value: u16,
    digits: u32,
}

/// Whether the string continues.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StringProgress {
    Within,
    Closed,
}

impl StringScanner {
    /// Starts a string. `keep` is true for a key, whose decoded text is always needed.
    pub(super) fn begin_string(&mut self, keep: bool, alternatives: &SchemaAlternatives<'_>) {
        self.state = StringState::Plain;
        self.decoded.clear();
        self.characters = 0;
        self.decodes_text = keep;
        self.compares_literals = false;
        alternatives.visit_schemas(|node| {
            self.decodes_text |= node.text.pattern.is_some();
            self.compares_literals |= node.text.literals.is_some();
        });
        self.decodes_text |= self.compares_literals;
        self.update_characters_max(alternatives);
    }

    fn update_characters_max(&mut self, alternatives: &SchemaAlternatives<'_>) {
        self.characters_max = u64::MAX;
        alternatives.visit_schemas(|node| {
            self.characters_max = self.characters_max.min(node.text.max.unwrap_or(u64::MAX));
        });
    }

    /// Reads plain characters that need no separate check, and returns their number.
    pub(super) fn read_plain_run(&mut self, bytes: &[u8]) -> usize {
        if self.compares_literals || !matches!(self.state, StringState::Plain) {
            return 0;
        }
        let room = usize::try_from(self.characters_max - self.characters.min(self.characters_max));
        let bytes = bytes.get(..room.unwrap_or(usize::MAX).min(bytes.len())).unwrap_or_default();
        let plain = |byte: &u8| (0x20..0x80).contains(byte) && *byte != b'"' && *byte != b'\\';
        let length = bytes.iter().position(|byte| !plain(byte)).unwrap_or(bytes.len());
        if self.decodes_text {
            self.decoded.extend_from_slice(bytes.get(..length).unwrap_or_default());
        }
        self.characters += length as u64;
        length
    }

    pub(super) fn read_byte(
        &mut self,
        byte: u8,
        alternatives: &mut SchemaAlternatives<'_>,
    ) -> Result<StringProgress, RefusalReason> {
        self.state = match (self.state, byte) {
            (StringState::Plain, b'"') => {
                self.check_string(alternatives)?;
                return Ok(StringProgress::Closed);
            }
            (StringState::Plain, b'\\') => {
                self.count_character(alternatives)?;
                self.check_escape(
                    EscapeUnit { high_surrogate: None, value: 0, digits: 0 },
                    alternatives,
                )?;
                StringState::Backslash
            }
            (StringState::Plain, ..0x20) => {
                return Err(RefusalReason::Syntax("a character that needs no escape, or `\"`"));
            }
            (StringState::Plain, _) => {
                let next = state_after_first_byte(byte).ok_or(RefusalReason::Utf8)?;
                self.count_character(alternatives)?;
                self.push_bytes(&[byte], alternatives)?;
                next
            }
            (StringState::InCharacter { low, high, left }, _) => {
                if !(low..=high).contains(&byte) {
                    return Err(RefusalReason::Utf8);
                }
                self.push_bytes(&[byte], alternatives)?;
                match left.checked_sub(1) {
                    Some(left) => StringState::InCharacter { low: 0x80, high: 0xbf, left },
                    None => StringState::Plain,
                }
            }
            (StringState::Backslash, b'u') => {
                StringState::Hex(EscapeUnit { high_surrogate: None, value: 0, digits: 0 })
            }
            (StringState::Backslash, _) => {
                let plain = unescape_byte(byte)
                    .ok_or(RefusalReason::Syntax("an escape: one of `\"\\/bfnrtu`"))?;
                self.push_bytes(&[plain], alternatives)?;
                StringState::Plain
            }
            (StringState::Hex(unit), _) => self.read_hex_digit(unit, byte, alternatives)?,
            (StringState::HighSurrogate(high), b'\\') => StringState::HighSurrogateBackslash(high),
            (StringState::HighSurrogateBackslash(high), b'u') => {
                StringState::Hex(EscapeUnit { high_surrogate: Some(high), value: 0, digits: 0 })
            }
            (StringState::HighSurrogate(_) | StringState::HighSurrogateBackslash(_), _) => {
                return Err(RefusalReason::Syntax(
                    "`\\u` with the second half of a surrogate pair",
                ));
            }
        };
        Ok(StringProgress::Within)
    }

    fn read_hex_digit(
        &mut self,
        unit: EscapeUnit,
        byte: u8,
        alternatives: &mut SchemaAlternatives<'_>,
    ) -> Result<StringState, RefusalReason> {
        let digit = char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok());
        let digit = digit.ok_or(RefusalReason::Syntax("a hexadecimal digit"))?;
        let value = unit.value << 4 | digit;
        let unit = EscapeUnit { value, digits: unit.digits + 1, ..unit };
        // The second digit shows whether this is a surrogate, and which half.
        let half = match (unit.digits, value) {
            (1, 0xd) => return self.continue_escape(unit, alternatives),
            (2, 0xdc..=0xdf) => Some(SurrogateHalf::Low),
            (2, 0xd8..=0xdb) => Some(SurrogateHalf::High),
            (1 | 2, _) => None,
            _ => return self.continue_escape(unit, alternatives),
        };
        match (unit.high_surrogate, half) {
            (None, Some(SurrogateHalf::Low)) => {
                Err(RefusalReason::Syntax("a character, not the second half of a surrogate pair"))
            }
            (Some(_), None | Some(SurrogateHalf::High)) => {
                Err(RefusalReason::Syntax("the second half of a surrogate pair"))
            }
            _ => self.continue_escape(unit, alternatives),
        }
    }

    fn continue_escape(
        &mut self,
        unit: EscapeUnit,
        alternatives: &mut SchemaAlternatives<'_>,
    ) -> Result<StringState, RefusalReason> {
        self.check_escape(unit, alternatives)?;
        if unit.digits < 4 {
            return Ok(StringState::Hex(unit));
        }
        if unit.high_surrogate.is_none() && (0xd800..0xdc00).contains(&unit.value) {
            return Ok(StringState::HighSurrogate(unit.value));
        }
        let units = unit.high_surrogate.into_iter().chain([unit.value]);
        let character = char::decode_utf16(units).next().and_then(Result::ok);
        let character = character.ok_or(RefusalReason::Syntax("a surrogate pair"))?;
        self.push_bytes(character.encode_utf8(&mut [0; 4]).as_bytes(), alternatives)?;
        Ok(StringState::Plain)
    }

    /// Counts a new character and checks the maximum length.
    fn count_character(
        &mut self,
        alternatives: &mut SchemaAlternatives<'_>,
    ) -> Result<(), SchemaRuledOut> {
        self.characters += 1;
        if self.characters <= self.characters_max {
            return Ok(());
        }
        let characters = self.characters;
        alternatives.rule_out_schemas(|node, _, _| {
            node.text.max.is_some_and(|max| max < characters).then_some(RuleOutCause::LengthMax)
        })?;
        self.update_characters_max(alternatives);
        Ok(())
    }

    fn push_bytes(
        &mut self,
        bytes: &[u8],
        alternatives: &mut SchemaAlternatives<'_>,
    ) -> Result<(), SchemaRuledOut> {
        for byte in bytes {
            if self.compares_literals {
                let at = self.decoded.len();
                alternatives.rule_out_schemas(|node, active, facts| {
                    let literals = node.text.literals.as_ref()?;
                    narrow_literals(literals, active, at, *byte);
                    let possible = possible_literals(literals, active)
                        .iter()
                        .any(|text| facts.is_key_free(text));
                    (!possible).then_some(RuleOutCause::Literal)
                })?;
            }
            if self.decodes_text {
                self.decoded.push(*byte);
            }
        }
        Ok(())
    }

    /// Checks that some listed string continues with a character that the escape can mean.
    fn check_escape(
        &self,
        unit: EscapeUnit,
        alternatives: &mut SchemaAlternatives<'_>,
    ) -> Result<(), SchemaRuledOut> {
        if !self.compares_literals {
            return Ok(());
        }
        let at = self.decoded.len();
        alternatives.rule_out_schemas(|node, active, facts| {
            let literals = node.text.literals.as_ref()?;
            let possible = possible_literals(literals, active).iter().any(|text| {
                let next = text.get(at..).and_then(|rest| rest.chars().next());
                next.is_some_and(|next| unit.can_be(next)) && facts.is_key_free(text)
            });
            (!possible).then_some(RuleOutCause::Literal)
        })
    }

    fn check_string(
        &self,
        alternatives: &mut SchemaAlternatives<'_>,
    ) -> Result<(), SchemaRuledOut> {
        let text = std::cell::OnceCell::new();
        alternatives.rule_out_schemas(|node: &SchemaNode, active, facts| {
            let rules = &node.text;
            if self.characters < rules.min {
                return Some(RuleOutCause::LengthMin);
            }
            if let Some(literals) = &rules.literals {
                let whole = possible_literals(literals, active).first();
                if !whole
                    .is_some_and(|text| text.len() == self.decoded.len() && facts.is_key_free(text))
                {
                    return Some(RuleOutCause::Literal);
                }
            }
            let pattern = rules.pattern.as_ref()?;
            let text = text.get_or_init(|| String::from_utf8_lossy(&self.decoded).into());
            (!pattern.check.is_valid(text)).then_some(RuleOutCause::Pattern)
        })
    }
}

enum SurrogateHalf {
    High,
    Low,
}

impl EscapeUnit {
    fn can_be(self, character: char) -> bool {
        let mut buffer = [0; 2];
        let (own, before) = match (&*character.encode_utf16(&mut buffer), self.high_surrogate) {
            ([own, ..], None) => (*own, None),
            ([high, low], Some(_)) => (*low, Some(*high)),
            _ => return false,
        };
        let rest = 4 * (4 - self.digits.min(4));
        before == self.high_surrogate && u32::from(own) >> rest == u32::from(self.value)
    }
}

impl ValueFacts<'_> {
    /// Whether the object does not have this key yet. Always true for a value.
    fn is_key_free(&self, text: &str) -> bool {
        self.outer_keys.is_none_or(|keys| !keys.contains(text))
    }
}

/// The literals that are still possible.
pub(super) fn possible_literals<'l>(literals: &'l [String], active: &ActiveSchema) -> &'l [String] {
    literals.get(active.low..active.high.min(literals.len())).unwrap_or_default()
}

/// Narrows the range to literals with this byte at this position. The literals are sorted,
/// and all in the range are equal before this position.
fn narrow_literals(literals: &[String], active: &mut ActiveSchema, at: usize, byte: u8) {
    let possible = possible_literals(literals, active);
    let byte_of = |text: &String| text.as_bytes().get(at).copied();
    let low = possible.partition_point(|text| byte_of(text) < Some(byte));
    let high = possible.partition_point(|text| byte_of(text) <= Some(byte));
    (active.low, active.high) = (active.low + low, active.low + high);
}

/// The state after the first byte of a character. `None` if no character starts with it.
fn state_after_first_byte(byte: u8) -> Option<StringState> {
    let (low, high, left) = match byte {
        ..0x80 => return Some(StringState::Plain),
        0xc2..=0xdf => (0x80, 0xbf, 0),
        0xe0 => (0xa0, 0xbf, 1),
        0xed => (0x80, 0x9f, 1),
        0xe1..=0xef => (0x80, 0xbf, 1),
        0xf0 => (0x90, 0xbf, 2),
        0xf1..=0xf3 => (0x80, 0xbf, 2),
        0xf4 => (0x80, 0x8f, 2),
        _ => return None,
    };
    Some(StringState::InCharacter { low, high, left })
}

fn unescape_byte(byte: u8) -> Option<u8> {
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
