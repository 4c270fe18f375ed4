//! Settings in JSON that a person may have written comments into.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstObject, CstRootNode};
use serde_json::Value;

/// What an editor may put before a text.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Why settings can't be changed. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// They are not UTF-8.
    #[error("is not UTF-8; save it as UTF-8")]
    NotText,
    /// They can't be read, by the client no more than by us.
    #[error("line {line}, column {column}: {what}; mend that, the client can't read it either")]
    Syntax {
        /// The line, from one.
        line: usize,
        /// The column, from one.
        column: usize,
        /// What is wrong there.
        what: String,
    },
    /// Something in them has another shape than the client takes.
    #[error("{what} must be {expected}, and is {got}; mend that, then run this again")]
    Shape {
        /// What it is about.
        what: String,
        /// What it has to be.
        expected: &'static str,
        /// What it is.
        got: &'static str,
    },
    /// A key is there twice, and readers disagree about which counts.
    #[error("`{key}` is there twice; take one of them out, then run this again")]
    Twice {
        /// The key.
        key: String,
    },
    /// The edit would change more than our own entries.
    #[error("can't be changed without touching other entries; change it by hand, and report this")]
    Entangled,
}

/// Whether there is nothing in there, not even a comment.
pub fn is_blank(text: &str) -> bool {
    let bare = text.trim_start_matches(BYTE_ORDER_MARK);
    bare.chars().filter(|c| !c.is_whitespace()).eq("{}".chars()) || bare.trim().is_empty()
}

/// Whether the client reads such a text. Ours is more tolerant: the client
/// ignores a whole file, silently, for a comment or a comma too many.
pub fn is_strict(text: &str) -> bool {
    loose_line(text).is_none()
}

/// The first line at which the client gives a text up, from one.
pub fn loose_line(text: &str) -> Option<usize> {
    let bare = text.trim_start_matches(BYTE_ORDER_MARK);
    let read = serde_json::from_str::<Value>(bare);
    read.err().filter(|_| !bare.trim().is_empty()).map(|error| error.line())
}

/// Comments and commas at the end pass, and nothing else that is no JSON.
pub fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// The syntax tree of a text, which edits leave as it is elsewhere.
pub fn parse(text: &str) -> Result<CstRootNode, SettingsError> {
    CstRootNode::parse(text, &options()).map_err(|error| {
        let what = error.kind().to_string();
        let mut letters = what.chars();
        let first = letters.next().map(|first| first.to_ascii_lowercase());
        SettingsError::Syntax {
            line: error.line_display(),
            column: error.column_display(),
            what: first.into_iter().chain(letters).collect(),
        }
    })
}

/// What a syntax tree says.
pub fn value(root: &CstRootNode) -> Value {
    root.to_serde_value().unwrap_or_default()
}

/// What a text says.
pub fn value_of(text: &str) -> Result<Value, SettingsError> {
    parse(text.trim_start_matches(BYTE_ORDER_MARK)).map(|root| value(&root))
}

/// Whether each of these keys is there once at most.
pub fn once(object: &CstObject, which: impl Fn(&str) -> bool) -> Result<(), SettingsError> {
    let names = object.properties().into_iter().filter_map(|property| property.decoded_name());
    no_twins(names.filter(|name| which(name)).collect())
}

/// Whether no two of these keys are the same.
pub fn no_twins(mut names: Vec<String>) -> Result<(), SettingsError> {
    names.sort_unstable();
    let twice = names.windows(2).find_map(|pair| match pair {
        [one, other] if one == other => Some(one.clone()),
        _ => None,
    });
    twice.map_or(Ok(()), |key| Err(SettingsError::Twice { key }))
}
