//! Resolves links in a path.
//!
//! Links are resolved step by step in this code, because a file that does not exist yet also has a
//! real path: the file that a write would create.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// The largest number of links in a path, as in the kernel. More count as a loop.
const LINKS_MAX: usize = 40;

/// The real path that a path leads to.
#[derive(Debug)]
pub(crate) struct RealPath {
    /// Absolute, without links.
    pub(crate) path: PathBuf,
    /// The metadata of the file, if it exists.
    pub(crate) metadata: Option<Metadata>,
}

/// A path that can't be resolved.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnresolvablePath;

/// Resolves `path` from `base`, which is absolute and without links.
pub(crate) fn resolve_path(base: &Path, path: &Path) -> Result<RealPath, UnresolvablePath> {
    let mut walk = LinkWalk { at: base.to_owned(), steps: Vec::new(), hops: 0 };
    walk.push_path(path);
    while let Some(step) = walk.steps.pop() {
        let name = match step {
            PathStep::Root => {
                walk.at = PathBuf::from("/");
                continue;
            }
            PathStep::Up => {
                // `at` has no links here, so its parent is the real parent.
                walk.at.pop();
                continue;
            }
            PathStep::Down(name) => name,
        };
        walk.at.push(name);
        match fs::symlink_metadata(&walk.at) {
            Ok(found) if found.is_symlink() => walk.follow_link()?,
            Ok(found) if found.is_dir() => {}
            Ok(found) if walk.steps.is_empty() => {
                return Ok(RealPath { path: walk.at, metadata: Some(found) });
            }
            // A file has no entries below it.
            Ok(_) => return Ok(walk.finish_missing()),
            Err(error) if is_missing(error.kind()) => return Ok(walk.finish_missing()),
            Err(_) => return Err(UnresolvablePath),
        }
    }
    let metadata = match fs::symlink_metadata(&walk.at) {
        Ok(metadata) => Some(metadata),
        Err(error) if is_missing(error.kind()) => None,
        Err(_) => return Err(UnresolvablePath),
    };
    Ok(RealPath { path: walk.at, metadata })
}

pub(crate) fn is_missing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

enum PathStep {
    Root,
    Up,
    Down(OsString),
}

struct LinkWalk {
    at: PathBuf,
    /// The remaining steps, the next one last.
    steps: Vec<PathStep>,
    hops: usize,
}

impl LinkWalk {
    fn push_path(&mut self, path: &Path) {
        self.steps.extend(path.components().rev().filter_map(|component| match component {
            Component::RootDir => Some(PathStep::Root),
            Component::ParentDir => Some(PathStep::Up),
            Component::Normal(name) => Some(PathStep::Down(name.to_owned())),
            Component::CurDir | Component::Prefix(_) => None,
        }));
    }

    /// Continues with the target of the link at the current path.
    fn follow_link(&mut self) -> Result<(), UnresolvablePath> {
        self.hops += 1;
        if self.hops > LINKS_MAX {
            return Err(UnresolvablePath);
        }
        let target = fs::read_link(&self.at).map_err(|_| UnresolvablePath)?;
        self.at.pop();
        self.push_path(&target);
        Ok(())
    }

    /// Applies the remaining steps to a path that does not exist, so it has no links.
    fn finish_missing(mut self) -> RealPath {
        while let Some(step) = self.steps.pop() {
            match step {
                PathStep::Root => self.at = PathBuf::from("/"),
                PathStep::Up => drop(self.at.pop()),
                PathStep::Down(name) => self.at.push(name),
            }
        }
        RealPath { path: self.at, metadata: None }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Resolves a path in a directory with files and links.
    fn leads(links: &[(&str, &str)], path: &str) -> Result<(String, bool), UnresolvablePath> {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("real/deep")).unwrap();
        fs::write(base.join("real/file"), "x").unwrap();
        for (link, target) in links {
            let target = target.replace("BASE", base.to_str().unwrap());
            symlink(target, base.join(link)).unwrap();
        }
        let path = path.replace("BASE", base.to_str().unwrap());
        resolve_path(&base, Path::new(&path)).map(|landing| {
            let shown = landing.path.display().to_string();
            (shown.replace(base.to_str().unwrap(), "BASE"), landing.metadata.is_some())
        })
    }

    #[test]
    fn links_are_resolved_to_their_target() {
        let links = [
            ("file", "real/file"),
            ("dir", "BASE/real"),
            ("again", "dir/../file"),
            ("real/deep/up", "../../dir/./deep"),
        ];
        for (path, end) in [
            ("real/file", "BASE/real/file"),
            ("file", "BASE/real/file"),
            ("dir/file", "BASE/real/file"),
            ("dir/deep/up/../file", "BASE/real/file"),
            ("again", "BASE/real/file"),
            ("BASE/dir", "BASE/real"),
            (".", "BASE"),
            ("real/deep/../..", "BASE"),
        ] {
            assert_eq!(leads(&links, path), Ok((end.to_owned(), true)), "{path}");
        }
    }

    #[test]
    fn a_missing_path_resolves_to_the_file_a_write_would_create() {
        let links = [("dir", "real"), ("dangling", "real/new"), ("far", "/nowhere/at/all")];
        for (path, end) in [
            ("new", "BASE/new"),
            ("dir/a/b", "BASE/real/a/b"),
            ("dangling", "BASE/real/new"),
            ("far/x", "/nowhere/at/all/x"),
            ("real/file/below", "BASE/real/file/below"),
        ] {
            assert_eq!(leads(&links, path), Ok((end.to_owned(), false)), "{path}");
        }
    }

    #[test]
    fn a_loop_of_links_is_unresolvable() {
        let links = [("a", "b"), ("b", "a"), ("self", "self/x")];
        for path in ["a", "b/c", "self"] {
            assert_eq!(leads(&links, path), Err(UnresolvablePath), "{path}");
        }
    }

    #[test]
    fn an_invalid_path_is_unresolvable() {
        assert_eq!(leads(&[], "a\0b"), Err(UnresolvablePath));
        assert_eq!(leads(&[], &"x".repeat(5000)), Err(UnresolvablePath));
    }
}
