//! The command line: parses the arguments, runs the command, returns the exit code.
//!
//! This is a library so that tests can start it with other [processes](jackline_host::person).

mod args;
mod commands;
mod exit;
mod status_label;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;
use jackline_engine::ControlAction;

use crate::args::{Cli, CliCommand, ConstraintCommand, HookArgs, StdioArgs};
use crate::exit::ExitKind;
use crate::terminal::finish_output;

/// Runs `jackline` with the arguments of this process.
pub fn run() -> ExitCode {
    // Some clients start a hook for every event, so a hook skips the full argument parser.
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    if first.as_ref().is_some_and(|first| first == "hook")
        && let Some(hook) = HookArgs::parse_fast(arguments)
    {
        return commands::hook::run(&hook);
    }
    // The tool `shell` starts this program again as the parent of each command.
    if first.as_ref().is_some_and(|first| first == jackline_workspace::shell::SUPERVISOR_ARGUMENT) {
        return jackline_workspace::shell::supervisor_main();
    }
    let arguments = std::env::args_os().skip(2);
    if first.is_some_and(|first| first == "stdio")
        && let Some(stdio) = StdioArgs::parse_fast(arguments)
    {
        return finish_output(commands::stdio::run(&stdio)).into();
    }
    let exit = match Cli::parse().command {
        CliCommand::Stdio(stdio) => commands::stdio::run(&stdio),
        CliCommand::Hook(hook) => return commands::hook::run(&hook),
        CliCommand::Mcp(mcp) => commands::mcp::run(&mcp),
        CliCommand::Init(init) => commands::init::run(&init),
        CliCommand::Doctor(doctor) => commands::doctor::run(&doctor),
        CliCommand::Check(check) => commands::check::run(&check),
        CliCommand::Explain(explain) => commands::explain::run(&explain),
        CliCommand::Enforce(modes) => commands::modes::enforce(&modes),
        CliCommand::Observe(modes) => commands::modes::observe(&modes),
        CliCommand::Trust(trust) => commands::trust::run(&trust),
        CliCommand::Pending(pending) => commands::pending::run(&pending),
        CliCommand::Allow(allow) => commands::allow::run(&allow),
        CliCommand::Refuse(refuse) => commands::refuse::run(&refuse),
        CliCommand::Off(off) => commands::off::run(&off),
        CliCommand::On(on) => commands::on::run(&on),
        CliCommand::Pause(pause) => commands::control::run(&pause, ControlAction::Pause),
        CliCommand::Resume(resume) => commands::control::run(&resume, ControlAction::Resume),
        CliCommand::Stop(stop) => commands::control::run(&stop, ControlAction::Stop),
        CliCommand::Reset(reset) => commands::control::run(&reset, ControlAction::Reset),
        CliCommand::Ack(ack) => commands::control::run(&ack, ControlAction::Acknowledge),
        CliCommand::Clear(clear) => commands::control::clear(&clear),
        CliCommand::Reload(reload) => commands::control::reload(&reload),
        CliCommand::SkipTests(skip) => commands::control::skip_tests(&skip),
        CliCommand::Constraint(ConstraintCommand::Expire(expire)) => {
            commands::control::expire(&expire)
        }
        CliCommand::Run(run) => commands::run::run(&run),
        CliCommand::Attempt(attempt) => commands::attempt::run(&attempt),
        CliCommand::Undo(undo) => commands::undo::run(&undo),
        CliCommand::Tools(tools) => commands::tools::run(&tools),
        CliCommand::Status(status) => commands::status::run(&status),
        CliCommand::Watch(watch) => commands::watch::run(&watch),
        CliCommand::Log(log) => commands::log::run(&log),
        CliCommand::Violations(counted) => commands::violations::run(&counted),
        CliCommand::Show(show) => commands::show::run(&show),
        CliCommand::Replay(replay) => commands::replay::run(&replay),
        CliCommand::Backtest(backtest) => commands::backtest::run(&backtest),
        CliCommand::Export(export) => commands::export::run(&export),
        CliCommand::Attest(attest) => commands::attest::run(&attest),
        CliCommand::Verify(verify) => commands::verify::run(&verify),
        CliCommand::Identity(identity) => commands::identity::run(&identity),
        CliCommand::Verification(verification) => commands::verification::run(&verification),
        CliCommand::Notify => commands::notify::run(),
    };
    finish_output(exit).into()
}

impl From<ExitKind> for ExitCode {
    fn from(exit: ExitKind) -> Self {
        Self::from(exit as u8)
    }
}
