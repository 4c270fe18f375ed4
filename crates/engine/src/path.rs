//! The one canonical form of a path inside the workspace.
//!
//! This is the lexical half: relative to the root, dot segments and slashes
//! collapsed, escapes rejected. Where symbolic links lead is a fact.

use alloc::borrow::Cow;
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

/// Where `path` leads from the directory `base`: relative to `root` inside of
/// it, absolute outside. Only where no root is known can the result climb.
///
/// Both `base` and the result are in this form.
pub(crate) fn resolve<'p>(path: &'p str, base: &str, root: Option<&str>) -> Cow<'p, str> {
    // In this form already, as most are.
    if base == "." && path.split('/').all(|segment| !matches!(segment, "" | "." | "..")) {
        return Cow::Borrowed(path);
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut climbed = 0;
    let absolute = path.starts_with('/') || base.starts_with('/');
    let from_root = root.filter(|_| !absolute);
    let parts =
        [from_root.unwrap_or_default(), if path.starts_with('/') { "" } else { base }, path];
    for segment in parts.iter().flat_map(|part| part.split('/')) {
        match segment {
            "" | "." => {}
            ".." => {
                if kept.pop().is_none() {
                    climbed += 1;
                }
            }
            name => kept.push(name),
        }
    }
    if !absolute && root.is_none() {
        // Nobody knows what lies above.
        let above = core::iter::repeat_n("..", climbed);
        let path = above.chain(kept).collect::<Vec<_>>().join("/");
        return if path.is_empty() { Cow::Borrowed(".") } else { Cow::Owned(path) };
    }
    let mut inside = kept.iter();
    let within = root.is_some_and(|root| {
        let mut above = root.split('/').filter(|segment| !matches!(*segment, "" | "."));
        above.all(|segment| inside.next() == Some(&segment))
    });
    if within {
        let inside = inside.copied().collect::<Vec<_>>().join("/");
        return if inside.is_empty() { Cow::Borrowed(".") } else { Cow::Owned(inside) };
    }
    let mut absolute = String::from("/");
    absolute.push_str(&kept.join("/"));
    Cow::Owned(absolute)
}

/// Whether `path` is `directory` or lies below it; both canonical.
pub(crate) fn is_within(path: &str, directory: &str) -> bool {
    match directory {
        "." => !path.starts_with('/'),
        "/" => path.starts_with('/'),
        _ => path
            .strip_prefix(directory)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
    }
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
            assert_eq!(resolve(path, base, root), expected, "{path} from {base}");
        }
        assert_eq!(resolve("../x", ".", None), "../x");
        assert_eq!(resolve("/x/../y", ".", None), "/y");
        assert_eq!(resolve(".", ".", None), ".");
    }

    #[test]
    fn what_is_within_a_directory() {
        assert!(is_within("a/b", "a") && is_within("a", "a") && is_within("a", "."));
        assert!(!is_within("ab", "a") && !is_within("/a", ".") && is_within("/a", "/"));
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
