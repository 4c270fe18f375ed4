//! The arguments of a call as the client wrote them: for the guards, and for the tools.

use jackline_engine::json::parse_strict;
use jackline_engine::{Arguments, Payload};
use serde_json::{Value, json};

/// The arguments of a call.
pub(super) enum Written<'a> {
    /// As JSON.
    Json(Option<&'a Value>),
    /// As they are written, and why they can't be read.
    Garbled { arguments: &'a str, why: &'a str },
}

impl<'a> Written<'a> {
    pub(super) fn of(params: &'a Value) -> Self {
        Self::Json(params.get("arguments").filter(|args| !args.is_null()))
    }

    /// What the guards are asked about: what is no object they may still understand.
    pub(super) fn for_guards(&self) -> Arguments {
        match self {
            Self::Json(None) => Arguments::Parsed(json!({})),
            Self::Json(Some(args)) if args.is_object() => Arguments::Parsed((*args).clone()),
            // A text is what the model wrote, with whatever it put around the document.
            Self::Json(Some(Value::String(text))) if parse_strict(text.as_bytes()).is_err() => {
                Arguments::Text(Payload::Inline(text.clone()))
            }
            Self::Json(Some(other)) => Arguments::Text(Payload::Inline(other.to_string())),
            Self::Garbled { arguments, .. } => {
                Arguments::Text(Payload::Inline((*arguments).to_owned()))
            }
        }
    }

    /// What a tool is called with, or why it can't be.
    pub(super) fn for_tools(&self) -> Result<Value, &'a str> {
        match self {
            Self::Json(args) => Ok(args.cloned().unwrap_or_else(|| json!({}))),
            Self::Garbled { why, .. } => Err(why),
        }
    }
}
