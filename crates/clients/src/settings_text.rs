//! Parses settings in JSON, which may contain comments of a person.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstObject, CstRootNode};
use serde_json::Value;

/// Some editors write this before a text.
pub const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Why settings can't be changed. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// They are not UTF-8.
    #[error("is not UTF-8; save it as UTF-8")]
    NotUtf8,
    /// They are not valid. The client can't read them either.
    #[error(
        "line {line}, column {column}: {what}; fix it, because the client can't read it either"
    )]
    Syntax {
        /// The line, starting at 1.
        line: usize,
        /// The column, starting at 1.
        column: usize,
        /// The error at that position.
        what: String,
    },
    /// A value has a type that the client does not accept.
    #[error("{what} must be {expected}, but is {got}; fix it, then run this again")]
    WrongType {
        /// The name of the value.
        what: String,
        /// The expected type.
        expected: &'static str,
        /// The actual type.
        got: &'static str,
    },
    /// A key occurs twice, and parsers disagree about which one counts.
    #[error("`{key}` occurs twice; remove one of them, then run this again")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// The edit would change more than our own entries.
    #[error(
        "can't be changed without changing other entries; edit it by hand, and report this as a bug"
    )]
    WouldChangeOthers,
}

/// Whether the text has no settings and no comment.
pub fn is_blank(text: &str) -> bool {
    let bare = text.trim_start_matches(BYTE_ORDER_MARK);
    bare.chars().filter(|c| !c.is_whitespace()).eq("{}".chars()) || bare.trim().is_empty()
}

/// Whether the client can read this text. Our parser is more tolerant: the client silently ignores
/// a whole file because of a comment or a trailing comma.
pub fn is_valid_for_client(text: &str) -> bool {
    first_invalid_line(text).is_none()
}

/// The first line that the client can't parse, starting at 1.
pub fn first_invalid_line(text: &str) -> Option<usize> {
    let bare = text.trim_start_matches(BYTE_ORDER_MARK);
    let read = serde_json::from_str::<Value>(bare);
    read.err().filter(|_| !bare.trim().is_empty()).map(|error| error.line())
}

/// Accepts comments and trailing commas, and no other deviation from JSON.
pub fn parse_options() -> ParseOptions {
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

/// The syntax tree of a text. Edits change only the edited part of the text.
pub fn parse(text: &str) -> Result<CstRootNode, SettingsError> {
    CstRootNode::parse(text, &parse_options()).map_err(|error| {
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

/// The JSON value of a syntax tree.
pub fn tree_value(root: &CstRootNode) -> Value {
    root.to_serde_value().unwrap_or_default()
}

/// The JSON value of a text.
pub fn parse_value(text: &str) -> Result<Value, SettingsError> {
    parse(text.trim_start_matches(BYTE_ORDER_MARK)).map(|root| tree_value(&root))
}

/// Checks that no selected key occurs twice.
pub fn check_keys_once(
    object: &CstObject,
    which: impl Fn(&str) -> bool,
) -> Result<(), SettingsError> {
    let names = object.properties().into_iter().filter_map(|property| property.decoded_name());
    check_no_duplicates(names.filter(|name| which(name)).collect())
}

/// Checks that all these keys are different.
pub fn check_no_duplicates(mut names: Vec<String>) -> Result<(), SettingsError> {
    names.sort_unstable();
    let twice = names.windows(2).find_map(|pair| match pair {
        [one, other] if one == other => Some(one.clone()),
        _ => None,
    });
    twice.map_or(Ok(()), |key| Err(SettingsError::DuplicateKey { key }))
}
