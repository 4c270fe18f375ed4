//! Secrets are taken out before anything is hashed, kept or decided on.
//!
//! The engine decides on the redacted event, so a replay sees what the live
//! decision saw. For that, a redaction may only ever swallow letters of a
//! secret, never a space, a quote or an operator that changes what a command
//! does.

use jackline_engine::{Event, Payload, Payloads};
use serde_json::Value;

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

/// Takes the secrets out of an event.
pub(crate) fn redact(event: &mut Event) {
    event.visit(&mut Redactor);
}

struct Redactor;

impl Payloads for Redactor {
    fn text(&mut self, payload: &mut Payload) {
        if let Payload::Inline(text) = payload {
            redact_in_place(text);
        }
    }

    fn value(&mut self, value: &mut Value) {
        redact_value(value);
    }

    fn word(&mut self, word: &mut String) {
        redact_in_place(word);
    }
}

fn redact_in_place(text: &mut String) {
    if let Some(redacted) = redact_text(text) {
        *text = redacted;
    }
}

fn redact_value(value: &mut Value) {
    match value {
        Value::String(text) => redact_in_place(text),
        Value::Array(items) => items.iter_mut().for_each(redact_value),
        Value::Object(map) => {
            let secret: Vec<(String, String)> = map
                .keys()
                .filter_map(|key| redact_text(key).map(|redacted| (key.clone(), redacted)))
                .collect();
            for (key, redacted) in secret {
                if let Some(item) = map.remove(&key) {
                    map.insert(redacted, item);
                }
            }
            for (key, item) in map.iter_mut() {
                match item {
                    Value::String(text) if is_secret_name(key) && is_secret_value(text) => {
                        "REDACTED".clone_into(text);
                    }
                    other => redact_value(other),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The text without its secrets, or nothing if there are none.
pub fn redact_text(text: &str) -> Option<String> {
    let mut kept = String::new();
    let mut done = 0;
    let mut at = 0;
    let mut before = b' ';
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at).copied() {
        let starts_word = !is_word(before) && (is_word(byte) || byte == b'-');
        let found = if starts_word { find_secret(text, at) } else { None };
        if let Some((from, to, name)) = found {
            kept.push_str(text.get(done..from).unwrap_or(""));
            kept.push_str("REDACTED-");
            kept.push_str(name);
            done = to;
            at = to;
            before = b' ';
        } else {
            before = byte;
            at += 1;
        }
    }
    if done == 0 {
        return None;
    }
    kept.push_str(text.get(done..).unwrap_or(""));
    Some(kept)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// What a secret may be made of.
fn is_secret_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=_.~-".contains(&byte)
}

/// The secret that a word begins, as a range and a name.
fn find_secret(text: &str, at: usize) -> Option<(usize, usize, &'static str)> {
    let rest = text.get(at..)?;
    prefixed(rest)
        .or_else(|| json_web_token(rest))
        .map(|(length, name)| (at, at + length, name))
        .or_else(|| private_key(rest).map(|length| (at, at + length, "private-key")))
        .or_else(|| assigned(rest).map(|(from, to)| (at + from, at + to, "secret")))
        .or_else(|| url_password(rest).map(|(from, to)| (at + from, at + to, "password")))
}

fn run(text: &str, accepts: fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| accepts(*byte)).count()
}

fn prefixed(text: &str) -> Option<(usize, &'static str)> {
    let accepts = |byte: u8| is_word(byte) || byte == b'-' || byte == b'.';
    PREFIXES.iter().find_map(|(prefix, least, name)| {
        let rest = text.strip_prefix(prefix)?;
        let length = run(rest, accepts);
        (length >= *least).then_some((prefix.len() + length, *name))
    })
}

fn json_web_token(text: &str) -> Option<(usize, &'static str)> {
    let accepts = |byte: u8| is_word(byte) || byte == b'-' || byte == b'.';
    let length = text.starts_with("eyJ").then(|| run(text, accepts))?;
    let token = text.get(..length)?;
    (token.split('.').filter(|part| part.len() >= 8).count() == 3).then_some((length, "jwt"))
}

fn private_key(text: &str) -> Option<usize> {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "PRIVATE KEY-----";
    let rest = text.strip_prefix(BEGIN)?;
    let label = rest.find(END).filter(|at| *at <= 20)?;
    let body = rest.get(label + END.len()..)?;
    let end = body.find("-----END ")?;
    let tail = body.get(end..)?;
    let close = tail.find(END)? + END.len();
    Some(BEGIN.len() + label + END.len() + end + close)
}

/// `NAME=value` and `"name": "value"`: the range of the value.
fn assigned(text: &str) -> Option<(usize, usize)> {
    let name = text.get(..run(text, |byte| is_word(byte) || byte == b'-').min(64))?;
    if !is_secret_name(name) {
        return None;
    }
    let rest = text.get(name.len()..)?;
    let skip = |text: &str, accepts: fn(u8) -> bool| run(text, accepts);
    let quote = skip(rest, |byte| matches!(byte, b'"' | b'\''));
    let space = skip(rest.get(quote..)?, |byte| byte == b' ');
    let sign = rest.get(quote + space..).filter(|rest| rest.starts_with(['=', ':']))?;
    let tight = quote == 0 && space == 0 && sign.starts_with('=');
    let space_after = skip(sign.get(1..)?, |byte| byte == b' ');
    let quote_after = skip(sign.get(1 + space_after..)?, |byte| matches!(byte, b'"' | b'\''));
    let value = sign.get(1 + space_after + quote_after..)?;
    let length = run(value, is_secret_byte);
    let secret = value.get(..length)?;
    // `token: string` and `token = tokenizer.next` are code; `TOKEN=…` is not.
    let telling = (tight && space_after == 0) || secret.bytes().any(|byte| byte.is_ascii_digit());
    let from = name.len() + quote + space + 1 + space_after + quote_after;
    (telling && is_secret_value(secret)).then_some((from, from + length))
}

/// `scheme://user:password@host`: the range of the password.
fn url_password(text: &str) -> Option<(usize, usize)> {
    let scheme = run(text, |byte| byte.is_ascii_alphanumeric());
    let rest = text.get(scheme..)?.strip_prefix("://")?;
    let user = run(rest, |byte| is_word(byte) || b".-%".contains(&byte));
    let rest = rest.get(user..)?.strip_prefix(':')?;
    let length = run(rest, |byte| is_word(byte) || b".-%+~".contains(&byte));
    let from = scheme + 3 + user + 1;
    (length > 0 && rest.get(length..)?.starts_with('@')).then_some((from, from + length))
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    NAMES.iter().any(|part| name.contains(part)) && !name.contains("tokens")
}

fn is_secret_value(text: &str) -> bool {
    text.len() >= 6
        && text.bytes().all(is_secret_byte)
        // What leads somewhere is a path, and rules must see paths.
        && !text.starts_with(['/', '.', '~'])
        && !text.contains("..")
        && !text.starts_with("REDACTED")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str) -> String {
        redact_text(text).unwrap_or_else(|| text.to_owned())
    }

    #[test]
    fn known_kinds_of_secrets_are_taken_out() {
        let github = format!("ghp_{}", "a1".repeat(18));
        assert_eq!(
            redacted(&format!("push with {github}, now")),
            "push with REDACTED-github-token, now"
        );
        assert_eq!(
            redacted("export AWS=AKIAIOSFODNN7EXAMPLE; ls"),
            "export AWS=REDACTED-aws-key-id; ls"
        );
        assert_eq!(redacted("DB_PASSWORD=hunter2x && make"), "DB_PASSWORD=REDACTED-secret && make");
        assert_eq!(redacted(r#"{"api_key": "abc123def456"}"#), r#"{"api_key": "REDACTED-secret"}"#);
        assert_eq!(
            redacted("curl https://bob:s3cret@host/x"),
            "curl https://bob:REDACTED-password@host/x"
        );
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27u";
        assert_eq!(redacted(&format!("Bearer {jwt}")), "Bearer REDACTED-jwt");
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----";
        assert_eq!(redacted(&format!("a\n{key}\nb")), "a\nREDACTED-private-key\nb");
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in [
            "fn token(&self) -> Token { self.token }",
            "let token = tokenizer.next_token();",
            "max_tokens=4096000",
            "password: string",
            "token=/etc/jackline/state",
            "sk-learn is a library",
            "ghp_short",
            "grüße, ключ=значение",
        ] {
            assert_eq!(redact_text(text), None, "{text}");
        }
    }

    #[test]
    fn a_redaction_never_swallows_an_operator() {
        let line = "TOKEN=abcdef123;rm -rf x&&API_KEY=abcdef123|sh >out";
        assert_eq!(
            redacted(line),
            "TOKEN=REDACTED-secret;rm -rf x&&API_KEY=REDACTED-secret|sh >out"
        );
    }

    #[test]
    fn redacting_twice_changes_nothing_more() {
        let once = redacted("SECRET=abcdef1234 and DB_PASSWORD=hunter2x");
        assert_eq!(redact_text(&once), None);
    }
}
