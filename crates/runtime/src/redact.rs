//! Removes secrets before anything is hashed, stored or decided on.
//!
//! The engine decides on the redacted event, so a replay sees the same event as the live decision.
//! So a redaction in running text may only remove characters of a secret, but never a space, a
//! quote or an operator that changes what a command does. Paths are not changed. The work is linear
//! in the length of the text, because each look ahead is bounded.

mod patterns;
mod trigrams;

use std::ops::Range;

use jackline_engine::event::PayloadVisitor;
use jackline_engine::tool::path_pointers;
use jackline_engine::{Arguments, Definition, Event, EventKind, Payload, ToolProposed};
use serde_json::{Map, Value};

use patterns::{find_secret, is_path, is_secret_name};

/// The longest text that counts as a path.
const PATH_BYTES_MAX: usize = 4096;

/// Removes the secrets of an event. The paths that a call names are not changed, even if they look
/// like a secret, because decisions depend on them.
pub fn redact(event: &mut Event, definition: &Definition) {
    let named = named_paths(event, definition);
    event.visit_payloads(&mut Redactor);
    if let EventKind::ToolProposed(ToolProposed { args: Arguments::Parsed(args), .. }) =
        &mut event.kind
    {
        for (pointer, path) in named {
            if let Some(place) = args.pointer_mut(&pointer) {
                *place = Value::String(path);
            }
        }
    }
}

/// The paths that a call names, with their JSON pointers.
fn named_paths(event: &Event, definition: &Definition) -> Vec<(String, String)> {
    let EventKind::ToolProposed(ToolProposed { tool, args: Arguments::Parsed(args), .. }) =
        &event.kind
    else {
        return Vec::new();
    };
    let declared = definition.declared_tool(tool.as_str());
    let paths = declared.map(|tool| tool.paths.read.iter().chain(&tool.paths.write));
    let pointers =
        paths.into_iter().flatten().map(String::as_str).chain(path_pointers(tool.as_str()));
    let mut named = Vec::new();
    for pointer in pointers {
        match value_at(args, pointer) {
            Some(Value::String(text)) => named.push((pointer.to_owned(), text)),
            Some(Value::Array(items)) => {
                let texts = items.iter().enumerate().filter_map(|(at, item)| match item {
                    Value::String(text) => Some((format!("{pointer}/{at}"), text)),
                    _ => None,
                });
                named.extend(texts);
            }
            _ => {}
        }
    }
    let is_path = |text: &str| {
        // A URL is not a path and may contain a password.
        text.len() <= PATH_BYTES_MAX && !text.contains('\n') && !text.contains("://")
    };
    named.retain(|(_, text)| is_path(text));
    named.into_iter().map(|(pointer, text)| (pointer, text.clone())).collect()
}

/// The value at a JSON pointer. Most pointers name a top-level field and need no unescaping.
fn value_at<'a>(args: &'a Value, pointer: &str) -> Option<&'a Value> {
    match pointer.strip_prefix('/') {
        Some(key) if !key.contains(['/', '~']) && args.is_object() => args.get(key),
        _ => args.pointer(pointer),
    }
}

struct Redactor;

impl PayloadVisitor for Redactor {
    fn visit_text(&mut self, payload: &mut Payload) {
        if let Payload::Inline(text) = payload {
            redact_in_place(text);
        }
    }

    fn visit_value(&mut self, value: &mut Value) {
        redact_value(value);
    }

