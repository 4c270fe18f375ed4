//! How much of a line is looked at. Beyond a limit a line is opaque, never cut.

/// A longer line is not parsed at all.
pub const LINE_BYTES_MAX: usize = 1024 * 1024;

/// How deep commands, substitutions and quotes may nest in one text.
pub const DEPTH_MAX: u32 = 100;

/// How many words one text may hold.
pub const WORDS_MAX: usize = 65_536;

/// How many commands a line may run, those inside `bash -c` and functions counted.
pub const COMMANDS_MAX: usize = 1_024;

/// How deep texts may nest in texts: `bash -c`, `eval`, backticks, functions.
pub const TEXTS_MAX: u32 = 12;

/// How many words one brace expansion may make.
pub const BRACES_MAX: usize = 128;

/// How many functions, aliases and links a line may make.
pub(crate) const NAMES_MAX: usize = 64;

/// How many variables are remembered at a time.
pub(crate) const VARIABLES_MAX: usize = 256;

/// How many items of a `for` are walked one by one; beyond that its variable is unknown.
pub const ITEMS_MAX: usize = 16;
