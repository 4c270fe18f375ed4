//! Which files a glob means.

use std::ffi::OsStr;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::error::{Code, ToolError};

/// How long a glob may be.
const GLOB_BYTES_MAX: usize = 1000;

/// A glob: of a name at any depth if it has no slash, else of the path below the
/// directory that is searched. With `!` before it, what it does not match.
pub(crate) struct Filter {
    globs: GlobSet,
    by_path: bool,
    negated: bool,
}

/// Whether `A` is `a`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    Sensitive,
    Insensitive,
}

impl Filter {
    pub(crate) fn new(glob: &str, case: Case) -> Result<Filter, ToolError> {
        let (negated, bare) = glob.strip_prefix('!').map_or((false, glob), |bare| (true, bare));
        let bare = bare.strip_prefix("./").unwrap_or(bare);
        let invalid = |why: &str| {
            ToolError::new(Code::InvalidGlob, format!("`{glob}` is not a glob: {why}"))
                .advice("For example `*.rs`, `src/**/*.ts`, `{a,b}.txt`; `[[]` is a plain `[`.")
        };
        if bare.is_empty() || bare.len() > GLOB_BYTES_MAX {
            return Err(invalid(if bare.is_empty() { "it is empty" } else { "it is too long" }));
        }
        if bare.starts_with('/') || bare.split('/').any(|part| part == "..") {
            return Err(invalid("it must be relative to the directory that is searched"));
        }
        let said = |error: globset::Error| invalid(&error.kind().to_string());
        let built = GlobBuilder::new(bare)
            .literal_separator(true)
            .case_insensitive(case == Case::Insensitive)
            .build()
            .map_err(said)?;
        let globs = GlobSetBuilder::new().add(built).build().map_err(said)?;
        Ok(Filter { globs, by_path: bare.contains('/'), negated })
    }

    /// Whether a file is meant, by its path below the directory that is searched.
    pub(crate) fn wants(&self, below: &Path) -> bool {
        let matched = if self.by_path {
            self.globs.is_match(below)
        } else {
            below.file_name().is_some_and(|name: &OsStr| self.globs.is_match(name))
        };
        matched != self.negated
    }
}

/// The plain part of the name that a glob is after: `Foo` of `**/Foo*.rs`.
pub(crate) fn stem(glob: &str) -> Option<&str> {
    let name = glob.rsplit('/').next().unwrap_or(glob);
    let plain = |letter: char| !matches!(letter, '*' | '?' | '[' | ']' | '{' | '}' | ',' | '!');
    let part = name.split(|letter| !plain(letter)).max_by_key(|part| part.len())?;
    // `.rs` alone says nothing about a name.
    (part.len() >= 2 && !part.starts_with('.')).then_some(part)
}
