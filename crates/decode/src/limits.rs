//! Limits on texts and schemas.
//!
//! The text of a model and a schema are both untrusted input. Every limit here is far
//! above what normal work needs. Together the limits bound the worst case to a fraction
//! of a second and some tens of megabytes.

/// The longest text that is decoded.
pub const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How deep values may nest; the same limit as in the engine's JSON parser.
pub const DEPTH_MAX: usize = 100;

/// How many values a document may contain, not counting keys.
pub const VALUES_MAX: usize = 200_000;

/// How many values a text with prose may contain before it is refused.
pub(crate) const CANDIDATES_MAX: usize = 16;

/// At how many brackets in prose the reader tries to read a value.
pub(crate) const BRACKETS_TRIED_MAX: usize = 10_000;

/// How many errors are listed; the others are only counted.
pub const ERRORS_MAX: usize = 8;

/// The length limit of each field of an error: `path`, `expected` and `got`.
pub const ERROR_BYTES_MAX: usize = 200;

/// How long a request to the model may be.
pub const REQUEST_BYTES_MAX: usize = 4096;

/// How long an example may be; a longer one is omitted.
pub(crate) const EXAMPLE_BYTES_MAX: usize = 1500;

/// How many values a schema may contain.
pub const SCHEMA_VALUES_MAX: usize = 20_000;

/// How many bytes all texts of a schema may have together, including keys.
pub const SCHEMA_BYTES_MAX: usize = 512 * 1024;

/// How deep a schema may nest.
pub const SCHEMA_DEPTH_MAX: usize = 64;

/// How many patterns a schema may have.
pub const PATTERNS_MAX: usize = 256;
/// How long a pattern of a schema may be.
pub const PATTERN_BYTES_MAX: usize = 2000;

/// How many pairs of a schema and a value one validation may check.
pub const VALIDATION_STEPS_MAX: usize = 2_000_000;

/// How many nested schemas a validation may follow. Each one takes a few stack frames
/// of the validator.
pub const VALIDATION_DEPTH_MAX: usize = 600;
