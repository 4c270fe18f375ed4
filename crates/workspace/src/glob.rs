//! Globs of the tools `find_files` and `search`.

use std::ffi::OsStr;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::error::{ToolError, ToolErrorCode};

/// The maximum length of a glob.
const GLOB_BYTES_MAX: usize = 1000;

/// A compiled glob. A glob without a slash matches file names at any depth. A glob with a slash
/// matches the path below the searched directory. `!` in front inverts it.
pub(crate) struct GlobFilter {
    globs: GlobSet,
    by_path: bool,
    negated: bool,
}

/// Whether a match is case-sensitive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaseSensitivity {
    Sensitive,
    Insensitive,
}

impl GlobFilter {
    pub(crate) fn new(glob: &str, case: CaseSensitivity) -> Result<GlobFilter, ToolError> {
        let (negated, bare) = glob.strip_prefix('!').map_or((false, glob), |bare| (true, bare));
        let bare = bare.strip_prefix("./").unwrap_or(bare);
        let invalid = |why: &str| {
            ToolError::new(
                ToolErrorCode::InvalidGlob,
                format!("`{glob}` is not a valid glob: {why}"),
            )
            .with_advice(
                "Examples: `*.rs`, `src/**/*.ts`, `{a,b}.txt`. `[[]` matches a literal `[`.",
            )
        };
        if bare.is_empty() || bare.len() > GLOB_BYTES_MAX {
            return Err(invalid(if bare.is_empty() { "it is empty" } else { "it is too long" }));
        }
        if bare.starts_with('/') || bare.split('/').any(|part| part == "..") {
            return Err(invalid("it must be relative to the directory that is searched"));
        }
        let to_error = |error: globset::Error| invalid(&error.kind().to_string());
        let built = GlobBuilder::new(bare)
            .literal_separator(true)
            .case_insensitive(case == CaseSensitivity::Insensitive)
            .build()
            .map_err(to_error)?;
        let globs = GlobSetBuilder::new().add(built).build().map_err(to_error)?;
        Ok(GlobFilter { globs, by_path: bare.contains('/'), negated })
    }

    /// Whether the filter matches a file. `below` is its path below the searched directory.
    pub(crate) fn matches_path(&self, below: &Path) -> bool {
        let matched = if self.by_path {
            self.globs.is_match(below)
        } else {
            below.file_name().is_some_and(|name: &OsStr| self.globs.is_match(name))
        };
        matched != self.negated
    }
}

/// The longest literal part of the name in a glob: `Foo` of `**/Foo*.rs`.
pub(crate) fn literal_name_part(glob: &str) -> Option<&str> {
    let name = glob.rsplit('/').next().unwrap_or(glob);
    let plain = |letter: char| !matches!(letter, '*' | '?' | '[' | ']' | '{' | '}' | ',' | '!');
    let part = name.split(|letter| !plain(letter)).max_by_key(|part| part.len())?;
    // An extension such as `.rs` alone does not identify a name.
    (part.len() >= 2 && !part.starts_with('.')).then_some(part)
}
