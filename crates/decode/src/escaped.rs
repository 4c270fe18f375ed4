//! Documents that were escaped as if they were in a string or a web page.

use serde_json::Value;

use crate::decode::strictly;

/// The document without its escapes, if the whole text is one with them.
pub(crate) fn unescaped(text: &str) -> Option<String> {
    let text = text.trim();
    let inside = text.strip_prefix(['{', '['])?;
    let begins =
        inside.trim_start_matches(|sign: char| sign.is_whitespace() || "{[".contains(sign));
    let begins = begins.trim_start_matches("\\n").trim_start();
    if begins.starts_with("\\\"") {
        let lines = text.replace('\n', "\\n").replace('\r', "");
        return match strictly(&format!("\"{lines}\"")) {
            Ok(Value::String(document)) => Some(document),
            _ => None,
        };
    }
    let entities = begins.starts_with("&quot;") || begins.starts_with("&#34;");
    (entities && !text.contains('"')).then(|| {
        let signs = [
            ("&quot;", "\""),
            ("&#34;", "\""),
            ("&#39;", "'"),
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&amp;", "&"),
        ];
        signs.iter().fold(text.to_owned(), |text, (entity, sign)| text.replace(entity, sign))
    })
}
