//! The `jackline` binary: arguments, composition, exit codes.

mod args;
mod commands;
mod exit;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;
use jackline_engine::Action;

use crate::args::{Cli, Command, ConstraintCommand, HookArgs, StdioArgs};
use crate::exit::Exit;

fn main() -> ExitCode {
    // The gate is started for every event of some clients, so it does not wait
    // for the argument parser of the other commands.
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    if first.as_ref().is_some_and(|first| first == "hook")
        && let Some(hook) = HookArgs::parse_fast(arguments)
    {
        return commands::hook::run(&hook);
    }
    // Started again, to stand above a command of the tool `shell`.
    if first.as_ref().is_some_and(|first| first == jackline_workspace::shell::CHILD) {
        return jackline_workspace::shell::child();
    }
    let arguments = std::env::args_os().skip(2);
    if first.is_some_and(|first| first == "stdio")
        && let Some(stdio) = StdioArgs::parse_fast(arguments)
    {
        return commands::stdio::run(&stdio).into();
    }
    let exit = match Cli::parse().command {
        Command::Stdio(stdio) => commands::stdio::run(&stdio),
        Command::Hook(hook) => return commands::hook::run(&hook),
        Command::Mcp(mcp) => commands::mcp::run(&mcp),
        Command::Init(init) => commands::init::run(&init),
        Command::Doctor(doctor) => commands::doctor::run(&doctor),
        Command::Check(check) => commands::check::run(&check),
        Command::Explain(explain) => commands::explain::run(&explain),
        Command::Enforce(modes) => commands::modes::enforce(&modes),
        Command::Observe(modes) => commands::modes::observe(&modes),
        Command::Trust(trust) => commands::trust::run(&trust),
        Command::Pending(pending) => commands::pending::run(&pending),
        Command::Allow(allow) => commands::allow::run(&allow),
        Command::Refuse(refuse) => commands::refuse::run(&refuse),
        Command::Off(off) => commands::off::run(&off),
        Command::On(on) => commands::on::run(&on),
        Command::Pause(pause) => commands::control::run(&pause, Action::Pause),
        Command::Resume(resume) => commands::control::run(&resume, Action::Resume),
        Command::Stop(stop) => commands::control::run(&stop, Action::Stop),
        Command::Reset(reset) => commands::control::run(&reset, Action::Reset),
        Command::Ack(ack) => commands::control::run(&ack, Action::Acknowledge),
        Command::Clear(clear) => commands::control::clear(&clear),
        Command::Reload(reload) => commands::control::reload(&reload),
        Command::SkipTests(skip) => commands::control::skip_tests(&skip),
        Command::Constraint(ConstraintCommand::Expire(expire)) => {
            commands::control::expire(&expire)
        }
        Command::Run(run) => commands::run::run(&run),
        Command::Attempt(attempt) => commands::attempt::run(&attempt),
        Command::Undo(undo) => commands::undo::run(&undo),
        Command::Tools(tools) => commands::tools::run(&tools),
        Command::Status(status) => commands::status::run(&status),
        Command::Watch(watch) => commands::watch::run(&watch),
        Command::Log(log) => commands::log::run(&log),
        Command::Show(show) => commands::show::run(&show),
        Command::Replay(replay) => commands::replay::run(&replay),
        Command::Backtest(backtest) => commands::backtest::run(&backtest),
        Command::Export(export) => commands::export::run(&export),
        Command::Attest(attest) => commands::attest::run(&attest),
        Command::Verify(verify) => commands::verify::run(&verify),
        Command::Identity(identity) => commands::identity::run(&identity),
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
