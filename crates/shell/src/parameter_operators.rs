//! Applies the operators of `${x,,}`, `${x/a/b}`, `${x%.y}` and `${x:1:2}` to a value.

use alloc::string::String;

use crate::shell_state::ShellState;

/// The value of a parameter with an operator. `None` where the value is not known or
/// the operator contains a pattern, a quote or an expansion.
pub(crate) fn apply_parameter_operator(state: &ShellState, inner: &str) -> Option<String> {
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
            let (from, to) = parse_replacement(operator.get(2..)?)?;
            Some(value.replace(from, to))
        }
        [b'/', ..] => {
            let (from, to) = parse_replacement(operator.get(1..)?)?;
            Some(value.replacen(from, to, 1))
        }
        [b'%', ..] => {
            let end = plain_text(operator.trim_start_matches('%'))?;
            Some(value.strip_suffix(end).unwrap_or(value).into())
        }
        [b'#', ..] => {
            let start = plain_text(operator.trim_start_matches('#'))?;
            Some(value.strip_prefix(start).unwrap_or(value).into())
        }
        [b':', b'0'..=b'9', ..] => take_slice(value, operator.get(1..)?),
        _ => None,
    }
}

fn parse_replacement(operator: &str) -> Option<(&str, &str)> {
    let (from, to) = operator.split_once('/').unwrap_or((operator, ""));
    let to = if to.is_empty() { to } else { plain_text(to)? };
    plain_text(from).map(|from| (from, to))
}

/// The text, if it contains no pattern, quote or expansion.
fn plain_text(text: &str) -> Option<&str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+,=@".contains(&byte);
    (!text.is_empty() && text.bytes().all(is_plain)).then_some(text)
}

fn take_slice(value: &str, operator: &str) -> Option<String> {
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
    fn plain_operators_are_applied() {
        let mut state = ShellState::default();
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
            assert_eq!(apply_parameter_operator(&state, inner).as_deref(), value, "{inner}");
        }
    }
}
