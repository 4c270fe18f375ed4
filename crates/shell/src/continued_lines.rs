//! Joins lines that a backslash continues.
//!
//! bash removes a backslash and the newline behind it before it looks for
//! tokens. Our parser skips them between and inside words, but not inside an
//! operator or a reserved word. A text that does not parse for this reason is
//! joined into one line here and parsed again.

use alloc::string::String;

/// The text with its continued lines joined. `None` where it has no continued
/// line, or where only a parser can tell which backslashes are inside quotes.
pub(crate) fn join_continued_lines(text: &str) -> Option<String> {
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
    use super::join_continued_lines;

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
            assert_eq!(join_continued_lines(text).as_deref(), Some(one), "{text}");
        }
    }

    #[test]
    fn a_text_that_needs_a_parser_is_not_joined() {
        for text in ["a", "a # b\\\n", "a <<E\\\nE", "`a\\\n`", "$'\\\n'", "\"$(a 'b\\\n')\""] {
            assert_eq!(join_continued_lines(text), None, "{text}");
        }
    }
}
