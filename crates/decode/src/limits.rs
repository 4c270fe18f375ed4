//! What is refused before anybody looks at it closely.
//!
//! A model and a schema are both somebody else's text. Every bound here is far
//! above what honest work needs, and keeps the worst case to a fraction of a
//! second and some tens of megabytes.

/// The longest text that is decoded.
pub const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How deep values may nest; the same as in the engine's own reader.
pub const DEPTH_MAX: usize = 100;

/// How many values a document may hold, keys not counted.
pub const VALUES_MAX: usize = 200_000;

/// How many values in a text with prose are looked at before it is refused.
pub(crate) const FOUND_MAX: usize = 16;

/// How many brackets in prose are tried.
pub(crate) const TRIED_MAX: usize = 10_000;

/// How many errors are told; the rest is counted.
pub const ERRORS_MAX: usize = 8;

/// How long one half of an error may be: what was expected, what was there.
pub const ERROR_BYTES_MAX: usize = 200;

/// How long a request to the model may be.
pub const REQUEST_BYTES_MAX: usize = 4096;

/// How long an example may be; one that would be longer is left out.
pub(crate) const EXAMPLE_BYTES_MAX: usize = 1500;

/// How many values a schema may hold.
pub const SCHEMA_VALUES_MAX: usize = 20_000;

/// How many bytes the texts of a schema may have, keys included.
pub const SCHEMA_BYTES_MAX: usize = 512 * 1024;

/// How deep a schema may nest.
pub const SCHEMA_DEPTH_MAX: usize = 64;

/// How many patterns a schema may have, and how long each may be.
pub const PATTERNS_MAX: usize = 256;
/// The longest pattern of a schema.
pub const PATTERN_BYTES_MAX: usize = 2000;

/// How many pairs of a schema and a value one validation may look at.
pub const STEPS_MAX: usize = 2_000_000;

/// How many schemas one inside the other a validation may follow. Each is a few
/// stack frames of the validator.
pub const NESTED_MAX: usize = 600;
