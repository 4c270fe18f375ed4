//! The arguments of `jackline hook`, and the parser for client names.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use jackline_clients::{CLIENTS, Client, find_client};

/// The timeout of a hook. After it, the answer is that the guard is broken.
const HOOK_SECONDS: u64 = 20;

/// Parses the name of one client.
pub(super) fn client_parser() -> impl TypedValueParser<Value = &'static Client> {
    let names = CLIENTS.map(|client| PossibleValue::new(client.id.as_str()).help(client.title));
    PossibleValuesParser::new(names)
        .try_map(|name| find_client(&name).ok_or_else(|| format!("there is no client `{name}`")))
}

#[derive(Args)]
#[command(
    after_help = "The client's hooks start this command; `jackline init` installs the hooks. \
Output and exit codes follow the hook interface of the client."
)]
pub(crate) struct HookArgs {
    /// The client that calls the hook
    #[arg(value_parser = client_parser())]
    pub(crate) client: &'static Client,
    /// The role of the agent [default: `identity.default_role` of the definition]
    #[arg(long)]
    pub(crate) role: Option<String>,
    /// Print a seal before the answer, for hook commands that accept only sealed answers
    #[arg(long)]
    pub(crate) sealed: bool,
    /// Timeout in seconds, after which the answer is that the guard is broken; must be less than
    /// the client's timeout
    #[arg(long, value_name = "SECONDS", default_value_t = HOOK_SECONDS, hide = true)]
    pub(crate) deadline_seconds: u64,
    /// The definition [default: jackline.yaml in the project or in a parent]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
}

impl HookArgs {
    /// Parses the command lines that the installer writes. Returns `None` for all others, which
    /// the full parser handles.
    pub(crate) fn parse_fast(arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut arguments = arguments.peekable();
        let client = find_client(arguments.next()?.to_str()?)?;
        let role = match arguments.next_if(|argument| argument == "--role") {
            Some(_) => Some(arguments.next()?.into_string().ok()?),
            None => None,
        };
        let sealed = arguments.next_if(|argument| argument == "--sealed").is_some();
        arguments.next().is_none().then_some(Self {
            client,
            role,
            sealed,
            deadline_seconds: HOOK_SECONDS,
            definition: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, CliCommand};

    #[test]
    fn the_fast_parser_accepts_what_the_installer_writes() {
        for (words, sealed) in [(&["claude"][..], false), (&["claude", "--sealed"], true)] {
            let quick = HookArgs::parse_fast(words.iter().map(OsString::from)).unwrap();
            let all = ["jackline", "hook"].iter().chain(words);
            let CliCommand::Hook(real) = Cli::parse_from(all).command else { panic!("hook") };
            assert_eq!((&quick.client.id, quick.sealed), (&real.client.id, real.sealed));
            assert_eq!((quick.sealed, quick.deadline_seconds), (sealed, real.deadline_seconds));
        }
        for odd in [&[][..], &["codex"], &["claude", "--help"], &["--sealed", "claude"]] {
            assert!(HookArgs::parse_fast(odd.iter().map(OsString::from)).is_none(), "{odd:?}");
        }
    }
}
