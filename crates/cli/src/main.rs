//! The `jackline` binary: arguments, composition, exit codes.

mod args;
mod commands;
mod exit;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command, StdioArgs};
use crate::exit::Exit;

fn main() -> ExitCode {
    // The gate is started for every event of some clients, so it does not wait
    // for the argument parser of the other commands.
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == "stdio")
        && let Some(stdio) = StdioArgs::parse_fast(arguments)
    {
        return commands::stdio::run(&stdio).into();
    }
    let exit = match Cli::parse().command {
        Command::Stdio(stdio) => commands::stdio::run(&stdio),
        Command::Check(check) => commands::check::run(&check),
        Command::Explain(explain) => commands::explain::run(&explain),
        Command::Enforce(modes) => commands::modes::enforce(&modes),
        Command::Observe(modes) => commands::modes::observe(&modes),
        Command::Trust(trust) => commands::trust::run(&trust),
        Command::Status(status) => commands::status::run(&status),
        Command::Log(log) => commands::log::run(&log),
        Command::Show(show) => commands::show::run(&show),
        Command::Replay(replay) => commands::replay::run(&replay),
        Command::Verify(verify) => commands::verify::run(&verify),
        Command::Verification(verification) => commands::verification::run(&verification),
        Command::Notify => commands::notify::run(),
    };
    exit.into()
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
