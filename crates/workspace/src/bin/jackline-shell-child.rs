//! The supervisor of commands as a program of its own, for whoever embeds the
//! tools and does not want to be started again itself.

fn main() -> std::process::ExitCode {
    jackline_workspace::shell::child()
}
