//! The words of a condition: numbers, texts, names and signs.

use super::Wrong;

/// One word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A number, without the sign that may stand before it.
    Int(u64),
    Text(String),
    Name(String),
    Sign(&'static str),
    End,
}

impl Token {
    /// The word as a message shows it.
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

/// Longer ones first.
const SIGNS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",",
    "(", ")", "[", "]", "{", "}",
];

/// Cuts a condition into its words, each with the byte where it begins.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Wrong> {
    let mut reader = Reader { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        reader.skip_space();
        let at = reader.at;
        let token = reader.token()?;
        let is_end = token == Token::End;
        tokens.push((at, token));
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn take(&mut self, while_true: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !while_true(c)).unwrap_or(rest.len());
        self.at += end;
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

    fn token(&mut self) -> Result<Token, Wrong> {
        let Some(first) = self.rest().chars().next() else { return Ok(Token::End) };
        if first.is_ascii_digit() || self.fraction() {
            return self.number();
        }
        if let Some(token) = self.string()? {
            return Ok(token);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let name = self.take(|c| c.is_ascii_alphanumeric() || c == '_');
            return Ok(Token::Name(name.to_owned()));
        }
        match SIGNS.iter().find(|sign| self.rest().starts_with(**sign)) {
            Some(sign) => {
                self.at += sign.len();
                Ok(Token::Sign(sign))
            }
            None => Err(self.stray(first)),
        }
    }

    fn stray(&self, c: char) -> Wrong {
        let wrong = Wrong::new(self.at, format!("`{c}` means nothing here"));
        match c {
            '=' => wrong.hint("write `==` to compare"),
            '&' => wrong.hint("write `&&` for and"),
            '|' => wrong.hint("write `||` for or"),
            '‘' | '’' | '“' | '”' => wrong.hint("write straight quotes"),
            _ => wrong,
        }
    }

    fn number(&mut self) -> Result<Token, Wrong> {
        let at = self.at;
        let written = self.take(|c| c.is_ascii_alphanumeric() || c == '_');
        let hex = written.strip_prefix("0x").or_else(|| written.strip_prefix("0X"));
        let is_float = hex.is_none() && (self.fraction() || written.contains(['e', 'E']));
        if is_float {
            let message = "decimal numbers can't be written";
            return Err(Wrong::new(at, message).hint("compare with whole numbers"));
        }
        if let Some(whole) = written.strip_suffix(['u', 'U']) {
            let message = format!("`{written}` is not a number here");
            return Err(Wrong::new(at, message).hint(format!("write `{whole}`")));
        }
        let parsed = match hex {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => written.parse(),
        };
        parsed.map(Token::Int).map_err(|_| {
            let (digits, radix) = hex.map_or((written, 10), |digits| (digits, 16));
            let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
            let what = if is_number { "is too large a number" } else { "is not a number" };
            Wrong::new(at, format!("`{written}` {what}"))
        })
    }

    /// Whether a point and digits come next.
    fn fraction(&self) -> bool {
        let Some(rest) = self.rest().strip_prefix('.') else { return false };
        rest.starts_with(|c: char| c.is_ascii_digit())
    }

    /// A text, where one begins here: quoted once or three times, raw or not.
    fn string(&mut self) -> Result<Option<Token>, Wrong> {
        let at = self.at;
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
            let message = "bytes can't be written";
            return Err(Wrong::new(at, message).hint("write a text, without the `b`"));
        }
        self.at += prefix.map_or(0, str::len);
        let quote = ["\"\"\"", "'''", "\"", "'"]
            .into_iter()
            .find(|quote| self.rest().starts_with(quote))
            .unwrap_or("\"");
        self.at += quote.len();
        self.quoted(at, quote, is_raw).map(|text| Some(Token::Text(text)))
    }

    /// The rest of the text that begins at `at`, without its quotes.
    fn quoted(&mut self, at: usize, quote: &str, is_raw: bool) -> Result<String, Wrong> {
        let mut text = String::new();
        loop {
            if self.rest().starts_with(quote) {
                self.at += quote.len();
                return Ok(text);
            }
            match self.rest().chars().next() {
                None => return Err(Wrong::new(at, format!("the text has no closing `{quote}`"))),
                Some('\n' | '\r') if quote.len() == 1 => {
                    let message = format!("the text has no closing `{quote}` on its line");
                    return Err(Wrong::new(at, message).hint("write `\\n` for a new line"));
                }
                Some('\\') if !is_raw => text.push(self.escape()?),
                Some(c) => {
                    self.at += c.len_utf8();
                    text.push(c);
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Wrong> {
        let at = self.at;
        let wrong = |what: &str| {
            let hint = "write `\\\\` for a backslash, or r\"…\" for a text without escapes";
            Wrong::new(at, format!("`{what}` is not an escape")).hint(hint)
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
                self.at += 1 + letter.len_utf8();
                return Ok(c);
            }
        };
        let start = self.at + skipped;
        let code = self
            .text
            .get(start..start + digits)
            .filter(|code| code.chars().all(|c| c.is_digit(radix)))
            .and_then(|code| u32::from_str_radix(code, radix).ok())
            .and_then(char::from_u32)
            .ok_or_else(|| wrong(&format!("\\{letter}")))?;
        self.at = start + digits;
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
