//! Writes programs that tests start.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes a program. A child process writes it, because the system refuses to run a file that a
/// process has open for writing. Another thread of this process could start a program at that
/// moment and inherit the open file.
pub(crate) fn write_program(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    let mut writer = Command::new("/bin/sh");
    writer.args(["-c", r#"printf %s "$1" > "$0" && chmod 700 "$0""#]).arg(&path).arg(text);
    assert!(writer.status().unwrap().success());
    path
}
