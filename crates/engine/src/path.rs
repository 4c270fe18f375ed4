//! The canonical form of a path inside the workspace.
//!
//! This is the lexical part: the path is relative to the root, dot segments and repeated slashes
//! are removed, and paths that leave the workspace are rejected. The targets of symbolic links are
//! facts.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// Why a path has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path is empty.
    #[error("the path is empty")]
    Empty,
    /// The path contains a NUL byte.
    #[error("the path contains a NUL byte")]
    Nul,
    /// The path leads out of the workspace.
    #[error("`{0}` leads out of the workspace")]
    Escape(String),
}

/// The path relative to the workspace; `.` for the workspace itself.
///
/// An absolute path is accepted if it is inside `root`.
pub fn canonical_path(path: &str, root: Option<&str>) -> Result<String, PathError> {
    if path.is_empty() {
        return Err(PathError::Empty);
    }
    if path.contains('\0') {
        return Err(PathError::Nul);
    }
    let escape = || PathError::Escape(path.chars().take(200).collect());
    let inside = if path.starts_with('/') {
        let root = canonical_segments(root.ok_or_else(escape)?).ok_or_else(escape)?;
        let all = canonical_segments(path).ok_or_else(escape)?;
        all.strip_prefix(root.as_slice()).ok_or_else(escape)?.to_vec()
    } else {
        canonical_segments(path).ok_or_else(escape)?
    };
    Ok(if inside.is_empty() { String::from(".") } else { inside.join("/") })
}

/// Resolves `path` from the directory `base`: relative to `root` if it is inside, absolute
/// otherwise. The result can begin with `..` only if there is no root.
///
/// `base` and the result have this form.
pub(crate) fn resolve_path<'p>(path: &'p str, base: &str, root: Option<&str>) -> Cow<'p, str> {
    // Most paths already have this form.
    if base == "." && path.split('/').all(|segment| !matches!(segment, "" | "." | "..")) {
        return Cow::Borrowed(path);
    }
    let mut resolved: Vec<&str> = Vec::new();
    let mut climbed = 0;
    let absolute = path.starts_with('/') || base.starts_with('/');
    let from_root = root.filter(|_| !absolute);
    let parts =
        [from_root.unwrap_or_default(), if path.starts_with('/') { "" } else { base }, path];
    for segment in parts.iter().flat_map(|part| part.split('/')) {
        match segment {
            "" | "." => {}
            ".." => {
                if resolved.pop().is_none() {
                    climbed += 1;
                }
            }
            name => resolved.push(name),
        }
    }
    if !absolute && root.is_none() {
        // Without a root, the directories above are not known.
        let above = core::iter::repeat_n("..", climbed);
        let path = above.chain(resolved).collect::<Vec<_>>().join("/");
        return if path.is_empty() { Cow::Borrowed(".") } else { Cow::Owned(path) };
    }
    let mut inside = resolved.iter();
    let within = root.is_some_and(|root| {
        let mut above = root.split('/').filter(|segment| !matches!(*segment, "" | "."));
        above.all(|segment| inside.next() == Some(&segment))
    });
    if within {
        let inside = inside.copied().collect::<Vec<_>>().join("/");
        return if inside.is_empty() { Cow::Borrowed(".") } else { Cow::Owned(inside) };
    }
    let mut absolute = String::from("/");
    absolute.push_str(&resolved.join("/"));
    Cow::Owned(absolute)
}

/// Whether `path` is `directory` or below it. Both must be canonical.
pub(crate) fn is_within(path: &str, directory: &str) -> bool {
    match directory {
        "." => !path.starts_with('/'),
        "/" => path.starts_with('/'),
        _ => path
            .strip_prefix(directory)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
    }
}

fn canonical_segments(path: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_one_name() {
        for path in ["a/b.txt", "./a//b.txt", "a/./c/../b.txt", "/w/s/a/b.txt", "/w/./s//a/b.txt"] {
            assert_eq!(canonical_path(path, Some("/w/s")).as_deref(), Ok("a/b.txt"), "{path}");
        }
        assert_eq!(canonical_path("/w/s/", Some("/w/s")).as_deref(), Ok("."));
    }

    #[test]
    fn a_path_is_relative_inside_and_absolute_outside() {
        let root = Some("/w/s");
        for (path, base, expected) in [
            ("a.txt", ".", "a.txt"),
            ("a/b.txt", ".", "a/b.txt"),
            ("a/", ".", "a"),
            ("a/./b", ".", "a/b"),
            ("a/../../x", ".", "/w/x"),
            ("./a//b/../c", "sub", "sub/a/c"),
            ("/w/s/a", "sub", "a"),
            ("/w/s", ".", "."),
            ("..", "sub", "."),
            ("../x", ".", "/w/x"),
            ("../../../../x", ".", "/x"),
            ("x", "/tmp", "/tmp/x"),
            ("/w/sx", ".", "/w/sx"),
            ("/", ".", "/"),
        ] {
            assert_eq!(resolve_path(path, base, root), expected, "{path} from {base}");
        }
        assert_eq!(resolve_path("../x", ".", None), "../x");
        assert_eq!(resolve_path("/x/../y", ".", None), "/y");
        assert_eq!(resolve_path(".", ".", None), ".");
    }

    #[test]
    fn a_directory_contains_itself_and_the_paths_below_it() {
        assert!(is_within("a/b", "a") && is_within("a", "a") && is_within("a", "."));
        assert!(!is_within("ab", "a") && !is_within("/a", ".") && is_within("/a", "/"));
    }

    #[test]
    fn a_path_out_of_the_workspace_is_rejected_not_shortened() {
        for path in ["../x", "a/../../x", "/w/other/x", "/w/sx", "/etc/passwd"] {
            assert!(
                matches!(canonical_path(path, Some("/w/s")), Err(PathError::Escape(_))),
                "{path}"
            );
        }
        assert!(canonical_path("/abs", None).is_err());
        assert_eq!(canonical_path("a\0b", None), Err(PathError::Nul));
        assert_eq!(canonical_path("", None), Err(PathError::Empty));
    }
}
