//! Where a path leads.
//!
//! Links are followed by hand, component by component, because a file that
//! does not exist yet has a place too: the one that a write would create.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// How many links are followed before it is a loop; the kernel's own number.
const HOPS_MAX: usize = 40;

/// The place a path leads to.
#[derive(Debug)]
pub(super) struct Landing {
    /// Absolute, without links.
    pub(super) path: PathBuf,
    /// What is there, if anything.
    pub(super) metadata: Option<Metadata>,
}

/// Why nobody can say where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lost;

/// Follows `path` from `base`, which is absolute and without links.
pub(super) fn follow(base: &Path, path: &Path) -> Result<Landing, Lost> {
    let mut walk = Walk { at: base.to_owned(), steps: Vec::new(), hops: 0 };
    walk.go_on_with(path);
    while let Some(step) = walk.steps.pop() {
        let name = match step {
            Step::Root => {
                walk.at = PathBuf::from("/");
                continue;
            }
            Step::Up => {
                // There are no links before here, so this is really the parent.
                walk.at.pop();
                continue;
            }
            Step::Down(name) => name,
        };
        walk.at.push(name);
        match fs::symlink_metadata(&walk.at) {
            Ok(found) if found.is_symlink() => walk.jump()?,
            Ok(found) if found.is_dir() => {}
            Ok(found) if walk.steps.is_empty() => {
                return Ok(Landing { path: walk.at, metadata: Some(found) });
            }
            // Nothing can be below a file.
            Ok(_) => return Ok(walk.missing()),
            Err(error) if is_missing(error.kind()) => return Ok(walk.missing()),
            Err(_) => return Err(Lost),
        }
    }
    let metadata = match fs::symlink_metadata(&walk.at) {
        Ok(metadata) => Some(metadata),
        Err(error) if is_missing(error.kind()) => None,
        Err(_) => return Err(Lost),
    };
    Ok(Landing { path: walk.at, metadata })
}

pub(super) fn is_missing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

enum Step {
    Root,
    Up,
    Down(OsString),
}

struct Walk {
    at: PathBuf,
    /// What is still to be walked, the next step last.
    steps: Vec<Step>,
    hops: usize,
}

impl Walk {
    fn go_on_with(&mut self, path: &Path) {
        self.steps.extend(path.components().rev().filter_map(|component| match component {
            Component::RootDir => Some(Step::Root),
            Component::ParentDir => Some(Step::Up),
            Component::Normal(name) => Some(Step::Down(name.to_owned())),
            Component::CurDir | Component::Prefix(_) => None,
        }));
    }

    /// Goes on from where the link leads that was just stepped on.
    fn jump(&mut self) -> Result<(), Lost> {
        self.hops += 1;
        if self.hops > HOPS_MAX {
            return Err(Lost);
        }
        let target = fs::read_link(&self.at).map_err(|_| Lost)?;
        self.at.pop();
        self.go_on_with(&target);
        Ok(())
    }

    /// From here on there is nothing, and so there are no links.
    fn missing(mut self) -> Landing {
        while let Some(step) = self.steps.pop() {
            match step {
                Step::Root => self.at = PathBuf::from("/"),
                Step::Up => drop(self.at.pop()),
                Step::Down(name) => self.at.push(name),
            }
        }
        Landing { path: self.at, metadata: None }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A directory with files and links, and where paths in it lead.
    fn leads(links: &[(&str, &str)], path: &str) -> Result<(String, bool), Lost> {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("real/deep")).unwrap();
        fs::write(base.join("real/file"), "x").unwrap();
        for (link, target) in links {
            let target = target.replace("BASE", base.to_str().unwrap());
            symlink(target, base.join(link)).unwrap();
        }
        let path = path.replace("BASE", base.to_str().unwrap());
        follow(&base, Path::new(&path)).map(|landing| {
            let shown = landing.path.display().to_string();
            (shown.replace(base.to_str().unwrap(), "BASE"), landing.metadata.is_some())
        })
    }

    #[test]
    fn links_are_followed_to_their_end() {
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
    fn what_is_not_there_leads_to_where_it_would_be() {
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
    fn a_loop_has_an_end() {
        let links = [("a", "b"), ("b", "a"), ("self", "self/x")];
        for path in ["a", "b/c", "self"] {
            assert_eq!(leads(&links, path), Err(Lost), "{path}");
        }
    }

    #[test]
    fn a_path_that_no_system_takes_is_lost() {
        assert_eq!(leads(&[], "a\0b"), Err(Lost));
        assert_eq!(leads(&[], &"x".repeat(5000)), Err(Lost));
    }
}
