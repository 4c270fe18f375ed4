//! The one canonical form of a path inside the workspace.
//!
//! This is the lexical half: relative to the root, dot segments and slashes
//! collapsed, escapes rejected. Where symbolic links lead is a fact.

use alloc::string::String;
use alloc::vec::Vec;

/// Why a path has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path is empty.
    #[error("the path is empty")]
    Empty,
    /// The path holds a NUL.
    #[error("the path holds a NUL")]
    Nul,
    /// The path leads out of the workspace.
    #[error("`{0}` leads out of the workspace")]
    Escape(String),
}

/// The workspace-relative form of `path`, `.` for the root itself.
///
/// An absolute path is accepted when it lies inside `root`.
pub fn canonical(path: &str, root: Option<&str>) -> Result<String, PathError> {
    if path.is_empty() {
        return Err(PathError::Empty);
    }
    if path.contains('\0') {
        return Err(PathError::Nul);
    }
    let escape = || PathError::Escape(path.chars().take(200).collect());
    let inside = if path.starts_with('/') {
        let root = segments(root.ok_or_else(escape)?).ok_or_else(escape)?;
        let all = segments(path).ok_or_else(escape)?;
        all.strip_prefix(root.as_slice()).ok_or_else(escape)?.to_vec()
    } else {
        segments(path).ok_or_else(escape)?
    };
    Ok(if inside.is_empty() { String::from(".") } else { inside.join("/") })
}

fn segments(path: &str) -> Option<Vec<&str>> {
    let mut kept = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                kept.pop()?;
            }
            name => kept.push(name),
        }
    }
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_one_name() {
        for path in ["a/b.txt", "./a//b.txt", "a/./c/../b.txt", "/w/s/a/b.txt", "/w/./s//a/b.txt"] {
            assert_eq!(canonical(path, Some("/w/s")).as_deref(), Ok("a/b.txt"), "{path}");
        }
        assert_eq!(canonical("/w/s/", Some("/w/s")).as_deref(), Ok("."));
    }

    #[test]
    fn what_leads_out_is_rejected_not_clamped() {
        for path in ["../x", "a/../../x", "/w/other/x", "/w/sx", "/etc/passwd"] {
            assert!(matches!(canonical(path, Some("/w/s")), Err(PathError::Escape(_))), "{path}");
        }
        assert!(canonical("/abs", None).is_err());
        assert_eq!(canonical("a\0b", None), Err(PathError::Nul));
        assert_eq!(canonical("", None), Err(PathError::Empty));
    }
}
