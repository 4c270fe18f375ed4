//! Programs that tests start.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Writes a program. Another process writes it, so that no thread that starts a program in the same
/// moment holds it open: the system runs no such file.
pub(crate) fn write_program(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    let mut writer = Command::new("/bin/sh");
    writer.args(["-c", r#"printf %s "$1" > "$0" && chmod 700 "$0""#]).arg(&path).arg(text);
    assert!(writer.status().unwrap().success());
    path
}
