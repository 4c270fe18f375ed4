//! Looks for the files by which a person steers without a command.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use jackline_engine::facts::Markers;

/// The directory that both are in.
const DIRECTORY: &str = ".jackline";

/// Looks at both names, without following what lies there. That is done at every
/// event, and most workspaces have not even the directory.
pub fn look(workspace: Option<&Path>) -> Markers {
    let mut markers = Markers::default();
    let Some(workspace) = workspace else { return markers };
    let missing = |error: &io::Error| error.kind() == ErrorKind::NotFound;
    if fs::symlink_metadata(workspace.join(DIRECTORY)).is_err_and(|error| missing(&error)) {
        return markers;
    }
    for (name, there) in [(Markers::STOP, &mut markers.stop), (Markers::PAUSE, &mut markers.pause)]
    {
        match fs::symlink_metadata(workspace.join(name)) {
            Ok(_) => *there = true,
            // A directory that is not there, or is none, holds nothing.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => markers.fault = Some(format!("`{name}` can't be looked at: {error}")),
        }
    }
    markers
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn whatever_has_the_name_counts() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Some(root.path());
        assert_eq!(look(workspace), Markers::default());
        assert_eq!(look(None), Markers::default());
        assert_eq!(look(Some(&root.path().join("gone"))), Markers::default());
        let people = root.path().join(".jackline");
        fs::create_dir(&people).unwrap();
        assert_eq!(look(workspace), Markers::default());
        fs::create_dir(people.join("STOP")).unwrap();
        symlink("nowhere", people.join("PAUSE")).unwrap();
        assert_eq!(look(workspace), Markers { stop: true, pause: true, fault: None });
        fs::remove_dir(people.join("STOP")).unwrap();
        assert_eq!(look(workspace), Markers { stop: false, pause: true, fault: None });
    }

    #[test]
    fn a_directory_that_is_none_holds_nothing() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(".jackline"), "").unwrap();
        assert_eq!(look(Some(root.path())), Markers::default());
    }

    #[test]
    fn what_nobody_can_see_is_said() {
        let root = tempfile::tempdir().unwrap();
        symlink(".jackline", root.path().join(".jackline")).unwrap();
        let fault = look(Some(root.path())).fault.unwrap();
        assert!(fault.starts_with("`.jackline/PAUSE` can't be looked at: "), "{fault}");
    }
}
