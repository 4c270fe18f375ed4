//! Files of the guard that are symbolic links.
//!
//! When a session is opened, the targets of these links become files of the guard, and so do links to
//! the definition. Later, a link is followed only to a target that was known then: an agent may have
//! made another link.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jackline_definition::FILE_NAME;
use jackline_engine::SessionLocation;

use crate::facts::links::resolve_path;

/// Adds the links among the files of the guard, and their targets.
pub fn add_links(place: &mut SessionLocation) {
    let Some(workspace) = place.workspace.as_deref().map(Path::new) else { return };
    let compared = SessionLocation::compared_files().map(|name| workspace.join(name));
    let own = place.own.iter().map(PathBuf::from);
    let users = place.home.as_ref().map(|home| Path::new(home).join(".config/jackline"));
    let directories = workspace.ancestors().map(Path::to_owned).chain(users);
    let definitions = directories.map(|directory| directory.join(FILE_NAME));
    for path in compared.chain(own).chain(definitions).collect::<Vec<_>>() {
        let Some(target) = target_of_link(&path) else { continue };
        let is_definition_link = path.file_name() == Some(FILE_NAME.as_ref());
        // A definition that does not apply is no file of the guard.
        if is_definition_link && !is_listed(&target, &place.definition) {
            continue;
        }
        // The link of settings is protected by its name, and the target of a definition is among
        // the files of the definition.
        let own = if is_definition_link { &path } else { &target };
        if !is_listed(own, &place.own) {
            place.own.push(own.display().to_string());
        }
        place.links.insert(path.display().to_string(), target.display().to_string());
    }
}

/// Returns the target of a link if it still leads to the file to which it led when the session was
/// opened. Otherwise returns the path itself: an agent may have made another link.
pub(crate) fn known_target<'p>(path: &'p Path, links: &BTreeMap<String, String>) -> Cow<'p, Path> {
    let known = path.to_str().and_then(|path| links.get(path)).map(PathBuf::from);
    match known.filter(|known| target_of_link(path).as_ref() == Some(known)) {
        Some(target) => Cow::Owned(target),
        None => Cow::Borrowed(path),
    }
}

/// Returns the file to which links in an absolute path lead, also if it does not exist. A target that
/// is no regular file, such as a device, is no file of the guard.
fn target_of_link(path: &Path) -> Option<PathBuf> {
    let target = resolve_path(Path::new("/"), path).ok()?;
    let is_file = target.metadata.is_none_or(|found| found.is_file());
    (is_file && target.path != path).then_some(target.path)
}

fn is_listed(path: &Path, files: &[String]) -> bool {
    files.iter().any(|file| Path::new(file) == path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn targets_of_links_belong_to_the_guard() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (work, dot) = (root.join("work"), root.join("dot"));
        fs::create_dir_all(work.join("cfg")).unwrap();
        fs::create_dir(&dot).unwrap();
        fs::write(work.join("cfg/j.yaml"), "version: 1\n").unwrap();
        fs::write(dot.join("settings.json"), "{}").unwrap();
        symlink("cfg/j.yaml", work.join("jackline.yaml")).unwrap();
        symlink(&dot, work.join(".claude")).unwrap();
        symlink("/dev/null", root.join("user.json")).unwrap();
        let text = |path: &Path| path.display().to_string();
        let mut place = SessionLocation {
            workspace: Some(text(&work)),
            own: vec![text(&root.join("user.json"))],
            definition: vec![text(&work.join("cfg/j.yaml"))],
            ..SessionLocation::default()
        };
        add_links(&mut place);
        for expected in [dot.join("settings.json"), work.join("jackline.yaml")] {
            assert!(is_listed(&expected, &place.own), "{expected:?} in {:?}", place.own);
        }
        assert!(!is_listed(Path::new("/dev/null"), &place.own));
        let link = work.join(".claude/settings.json");
        assert_eq!(known_target(&link, &place.links), dot.join("settings.json"));
        fs::remove_file(work.join(".claude")).unwrap();
        symlink(&work, work.join(".claude")).unwrap();
        assert_eq!(known_target(&link, &place.links), link);
    }
}
