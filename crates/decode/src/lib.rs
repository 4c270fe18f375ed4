//! What a model wrote, made into JSON that a schema allows.
//!
//! Strictly first, then cleaned up, then validated; what is still wrong becomes
//! a request to write it again that says where and why.

mod decode;
mod decoded;
mod escaped;
mod event;
mod extract;
mod limits;
mod placeholder;
mod plan;
mod read;
mod request;
mod schema;

pub use decode::{Ending, check, check_as_is, decode};
pub use decoded::{Accepted, CutOff, Decoded, Invalid, Mismatch, Reason, Repair};
pub use event::Decoder;
pub use limits::{
    DEPTH_MAX, ERROR_BYTES_MAX, ERRORS_MAX, NESTED_MAX, PATTERN_BYTES_MAX, PATTERNS_MAX,
    REQUEST_BYTES_MAX, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_VALUES_MAX, STEPS_MAX,
    TEXT_BYTES_MAX, VALUES_MAX,
};
pub use plan::plan_schema;
pub use schema::{Formats, Schema, SchemaError};
pub mod stream;
