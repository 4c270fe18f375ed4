//! Splits a condition into tokens: numbers, texts, names and signs.

use super::ConditionError;

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConditionToken {
    /// A number without its sign.
    Int(u64),
    Text(String),
    Name(String),
    Sign(&'static str),
    End,
}

impl ConditionToken {
    /// Returns the token as messages show it.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Int(number) => format!("`{number}`"),
            Self::Text(_) => "a text".to_owned(),
            Self::Name(name) => format!("`{name}`"),
            Self::Sign(sign) => format!("`{sign}`"),
            Self::End => "the end".to_owned(),
        }
    }
}

/// The signs; longer signs first, so that they are matched first.
const SIGNS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",",
    "(", ")", "[", "]", "{", "}",
];

/// Splits a condition into tokens, each with its offset in bytes.
pub(super) fn tokenize(text: &str) -> Result<Vec<(usize, ConditionToken)>, ConditionError> {
    let mut reader = Tokenizer { text, offset: 0 };
    let mut tokens = Vec::new();
    loop {
        reader.skip_space();
        let at = reader.offset;
        let token = reader.read_token()?;
        let is_end = token == ConditionToken::End;
        tokens.push((at, token));
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Tokenizer<'t> {
    text: &'t str,
    offset: usize,
}

impl<'t> Tokenizer<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.offset..).unwrap_or_default()
    }

    fn take(&mut self, while_true: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !while_true(c)).unwrap_or(rest.len());
        self.offset += end;
        rest.get(..end).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        loop {
            self.take(|c| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}'));
            if !self.rest().starts_with("//") {
                return;
            }
            self.take(|c| c != '\n');
        }
    }

    fn read_token(&mut self) -> Result<ConditionToken, ConditionError> {
        let Some(first) = self.rest().chars().next() else { return Ok(ConditionToken::End) };
        if first.is_ascii_digit() || self.is_fraction_next() {
            return self.read_number();
        }
        if let Some(token) = self.read_string()? {
            return Ok(token);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let name = self.take(|c| c.is_ascii_alphanumeric() || c == '_');
            return Ok(ConditionToken::Name(name.to_owned()));
        }
        match SIGNS.iter().find(|sign| self.rest().starts_with(**sign)) {
            Some(sign) => {
                self.offset += sign.len();
                Ok(ConditionToken::Sign(sign))
            }
            None => Err(self.unexpected_character(first)),
        }
    }

    fn unexpected_character(&self, c: char) -> ConditionError {
        let wrong = ConditionError::new(self.offset, format!("unexpected `{c}`"));
        match c {
            '=' => wrong.hint("write `==` to compare"),
            '&' => wrong.hint("write `&&` for and"),
            '|' => wrong.hint("write `||` for or"),
            '‘' | '’' | '“' | '”' => wrong.hint("write straight quotes"),
            _ => wrong,
        }
    }

    fn read_number(&mut self) -> Result<ConditionToken, ConditionError> {
        let at = self.offset;
        let written = self.take(|c| c.is_ascii_alphanumeric() || c == '_');
        let hex = written.strip_prefix("0x").or_else(|| written.strip_prefix("0X"));
        let is_float = hex.is_none() && (self.is_fraction_next() || written.contains(['e', 'E']));
        if is_float {
            let message = "decimal numbers are not supported";
            return Err(ConditionError::new(at, message).hint("compare with whole numbers"));
        }
        if let Some(whole) = written.strip_suffix(['u', 'U']) {
            let message = format!("the suffix in `{written}` is not supported");
            return Err(ConditionError::new(at, message).hint(format!("write `{whole}`")));
        }
        let parsed = match hex {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => written.parse(),
        };
        parsed.map(ConditionToken::Int).map_err(|_| {
            let (digits, radix) = hex.map_or((written, 10), |digits| (digits, 16));
            let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
            let what = if is_number { "is too large" } else { "is not a number" };
            ConditionError::new(at, format!("`{written}` {what}"))
        })
    }

    /// Whether a decimal point and a digit come next.
    fn is_fraction_next(&self) -> bool {
        let Some(rest) = self.rest().strip_prefix('.') else { return false };
        rest.starts_with(|c: char| c.is_ascii_digit())
    }

    /// Reads a text if one starts here: with single or triple quotes, raw or with escapes.
    fn read_string(&mut self) -> Result<Option<ConditionToken>, ConditionError> {
        let at = self.offset;
        let rest = self.rest();
        let letters = rest.bytes().take(2).take_while(u8::is_ascii_alphabetic).count();
        let is_quote = |c| matches!(c, '"' | '\'');
        let prefix = rest.split_at_checked(letters).filter(|(_, text)| text.starts_with(is_quote));
        let prefix = prefix.map(|(prefix, _)| prefix);
        let (is_raw, is_bytes) = match prefix {
            Some("") => (false, false),
            Some("r" | "R") => (true, false),
            Some("b" | "B" | "br" | "bR" | "Br" | "BR" | "rb" | "rB" | "Rb" | "RB") => {
                (false, true)
            }
            _ => return Ok(None),
        };
        if is_bytes {
            let message = "bytes are not supported";
            return Err(ConditionError::new(at, message).hint("write a text, without the `b`"));
        }
        self.offset += prefix.map_or(0, str::len);
        let quote = ["\"\"\"", "'''", "\"", "'"]
            .into_iter()
            .find(|quote| self.rest().starts_with(quote))
            .unwrap_or("\"");
        self.offset += quote.len();
        self.read_quoted(at, quote, is_raw).map(|text| Some(ConditionToken::Text(text)))
    }

    /// Reads the rest of the text that starts at `at`, and returns it without its quotes.
    fn read_quoted(
        &mut self,
        at: usize,
        quote: &str,
        is_raw: bool,
    ) -> Result<String, ConditionError> {
        let mut text = String::new();
        loop {
            if self.rest().starts_with(quote) {
                self.offset += quote.len();
                return Ok(text);
            }
            match self.rest().chars().next() {
                None => {
                    return Err(ConditionError::new(
                        at,
                        format!("the text has no closing `{quote}`"),
                    ));
                }
                Some('\n' | '\r') if quote.len() == 1 => {
                    let message = format!("the text has no closing `{quote}` on its line");
                    return Err(ConditionError::new(at, message).hint("write `\\n` for a new line"));
                }
                Some('\\') if !is_raw => text.push(self.read_escape()?),
                Some(c) => {
                    self.offset += c.len_utf8();
                    text.push(c);
                }
            }
        }
    }

    fn read_escape(&mut self) -> Result<char, ConditionError> {
        let at = self.offset;
        let wrong = |what: &str| {
            let hint = "write `\\\\` for a backslash, or r\"…\" for a text without escapes";
            ConditionError::new(at, format!("`{what}` is not an escape")).hint(hint)
        };
        let mut letters = self.rest().chars().skip(1);
        let Some(letter) = letters.next() else { return Err(wrong("\\")) };
        let (skipped, digits, radix) = match letter {
            'x' | 'X' => (2, 2, 16),
            'u' => (2, 4, 16),
            'U' => (2, 8, 16),
            '0'..='3' => (1, 3, 8),
            _ => {
                let c = plain_escape(letter).ok_or_else(|| wrong(&format!("\\{letter}")))?;
                self.offset += 1 + letter.len_utf8();
                return Ok(c);
            }
        };
        let start = self.offset + skipped;
        let code = self
            .text
            .get(start..start + digits)
            .filter(|code| code.chars().all(|c| c.is_digit(radix)))
            .and_then(|code| u32::from_str_radix(code, radix).ok())
            .and_then(char::from_u32)
            .ok_or_else(|| wrong(&format!("\\{letter}")))?;
        self.offset = start + digits;
        Ok(code)
    }
}

fn plain_escape(letter: char) -> Option<char> {
    Some(match letter {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' | '?' | '"' | '\'' | '`' => letter,
        _ => return None,
    })
}
