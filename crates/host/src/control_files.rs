//! Reads the control files `STOP` and `PAUSE`, with which a person controls a session without a
//! command.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use jackline_engine::facts::ControlFiles;

/// The directory of both control files.
const DIRECTORY: &str = ".jackline";

/// Reads whether both control files exist, without following symbolic links. This runs at every
/// event, and most workspaces do not even have the directory.
pub fn read_control_files(workspace: Option<&Path>) -> ControlFiles {
    let mut markers = ControlFiles::default();
    let Some(workspace) = workspace else { return markers };
    let missing = |error: &io::Error| error.kind() == ErrorKind::NotFound;
    if fs::symlink_metadata(workspace.join(DIRECTORY)).is_err_and(|error| missing(&error)) {
        return markers;
    }
    for (name, there) in
        [(ControlFiles::STOP, &mut markers.stop), (ControlFiles::PAUSE, &mut markers.pause)]
    {
        match fs::symlink_metadata(workspace.join(name)) {
            Ok(_) => *there = true,
            // A missing directory, or a file in its place, contains no control file.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => markers.fault = Some(format!("`{name}` can't be read: {error}")),
        }
    }
    markers
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn any_file_with_the_name_counts() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Some(root.path());
        assert_eq!(read_control_files(workspace), ControlFiles::default());
        assert_eq!(read_control_files(None), ControlFiles::default());
        assert_eq!(read_control_files(Some(&root.path().join("gone"))), ControlFiles::default());
        let people = root.path().join(".jackline");
        fs::create_dir(&people).unwrap();
        assert_eq!(read_control_files(workspace), ControlFiles::default());
        fs::create_dir(people.join("STOP")).unwrap();
        symlink("nowhere", people.join("PAUSE")).unwrap();
        assert_eq!(
            read_control_files(workspace),
            ControlFiles { stop: true, pause: true, fault: None }
        );
        fs::remove_dir(people.join("STOP")).unwrap();
        assert_eq!(
            read_control_files(workspace),
            ControlFiles { stop: false, pause: true, fault: None }
        );
    }

    #[test]
    fn a_file_in_place_of_the_directory_counts_as_empty() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(".jackline"), "").unwrap();
        assert_eq!(read_control_files(Some(root.path())), ControlFiles::default());
    }

    #[test]
    fn an_unreadable_directory_is_reported() {
        let root = tempfile::tempdir().unwrap();
        symlink(".jackline", root.path().join(".jackline")).unwrap();
        let fault = read_control_files(Some(root.path())).fault.unwrap();
        assert!(fault.starts_with("`.jackline/PAUSE` can't be read: "), "{fault}");
    }
}
