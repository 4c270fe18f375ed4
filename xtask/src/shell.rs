//! Running other programs, above all cargo.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The root of the project.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// A command of cargo in the root of the project.
pub(crate) fn cargo(words: &[&str]) -> Command {
    // Set by cargo for the programs it runs, so that they use the same one.
    let cargo = option_env!("CARGO").unwrap_or("cargo");
    let mut command = Command::new(cargo);
    command.args(words).current_dir(root());
    command
}

/// Runs a command and says what failed.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let shown = show(command);
    println!("$ {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` ended with {status}")),
        Err(error) => Err(format!("can't run `{shown}`: {error}")),
    }
}

/// Runs a command and gives what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let shown = show(command);
    match command.stderr(Stdio::inherit()).output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => Err(format!("`{shown}` ended with {}", output.status)),
        Err(error) => Err(format!("can't run `{shown}`: {error}")),
    }
}

/// Whether a subcommand of cargo is installed.
pub(crate) fn has_cargo(subcommand: &str) -> bool {
    let mut command = cargo(&[subcommand, "--version"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A command as a person would write it.
pub(crate) fn show(command: &Command) -> String {
    let name = PathBuf::from(command.get_program());
    let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
    std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ")
}
