//! Patterns of secrets.

use super::is_word;

/// A secret in a text.
pub(super) struct SecretMatch {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) name: &'static str,
}

/// Prefixes of secrets: prefix, minimum length after it, name.
const PREFIXES: [(&str, usize, &str); 24] = [
    ("github_pat_", 20, "github-token"),
    ("ghp_", 30, "github-token"),
    ("gho_", 30, "github-token"),
    ("ghu_", 30, "github-token"),
    ("ghs_", 30, "github-token"),
    ("ghr_", 30, "github-token"),
    ("glpat-", 16, "gitlab-token"),
    ("sk-ant-", 16, "anthropic-key"),
    ("sk-proj-", 16, "openai-key"),
    ("sk-", 24, "api-key"),
    ("sk_live_", 16, "stripe-key"),
    ("sk_test_", 16, "stripe-key"),
    ("rk_live_", 16, "stripe-key"),
    ("xoxb-", 16, "slack-token"),
    ("xoxp-", 16, "slack-token"),
    ("xoxa-", 16, "slack-token"),
    ("xoxs-", 16, "slack-token"),
    ("AKIA", 16, "aws-key-id"),
    ("ASIA", 16, "aws-key-id"),
    ("AIza", 30, "google-key"),
    ("npm_", 30, "npm-token"),
    ("pypi-", 30, "pypi-token"),
    ("hf_", 30, "huggingface-token"),
    ("SG.", 30, "sendgrid-key"),
];

/// Parts of names whose values are secrets.
const SECRET_NAME_PARTS: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "api_key",
    "apikey",
    "access_key",
    "private_key",
    "credential",
    "client_key",
];

/// Endings of names whose values describe a secret but are not secret.
const HARMLESS_NAME_ENDINGS: [&str; 10] =
    ["_file", "_path", "_dir", "_url", "_name", "_id", "_count", "_type", "_limit", "tokens"];

/// The longest part of a secret that is checked at once.
const SECRET_BYTES_MAX: usize = 1024;

/// The longest name before a value.
const NAME_BYTES_MAX: usize = 64;

/// The minimum length of a line of a private key.
const KEY_LINE_BYTES: usize = 40;

/// How many lines before a key line are searched for the beginning of the key.
const KEY_LINES_MAX: usize = 200;

/// Whether a word certainly begins no secret. This is true for nearly all words. Without this quick
/// check, matching the patterns would take most of the time.
fn is_plain_word(before: &[u8], rest: &[u8], length: usize) -> bool {
    if begins_like_secret(rest) || before.ends_with(b"-") {
        return false;
    }
    // It may be a line of a private key.
    if length >= KEY_LINE_BYTES {
        return false;
    }
    let mut behind = rest.iter().skip(length);
    match behind.next() {
        // `name = value`, with up to four spaces.
        Some(b' ') => !matches!(behind.take(4).find(|byte| **byte != b' '), Some(b'=' | b':')),
        // The name or a key may continue, or the name is quoted, or a value follows.
        Some(b'-' | b'"' | b'\'' | b'=' | b':' | b'+' | b'/') => false,
        _ => length > 0,
    }
}

/// Whether a word begins like a prefix in the list, a web token or `Bearer`.
fn begins_like_secret(rest: &[u8]) -> bool {
    matches!(
        rest,
        [b'g', b'h' | b'i' | b'l', ..]
            | [b's' | b'r', b'k', ..]
            | [b'x', b'o', ..]
            | [b'A', b'K' | b'S' | b'I', ..]
            | [b'n', b'p', ..]
            | [b'h', b'f', ..]
            | [b'S', b'G', ..]
            | [b'e' | b'p', b'y', ..]
            | [b'B', b'e', ..]
    )
}

/// The secret that begins with the word of this length, if there is one.
pub(super) fn find_secret(text: &str, at: usize, length: usize) -> Option<SecretMatch> {
    let bytes = text.as_bytes();
    if is_plain_word(bytes.get(..at)?, bytes.get(at..)?, length) {
        return None;
    }
    match_patterns(text, at)
}

fn match_patterns(text: &str, at: usize) -> Option<SecretMatch> {
    let rest = text.get(at..)?;
    let whole = |(length, name)| SecretMatch { from: at, to: at + length, name };
    let part = |name| move |(from, to)| SecretMatch { from: at + from, to: at + to, name };
    let telling = begins_like_secret(rest.as_bytes());
    let prefixed = || {
        match_prefix(rest).or_else(|| {
            let begins = rest.starts_with("eyJ") && !text.get(..at)?.ends_with(['-', '.']);
            begins.then(|| match_json_web_token(rest)).flatten()
        })
    };
    let begun = telling.then(prefixed).flatten().map(whole);
    begun
        .or_else(|| {
            match_key_line(text, at).map(|to| SecretMatch { from: at, to, name: "private-key" })
        })
        .or_else(|| telling.then(|| match_bearer(rest)).flatten().map(part("bearer-token")))
        .or_else(|| match_assignment(rest, text.get(..at)?.ends_with("--")).map(part("secret")))
        .or_else(|| match_url_password(rest).map(part("password")))
}

