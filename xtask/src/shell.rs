//! Runs other programs, mostly cargo.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The root of the project.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// A cargo command in the root of the project.
pub(crate) fn cargo(words: &[&str]) -> Command {
    // Cargo sets this for the programs that it runs, so that they use the same cargo.
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let mut command = Command::new(cargo);
    command.args(words).current_dir(root());
    command
}

/// Runs a command. The error says which command failed.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let shown = show(command);
    println!("$ {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` exited with {status}")),
        Err(error) => Err(format!("can't run `{shown}`: {error}")),
    }
}

/// Runs a command and returns its output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let shown = show(command);
    match command.stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Err(format!("`{shown}` exited with {}", output.status)),
        Err(error) => Err(format!("can't run `{shown}`: {error}")),
    }
}

/// Whether a subcommand of cargo is installed.
pub(crate) fn has_cargo(subcommand: &str) -> bool {
    let mut command = cargo(&[subcommand, "--version"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A command as a person would type it.
pub(crate) fn show(command: &Command) -> String {
    let name = PathBuf::from(command.get_program());
    let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
}
