//! What secrets look like.

use super::is_word;

/// A secret in a text.
pub(super) struct Secret {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) name: &'static str,
}

/// Secrets that begin with a telling prefix: prefix, least length after it, name.
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
const NAMES: [&str; 11] = [
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

/// Ends of names that speak about a secret without holding it.
const ABOUT: [&str; 10] =
    ["_file", "_path", "_dir", "_url", "_name", "_id", "_count", "_type", "_limit", "tokens"];

/// The longest secret that is looked for in one piece.
const SECRET_BYTES_MAX: usize = 1024;

/// The longest name before a value.
const NAME_BYTES_MAX: usize = 64;

/// How long a line of a private key is at least.
const KEY_LINE_BYTES: usize = 40;

/// How many lines of a private key are looked at.
const KEY_LINES_MAX: usize = 200;

/// Whether a word surely begins no secret. Nearly all are such words, and to
/// look closely at each would cost more than everything else.
fn is_plain(before: &[u8], rest: &[u8], length: usize) -> bool {
    if is_telling(rest) || before.ends_with(b"-") {
        return false;
    }
    // A line of a key is longer.
    if length >= KEY_LINE_BYTES {
        return false;
    }
    let mut behind = rest.iter().skip(length);
    match behind.next() {
        // `name = value`, with up to four spaces.
        Some(b' ') => !matches!(behind.take(4).find(|byte| **byte != b' '), Some(b'=' | b':')),
        // The name goes on, or is quoted, or a value follows; a key may go on.
        Some(b'-' | b'"' | b'\'' | b'=' | b':' | b'+' | b'/') => false,
        _ => length > 0,
    }
}

/// Whether a word begins as prefixes, web tokens and `Bearer` do.
fn is_telling(rest: &[u8]) -> bool {
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

/// The secret that a word of this length begins.
pub(super) fn find_secret(text: &str, at: usize, length: usize) -> Option<Secret> {
    let bytes = text.as_bytes();
    if is_plain(bytes.get(..at)?, bytes.get(at..)?, length) {
        return None;
    }
    look_closely(text, at)
}

fn look_closely(text: &str, at: usize) -> Option<Secret> {
    let rest = text.get(at..)?;
    let whole = |(length, name)| Secret { from: at, to: at + length, name };
    let part = |name| move |(from, to)| Secret { from: at + from, to: at + to, name };
    let telling = is_telling(rest.as_bytes());
    let prefixed = || {
        prefixed(rest).or_else(|| {
            let begins = rest.starts_with("eyJ") && !text.get(..at)?.ends_with(['-', '.']);
            begins.then(|| json_web_token(rest)).flatten()
        })
    };
    let begun = telling.then(prefixed).flatten().map(whole);
    begun
        .or_else(|| key_line(text, at).map(|to| Secret { from: at, to, name: "private-key" }))
        .or_else(|| telling.then(|| bearer(rest)).flatten().map(part("bearer-token")))
        .or_else(|| assigned(rest, text.get(..at)?.ends_with("--")).map(part("secret")))
        .or_else(|| url_password(rest).map(part("password")))
}

/// How many bytes, up to a bound, a text begins with that are accepted.
fn run(text: &str, most: usize, accepts: impl Fn(u8) -> bool) -> usize {
    text.bytes().take(most).take_while(|byte| accepts(*byte)).count()
}

fn is_token_byte(byte: u8) -> bool {
    is_word(byte) || byte == b'-' || byte == b'.'
}

/// What a secret may be made of.
fn is_secret_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=_.~-".contains(&byte)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}

fn prefixed(text: &str) -> Option<(usize, &'static str)> {
    PREFIXES.iter().find_map(|(prefix, least, name)| {
        let rest = text.strip_prefix(prefix)?;
        let begin = run(rest, *least, is_token_byte);
        // Names of packages have prefixes too, but no digits among so many letters.
        let telling = rest.bytes().take(begin).any(|byte| byte.is_ascii_digit());
        if begin < *least || !telling {
            return None;
        }
        Some((prefix.len() + run(rest, usize::MAX, is_token_byte), *name))
    })
}

fn json_web_token(text: &str) -> Option<(usize, &'static str)> {
    let part = |text: &str| run(text, SECRET_BYTES_MAX, |byte| is_word(byte) || byte == b'-');
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

/// A long line of base64 somewhere below the beginning of a private key. Lines
/// go one by one, so that nothing that is not of the key goes with them.
fn key_line(text: &str, at: usize) -> Option<usize> {
    let length = run(text.get(at..)?, 256, is_base64);
    if length < KEY_LINE_BYTES {
        return None;
    }
    let starts = |line: &str| line.contains("-----BEGIN ") && line.contains("PRIVATE KEY-----");
    let before = text.get(..at)?;
    // Keys come with real line ends, or with `\n` where they stand in a text.
    let window = before.get(before.ceil_char_boundary(before.len().saturating_sub(16 * 1024))..)?;
    let mut lines = window.rsplit('\n').flat_map(|line| line.rsplit("\\n")).take(KEY_LINES_MAX);
    lines
        .find(|line| starts(line) || line.contains("-----END "))
        .is_some_and(starts)
        .then_some(at + length)
}

fn bearer(text: &str) -> Option<(usize, usize)> {
    const WORD: &str = "Bearer ";
    let length = run(text.strip_prefix(WORD)?, usize::MAX, is_secret_byte);
    (length >= 16).then_some((WORD.len(), WORD.len() + length))
}

/// `NAME=value`, `"name": "value"` and `--name value`: the range of the value.
fn assigned(text: &str, is_option: bool) -> Option<(usize, usize)> {
    let name = text.get(..run(text, NAME_BYTES_MAX, |byte| is_word(byte) || byte == b'-'))?;
    let quotes = |text: &str| run(text, 2, |byte| matches!(byte, b'"' | b'\''));
    let spaces = |text: &str| run(text, 4, |byte| byte == b' ');
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
    // Asked last, because it costs most.
    if !is_secret_name(name) {
        return None;
    }
    let space_after = spaces(after.get(sign..)?);
    let quote_after = quotes(after.get(sign + space_after..)?);
    let value = after.get(sign + space_after + quote_after..)?;
    let length = run(value, SECRET_BYTES_MAX, is_secret_byte);
    let secret = value.get(..length)?;
    // `token: string` and `token = tokenizer.next` are code; `TOKEN=…` is not.
    let telling = (tight && space_after == 0) || secret.bytes().any(|byte| byte.is_ascii_digit());
    let from = name.len() + quote + space + sign + space_after + quote_after;
    // A secret goes as a whole, however long: what is swallowed is not looked
    // at again, so the work stays linear.
    (telling && is_secret_value(secret))
        .then(|| (from, from + run(value, usize::MAX, is_secret_byte)))
}

/// `scheme://user:password@host`: the range of the password.
fn url_password(text: &str) -> Option<(usize, usize)> {
    let scheme = run(text, 16, |byte| byte.is_ascii_alphanumeric());
    let rest = text.get(scheme..)?.strip_prefix("://")?;
    let user = run(rest, 128, |byte| is_word(byte) || b".-%".contains(&byte));
    let rest = rest.get(user..)?.strip_prefix(':')?;
    let length = run(rest, SECRET_BYTES_MAX, |byte| is_word(byte) || b".-%+~".contains(&byte));
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
        // What the names begin with.
        let begins = matches!(rest.first(), Some(b'a' | b'c' | b'p' | b's' | b't'));
        begins && NAMES.iter().any(|part| rest.starts_with(part.as_bytes()))
    });
    holds && !ABOUT.iter().any(|end| plain.ends_with(end.as_bytes()))
}

/// Whether a text leads to a file: rules must see paths.
pub(super) fn is_path(text: &str) -> bool {
    let looks = text.starts_with(['/', '~']) || text.starts_with("./") || text.contains("..");
    // Keys in base64 have slashes too, but are long and have no extension.
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
    use super::super::traces::next_part;
    use super::super::{Kept, redact_text};
    use super::*;
    use proptest::prelude::*;

    /// Texts of which many hold something like a secret.
    fn texts() -> impl Strategy<Value = String> {
        let pieces = PREFIXES.map(|(prefix, _, _)| prefix.to_owned()).into_iter();
        let names = NAMES.map(ToOwned::to_owned);
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
                if is_plain(before, rest, super::super::word_length(rest)) {
                    prop_assert!(look_closely(&text, at).is_none(), "{text:?} at {at}");
                }
            }
        }

        #[test]
        fn where_no_trace_is_no_secret_is(one in texts(), two in texts(), three in texts()) {
            let text = [one, two, three].join("\n");
            let mut kept = Kept { text: &text, left: String::new(), done: 0 };
            kept.look_through(0..text.len());
            prop_assert_eq!(redact_text(&text), kept.finish());
        }
    }

    #[test]
    fn no_word_is_passed_over_that_begins_a_secret() {
        for (prefix, least, name) in PREFIXES {
            let secret = format!("{prefix}{}", "a1".repeat(least));
            assert_eq!(prefixed(&secret), Some((secret.len(), name)));
            assert!(is_telling(prefix.as_bytes()), "{prefix}");
            assert_eq!(next_part(prefix, 0), Some(0..prefix.len()), "{prefix}");
        }
        assert!(is_telling(b"eyJ") && is_telling(b"Bearer "));
    }

    #[test]
    fn no_name_is_passed_over_that_tells_of_a_secret() {
        for name in NAMES {
            for whole in [name.to_owned(), name.to_uppercase(), format!("my-{name}-x")] {
                assert!(is_secret_name(&whole), "{whole}");
                assert!(is_secret_name(&whole.replace('_', "-")), "{whole}");
                assert!(next_part(&whole, 0).is_some(), "{whole}");
                assert!(next_part(&whole.replace('_', "-"), 0).is_some(), "{whole}");
            }
            for end in ABOUT {
                assert!(!is_secret_name(&format!("{name}{end}")), "{name}{end}");
            }
        }
        assert!(is_secret_name(&format!("{}token", "x".repeat(NAME_BYTES_MAX - 5))));
        assert!(!is_secret_name(&format!("{}token", "x".repeat(NAME_BYTES_MAX - 4))));
        assert!(!is_secret_name("") && !is_secret_name("tokén"));
    }
}