/// The number of accepted bytes at the beginning of a text, up to a bound.
fn accepted_length(text: &str, most: usize, accepts: impl Fn(u8) -> bool) -> usize {
    text.bytes().take(most).take_while(|byte| accepts(*byte)).count()
}

fn is_token_byte(byte: u8) -> bool {
    is_word(byte) || byte == b'-' || byte == b'.'
}

/// Whether a secret may contain this byte.
fn is_secret_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=_.~-".contains(&byte)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}

fn match_prefix(text: &str) -> Option<(usize, &'static str)> {
    PREFIXES.iter().find_map(|(prefix, least, name)| {
        let rest = text.strip_prefix(prefix)?;
        let begin = accepted_length(rest, *least, is_token_byte);
        // Package names can have these prefixes too, but they rarely contain digits.
        let telling = rest.bytes().take(begin).any(|byte| byte.is_ascii_digit());
        if begin < *least || !telling {
            return None;
        }
        Some((prefix.len() + accepted_length(rest, usize::MAX, is_token_byte), *name))
    })
}

fn match_json_web_token(text: &str) -> Option<(usize, &'static str)> {
    let part =
        |text: &str| accepted_length(text, SECRET_BYTES_MAX, |byte| is_word(byte) || byte == b'-');
    let mut length = 0;
    for number in 0..3 {
        let rest = text.get(length..)?;
        let bytes = part(rest);
        let dotted = rest.get(bytes..)?.starts_with('.');
        if bytes < 8 || dotted != (number < 2) {
            return None;
        }
        length += bytes + usize::from(dotted);
    }
    Some((length, "jwt"))
}

/// A long base64 line after the beginning of a private key. Each line is redacted on its own, so
/// that no other text is redacted with it.
fn match_key_line(text: &str, at: usize) -> Option<usize> {
    let length = accepted_length(text.get(at..)?, 256, is_base64);
    if length < KEY_LINE_BYTES {
        return None;
    }
    let starts = |line: &str| line.contains("-----BEGIN ") && line.contains("PRIVATE KEY-----");
    let before = text.get(..at)?;
    // A key has real line ends, or `\n` inside a string literal.
    let window = before.get(before.ceil_char_boundary(before.len().saturating_sub(16 * 1024))..)?;
    let mut lines = window.rsplit('\n').flat_map(|line| line.rsplit("\\n")).take(KEY_LINES_MAX);
    lines
        .find(|line| starts(line) || line.contains("-----END "))
        .is_some_and(starts)
        .then_some(at + length)
}

fn match_bearer(text: &str) -> Option<(usize, usize)> {
    const WORD: &str = "Bearer ";
    let length = accepted_length(text.strip_prefix(WORD)?, usize::MAX, is_secret_byte);
    (length >= 16).then_some((WORD.len(), WORD.len() + length))
}

/// `NAME=value`, `"name": "value"` and `--name value`: the range of the value.
fn match_assignment(text: &str, is_option: bool) -> Option<(usize, usize)> {
    let name =
        text.get(..accepted_length(text, NAME_BYTES_MAX, |byte| is_word(byte) || byte == b'-'))?;
    let quotes = |text: &str| accepted_length(text, 2, |byte| matches!(byte, b'"' | b'\''));
    let spaces = |text: &str| accepted_length(text, 4, |byte| byte == b' ');
    let rest = text.get(name.len()..)?;
    let quote = quotes(rest);
    let space = spaces(rest.get(quote..)?);
    let after = rest.get(quote + space..)?;
    let (sign, tight) = match after.bytes().next()? {
        b'=' => (1, quote == 0 && space == 0),
        b':' => (1, false),
        // `--password VALUE`
        _ if is_option && quote == 0 && space > 0 => (0, true),
        _ => return None,
    };
    // This check comes last, because it is the most expensive one.
    if !is_secret_name(name) {
        return None;
    }
    let space_after = spaces(after.get(sign..)?);
    let quote_after = quotes(after.get(sign + space_after..)?);
    let value = after.get(sign + space_after + quote_after..)?;
    let length = accepted_length(value, SECRET_BYTES_MAX, is_secret_byte);
    let secret = value.get(..length)?;
    // `token: string` and `token = tokenizer.next` are code; `TOKEN=…` is not.
    let telling = (tight && space_after == 0) || secret.bytes().any(|byte| byte.is_ascii_digit());
    let from = name.len() + quote + space + sign + space_after + quote_after;
    // The whole secret is redacted, whatever its length. Redacted text is not checked again, so the
    // work stays linear.
    (telling && is_secret_value(secret))
        .then(|| (from, from + accepted_length(value, usize::MAX, is_secret_byte)))
}

/// `scheme://user:password@host`: the range of the password.
fn match_url_password(text: &str) -> Option<(usize, usize)> {
    let scheme = accepted_length(text, 16, |byte| byte.is_ascii_alphanumeric());
    let rest = text.get(scheme..)?.strip_prefix("://")?;
    let user = accepted_length(rest, 128, |byte| is_word(byte) || b".-%".contains(&byte));
    let rest = rest.get(user..)?.strip_prefix(':')?;
    let length =
        accepted_length(rest, SECRET_BYTES_MAX, |byte| is_word(byte) || b".-%+~".contains(&byte));
    let from = scheme + 3 + user + 1;
    (length > 0 && !rest.starts_with("REDACTED") && rest.get(length..)?.starts_with('@'))
        .then_some((from, from + length))
}

