//! The `jackline` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    jackline_cli::run()
}
