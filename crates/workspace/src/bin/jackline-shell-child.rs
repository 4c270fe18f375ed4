//! The command supervisor as a separate program. An application that embeds the workspace tools
//! uses it if its own program can't act as the supervisor.

fn main() -> std::process::ExitCode {
    jackline_workspace::shell::supervisor_main()
}
