//! Makes absolute paths in output relative to the workspace.

use std::io;
use std::path::{Path, PathBuf};

/// The absolute paths of a workspace: as it was given, and with links resolved.
#[derive(Debug)]
pub struct WorkspaceRoots {
    canonical: PathBuf,
    /// The longest path first, because one may be a prefix of the other.
    path_prefixes: Vec<String>,
}

impl WorkspaceRoots {
    /// Resolves the paths of an existing directory.
    pub fn new(root: &Path) -> io::Result<Self> {
        let canonical = root.canonicalize()?;
        if !canonical.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let mut names: Vec<String> = [root, &canonical]
            .into_iter()
            .filter(|path| path.is_absolute())
            .filter_map(|path| Some(path.to_str()?.trim_end_matches('/').to_owned()))
            .filter(|name| !name.is_empty())
            .collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names.dedup();
        Ok(Self { canonical, path_prefixes: names })
    }

    /// The path with links resolved.
    pub fn canonical(&self) -> &Path {
        &self.canonical
    }

    /// The text, with paths in the workspace made relative to it.
    pub fn relative(&self, text: &str) -> String {
        self.path_prefixes.iter().fold(text.to_owned(), |text, name| make_relative(&text, name))
    }
}

fn make_relative(text: &str, root: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(root) {
        result.push_str(before);
        rest = after;
        let below = after.strip_prefix('/');
        if is_inside_path(&result) || (below.is_none() && after.starts_with(is_name_char)) {
            result.push_str(root);
        } else if let Some(below) = below {
            result.push_str(if below.starts_with(is_name_char) { "" } else { "./" });
            rest = below;
        } else {
            result.push('.');
        }
    }
    result.push_str(rest);
    result
}

/// Whether the root is only a part of a longer path, such as `/other/workspace/root`.
fn is_inside_path(before: &str) -> bool {
    let begins = before.rfind(|letter: char| !is_name_char(letter) && letter != '/');
    let word = match begins.and_then(|at| before.split_at_checked(at)) {
        Some((_, word)) => word,
        None => before,
    };
    word.contains('/')
}

/// Whether the character is usually part of a file name.
fn is_name_char(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '~' | '@' | '+' | '%')
}

#[cfg(test)]
mod tests {
    use super::make_relative;

    #[test]
    fn paths_beneath_the_root_lose_it() {
        for (text, expected) in [
            ("/w/r/src/a.rs:1: no", "src/a.rs:1: no"),
            ("in /w/r", "in ."),
            ("in /w/r/ and '/w/r'", "in ./ and '.'"),
            ("-I/w/r/include:/w/r/x", "-Iinclude:x"),
            ("(/w/r/a)=/w/r/b", "(a)=b"),
            ("/w/r/.git", ".git"),
            ("/w/r\n", ".\n"),
        ] {
            assert_eq!(make_relative(text, "/w/r"), expected);
        }
    }

    #[test]
    fn other_paths_are_not_changed() {
        for text in ["/w/rest/a", "/x/w/r/a", "/w/r-2", "file:///w/r/a", "w/r", "/w/r.old", ""] {
            assert_eq!(make_relative(text, "/w/r"), text);
        }
    }
}