/// Whether a name says that its value is a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let mut room = [0; NAME_BYTES_MAX];
    let Some(plain) = room.get_mut(..name.len()) else { return false };
    for (to, from) in plain.iter_mut().zip(name.bytes()) {
        *to = if from == b'-' { b'_' } else { from.to_ascii_lowercase() };
    }
    let holds = (0..plain.len()).any(|at| {
        let rest = plain.get(at..).unwrap_or_default();
        // The first letters of `NAMES`.
        let begins = matches!(rest.first(), Some(b'a' | b'c' | b'p' | b's' | b't'));
        begins && SECRET_NAME_PARTS.iter().any(|part| rest.starts_with(part.as_bytes()))
    });
    holds && !HARMLESS_NAME_ENDINGS.iter().any(|end| plain.ends_with(end.as_bytes()))
}

/// Whether a text is a file path. Rules must see paths, so they are not redacted.
pub(super) fn is_path(text: &str) -> bool {
    let looks = text.starts_with(['/', '~']) || text.starts_with("./") || text.contains("..");
    // Keys in base64 contain slashes too, but they are long, or contain `+` or `=`.
    let short = text.contains('/') && text.len() < 40 && !text.contains(['+', '=']);
    looks || short
}

fn is_secret_value(text: &str) -> bool {
    text.len() >= 6
        && !is_path(text)
        && !text.starts_with(['.', '-'])
        && !text.starts_with("REDACTED")
        && !text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::super::trigrams::next_suspicious_part;
    use super::super::{RedactedText, redact_text};
    use super::*;
    use proptest::prelude::*;

    /// Texts, many of which contain something like a secret.
    fn texts() -> impl Strategy<Value = String> {
        let pieces = PREFIXES.map(|(prefix, _, _)| prefix.to_owned()).into_iter();
        let names = SECRET_NAME_PARTS.map(ToOwned::to_owned);
        let words = [
            "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6",
            "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMe",
            "Bearer ",
            "https",
            "://",
            "bob",
            ":",
            "@",
            "=",
            " ",
            "    ",
            "--",
            "-",
            "_",
            "\"",
            "'",
            "/",
            "+",
            ".",
            "\n",
            "é",
            "the",
            "x",
            "9",
            "-----BEGIN RSA PRIVATE KEY-----\n",
        ];
        let pieces = pieces.chain(names).chain(words.map(ToOwned::to_owned));
        let piece = prop::sample::select(pieces.collect::<Vec<_>>());
        prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn a_plain_word_begins_no_secret(text in texts()) {
            for (at, _) in text.char_indices() {
                let (before, rest) = text.as_bytes().split_at(at);
                if is_plain_word(before, rest, super::super::word_length(rest)) {
                    prop_assert!(match_patterns(&text, at).is_none(), "{text:?} at {at}");
                }
            }
        }

        #[test]
        fn skipped_parts_contain_no_secret(one in texts(), two in texts(), three in texts()) {
            let text = [one, two, three].join("\n");
            let mut redacted = RedactedText { text: &text, output: String::new(), bytes_done: 0 };
            redacted.redact_part(0..text.len());
            prop_assert_eq!(redact_text(&text), redacted.finish());
        }
    }

    #[test]
    fn every_prefix_is_found() {
        for (prefix, least, name) in PREFIXES {
            let secret = format!("{prefix}{}", "a1".repeat(least));
            assert_eq!(match_prefix(&secret), Some((secret.len(), name)));
            assert!(begins_like_secret(prefix.as_bytes()), "{prefix}");
            assert_eq!(next_suspicious_part(prefix, 0), Some(0..prefix.len()), "{prefix}");
        }
        assert!(begins_like_secret(b"eyJ") && begins_like_secret(b"Bearer "));
    }

    #[test]
    fn every_secret_name_is_found() {
        for name in SECRET_NAME_PARTS {
            for whole in [name.to_owned(), name.to_uppercase(), format!("my-{name}-x")] {
                assert!(is_secret_name(&whole), "{whole}");
                assert!(is_secret_name(&whole.replace('_', "-")), "{whole}");
                assert!(next_suspicious_part(&whole, 0).is_some(), "{whole}");
                assert!(next_suspicious_part(&whole.replace('_', "-"), 0).is_some(), "{whole}");
            }
            for end in HARMLESS_NAME_ENDINGS {
                assert!(!is_secret_name(&format!("{name}{end}")), "{name}{end}");
            }
        }
        assert!(is_secret_name(&format!("{}token", "x".repeat(NAME_BYTES_MAX - 5))));
        assert!(!is_secret_name(&format!("{}token", "x".repeat(NAME_BYTES_MAX - 4))));
        assert!(!is_secret_name("") && !is_secret_name("tokén"));
    }
}
