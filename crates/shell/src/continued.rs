//! Lines continued by a backslash, put together.
//!
//! bash takes a backslash and the newline behind it out of the text before it
//! looks for tokens. Our parser steps over them between words and inside of
//! them, which is not enough where one breaks an operator or a reserved word.
//! Such a text does not parse, and is tried again as one line.

use alloc::string::String;

/// The text without its continued lines. None where it has none, or where it
/// takes a parser to tell which backslashes stand in quotes.
pub(crate) fn joined(text: &str) -> Option<String> {
    if !text.contains("\\\n") {
        return None;
    }
    // Comments, here-documents and nested quotes keep their backslashes.
    let nests = text.contains('"') && text.contains('\'') && text.contains('$');
    if nests || text.contains(['#', '`']) || text.contains("<<") || text.contains("$'") {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (Some(end), _) if char == end => quote = None,
            (None, '\'' | '"') => quote = Some(char),
            (Some('"') | None, '\\') => {
                let next = chars.next();
                if next != Some('\n') {
                    out.push(char);
                    out.extend(next);
                }
                continue;
            }
            _ => {}
        }
        out.push(char);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn continued_lines_are_joined_outside_of_single_quotes() {
        for (text, one) in [
            ("a &\\\n& b", "a && b"),
            ("i\\\nf a", "if a"),
            ("echo $\\\n(a)", "echo $(a)"),
            ("\"a\\\nb\"", "\"ab\""),
            ("'a\\\nb' \\\n| c", "'a\\\nb' | c"),
            ("a\\\\\nb\\\n", "a\\\\\nb"),
            ("\\'\\\n\\'", "\\'\\'"),
            ("\"it's\\\n\"", "\"it's\""),
            ("a |\\\n\\\n| b", "a || b"),
        ] {
            assert_eq!(joined(text).as_deref(), Some(one), "{text}");
        }
    }

    #[test]
    fn what_takes_a_parser_is_left_alone() {
        for text in ["a", "a # b\\\n", "a <<E\\\nE", "`a\\\n`", "$'\\\n'", "\"$(a 'b\\\n')\""] {
            assert_eq!(joined(text), None, "{text}");
        }
    }
}
