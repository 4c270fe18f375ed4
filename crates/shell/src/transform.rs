//! What `${x,,}`, `${x/a/b}`, `${x%.y}` and `${x:1:2}` make of a value.

use alloc::string::String;

use crate::state::State;

/// The value of a parameter with an operator, where both are plain.
pub(crate) fn transformed(state: &State, inner: &str) -> Option<String> {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = inner.bytes().take_while(is_name).count();
    let (name, operator) = inner.split_at_checked(length)?;
    let value: &str = state.value(name)?;
    if !value.is_ascii() {
        return None;
    }
    match operator.as_bytes() {
        b",," => Some(value.to_ascii_lowercase()),
        b"^^" => Some(value.to_ascii_uppercase()),
        [b'/', b'/', ..] => {
            let (from, to) = replacement(operator.get(2..)?)?;
            Some(value.replace(from, to))
        }
        [b'/', ..] => {
            let (from, to) = replacement(operator.get(1..)?)?;
            Some(value.replacen(from, to, 1))
        }
        [b'%', ..] => {
            let end = plain(operator.trim_start_matches('%'))?;
            Some(value.strip_suffix(end).unwrap_or(value).into())
        }
        [b'#', ..] => {
            let start = plain(operator.trim_start_matches('#'))?;
            Some(value.strip_prefix(start).unwrap_or(value).into())
        }
        [b':', b'0'..=b'9', ..] => slice(value, operator.get(1..)?),
        _ => None,
    }
}

fn replacement(operator: &str) -> Option<(&str, &str)> {
    let (from, to) = operator.split_once('/').unwrap_or((operator, ""));
    let to = if to.is_empty() { to } else { plain(to)? };
    plain(from).map(|from| (from, to))
}

/// A text that is no pattern and holds no quotes.
fn plain(text: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+,=@".contains(&byte);
    (!text.is_empty() && text.bytes().all(is_plain)).then_some(text)
}

fn slice(value: &str, operator: &str) -> Option<String> {
    let (from, length) = match operator.split_once(':') {
        Some((from, length)) => (from, Some(length.parse::<usize>().ok()?)),
        None => (operator, None),
    };
    let from = from.parse::<usize>().ok()?.min(value.len());
    let end = length.map_or(value.len(), |length| from.saturating_add(length).min(value.len()));
    value.get(from..end).map(String::from)
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use super::*;

    #[test]
    fn plain_operators_are_understood() {
        let mut state = State::default();
        state.assign("x", Some(Arc::from("aXbX.Y")));
        for (inner, value) in [
            ("x,,", Some("axbx.y")),
            ("x^^", Some("AXBX.Y")),
            ("x/X/.", Some("a.bX.Y")),
            ("x//X/", Some("ab.Y")),
            ("x//X", Some("ab.Y")),
            ("x%.Y", Some("aXbX")),
            ("x#aX", Some("bX.Y")),
            ("x:1:2", Some("Xb")),
            ("x:4", Some(".Y")),
            ("x:9:9", Some("")),
            ("x%.*", None),
            ("x/$y/z", None),
            ("x: -1", None),
            ("nosuch,,", None),
        ] {
            assert_eq!(transformed(&state, inner).as_deref(), value, "{inner}");
        }
    }
}
