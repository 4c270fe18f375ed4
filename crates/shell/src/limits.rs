//! Limits on the analysis of one line. A part beyond a limit becomes opaque; it is never cut.

/// A longer line is not parsed at all.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;

/// How deep commands, substitutions and quotes may nest in one text.
pub const NESTING_DEPTH_MAX: u32 = 100;

/// How many words one text may contain.
pub const WORDS_MAX: usize = 65_536;

/// How many commands a line may run, including those inside `bash -c` and functions.
pub const COMMANDS_MAX: usize = 1_024;

/// How deep shell texts may nest in each other: `bash -c`, `eval`, backticks, functions.
pub const NESTED_TEXTS_MAX: u32 = 12;

/// How many words one brace expansion may produce.
pub const BRACE_WORDS_MAX: usize = 128;

/// How many functions, aliases and links a line may define.
pub(crate) const NAMES_MAX: usize = 64;

/// How many variables are tracked at a time.
pub(crate) const VARIABLES_MAX: usize = 256;

/// How many items of a `for` loop are followed one by one. Beyond that its variable is unknown.
pub const LOOP_ITEMS_MAX: usize = 16;
