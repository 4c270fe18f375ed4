//! Repairs JSON with lone surrogates, for parsers that accept only complete Unicode characters.

use std::borrow::Cow;

/// The replacement of a lone surrogate.
const REPLACEMENT: &str = "\\ufffd";

/// The length of an escaped unit: `\\ud83d`.
const ESCAPE_BYTES: usize = 6;

/// Replaces each lone surrogate in JSON. `JSON.stringify` writes them if a text was cut in the
/// middle of a character.
pub(super) fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    let (mut readable, mut copied_to, mut at) = (String::new(), 0, 0);
    while let Some(offset) = json.get(at..).and_then(|rest| rest.find('\\')) {
        let escape = at + offset;
        at = escape
            + match (escaped_unit(json, escape), escaped_unit(json, escape + ESCAPE_BYTES)) {
                (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 2 * ESCAPE_BYTES,
                (Some(0xd800..=0xdfff), _) => {
                    readable.push_str(json.get(copied_to..escape).unwrap_or_default());
                    readable.push_str(REPLACEMENT);
                    copied_to = escape + ESCAPE_BYTES;
                    ESCAPE_BYTES
                }
                // An escape has at least one more byte, which may be a backslash.
                _ => 2,
            };
    }
    if copied_to == 0 {
        return Cow::Borrowed(json);
    }
    readable.push_str(json.get(copied_to..).unwrap_or_default());
    Cow::Owned(readable)
}

/// The escaped unit at a position, if there is one.
fn escaped_unit(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + ESCAPE_BYTES)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        let same = [r#""a""#, r#""\ud83e\udd80""#, r#""\\ud83d""#, r#""\u00e4\n🦀""#, r#""\"#];
        for json in same {
            assert_eq!(replace_lone_surrogates(json), json);
        }
        for (json, then) in [
            (r#""a\ud83d""#, r#""a\ufffd""#),
            (r#""\udd80\ud83e""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\ud83e\udd80b""#, r#""\ufffd\ud83e\udd80b""#),
            (r#""\\\uD83D ä""#, r#""\\\ufffd ä""#),
        ] {
            assert_eq!(replace_lone_surrogates(json), then);
            assert!(serde_json::from_str::<String>(&replace_lone_surrogates(json)).is_ok());
        }
    }
}
