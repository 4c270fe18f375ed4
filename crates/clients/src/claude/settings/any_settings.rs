//! Generates settings for the property tests of this crate and of crates that install hooks.

use proptest::prelude::*;

/// White space and comments between the parts of a file.
fn filler() -> impl Strategy<Value = String> {
    let parts =
        ["", " ", "\n", "\n  ", "\n\t", "\r\n    ", " // a \u{e9} {\n", " /* \" */ ", "\n\n"];
    prop::sample::select(parts.to_vec()).prop_map(ToOwned::to_owned)
}

fn listed(open: char, close: char, items: &[String], gaps: &[String], comma: bool) -> String {
    let gap = |at: usize| gaps.get(at % gaps.len().max(1)).cloned().unwrap_or_default();
    let mut text = format!("{open}{}", gap(0));
    for (at, item) in items.iter().enumerate() {
        let more = at + 1 < items.len() || comma;
        text.extend([item.as_str(), &gap(at + 1), if more { "," } else { "" }, &gap(at + 2)]);
    }
    text.push(close);
    text
}

fn object(keys: &[&'static str], value: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let entries = prop::sample::subsequence(keys.to_vec(), 0..=keys.len()).prop_shuffle();
    (entries, prop::collection::vec(value, keys.len()), gaps(), any::<bool>())
        .prop_map(|(keys, values, gaps, comma)| {
            let gap = gaps.first().cloned().unwrap_or_default();
            let entry = |(key, value): (&&str, &String)| format!("\"{key}\":{gap}{value}");
            let entries: Vec<String> = keys.iter().zip(&values).map(entry).collect();
            listed('{', '}', &entries, &gaps, comma)
        })
        .boxed()
}

fn gaps() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(filler(), 1..5)
}

fn list(item: BoxedStrategy<String>) -> BoxedStrategy<String> {
    (prop::collection::vec(item, 0..4), gaps(), any::<bool>())
        .prop_map(|(items, gaps, comma)| listed('[', ']', &items, &gaps, comma))
        .boxed()
}

fn scalar() -> BoxedStrategy<String> {
    let words = ["1", "-0.5e3", "true", "null", "\"a \\\" // b\"", "\"\\u00e9\"", "\"mine\""];
    prop::sample::select(words.to_vec()).prop_map(ToOwned::to_owned).boxed()
}

/// Generates any settings, with hooks of other programs.
pub(crate) fn any_settings() -> BoxedStrategy<String> {
    let handler = object(&["type", "command", "timeout"], scalar());
    let group = prop_oneof![
        4 => object(&["hooks"], list(handler.clone())),
        1 => object(&["matcher", "x"], scalar()),
        1 => scalar(),
    ];
    let events = object(&["Stop", "PreToolUse", "Notification", "é"], list(group.boxed()));
    let other = prop_oneof![scalar(), list(scalar()), object(&["p", "q"], scalar())].boxed();
    let with_hooks =
        (events, gaps(), object(&["a", "b", "c"], other)).prop_map(|(events, gaps, rest)| {
            let inner = rest.strip_prefix('{').unwrap_or_default().to_owned();
            let is_empty = !rest.contains(':');
            let comma = if is_empty { "" } else { "," };
            format!("{{{}\"hooks\": {events}{comma}{inner}", gaps.concat())
        });
    let other = prop_oneof![scalar(), list(scalar())].boxed();
    let without = object(&["a", "b", "c"], other);
    (filler(), prop_oneof![with_hooks, without], filler())
        .prop_map(|(before, text, after)| format!("{before}{text}{after}"))
        .boxed()
}