    fn visit_short_text(&mut self, word: &mut String) {
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
            redact_keys(map);
            for (key, item) in map.iter_mut() {
                if is_secret_name(key) {
                    replace_texts(item);
                } else {
                    redact_value(item);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn redact_keys(map: &mut Map<String, Value>) {
    let secret: Vec<(String, String)> = map
        .keys()
        .filter_map(|key| redact_text(key).map(|redacted| (key.clone(), redacted)))
        .collect();
    for (key, mut redacted) in secret {
        if let Some(item) = map.remove(&key) {
            // Two different secrets must not become the same key.
            while map.contains_key(&redacted) {
                redacted.push('_');
            }
            map.insert(redacted, item);
        }
    }
}

/// Replaces every text below a secret name. The whole text is the secret here, so all of it is
/// replaced.
fn replace_texts(value: &mut Value) {
    match value {
        Value::String(text) if text.is_empty() || is_path(text) => redact_in_place(text),
        Value::String(text) => "REDACTED".clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(replace_texts),
        Value::Object(map) => map.values_mut().for_each(replace_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The text without its secrets; `None` if there are none.
pub fn redact_text(text: &str) -> Option<String> {
    let mut redacted = RedactedText { text, output: String::new(), bytes_done: 0 };
    let mut from = 0;
    while let Some(part) = trigrams::next_suspicious_part(text, from) {
        from = part.end;
        redacted.redact_part(part);
    }
    redacted.finish()
}

/// A text while its secrets are removed.
struct RedactedText<'t> {
    text: &'t str,
    output: String,
    /// How many bytes of the text are handled.
    bytes_done: usize,
}

impl RedactedText<'_> {
    /// Removes the secrets in a part of the text, word by word.
    fn redact_part(&mut self, part: Range<usize>) {
        let (text, bytes) = (self.text, self.text.as_bytes());
        let mut at = part.start;
        let mut before = b' ';
        while at < part.end
            && let Some(byte) = bytes.get(at).copied()
        {
            let word = word_length(bytes.get(at..).unwrap_or_default());
            let starts_word = word > 0 || (byte == b'-' && !is_word(before));
            let found = if starts_word { find_secret(text, at, word) } else { None };
            if let Some(secret) = found {
                self.output.push_str(text.get(self.bytes_done..secret.from).unwrap_or(""));
                self.output.push_str("REDACTED-");
                self.output.push_str(secret.name);
                (self.bytes_done, at) = (secret.to, secret.to);
                before = b' ';
            } else {
                // No secret begins within a word.
                before = byte;
                at += word.max(1);
            }
        }
    }

    fn finish(mut self) -> Option<String> {
        if self.bytes_done == 0 {
            return None;
        }
        self.output.push_str(self.text.get(self.bytes_done..).unwrap_or(""));
        Some(self.output)
    }
}

/// The length of the word at the beginning of a text.
fn word_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !is_word(*byte)).unwrap_or(bytes.len())
}

pub(crate) fn is_word(byte: u8) -> bool {
    IS_WORD_BYTE.get(usize::from(byte)) == Some(&true)
}

/// The bytes of words, as a table, because this is checked for every byte of every result.
const IS_WORD_BYTE: [bool; 256] = {
    let mut word = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        #[expect(clippy::indexing_slicing, reason = "runs at compile time")]
        {
            word[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_';
        }
        byte += 1;
    }
    word
};

#[cfg(test)]
mod tests {
    use super::*;
    use jackline_engine::definition::{DeclaredTool, ToolPaths};
    use serde_json::json;

    /// The arguments of a call after redaction.
    fn redacted_args(definition: &Definition, tool: &str, args: &Value) -> Value {
        let line = json!({"session": "s", "event": "tool_proposed", "call": "c", "tool": tool, "args": args});
        let line = line.to_string();
        let mut event = jackline_engine::wire::parse_line(line.as_bytes(), None).unwrap();
        redact(&mut event, definition);
        let EventKind::ToolProposed(ToolProposed { args: Arguments::Parsed(args), .. }) =
            event.kind
        else {
            panic!("a call")
        };
        args
    }

    #[test]
    fn paths_of_a_call_are_not_redacted() {
        let secret = format!("ghp_{}", "a1".repeat(18));
        let taken = "REDACTED-github-token";
        let tool = DeclaredTool {
            aliases: vec!["Copy".to_owned()],
            paths: ToolPaths { read: vec!["/from/name".into()], write: vec!["/to".into()] },
            ..DeclaredTool::with_name("copy")
        };
        let definition = Definition { tools: vec![tool], ..Definition::default() };
        let args = json!({
            "file_path": secret, "from": {"name": secret, "note": secret},
            "to": [secret, 1, format!("{secret}\nx")], "path": "TOKEN=abcdef123",
            "target_file": format!("https://bob:s3cret@host/{secret}"), "text": secret,
        });
        assert_eq!(
            redacted_args(&definition, "Copy", &args),
            json!({
                "file_path": secret, "from": {"name": secret, "note": taken},
                "to": [secret, 1, format!("{taken}\nx")], "path": "TOKEN=abcdef123",
                "target_file": format!("https://bob:REDACTED-password@host/{taken}"), "text": taken,
            })
        );
        let other = redacted_args(&definition, "other", &args);
        assert_eq!(other["from"], json!({"name": taken, "note": taken}));
        assert_eq!((&other["to"][0], &other["path"]), (&json!(taken), &args["path"]));
        let long = json!({"path": format!("{secret} {}", "x".repeat(PATH_BYTES_MAX))});
        assert_ne!(redacted_args(&definition, "other", &long), long);
    }

    fn redacted(text: &str) -> String {
        redact_text(text).unwrap_or_else(|| text.to_owned())
    }

    #[test]
    fn known_kinds_of_secrets_are_taken_out() {
        let github = format!("ghp_{}", "a1".repeat(18));
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27u";
        let rows = [
            (format!("push with {github}, now"), "push with REDACTED-github-token, now"),
            ("AWS=AKIAIOSFODNN7EXAMPLE; ls".to_owned(), "AWS=REDACTED-aws-key-id; ls"),
            ("DB_PASSWORD=hunter2x && make".to_owned(), "DB_PASSWORD=REDACTED-secret && make"),
            (r#"{"api_key": "abc123def"}"#.to_owned(), r#"{"api_key": "REDACTED-secret"}"#),
            ("https://bob:s3cret@host/x".to_owned(), "https://bob:REDACTED-password@host/x"),
            (format!("token {jwt}"), "token REDACTED-jwt"),
            ("Bearer 0123456789abcdef01".to_owned(), "Bearer REDACTED-bearer-token"),
            ("mysql --password hunter2x db".to_owned(), "mysql --password REDACTED-secret db"),
        ];
        for (text, expected) in rows {
            assert_eq!(redacted(&text), expected);
        }
    }

    #[test]
    fn only_the_lines_of_a_private_key_are_removed() {
        let line = "MIIEpAIBAAKCAQEA7bq5Zk2r0k3n9fX8l1q4v5w6x7y8z9A0";
        let key = format!(
            "-----BEGIN RSA PRIVATE KEY-----\n{line}\n{line}\nAbCd==\n-----END RSA PRIVATE KEY-----"
        );
        let key_redacted = redacted(&key);
        assert!(!key_redacted.contains(line), "{key_redacted}");
        assert_eq!(key_redacted.matches("REDACTED-private-key").count(), 2);
        let hidden = "echo '-----BEGIN PRIVATE KEY-----'; rm -rf /precious; echo '-----END PRIVATE KEY-----'";
        assert_eq!(redacted(hidden), hidden);
        let escaped = format!("-----BEGIN PRIVATE KEY-----\\n{line}\\n-----END PRIVATE KEY-----");
        assert!(!redacted(&escaped).contains(line));
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in [
            "fn token(&self) -> Token { self.token }",
            "let token = tokenizer.next_token();",
            "max_tokens=4096000",
            "password: string",
            "token=/etc/jackline/state",
            "TOKEN=keys/prod.pem",
            "sk-learn is a library",
            "pip install sk-learn-contrib-imbalanced-learn",
            r#"{"token": 1234567890}"#,
            "ghp_short",
            "grüße, ключ=значение",
        ] {
            assert_eq!(redact_text(text), None, "{text}");
        }
    }

    #[test]
    fn values_of_secret_names_are_replaced_whole_but_paths_are_not() {
        let mut value = json!({
            "password": "correct horse battery!", "passwords": ["a", {"b": "c"}],
            "credentials": {"value": "x"}, "secret_file": "keys/prod.pem", "token": "keys/a.pem",
            "token_count": 7, "note": "plain",
        });
        redact_value(&mut value);
        assert_eq!(
            value,
            json!({
                "password": "REDACTED", "passwords": ["REDACTED", {"b": "REDACTED"}],
                "credentials": {"value": "REDACTED"}, "secret_file": "keys/prod.pem",
                "token": "keys/a.pem", "token_count": 7, "note": "plain",
            })
        );
    }

    #[test]
    fn two_secret_keys_stay_two() {
        let key = |c: &str| format!("ghp_{}", c.repeat(36));
        let mut value = json!({ key("a"): 1, key("b"): 2 });
        redact_value(&mut value);
        assert_eq!(value.as_object().unwrap().len(), 2);
    }

    #[test]
    fn a_redaction_never_removes_an_operator() {
        assert_eq!(
            redacted("TOKEN=abcdef123;rm -rf x&&API_KEY=abcdef123|sh >out"),
            "TOKEN=REDACTED-secret;rm -rf x&&API_KEY=REDACTED-secret|sh >out"
        );
    }

    #[test]
    fn redacting_twice_changes_nothing_more() {
        let once = redacted("SECRET=abcdef1234 and DB_PASSWORD=hunter2x");
        assert_eq!(redact_text(&once), None);
    }

    /// Each look ahead is bounded, so even many secrets in a row take linear time.
    #[test]
    fn the_work_is_linear() {
        for piece in [
            "-",
            "a-",
            "eyJ-",
            "eyJa.",
            "-----BEGIN ",
            "-----BEGIN PRIVATE KEY-----\n",
            "token=",
            "sk-",
            "a://a:",
        ] {
            // With quadratic work this would take minutes.
            let text = piece.repeat((1 << 18) / piece.len());
            let redacted = redact_text(&text).unwrap_or_default();
            assert!(redacted.len() <= text.len(), "{piece}");
        }
    }
}
