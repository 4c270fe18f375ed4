//! Paths within the workspace, as an agent should name them.

use std::io;
use std::path::{Path, PathBuf};

/// The names of a workspace: as it was given, and where that leads.
#[derive(Debug)]
pub struct Roots {
    canonical: PathBuf,
    /// The longest first: one may begin with the other.
    names: Vec<String>,
}

impl Roots {
    /// The names of a directory that is there.
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
        Ok(Self { canonical, names })
    }

    /// Where it really is.
    pub fn canonical(&self) -> &Path {
        &self.canonical
    }

    /// The text, with paths beneath the workspace relative to it.
    pub fn relative(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, name| relative(&text, name))
    }
}

fn relative(text: &str, root: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(root) {
        made.push_str(before);
        rest = after;
        let below = after.strip_prefix('/');
        if is_longer(&made) || (below.is_none() && after.starts_with(is_in_name)) {
            made.push_str(root);
        } else if let Some(below) = below {
            made.push_str(if below.starts_with(is_in_name) { "" } else { "./" });
            rest = below;
        } else {
            made.push('.');
        }
    }
    made.push_str(rest);
    made
}

/// Whether a path began before: another place has the same name below it.
fn is_longer(before: &str) -> bool {
    let begins = before.rfind(|letter: char| !is_in_name(letter) && letter != '/');
    let word = match begins.and_then(|at| before.split_at_checked(at)) {
        Some((_, word)) => word,
        None => before,
    };
    word.contains('/')
}

/// Whether a letter usually is part of a name.
fn is_in_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '~' | '@' | '+' | '%')
}

#[cfg(test)]
mod tests {
    use super::relative;

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
            assert_eq!(relative(text, "/w/r"), expected);
        }
    }

    #[test]
    fn other_paths_stay_as_they_are() {
        for text in ["/w/rest/a", "/x/w/r/a", "/w/r-2", "file:///w/r/a", "w/r", "/w/r.old", ""] {
            assert_eq!(relative(text, "/w/r"), text);
        }
    }
}
