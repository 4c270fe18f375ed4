//! `jackline hook`, and the clients that a person can name.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use jackline_clients::{CLIENTS, Client, find_client};

/// How long a hook may take before it is answered that the guard is broken.
const HOOK_SECONDS: u64 = 20;

/// Takes the word of one client.
pub(super) fn one_client() -> impl TypedValueParser<Value = &'static Client> {
    let words = CLIENTS.map(|client| PossibleValue::new(client.id.as_str()).help(client.title));
    PossibleValuesParser::new(words)
        .try_map(|word| find_client(&word).ok_or_else(|| format!("there is no client `{word}`")))
}

#[derive(Args)]
#[command(after_help = "Started by the client's hooks; `jackline init` installs them. \
Follows the contract of its client, exit codes included.")]
pub(crate) struct HookArgs {
    /// The client
    #[arg(value_parser = one_client())]
    pub(crate) client: &'static Client,
    /// Put a seal before the answer, for a command line that believes nothing else
    #[arg(long)]
    pub(crate) sealed: bool,
    /// Seconds after which the answer is that the guard is broken; less than the client waits
    #[arg(long, value_name = "SECONDS", default_value_t = HOOK_SECONDS, hide = true)]
    pub(crate) deadline_seconds: u64,
    /// The definition [default: jackline.yaml in the project or in a parent]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
}

impl HookArgs {
    /// Understands what the installer writes, and leaves the rest to the real parser.
    pub(crate) fn parse_fast(words: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut words = words.peekable();
        let client = find_client(words.next()?.to_str()?)?;
        let sealed = words.next_if(|word| word == "--sealed").is_some();
        words.next().is_none().then_some(Self {
            client,
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
    use crate::args::{Cli, Command};

    #[test]
    fn what_the_installer_writes_is_understood_at_once() {
        for (words, sealed) in [(&["claude"][..], false), (&["claude", "--sealed"], true)] {
            let quick = HookArgs::parse_fast(words.iter().map(OsString::from)).unwrap();
            let all = ["jackline", "hook"].iter().chain(words);
            let Command::Hook(real) = Cli::parse_from(all).command else { panic!("hook") };
            assert_eq!((&quick.client.id, quick.sealed), (&real.client.id, real.sealed));
            assert_eq!((quick.sealed, quick.deadline_seconds), (sealed, real.deadline_seconds));
        }
        for odd in [&[][..], &["codex"], &["claude", "--help"], &["--sealed", "claude"]] {
            assert!(HookArgs::parse_fast(odd.iter().map(OsString::from)).is_none(), "{odd:?}");
        }
    }
}
