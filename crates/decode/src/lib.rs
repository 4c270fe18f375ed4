//! Decodes text that a model wrote into JSON that a schema allows.
//!
//! The decoder first reads the text strictly, then repairs clear mistakes, then
//! validates the value. For an invalid text it renders a request to the model that
//! says where and why the text is wrong.

mod decode;
mod event_decoder;
mod extract;
mod limits;
mod model_request;
mod outcome;
mod placeholder;
mod plan_schema;
mod read;
mod schema;
mod unescape;

pub use decode::{TextEnding, check_value, check_value_unchanged, decode};
pub use event_decoder::EventDecoder;
pub use limits::{
    DEPTH_MAX, ERROR_BYTES_MAX, ERRORS_MAX, PATTERN_BYTES_MAX, PATTERNS_MAX, REQUEST_BYTES_MAX,
    SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_VALUES_MAX, TEXT_BYTES_MAX, VALIDATION_DEPTH_MAX,
    VALIDATION_STEPS_MAX, VALUES_MAX,
};
pub use outcome::{
    AcceptedDocument, CutOffDocument, DecodeMismatch, DecodeOutcome, InvalidDocument,
    InvalidReason, TextRepair,
};
pub use plan_schema::plan_schema;
pub use schema::{FormatPolicy, Schema, SchemaError};
pub mod stream;
