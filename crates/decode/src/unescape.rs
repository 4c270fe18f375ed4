//! Documents that are escaped as if they were in a JSON string or in HTML.

use serde_json::Value;

use crate::decode::parse_exactly;

/// The document without its escapes, if the whole text is an escaped document.
pub(crate) fn unescape_document(text: &str) -> Option<String> {
    let text = text.trim();
    let inside = text.strip_prefix(['{', '['])?;
    let start = inside.trim_start_matches(|sign: char| sign.is_whitespace() || "{[".contains(sign));
    let start = start.trim_start_matches("\\n").trim_start();
    if start.starts_with("\\\"") {
        let lines = text.replace('\n', "\\n").replace('\r', "");
        return match parse_exactly(&format!("\"{lines}\"")) {
            Ok(Value::String(document)) => Some(document),
            _ => None,
        };
    }
    let entities = start.starts_with("&quot;") || start.starts_with("&#34;");
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
