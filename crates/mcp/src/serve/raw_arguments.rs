//! The arguments of a call as the client sent them, for the guards and for the tools.

use jackline_engine::json::parse_strict;
use jackline_engine::{Arguments, Payload};
use serde_json::{Value, json};

/// The arguments of a call.
pub(super) enum RawArguments<'a> {
    /// Arguments as JSON.
    Json(Option<&'a Value>),
    /// The raw text of arguments that can't be parsed, and the error.
    Garbled { arguments: &'a str, why: &'a str },
}

impl<'a> RawArguments<'a> {
    pub(super) fn of(params: &'a Value) -> Self {
        Self::Json(params.get("arguments").filter(|args| !args.is_null()))
    }

    /// The arguments for the guards. Arguments that are not an object go to the guards as text.
    pub(super) fn for_guards(&self) -> Arguments {
        match self {
            Self::Json(None) => Arguments::Parsed(json!({})),
            Self::Json(Some(args)) if args.is_object() => Arguments::Parsed((*args).clone()),
            // A string is text that the model wrote, possibly with other text around the JSON
            // document.
            Self::Json(Some(Value::String(text))) if parse_strict(text.as_bytes()).is_err() => {
                Arguments::Text(Payload::Inline(text.clone()))
            }
            Self::Json(Some(other)) => Arguments::Text(Payload::Inline(other.to_string())),
            Self::Garbled { arguments, .. } => {
                Arguments::Text(Payload::Inline((*arguments).to_owned()))
            }
        }
    }

    /// The arguments for the tool, or the error if they can't be parsed.
    pub(super) fn for_tools(&self) -> Result<Value, &'a str> {
        match self {
            Self::Json(args) => Ok(args.cloned().unwrap_or_else(|| json!({}))),
            Self::Garbled { why, .. } => Err(why),
        }
    }
}
