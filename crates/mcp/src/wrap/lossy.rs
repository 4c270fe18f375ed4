//! JSON that holds halves of characters, for readers that know only whole ones.

use std::borrow::Cow;

/// What stands for half a character.
const REPLACED: &str = "\\ufffd";

/// How long an escaped unit is: `\\ud83d`.
const ESCAPE_BYTES: usize = 6;

/// The same JSON with a sign for each half of a character without the other. `JSON.stringify`
/// writes those where a text was cut in the middle of one.
pub(super) fn lossy(json: &str) -> Cow<'_, str> {
    let (mut readable, mut kept, mut at) = (String::new(), 0, 0);
    while let Some(found) = json.get(at..).and_then(|rest| rest.find('\\')) {
        let escape = at + found;
        at = escape
            + match (unit(json, escape), unit(json, escape + ESCAPE_BYTES)) {
                (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 2 * ESCAPE_BYTES,
                (Some(0xd800..=0xdfff), _) => {
                    readable.push_str(json.get(kept..escape).unwrap_or_default());
                    readable.push_str(REPLACED);
                    kept = escape + ESCAPE_BYTES;
                    ESCAPE_BYTES
                }
                // What is escaped is one byte at least, and may be a backslash.
                _ => 2,
            };
    }
    if kept == 0 {
        return Cow::Borrowed(json);
    }
    readable.push_str(json.get(kept..).unwrap_or_default());
    Cow::Owned(readable)
}

/// The unit that is escaped at a place, if one is.
fn unit(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + ESCAPE_BYTES)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced_and_nothing_else() {
        let same = [r#""a""#, r#""\ud83e\udd80""#, r#""\\ud83d""#, r#""\u00e4\n🦀""#, r#""\"#];
        for json in same {
            assert_eq!(lossy(json), json);
        }
        for (json, then) in [
            (r#""a\ud83d""#, r#""a\ufffd""#),
            (r#""\udd80\ud83e""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\ud83e\udd80b""#, r#""\ufffd\ud83e\udd80b""#),
            (r#""\\\uD83D ä""#, r#""\\\ufffd ä""#),
        ] {
            assert_eq!(lossy(json), then);
            assert!(serde_json::from_str::<String>(&lossy(json)).is_ok());
        }
    }
}
